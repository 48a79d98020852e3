import { once } from 'node:events'
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import packageFile from '../../package.json' with { type: 'json' }
import { ROOT } from '../../scripts/lib/root.js'
import { runCli } from '../../src/cli/cli.js'
import { developmentSettings } from '../../src/cli/dev/development-settings.js'
import { startChild } from '../helper/child.js'
import { environment } from '../helper/environment.js'
import { eventually } from '../helper/eventually.js'
import { freePort, LOOPBACK } from '../helper/free-port.js'

const MAIN = join(ROOT, 'dist/src/cli/main.js')

/** In this process. */
const inProcess = async (args: readonly string[], env: Readonly<Record<string, string>> = {}) => {
  const [stdout, stderr]: [string[], string[]] = [[], []]
  const code = await runCli(args, {
    env: { ...env },
    print: (text) => stdout.push(`${text}\n`),
    printErrors: (lines) => stderr.push(...lines.map((line) => `${line}\n`))
  })
  return { code, stdout: stdout.join(''), stderr: stderr.join('') }
}

/** In a process whose input and output are not a terminal. */
const gatehouse = async (t: Parameters<typeof startChild>[0], args: readonly string[], env = {}) => {
  const child = await startChild(t, process.execPath, [MAIN, ...args], { PATH: environment.path, ...env })
  const { code } = await child.exited
  return { code, stdout: child.stdout, stderr: child.stderr }
}

const filesIn = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(
    (file) => !statSync(join(folder, file)).isDirectory()
  )

t.test('gatehouse init writes a project with secrets of its own, and never replaces a file', async (t) => {
  const folder = join(t.testdir(), 'My Orders')
  const { code, stdout } = await inProcess(['init', folder, '--yes'])

  t.equal(code, 0)
  t.same(filesIn(folder).toSorted(), [
    '.env',
    '.gitignore',
    'backend.js',
    'openapi.yaml',
    'package.json',
    'public/index.html',
    'public/page.js',
    'relay.yaml'
  ])
  const settings = readFileSync(join(folder, '.env'), 'utf8')
  t.equal(statSync(join(folder, '.env')).mode & 0o777, 0o600)
  const secrets = ['API_SECRET', 'REALTIME_HMAC_SECRET', 'REALTIME_API_KEY'].map(
    (name) => new RegExp(`^${name}=([0-9a-f]{64})$`, 'm').exec(settings)?.[1]
  )
  t.equal(new Set(secrets).size, 3)
  t.notOk(secrets.includes(undefined))
  t.match(stdout, `with the password ${/^PASSWORD=(.*)$/m.exec(settings)?.[1]}`)
  t.match(readFileSync(join(folder, '.gitignore'), 'utf8'), /^\.env$/m)
  t.match(JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')), {
    name: 'my-orders',
    dependencies: { 'gatehouse-server': `^${packageFile.version}` }
  })

  const again = await inProcess(['init', folder, '--python', '--yes'])
  t.equal(again.code, 1)
  t.match(again.stderr, `${join(folder, '.env')} exists already\n`)
  t.match(again.stderr, /Nothing was written\.\n$/)
  t.equal(readFileSync(join(folder, '.env'), 'utf8'), settings)
  t.notOk(filesIn(folder).includes('backend.py'))
})

t.test('gatehouse init --python writes a backend in Python, which needs no package for backends', async (t) => {
  const folder = join(t.testdir(), 'orders')
  t.equal((await inProcess(['init', folder, '--python', '--yes'])).code, 0)

  t.ok(filesIn(folder).includes('backend.py'))
  const { scripts, dependencies } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  t.match(scripts.start, /gatehouse dev --env-file \.env -- python3 backend\.py$/)
  t.same(Object.keys(dependencies), ['gatehouse-client', 'gatehouse-server'])
})

t.test('gatehouse init --react writes the web application of the example, and its backend', async (t) => {
  const folder = join(t.testdir(), 'orders')
  t.equal((await inProcess(['init', folder, '--react', '--yes'])).code, 0)

  t.same(filesIn(join(folder, 'web')).toSorted(), [
    'App.tsx',
    'index.html',
    'main.tsx',
    'style.css',
    'tsconfig.json',
    'vite.config.ts'
  ])
  for (const [file, example] of [
    ['web/App.tsx', 'react/App.tsx'],
    ['backend.js', 'orders/backend.js'],
    ['relay.yaml', 'orders/relay.yaml']
  ] as const)
    t.equal(readFileSync(join(folder, file), 'utf8'), readFileSync(join(ROOT, 'examples', example), 'utf8'))
  const { scripts, dependencies, devDependencies } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  t.match(scripts.start, "gatehouse dev --env-file .env --web 'vite web' -- node backend.js")
  t.match(dependencies, { react: /^\d/, 'gatehouse-client': `^${packageFile.version}`, jsonwebtoken: /./ })
  t.match(devDependencies, { vite: /^\d/, typescript: /^\d/ })

  const both = await inProcess(['init', folder, '--react', '--python', '--yes'])
  t.match(both, { code: 2, stderr: 'gatehouse init: --react has a backend in Node.js: leave out --python\n' })
})

