import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import t from 'tap'
import { build } from 'vite'
import { ROOT } from '../../scripts/lib/root.js'
import { startChild } from '../helper/child.js'
import { environment } from '../helper/environment.js'
import { API_SECRET } from '../helper/gateway.js'
import { scriptArguments } from '../helper/script.js'

const PATIENCE_MS = 120_000
const MAX_PAGE_BYTES = 35 * 1024
const MAX_CALLS_BYTES = 8 * 1024

const run = (cwd: string, command: string, ...args: readonly string[]): string =>
  execFileSync(command, [...args], { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })

/** An empty folder with all packages installed from their tarballs, as a team would install them. */
const folder = mkdtempSync(join(tmpdir(), 'gatehouse-packages-'))
t.teardown(() => rmSync(folder, { recursive: true, force: true }))
run(ROOT, process.execPath, ...scriptArguments('scripts/packages.ts'))
const tarballs = readdirSync(join(ROOT, 'dist/packages'))
  .filter((name) => name.endsWith('.tgz'))
  .map((name) => join(ROOT, 'dist/packages', name))
writeFileSync(join(folder, 'package.json'), '{ "private": true, "type": "module" }')
// Strict: transitive dependencies must support this Node.js too.
run(folder, 'npm', 'install', '--engine-strict', '--prefer-offline', '--no-audit', '--no-fund', '--silent', ...tarballs)

const bin = join(folder, 'node_modules/.bin/gatehouse')
const environmentOf = (env: Readonly<Record<string, string>>) => ({ PATH: environment.path, ...env })

