import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { Centrifuge } from 'centrifuge'
import t, { type Test } from 'tap'
import { WebSocket } from 'ws'
import { stackOf } from '../../../demo/run/stack.js'
import { ROOT } from '../../../scripts/lib/root.js'
import { unavailablePorts } from '../../../src/cli/dev/ports.js'
import { readableLine } from '../../../src/cli/dev/readable-line.js'
import { portOf } from '../../helper/address.js'
import { Operator } from '../../helper/admin.js'
import { startBrowser } from '../../helper/browser.js'
import { type Child, startChild } from '../../helper/child.js'
import { environment } from '../../helper/environment.js'
import { freePort, LOOPBACK } from '../../helper/free-port.js'
import { send } from '../../helper/http.js'
import { newDatabase } from '../../helper/postgres.js'
import { scriptArguments } from '../../helper/script.js'

/** A generous limit for a busy machine. */
const PATIENCE_MS = 180_000

const threePorts = async () => ({
  GATEWAY_PORT: String(await freePort()),
  RELAY_PORT: String(await freePort()),
  DEMO_BACKEND_PORT: String(await freePort())
})

const startScript = (t: Test, env: Readonly<Record<string, string>>, ...args: string[]): Promise<Child> =>
  startChild(t, process.execPath, [...scriptArguments('scripts/start.ts'), ...args], { PATH: environment.path, ...env })

/** Runs the script with the built programs. Not with the embedded database, which takes ten CPU seconds to start. */
const start = async (t: Test, env: Readonly<Record<string, string>>, ...args: string[]): Promise<Child> =>
  startScript(t, { DATABASE_URL: await newDatabase(), ...env }, '--no-build', ...args)

const rejectsConnections = async (port: string): Promise<boolean> =>
  send(`http://${LOOPBACK}:${port}`, '/').then(
    () => false,
    ({ code }: { code: string }) => code === 'ECONNREFUSED'
  )

