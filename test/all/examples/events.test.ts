import { readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Centrifuge } from 'centrifuge'
import t from 'tap'
import { WebSocket } from 'ws'
import { ROOT } from '../../../scripts/lib/root.js'
import { WITH_BUILT_PACKAGES } from '../../helper/built-packages.js'
import { startChild, type Teardown } from '../../helper/child.js'
import { environment } from '../../helper/environment.js'
import { eventually } from '../../helper/eventually.js'
import { freePort } from '../../helper/free-port.js'
import { startProgram } from '../../helper/program.js'
import { pythonProgram } from '../sdk/python.js'

const FOLDER = join(ROOT, 'examples/events')
const SHIPPED_SECRET = 'replace-this-by-32-random-characters'
const SECRET = 'a-secret-for-the-test-of-the-examples'

const BACKENDS = {
  node: () => [process.execPath, ...WITH_BUILT_PACKAGES, join(FOLDER, 'backend.js')],
  python: () => [pythonProgram(), join(FOLDER, 'backend.py')]
} as const

/** The shipped configuration and one of the backends, on free ports. */
const startExample = async (t: Teardown, backend: keyof typeof BACKENDS) => {
  const folder = await mkdtemp(join(tmpdir(), 'gatehouse-example-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  const [relayPort, backendPort] = [await freePort(), await freePort()]
  const config = readFileSync(join(FOLDER, 'relay.yaml'), 'utf8')
    .replaceAll('127.0.0.1:4100', `127.0.0.1:${backendPort}`)
    .replaceAll(SHIPPED_SECRET, SECRET)
  await writeFile(join(folder, 'relay.yaml'), config)
  const relay = await startProgram(t, 'dist/src/relay/main.js', {
    RELAY_PORT: `${relayPort}`,
    RELAY_WARM_UP: 'false',
    RELAY_CONFIG: join(folder, 'relay.yaml'),
    REALTIME_HMAC_SECRET: 'a'.repeat(64),
    REALTIME_API_KEY: 'b'.repeat(64)
  })
  const [command = '', ...args] = BACKENDS[backend]()
  const program = await startChild(t, command, args, {
    PATH: environment.path,
    PORT: `${backendPort}`,
    SIGNING_SECRET: SECRET
  })
  await Promise.all([relay, program].map((child) => child.waitForLine('listening')))
  return {
    backendUrl: `http://127.0.0.1:${backendPort}`,
    /** A client with the session cookie of a browser. */
    clientOf: (session: string): Centrifuge => {
      const WithCookie = class extends WebSocket {
        constructor(url: string, protocols?: string | string[]) {
          super(url, protocols, { headers: { cookie: `theme=dark; session=${session}` } })
        }
      }
      const url = `ws://127.0.0.1:${relayPort}/connection/websocket`
      const client = new Centrifuge(url, { websocket: WithCookie, minReconnectDelay: 10, maxReconnectDelay: 20 })
      t.teardown(() => client.disconnect())
      return client
    }
  }
}

for (const backend of ['node', 'python'] as const) {
  t.test(`the ${backend} example decides about connections, channels and calls`, async (t) => {
    const { backendUrl, clientOf } = await startExample(t, backend)
    const bob = clientOf('bob-session')
    const connected = new Promise((resolve) => bob.on('connected', resolve))
    bob.connect()
    t.match(await connected, { data: { greeting: 'Hello bob' } })

    const own = bob.newSubscription('room:1')
    const subscribed = new Promise((resolve) => own.on('subscribed', resolve))
    own.subscribe()
    await subscribed
    const foreign = bob.newSubscription('room:2')
    const rejected = new Promise((resolve) => foreign.on('unsubscribed', resolve))
    foreign.subscribe()
    t.match(await rejected, { code: 403, reason: 'this room is not yours' })

    t.match(await bob.rpc('add', { a: 2, b: 3 }), { data: { user: 'bob', sum: 5 } })
    await t.rejects(bob.rpc('add', { a: 'x' }), { code: 400, message: 'a and b must be numbers' })
    await t.rejects(bob.rpc('other', {}), { code: 404 })

    const occupied = async (): Promise<string> => (await fetch(`${backendUrl}/occupied`)).text()
    await eventually(async () => (await occupied()).replace(' ', '') === '["room:1"]')

    const stranger = clientOf('none')
    const disconnected = new Promise((resolve) => stranger.on('disconnected', resolve))
    stranger.connect()
    t.match(await disconnected, { code: 401, reason: 'sign in first' })
  })

  t.test(`the ${backend} example rejects events without a signature`, async (t) => {
    const { backendUrl } = await startExample(t, backend)
    const body = JSON.stringify({ client: 'c', transport: 'x', protocol: 'json', encoding: 'json', user: 'ada' })
    for (const event of ['connect', 'subscribe', 'rpc', 'state'])
      t.equal((await fetch(`${backendUrl}/relay/${event}`, { method: 'POST', body })).status, 401, event)
    t.equal((await fetch(`${backendUrl}/relay/other`, { method: 'POST', body })).status, 404)
  })
}

t.test('the examples of events are short', async (t) => {
  const lines = (name: string): number => readFileSync(join(FOLDER, name), 'utf8').split('\n').length - 1
  t.ok(lines('backend.js') < 60)
  t.ok(lines('backend.py') < 120)
})