t.test('gatehouse init asks nothing without a terminal', async (t) => {
  const { code, stderr } = await gatehouse(t, ['init'])
  t.equal(code, 2)
  t.match(stderr, 'gatehouse init: --yes is required without a terminal\n')
})

const devSettings = async (folder: string) => {
  const secret = 'b1c2d3e4'.repeat(8)
  const backendPort = String(await freePort())
  return {
    GATEWAY_PORT: String(await freePort()),
    RELAY_PORT: String(await freePort()),
    BACKEND_URL: `http://127.0.0.1:${backendPort}`,
    PORT: backendPort,
    AUDIT_LOG_FILE: join(folder, 'audit.jsonl'),
    API_SECRET: 'c3d4e5f6'.repeat(8),
    REALTIME_HMAC_SECRET: secret,
    REALTIME_API_KEY: secret
  }
}

const BACKEND = `
require('node:http').createServer((request, response) => {
  if (request.url === '/end') process.exit(3)
  response.end(JSON.stringify(process.env))
}).listen(process.env.PORT, '127.0.0.1')`

const USUAL_PORTS = [3000, 4000, 8100]

/** The usual ports are in use: by this test, or by another program already. */
const occupyUsualPorts = async (t: Test): Promise<void> => {
  for (const port of USUAL_PORTS) {
    const server = createServer()
    const isListening = once(server.listen(port, LOOPBACK), 'listening')
    await isListening.then(
      () => t.teardown(() => server.close()),
      () => undefined
    )
  }
}

t.test('gatehouse dev chooses free ports, and keeps the programs running until a signal', async (t) => {
  const folder = t.testdir({ 'backend.cjs': BACKEND })
  await occupyUsualPorts(t)
  const command = `cd '${folder}' && exec '${process.execPath}' '${MAIN}' dev -- '${process.execPath}' backend.cjs`
  const dev = await startChild(t, '/bin/sh', ['-c', command], {
    PATH: environment.path,
    API_SECRET: 'c3d4e5f6'.repeat(8),
    REALTIME_HMAC_SECRET: 'b1c2d3e4'.repeat(8),
    REALTIME_API_KEY: 'd4e5f6a7'.repeat(8),
    DEV_ACCOUNT: 'ada@example.com',
    PASSWORD: 'the-password'
  })
  const RUNNING =
    /Running at (http:\/\/localhost:(\d+))\. Sign in as ada@example\.com with the password the-password\. Stop with Ctrl-C\./g
  const timesReady = (): number => [...dev.stdout.matchAll(RUNNING)].length
  await eventually(() => timesReady() === 1, { label: dev.stdout })
  const [[, url = '', gatewayPort = ''] = []] = [...dev.stdout.matchAll(RUNNING)]
  t.notOk(USUAL_PORTS.includes(Number(gatewayPort)))
  t.match(dev.stdout, `Port 3000 is in use, so the port of the gateway is ${gatewayPort}.\n`)
  const seen: Record<string, string> = JSON.parse(await (await fetch(`${url}/api/anything`)).text())
  t.match(seen, {
    NODE_ENV: 'development',
    GATEWAY_PORT: gatewayPort,
    BACKEND_URL: `http://127.0.0.1:${seen.PORT}`,
    RELAY_UPSTREAM: `http://127.0.0.1:${seen.RELAY_PORT}`,
    REALTIME_PUBLISH_URL: `http://127.0.0.1:${seen.RELAY_PORT}/api`,
    REALTIME_CLIENT_URL: `ws://localhost:${gatewayPort}/connection/websocket`,
    COOKIE_SECURE: 'false',
    LOGIN_LIMIT_MAX: '100'
  })
  t.equal((await fetch(`${url}/connection/websocket`)).status, 426, 'the relay answers through the gateway')

  await fetch(`${seen.BACKEND_URL}/end`).catch(() => undefined)
  await dev.waitForLine('The backend ended with 3. It starts again in 1 s, or when backend.cjs changes.')
  await eventually(() => timesReady() === 2, { label: dev.stdout })

  writeFileSync(join(folder, 'backend.cjs'), BACKEND.replace('JSON.stringify(process.env)', "'changed'"))
  await dev.waitForLine('backend.cjs has changed. The backend starts again …')
  await eventually(() => timesReady() === 3, { label: dev.stdout })
  t.equal(await (await fetch(`${url}/api/anything`)).text(), 'changed')

  dev.signal('SIGINT')
  t.same(await dev.exited, { code: 0, signal: null })
  t.equal(dev.stderr, '')
})

