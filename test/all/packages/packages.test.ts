import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import t from 'tap'
import { build } from 'vite'
import packageFile from '../../../package.json' with { type: 'json' }
import { PACKAGES } from '../../../scripts/lib/package-contents.js'
import { ROOT } from '../../../scripts/lib/root.js'
import { startBrowser } from '../../helper/browser.js'
import { startChild } from '../../helper/child.js'
import { environment } from '../../helper/environment.js'
import { eventually } from '../../helper/eventually.js'
import { freePort } from '../../helper/free-port.js'
import { API_SECRET } from '../../helper/gateway.js'
import { openWindow } from '../../helper/window.js'
import { commandBlocks, DocumentedShell, expectedOutput, hasFragments } from '../docs/command-blocks.js'
import { freePorts, MARK_MILLION, useDuringFailure, usePage } from './quickstart-page.js'
import { compile, examplesOf, importsOfAll } from './strict-project.js'
import { installedPackages, packedPackages, quickstartBlocks, quickstartProject, run } from './tarballs.js'

// One file, because packing and installing the packages takes longer than its tests.

/** All dependencies of each package that is small. */
const DEPENDENCIES: Readonly<Record<string, readonly string[]>> = {
  'gatehouse-client': ['@sinclair/typebox', 'centrifuge'],
  'gatehouse-backend': ['@sinclair/typebox', 'jsonwebtoken', 'undici']
}

/** Versions that are exact, because later ones in their range need Node.js 22. */
const EXACT = ['@fastify/cookie', '@fastify/static', 'light-my-request']