t.test('npm start -- --oidc', { timeout: 3 * PATIENCE_MS }, async (t) => {
  const ports = { ...(await threePorts()), DEMO_OIDC_PORT: String(await freePort()) }
  // With the option that adds a program; the next test starts the others without it.
  const program = await start(t, ports, '--oidc', '--verbose')
  await program.waitForLine('says so until every part answers', PATIENCE_MS)
  const page = `http://${LOOPBACK}:${ports.GATEWAY_PORT}`
  const early = await send(page, '/live')
  await program.waitForLine('Stop      Ctrl-C', PATIENCE_MS)
  const word = (label: string): string => new RegExp(`${label} +(\\S+)`).exec(program.stdout)?.[1] ?? ''

  t.test('the page says that the demo is starting until every part answers', async (t) => {
    t.match(early, { status: 503, body: /<h1>Gatehouse is starting<\/h1>/, headers: { 'retry-after': '2' } })
    t.equal((await send(page, '/api/health/ready')).status, 200)
  })

  t.test('npm start prints its steps with times, and that it is running after the last one', async (t) => {
    const steps = ['relay starts', 'backend starts', 'gateway starts', 'every part answers']
    for (const step of steps) t.match(program.stdout, new RegExp(`^  ${step}: done after \\d+\\.\\d s$`, 'm'))
    const last = program.stdout.indexOf('every part answers: done')
    t.ok(last < program.stdout.indexOf('Gatehouse is running.'))
    const gateway = program.stdout.indexOf('gateway starts …')
    t.ok(program.stdout.indexOf('backend starts: done') < gateway, 'the gateway starts when the others answer')
  })

  t.test("npm start prints the addresses and passwords of the page and the operators' page", async (t) => {
    t.equal(word('  Page'), `http://localhost:${ports.GATEWAY_PORT}`)
    t.match(program.stdout, 'admin@example.com, operator@example.com, viewer@example.com')
    t.match(program.stdout, new RegExp(`Relay +http://localhost:${ports.RELAY_PORT}/admin +password \\w{12}\\n`))
  })

  t.test('operators sign in with the printed password', async (t) => {
    const url = `http://${LOOPBACK}:${ports.RELAY_PORT}`
    t.match(await send(url, '/admin'), { status: 200, body: /<title>/ })
    const operator = new Operator({ url })
    const [, password = ''] = /\/admin +password (\w+)/.exec(program.stdout) ?? []
    t.equal((await operator.signIn(password)).status, 204)
    t.match(await operator.read('session'), { idleMs: 1_800_000 })
    const live = await operator.live(t)
    await live.next('checks', (checks) => checks.some(({ id, state }) => id === 'floors' && state === 'green'))
  })

  t.test('npm start -- --verbose prints the logs of all three programs in readable form', async (t) => {
    for (const name of ['gateway', 'relay', 'backend']) {
      t.match(program.stdout, new RegExp(`^${name} *│ \\d\\d:\\d\\d:\\d\\d info  listening at http://`, 'm'))
    }
  })

  t.test('a page that signs in with the printed password receives positions', async (t) => {
    const login = await send(page, '/api/auth/login', {
      method: 'POST',
      headers: { 'content-type': 'application/json', host: `localhost:${ports.GATEWAY_PORT}` },
      body: JSON.stringify({ email: 'viewer@example.com', password: word('  Password') })
    })
    t.equal(login.status, 200)
    const cookie = (login.headers['set-cookie'] ?? []).map((text) => text.split(';')[0]).join('; ')
    t.notMatch(login.headers['set-cookie']?.join(), /secure/i, 'there is no TLS here')
    const response = await send(page, '/api/negotiate', { headers: { cookie } })
    const { url, token } = JSON.parse(response.body).data
    t.equal(url, `ws://localhost:${ports.GATEWAY_PORT}/connection/websocket`, 'one port for page and realtime')

    // The relay must accept the origin of the page.
    class PageWebSocket extends WebSocket {
      constructor(address: string, protocols: string | string[]) {
        super(address, protocols, { origin: `http://localhost:${ports.GATEWAY_PORT}`, allowSynchronousEvents: false })
      }
    }
    const client = new Centrifuge(url, { token, websocket: PageWebSocket })
    t.teardown(() => client.disconnect())
    const subscription = client.newSubscription('floor:f-1')
    const arrived = new Promise<{ type: string; data: unknown[] }>((resolve) => {
      subscription.on('publication', ({ data }) => resolve(data))
    })
    subscription.subscribe()
    client.connect()

    const { type, data } = await arrived
    t.equal(type, 'position-batch')
    t.ok(data.length > 0)
  })

  t.test('npm start -- --oidc starts an identity provider that signs users in', async (t) => {
    const origin = `http://localhost:${ports.GATEWAY_PORT}`
    t.match(program.stdout, `Provider  ${origin}/auth/oidc/login`)
    const browser = await startBrowser(t)
    const tab = await browser.newPage()
    tab.setDefaultTimeout(PATIENCE_MS)
    await tab.goto(`${origin}/auth/oidc/login?returnTo=/api/auth/backend-me`)
    await tab.click('text=Olive Operator')
    await tab.waitForURL(`${origin}/api/auth/backend-me`)
    t.match(await tab.textContent('body'), '"role":"operator"', 'the backend identifies the user')
  })

  t.test('npm start restarts a backend that was killed, with a message, and the page recovers', async (t) => {
    const [, pid = ''] = /backend starts … process (\d+)/.exec(program.stdout) ?? []
    process.kill(Number(pid), 'SIGKILL')
    await program.waitForLine('The backend ended with SIGKILL. It is started again …', PATIENCE_MS)
    await program.waitForLine(/The backend answers again, after \d+\.\d s\./, PATIENCE_MS)
    t.equal((await send(page, '/api/health/ready')).status, 200)
  })

  t.test('npm start stops all programs on Ctrl-C, also on a second one, and exits with 0', async (t) => {
    program.signal('SIGINT')
    program.signal('SIGINT')
    t.same(await program.exited, { code: 0, signal: null })
    for (const port of Object.values(ports)) t.ok(await rejectsConnections(port), `port ${port} is closed`)
  })
})

t.test('npm start stops all programs when one of them ends', { timeout: 2 * PATIENCE_MS }, async (t) => {
  const ports = await threePorts()
  // An invalid setting that only the gateway reads.
  const program = await start(t, { ...ports, DEMO_SIMULATOR: 'off', CSRF_MODE: 'loud' })

  t.same(await program.exited, { code: 1, signal: null })
  t.notMatch(program.stdout, 'provider', 'there is no identity provider without the option')
  t.match(program.stdout, /gateway *│ gateway: CSRF_MODE must be one of plain, signed/)
  t.match(program.stderr, 'The gateway ended with 1')
  t.notMatch(program.stderr, /\n\s+at /, 'no stack trace')
  for (const port of Object.values(ports)) t.ok(await rejectsConnections(port), `port ${port} is closed`)
})

t.test('npm start does not say that it runs if the relay ends meanwhile', { timeout: 2 * PATIENCE_MS }, async (t) => {
  const program = await start(t, { ...(await threePorts()), DEMO_SIMULATOR: 'off' })
  await program.waitForLine('relay starts: done', PATIENCE_MS)
  t.notMatch(program.stdout, '│', 'logs below the level warn need --verbose')
  const [, pid = ''] = /relay starts … process (\d+)/.exec(program.stdout) ?? []
  process.kill(Number(pid), 'SIGKILL')

  t.same(await program.exited, { code: 1, signal: null })
  t.equal(program.stderr, 'The relay ended with SIGKILL, so the others stop too.\n')
  t.notMatch(program.stdout, 'Gatehouse is running')
})