t.test('gatehouse dev says what it waits for, and stops if a program ends before it answers', async (t) => {
  const folder = t.testdir({ 'silent.cjs': 'setTimeout(() => process.exit(4), 7000)' })
  const settings = await devSettings(folder)
  const dev = await gatehouse(t, ['dev', '--', process.execPath, join(folder, 'silent.cjs')], settings)

  t.equal(dev.code, 1)
  t.match(dev.stdout, `Waiting for the backend to answer at ${settings.BACKEND_URL} …`)
  t.match(dev.stdout, /^relay {3}│ .* listening at/m)
  t.match(dev.stdout, /^relay {3}│ .* stopped$/m)
  t.match(dev.stderr, 'The backend ended with 4.\n')
})

t.test('the settings of gatehouse dev follow from those that are given', async (t) => {
  const folder = t.testdir({ 'relay.yaml': 'http_server: { port: 20603, internal_port: 20604 }' })
  const relayFile = {
    RELAY_CONFIG: join(folder, 'relay.yaml'),
    REALTIME_HMAC_SECRET: 'b1c2d3e4'.repeat(8),
    REALTIME_API_KEY: 'd4e5f6a7'.repeat(8)
  }
  const cases: readonly (readonly [given: Readonly<Record<string, string>>, expected: object])[] = [
    [{ PUBLIC_URL: 'http://localhost:20601' }, { GATEWAY_PORT: '20601', COOKIE_SECURE: 'false' }],
    [{ PUBLIC_URL: 'https://localhost:20601' }, { GATEWAY_PORT: /^3\d{3}$/, COOKIE_SECURE: undefined }],
    [{ PUBLIC_URL: 'http://localhost:20601', TRUST_PROXY: 'loopback' }, { GATEWAY_PORT: /^3\d{3}$/ }],
    [{ PUBLIC_URL: 'http://app.example.com:20601' }, { GATEWAY_PORT: /^3\d{3}$/ }],
    [{ GATEWAY_PORT: '20602' }, { REALTIME_CLIENT_URL: 'ws://localhost:20602/connection/websocket' }],
    [{ BACKEND_URL: 'http://127.0.0.1:20605/v1' }, { PORT: '20605', BACKEND_URL: 'http://127.0.0.1:20605/v1' }],
    [{ PORT: '20606' }, { BACKEND_URL: 'http://127.0.0.1:20606' }],
    [{ RELAY_UPSTREAM: 'http://127.0.0.1:20607' }, { RELAY_PORT: '20607' }],
    [
      relayFile,
      {
        RELAY_PORT: '20603',
        RELAY_UPSTREAM: 'http://127.0.0.1:20603',
        REALTIME_PUBLISH_URL: 'http://127.0.0.1:20604/api'
      }
    ],
    [
      { NODE_ENV: 'production', LOGIN_LIMIT_MAX: '5', COOKIE_SECURE: 'true' },
      { NODE_ENV: 'production', LOGIN_LIMIT_MAX: '5', COOKIE_SECURE: 'true' }
    ]
  ]
  for (const [given, expected] of cases) {
    const { env } = await developmentSettings(given, { hasBackend: true, hasWeb: false })
    t.match(env, expected, JSON.stringify(given))
  }
  const alone = await developmentSettings({}, { hasBackend: false, hasWeb: true })
  t.match(alone, { env: { PORT: undefined, BACKEND_URL: undefined } })
  t.ok(alone.webPort >= 5173)
})

t.test('gatehouse dev explains why it cannot start', async (t) => {
  const settings = await devSettings(t.testdir())
  const busy = await inProcess(['dev'], { ...settings, RELAY_PORT: settings.GATEWAY_PORT })
  t.match(busy, { code: 1, stderr: 'GATEWAY_PORT and RELAY_PORT must differ' })
  const wrong = await inProcess(['dev', 'node'], settings)
  t.match(wrong, { code: 2, stderr: 'gatehouse dev: unexpected argument: node\n' })
  const missing = await gatehouse(t, ['dev', '--', '/none/backend'], settings)
  t.match(missing, { code: 1, stderr: /The backend cannot be started \(spawn \/none\/backend ENOENT\)/ })
})