t.test('the packages contain no sources, tests or maps', async (t) => {
  t.equal(tarballs.length, 3)
  for (const tarball of tarballs) {
    const files = run(folder, 'tar', '-tzf', tarball).trim().split('\n')
    t.same(
      files.filter((file) => /\.(?:map|test\.js|vue)$|(?<!\.d)\.ts$|\/test\//.test(file)),
      []
    )
    for (const file of ['package.json', 'README.md', 'LICENSE']) t.ok(files.includes(`package/${file}`), file)
  }
})

t.test('only the outer manifest of gatehouse-server has entry points', async (t) => {
  const manifest = JSON.parse(readFileSync(join(folder, 'node_modules/gatehouse-server/dist/package.json'), 'utf8'))
  t.same(Object.keys(manifest), ['version', 'type', 'optionalDependencies'])
  t.equal(run(folder, bin, '--version'), `${manifest.version}\n`)
})

t.test('gatehouse-server does not install the packages for tracing', async (t) => {
  const { peerDependencies, peerDependenciesMeta } = JSON.parse(
    readFileSync(join(folder, 'node_modules/gatehouse-server/package.json'), 'utf8')
  )
  t.ok(Object.keys(peerDependencies).includes('@opentelemetry/sdk-trace-base'))
  for (const name of Object.keys(peerDependencies)) t.same(peerDependenciesMeta[name], { optional: true })
  t.notOk(existsSync(join(folder, 'node_modules/@opentelemetry/sdk-trace-base')))
})

t.test('gatehouse-client depends on centrifuge and TypeBox only', async (t) => {
  const manifest = JSON.parse(readFileSync(join(folder, 'node_modules/gatehouse-client/package.json'), 'utf8'))
  t.same(Object.keys(manifest.dependencies).toSorted(), ['@sinclair/typebox', 'centrifuge'])
})

const PAGE = `import { ApiError, createClient } from 'gatehouse-client'
import { Positions } from 'gatehouse-client/buildings'

const { call, session, realtime } = createClient()
const positions = new Positions(realtime)
const show = (id: string, text: string): void => {
  const element = document.getElementById(id)
  if (element !== null) element.textContent = text
}
positions.on('position-batch', ({ floorId, data }) => show('positions', \`\${floorId} \${data.length}\`))
realtime.on('state', (state) => show('state', state))
document.querySelector('form')?.addEventListener('submit', async (event) => {
  event.preventDefault()
  const { email, password } = Object.fromEntries(new FormData(event.target as HTMLFormElement))
  try {
    await call('POST', '/api/auth/login', { body: { email, password } })
    show('user', session.state.user?.email ?? '')
    positions.watchFloor('f-1')
  } catch (error) {
    show('user', error instanceof ApiError ? error.code : String(error))
  }
})
`
const HTML = `<!doctype html><title>Page</title><form><input name="email"><input name="password"><button>Sign in</button></form>
<p id="user"></p><p id="state"></p><p id="positions"></p><script type="module" src="./main.ts"></script>`

const pageFolder = join(folder, 'page')
mkdirSync(pageFolder)
writeFileSync(join(pageFolder, 'index.html'), HTML)
writeFileSync(join(pageFolder, 'main.ts'), PAGE)
const TYPESCRIPT = join(ROOT, 'node_modules/typescript/bin/tsc')

t.test('a page with generated calls and a backend type-check against the packages', async (t) => {
  cpSync(join(ROOT, 'examples/openapi.yaml'), join(folder, 'openapi.yaml'))
  run(folder, bin, 'client-api', 'openapi.yaml', '-o', 'page/api.ts')
  writeFileSync(
    join(pageFolder, 'use-api.ts'),
    "import { createCaller } from 'gatehouse-client'\nimport { createApi } from './api.js'\nexport const api = createApi(createCaller())\n"
  )
  const types: string[] = []
  const compilerOptions = { target: 'es2022', strict: true, noEmit: true, types }
  writeFileSync(
    join(pageFolder, 'tsconfig.json'),
    JSON.stringify({
      compilerOptions: {
        ...compilerOptions,
        module: 'esnext',
        moduleResolution: 'bundler',
        lib: ['es2022', 'dom', 'dom.iterable']
      },
      include: ['main.ts', 'use-api.ts']
    })
  )
  t.equal(run(pageFolder, process.execPath, TYPESCRIPT, '-p', '.'), '')

  const backend = join(folder, 'backend')
  mkdirSync(backend)
  writeFileSync(
    join(backend, 'backend.ts'),
    `import { buildGateway, buildRelay } from 'gatehouse-server'
import { createPublisher, negotiate } from 'gatehouse-backend'
import { defineRoutes, get, Type } from 'gatehouse-server/routes'
const publisher = createPublisher({ url: 'http://127.0.0.1:8100/api', apiKey: 'k' })
publisher.publish('floor:1', { type: 'position-batch', data: [] })
export const token: string = negotiate({ user: 'u1', url: 'wss://a', secret: 's' }).data.token
export const carts = defineRoutes({ domain: 'carts', about: 'Carts', rows: [get('/api/carts', 'List carts')] })
export const gateway = buildGateway({ config: { BACKEND_URL: 'http://127.0.0.1:4000' }, routes: [carts] })
export const relay = buildRelay({ config: { REALTIME_API_KEY: 'k', REALTIME_HMAC_SECRET: 's' } })
// @ts-expect-error: a misspelled setting
export const misspelled = buildGateway({ config: { BACKEND_URI: 'http://127.0.0.1:4000' } })
export const schema = Type.Object({})
`
  )
  writeFileSync(
    join(backend, 'tsconfig.json'),
    JSON.stringify({
      compilerOptions: {
        ...compilerOptions,
        module: 'nodenext',
        typeRoots: [join(ROOT, 'node_modules/@types')],
        types: ['node']
      },
      include: ['backend.ts']
    })
  )
  t.equal(run(backend, process.execPath, TYPESCRIPT, '-p', '.'), '')
})

t.test('a CommonJS program can require the packages', async (t) => {
  const program = `
    const { buildGateway, buildRelay } = require('gatehouse-server')
    const { negotiate } = require('gatehouse-backend')
    const { defineRoutes } = require('gatehouse-server/routes')
    const { createClient } = require('gatehouse-client')
    const { createBuildingClient } = require('gatehouse-client/buildings')
    console.log([buildGateway, buildRelay, negotiate, defineRoutes, createClient, createBuildingClient].map((each) => typeof each).join())`
  writeFileSync(join(folder, 'program.cjs'), program)
  t.equal(run(folder, process.execPath, 'program.cjs').trim(), Array(6).fill('function').join())
})

/** The gzipped bytes of the scripts of a page, and their text. */
const builtPage = async (root: string) => {
  const outDir = join(root, 'web')
  await build({ root, configFile: false, logLevel: 'warn', build: { outDir, emptyOutDir: true } })
  const scripts = readdirSync(join(outDir, 'assets')).filter((name) => name.endsWith('.js'))
  const text = scripts.map((name) => readFileSync(join(outDir, 'assets', name), 'utf8')).join('\n')
  return { bytes: gzipSync(text).length, text }
}

t.test('a page with session and realtime is at most 35 KB gzipped', async (t) => {
  const { bytes, text } = await builtPage(pageFolder)
  t.comment(`${bytes} bytes gzipped`)
  t.ok(bytes <= MAX_PAGE_BYTES, `${bytes} bytes gzipped`)
  t.match(text, 'max_rate')
})

t.test('a page with calls and session only is at most 8 KB gzipped, without the realtime client', async (t) => {
  const root = join(folder, 'calls-only')
  mkdirSync(root)
  writeFileSync(
    join(root, 'index.html'),
    '<!doctype html><title>Page</title><script type="module" src="./main.ts"></script>'
  )
  writeFileSync(
    join(root, 'main.ts'),
    `import { createApiClient } from 'gatehouse-client'
const { call, session } = createApiClient()
document.title = JSON.stringify([session.state, await call('GET', '/api/orders')])`
  )
  const { bytes, text } = await builtPage(root)
  t.comment(`${bytes} bytes gzipped`)
  t.ok(bytes <= MAX_CALLS_BYTES, `${bytes} bytes gzipped`)
  t.notMatch(text, /max_rate|centrifuge/)
})

t.test('both servers start from the package and stop with 0', async (t) => {
  const secret = 'b1c2d3e4'.repeat(8)
  for (const [name, env] of [
    [
      'gateway',
      {
        NODE_ENV: 'production',
        GATEWAY_PORT: '0',
        BACKEND_URL: 'http://127.0.0.1:1',
        API_SECRET,
        AUDIT_LOG_FILE: join(folder, 'audit.jsonl')
      }
    ],
    ['relay', { RELAY_PORT: '0', REALTIME_HMAC_SECRET: secret, REALTIME_API_KEY: secret }],
    ['relay', { RELAY_PORT: '0', REALTIME_HMAC_SECRET: secret, REALTIME_API_KEY: secret, RELAY_WORKERS: '2' }]
  ] as const) {
    const program = await startChild(t, bin, [name], environmentOf(env))
    await program.waitForLine(/listening/, PATIENCE_MS)
    program.signal('SIGTERM')
    t.same(await program.exited, { code: 0, signal: null }, `${name} ${JSON.stringify(env)}`)
  }
})

t.test('SIGTERM to npx stops the server that it started', async (t) => {
  const env = { ...environmentOf({ GATEWAY_PORT: '0', AUDIT_LOG_FILE: join(folder, 'audit.jsonl') }), HOME: folder }
  const npx = await startChild(t, 'npx', ['--prefix', folder, 'gatehouse', 'gateway'], env)
  await npx.waitForLine(/listening/, PATIENCE_MS)
  npx.signal('SIGTERM')
  // Settles when the output of the server has ended too.
  await npx.exited
  t.match(npx.stdout, /"msg":"stopped"/)
})

t.test(
  'every command of the package has help, and rejects unknown arguments with its usage and exit code 2',
  async (t) => {
    for (const command of ['gateway', 'relay', 'check-config', 'token', 'verify-token', 'client-api']) {
      t.match(run(folder, bin, command, '--help'), `Usage: gatehouse ${command}`)
      const program = await startChild(t, bin, [command, '--wrong'], environmentOf({}))
      t.match(await program.exited, { code: 2 }, command)
      t.match(program.stderr, /^gatehouse [\w-]+: [^\n]+\nUsage: gatehouse [^\n]+\n$/, command)
    }
  }
)