for (const { name, folder: packed, tarball, manifest } of packedPackages()) {
  t.test(
    `${name} has a README, a licence, a description and no sources, tests, maps or parts of the demo`,
    async (t) => {
      // `gatehouse init` copies sources of the examples.
      const files = run(packed, 'tar', '-tzf', tarball)
        .trim()
        .split('\n')
        .filter((file) => !file.startsWith('package/examples/'))
      t.same(
        files.filter((file) => /\.(?:map|test\.js|vue)$|(?<!\.d)\.ts$|\/(?:test|demo|web)\//.test(file)),
        []
      )
      for (const file of ['package.json', 'README.md', 'LICENSE']) t.ok(files.includes(`package/${file}`), file)
      t.match(readFileSync(join(packed, 'README.md'), 'utf8'), new RegExp(`^# ${name}\n`))
      t.ok(manifest.description.length > 40)
      t.ok(manifest.keywords.length > 3)
      t.equal(manifest.version, packageFile.version)
    }
  )

  t.test(`${name} has ranges of its dependencies and only optional peers`, async (t) => {
    const { dependencies, optionalDependencies, peerDependencies = {}, peerDependenciesMeta = {} } = manifest
    t.equal(optionalDependencies, undefined)
    for (const [dependency, range] of Object.entries(dependencies)) {
      t.match(range, EXACT.includes(dependency) ? /^\d/ : /^\^\d/, dependency)
    }
    for (const peer of Object.keys(peerDependencies)) t.same(peerDependenciesMeta[peer], { optional: true }, peer)
    const expected = DEPENDENCIES[name]
    if (expected !== undefined) t.same(Object.keys(dependencies).toSorted(), expected)
  })
}

t.test('the packages for browsers and backends have no side effects', async (t) => {
  for (const { name, manifest } of packedPackages())
    t.equal(manifest.sideEffects, name === 'gatehouse-server' ? undefined : false, name)
})

t.test('only the outer manifest of gatehouse-server has entry points', async (t) => {
  const packed = packedPackages().find(({ name }) => name === 'gatehouse-server')?.folder ?? ''
  const manifest = JSON.parse(readFileSync(join(packed, 'dist/package.json'), 'utf8'))
  t.same(Object.keys(manifest), ['version', 'type', 'optionalDependencies'])
})

const START_MS = 120_000
const SECRET = 'b1c2d3e4'.repeat(8)

const folder = installedPackages()
const bin = join(folder, 'node_modules/.bin/gatehouse')

/** Runs a program beside the installed packages and returns its output. */
const runProgram = (name: string, text: string): string => {
  writeFileSync(join(folder, name), text)
  return run(folder, process.execPath, name).trim()
}

t.test('gatehouse-server does not install the packages for tracing', async (t) =>
  t.notOk(existsSync(join(folder, 'node_modules/@opentelemetry/sdk-trace-base')))
)

t.test('gatehouse-server has the command under both names', async (t) => {
  for (const name of ['gatehouse', 'gatehouse-server'])
    t.equal(run(folder, join(folder, 'node_modules/.bin', name), '--version'), `${packageFile.version}\n`)
})

t.test('a CommonJS program can require the packages', async (t) => {
  const output = runProgram(
    'program.cjs',
    `const { buildGateway, buildRelay } = require('gatehouse-server')
    const { negotiate } = require('gatehouse-backend')
    const { defineRoutes } = require('gatehouse-server/routes')
    const { createClient } = require('gatehouse-client')
    console.log([buildGateway, buildRelay, negotiate, defineRoutes, createClient].map((each) => typeof each).join())`
  )
  t.equal(output, Array(5).fill('function').join())
})

t.test('gatehouse-client can be imported and created on a server without side effects', async (t) => {
  const output = runProgram(
    'import.mjs',
    `const before = new Set(Reflect.ownKeys(globalThis))
    const { createClient } = await import('gatehouse-client')
    const { createBuildingClient } = await import('gatehouse-client/buildings')
    createClient({ baseUrl: 'http://127.0.0.1:1' })
    createBuildingClient({ baseUrl: 'http://127.0.0.1:1' })
    const resources = process.getActiveResourcesInfo().filter((name) => /Timeout|TCP|TLS|Request/.test(name))
    console.log(JSON.stringify([Reflect.ownKeys(globalThis).filter((key) => !before.has(key)).map(String), resources]))`
  )
  t.same(JSON.parse(output), [[], []])
})

t.test('a relay of the package accepts what gatehouse-backend publishes, and stops with 0', async (t) => {
  const port = await freePort()
  const relay = await startChild(t, bin, ['relay'], {
    PATH: environment.path,
    RELAY_PORT: `${port}`,
    RELAY_WORKERS: '2',
    // Takes a CPU second; test/relay/main.test.ts covers it.
    RELAY_WARM_UP: 'false',
    REALTIME_HMAC_SECRET: SECRET,
    REALTIME_API_KEY: SECRET
  })
  await relay.waitForLine(/listening/, START_MS)
  const output = runProgram(
    'publish.mjs',
    `import { createPublisher } from 'gatehouse-backend'
    const publisher = createPublisher({ url: 'http://127.0.0.1:${port}/api', apiKey: '${SECRET}' })
    publisher.publish('floor:1', { type: 'position-batch', data: [] })
    await publisher.close()
    console.log(JSON.stringify(publisher.counts()))`
  )
  t.match(JSON.parse(output), { published: 1, failed: 0, dropped: 0 })
  relay.signal('SIGTERM')
  t.same(await relay.exited, { code: 0, signal: null })
})

t.test('SIGTERM to npx stops the gateway that it started', async (t) => {
  const npx = await startChild(t, 'npx', ['--prefix', folder, 'gatehouse', 'gateway'], {
    PATH: environment.path,
    HOME: folder,
    NODE_ENV: 'production',
    GATEWAY_PORT: '0',
    BACKEND_URL: 'http://127.0.0.1:1',
    API_SECRET,
    AUDIT_LOG_FILE: join(folder, 'audit.jsonl')
  })
  await npx.waitForLine(/listening/, START_MS)
  npx.signal('SIGTERM')
  // Settles when the output of the server has ended too.
  await npx.exited
  t.match(npx.stdout, /"msg":"stopped"/)
})

const BACKEND = `import { buildGateway, buildRelay } from 'gatehouse-server'
import { defineRoutes, get, Type } from 'gatehouse-server/routes'
export const carts = defineRoutes({ domain: 'carts', about: 'Carts', rows: [get('/api/carts', 'List carts')] })
export const gateway = buildGateway({ config: { BACKEND_URL: 'http://127.0.0.1:4000' }, routes: [carts] })
export const relay = buildRelay({ config: { REALTIME_API_KEY: 'k', REALTIME_HMAC_SECRET: 's' } })
// @ts-expect-error: a misspelled setting
export const misspelled = buildGateway({ config: { BACKEND_URI: 'http://127.0.0.1:4000' } })
export const schema = Type.Object({})
`

t.test('a strict program for Node.js and the examples of the packages compile with module nodenext', async (t) => {
  const examples = {
    ...examplesOf('docs/reference/packages.md'),
    ...Object.assign({}, ...PACKAGES.map(({ readme }) => examplesOf(readme)))
  }
  t.ok(Object.keys(examples).length > 2)
  const files = { 'entries.ts': importsOfAll(), 'backend.ts': BACKEND, ...examples }
  t.equal(compile('node', { module: 'nodenext', types: ['node'] }, files), '')
  t.match(
    compile('wrong', { module: 'nodenext' }, { 'wrong.ts': "export * from 'gatehouse-client/no-such-entry'" }),
    'TS2307'
  )
})

const USE_API = `import { createClient } from 'gatehouse-client'
import { createApi } from './api.js'
export const { api } = createClient({ routes: createApi })
`

t.test('a strict page with generated calls compiles with moduleResolution bundler', async (t) => {
  const project = join(folder, 'page')
  mkdirSync(project, { recursive: true })
  run(folder, join(folder, 'node_modules/.bin/gatehouse'), 'client-api', 'openapi.yaml', '-o', 'page/api.ts')
  const files = { 'entries.ts': importsOfAll(), 'use-api.ts': USE_API }
  t.equal(compile('page', { module: 'esnext', moduleResolution: 'bundler', types: ['node'] }, files), '')
  t.ok(readdirSync(project).includes('api.ts'))
})

const KILOBYTE = 1024

/** Scripts of web applications, and how many kilobytes they may have, minified and gzipped. */
const SCRIPTS = [
  ['the API client', 8, "import { createApiClient } from 'gatehouse-client'\ncreateApiClient()"],
  [
    'the client with realtime and live positions',
    40,
    "import { createClient } from 'gatehouse-client'\nimport { Positions } from 'gatehouse-client/buildings'\nglobalThis.positions = new Positions(createClient().realtime)"
  ],
  [
    'the client for buildings with all routes',
    65,
    "import { createBuildingClient } from 'gatehouse-client/buildings'\nglobalThis.client = createBuildingClient()"
  ]
] as const

const bundleOf = async (name: string, script: string): Promise<string> => {
  const input = join(folder, `${name}.js`)
  writeFileSync(input, script)
  const results = await build({
    root: folder,
    configFile: false,
    // Without the `.env` of the gateway.
    envDir: false,
    logLevel: 'warn',
    build: { write: false, target: 'es2022', rollupOptions: { input } }
  })
  if ('on' in results) throw new Error('the build watches its files')
  const code = [results].flat().flatMap(({ output }) => output.map((file) => (file.type === 'chunk' ? file.code : '')))
  return code.join('')
}

for (const [index, [title, kilobytes, script]] of SCRIPTS.entries()) {
  t.test(`${title} has at most ${kilobytes} KB, minified and gzipped`, async (t) => {
    const code = await bundleOf(`size-${index}`, script)
    const bytes = gzipSync(code).length
    t.comment(`${title}: ${(bytes / KILOBYTE).toFixed(1)} KB`)
    t.ok(bytes <= kilobytes * KILOBYTE, `${bytes} bytes`)
    t.match(code, 'x-csrf-token')
    t.equal(/centrifuge/i.test(code), !script.includes('createApiClient'), 'the realtime client is part of the script')
  })
}

t.test('the quickstart and the tutorial behind it work in an empty folder', async (t) => {
  const { gatehouse, commands, output } = quickstartProject()
  for (const fragments of expectedOutput(commands)) t.ok(hasFragments(output, fragments), `${fragments} in ${output}`)
  const shell = new DocumentedShell(t, folder, {
    PATH: environment.path,
    HOME: environment.all.HOME ?? folder,
    GATEHOUSE: gatehouse
  })
  const onFreePorts = await freePorts()
  const runBlock = async (commands: string): Promise<void> => {
    const output = await shell.run(commands)
    for (const fragments of expectedOutput(commands)) t.ok(hasFragments(output, fragments), `${fragments} in ${output}`)
  }

  const [build, , start, ...others] = quickstartBlocks()
  if (build === undefined || start === undefined) throw new Error('the quickstart has three blocks')
  t.match(build.commands, /^npm ci && npm run packages\nexport GATEHOUSE=\$PWD\n$/)
  t.same(others, [])
  const settings = join(folder, '.env')
  t.equal(statSync(settings).mode & 0o777, 0o600)
  // Other ports than the usual ones; everything else follows from them.
  const ports = onFreePorts('GATEWAY_PORT=3000\nRELAY_PORT=8100\nPORT=4000\n')
  writeFileSync(settings, readFileSync(settings, 'utf8') + ports)
  const [, password = ''] = /^PASSWORD=(.*)$/m.exec(readFileSync(settings, 'utf8')) ?? []

  t.ok(start.isServer)
  const running = await shell.start(start.commands, 'Running at')
  const page = await (await startBrowser(t)).newPage()
  const violations: string[] = []
  page.on('console', (message) => {
    if (/Content Security Policy/.test(message.text())) violations.push(message.text())
  })
  await usePage(page, onFreePorts('http://localhost:3000'), password)
  await useDuringFailure(page)
  // The next publication of the backend replaces the one of the tutorial, perhaps in the same frame.
  await page.evaluate(MARK_MILLION)
  const tutorial = onFreePorts(readFileSync(join(ROOT, 'docs/tutorials/first-backend.md'), 'utf8'))
  for (const { commands, skipped } of commandBlocks(tutorial)) if (skipped === undefined) await runBlock(commands)
  await page.waitForSelector('#items[title=seen]')
  await page.click('text=Sign out')
  await page.waitForSelector('#login:not([hidden])')
  t.same(violations, [])
  await running.stop()

  // The backend in Python takes the place of the other one.
  cpSync(join(ROOT, 'examples/quickstart/backend.py'), join(folder, 'backend.py'))
  const manifest = join(folder, 'package.json')
  writeFileSync(manifest, readFileSync(manifest, 'utf8').replace('node backend.js', 'python3 backend.py'))
  await shell.start(start.commands, 'Running at')
  await usePage(page, onFreePorts('http://localhost:3000'), password)
})

t.test(
  'the project of gatehouse init --react shows the list, the live count and presence on its development server',
  async (t) => {
    const project = join(folder, 'react-app')
    run(folder, bin, 'init', project, '--react', '--yes')
    // In place of the installation; the packages are found in the folder above.
    for (const name of ['react', 'react-dom', 'vite']) {
      const link = join(folder, 'node_modules', name)
      if (!existsSync(link)) symlinkSync(join(ROOT, 'node_modules', name), link)
    }
    const settings = readFileSync(join(project, '.env'), 'utf8')
    const [, password = ''] = /^PASSWORD=(.*)$/m.exec(settings) ?? []
    const bins = [join(folder, 'node_modules/.bin'), join(ROOT, 'node_modules/.bin')]
    const shell = new DocumentedShell(t, project, { PATH: [...bins, environment.path].join(':'), HOME: folder })
    const running = await shell.start('npm start', 'Running at')
    const [, url = ''] = /Running at (http:\S+)\. /.exec(running.output()) ?? []
    t.match(running.output(), `Sign in as ada@example.com with the password ${password}.`)

    const { page, pageErrors } = await openWindow(t, await startBrowser(t), url)
    await page.goto('/')
    await page.fill('[name=email]', 'ada@example.com')
    await page.fill('[name=password]', password)
    await page.click('button[type=submit]')
    await page.waitForSelector('li:has-text("Tea")')
    await page.waitForSelector('#watchers:text-is("Watching: Ada")')
    await eventually(async () => Number(await page.textContent('output')) > 0)
    t.same(pageErrors, [])
    await running.stop()
  }
)