t.test('npm run build keeps what is built while the sources are unchanged', { timeout: PATIENCE_MS }, async (t) => {
  const build = async (...args: readonly string[]): Promise<string> => {
    const program = await startChild(t, process.execPath, [...scriptArguments('scripts/build.ts'), ...args], {
      PATH: environment.path
    })
    t.same(await program.exited, { code: 0, signal: null })
    return program.stdout
  }
  for (const step of ['page', 'adminPage']) rmSync(join(ROOT, 'dist/.build', step), { force: true })
  t.match(await build('--no-demo'), /^build the operators' page: /)
  t.match(await build(), /^build the page: [^\n]+\n$/)
  t.equal(await build(), '', 'no step ran')
})

t.test('npm start stops its build on a signal', { timeout: 2 * PATIENCE_MS }, async (t) => {
  // Otherwise the build would be kept.
  rmSync(join(ROOT, 'dist/.build/programs'), { force: true })
  const program = await startScript(t, await threePorts())
  await program.waitForLine('compile the programs …', PATIENCE_MS)
  program.signal('SIGTERM')

  // The compiler has the same output, which ends with the last process.
  t.same(await program.exited, { code: 0, signal: null })
  t.notMatch(program.stdout, 'relay starts')
  t.equal(program.stderr, '')
})

t.test('npm start names a port that is in use and the setting for it', { timeout: PATIENCE_MS }, async (t) => {
  const server = createServer()
  await once(server.listen(0, LOOPBACK), 'listening')
  t.teardown(() => server.close())
  const port = portOf(server)
  const program = await start(t, { ...(await threePorts()), RELAY_PORT: String(port) })

  t.same(await program.exited, { code: 1, signal: null })
  t.equal(
    program.stderr,
    `Port ${port} of the relay is in use. Stop the program that listens there, or set RELAY_PORT to another port.\n`
  )
})

t.test('unavailablePorts does not list free ports', async (t) => {
  t.same(await unavailablePorts([{ name: 'gateway', port: await freePort(), portVariable: 'GATEWAY_PORT' }]), [])
})

t.test('secrets of npm start', async (t) => {
  const secretsOf = (env: Readonly<Record<string, string>>): string[] =>
    stackOf(env, { root: ROOT, folder: '' }).programs.flatMap(
      ({ env: { API_SECRET, TOKEN_SECRET, REALTIME_API_KEY, REALTIME_HMAC_SECRET } }) =>
        [API_SECRET, TOKEN_SECRET, REALTIME_API_KEY, REALTIME_HMAC_SECRET].filter((secret) => secret !== undefined)
    )

  t.test('npm start generates three long secrets, which differ at each start', async (t) => {
    const [one, other] = [new Set(secretsOf({})), new Set(secretsOf({}))]
    t.same([one.size, other.size, new Set([...one, ...other]).size], [3, 3, 6])
    t.ok([...one].every((secret) => /^[0-9a-f]{64}$/.test(secret)))
  })

  t.test('npm start uses the secrets that are set', async (t) => {
    const env = { TOKEN_SECRET: 'a', REALTIME_API_KEY: 'b', REALTIME_HMAC_SECRET: 'c', DEMO_PASSWORD: 'd' }
    t.same([...new Set(secretsOf(env))].toSorted(), ['a', 'b', 'c'])
    t.equal(stackOf(env, { root: ROOT, folder: '' }).demoPassword, 'd')
  })
})

t.test('readableLine formats log lines and leaves other lines unchanged', async (t) => {
  const cases: readonly (readonly [string, string, string])[] = [
    ['{"level":30,"time":0,"pid":1,"name":"relay","msg":"stopped"}', 'relay   │ 00:00:00 info  stopped', 'message'],
    [
      '{"level":40,"time":0,"reason":"timeout","failures":2,"msg":"publishing failed"}',
      'relay   │ 00:00:00 WARN  publishing failed reason=timeout failures=2',
      'fields follow the message'
    ],
    [
      'relay: RELAY_PORT must be free',
      'relay   │ relay: RELAY_PORT must be free',
      'a line that is not JSON is unchanged'
    ],
    ['{"level":"x"}', 'relay   │ {"level":"x"}', 'other JSON is unchanged']
  ]
  for (const [line, shown, title] of cases) t.equal(readableLine('relay', line), shown, title)
})
