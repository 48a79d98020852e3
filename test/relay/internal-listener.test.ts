import { writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { Child } from '../helper/child.js'
import { eventually } from '../helper/eventually.js'
import { freePort } from '../helper/free-port.js'
import { send } from '../helper/http.js'
import { startProgram } from '../helper/program.js'
import { openClient } from '../helper/raw-client.js'
import { startRelay } from '../helper/relay.js'
import { API_KEY, type ConfigFile, HMAC_SECRET, relayToken } from '../helper/relay-rules.js'

const ADMIN = { enabled: true, password: 'a password for operators' }

const INTERNAL_PATHS = [
  '/api',
  '/api/publish',
  '/admin',
  '/admin/api/session',
  '/metrics',
  '/health',
  '/health/delivery'
]
const CLIENT_PATHS = ['/connection/websocket', '/connection/http_stream', '/connection/sse', '/emulation']

/** The paths that a listener serves. */
const served = async (url: string): Promise<string[]> => {
  const paths: string[] = []
  for (const path of [...INTERNAL_PATHS, ...CLIENT_PATHS]) {
    if ((await send(url, path, { headers: { accept: 'application/json' } })).status !== 404) paths.push(path)
  }
  return paths
}

t.test('without an internal port, one listener serves everything', async (t) => {
  const { url, running } = await startRelay(t, { admin: ADMIN })
  t.equal(running.internalServer, null)

  t.same(await served(url), [...INTERNAL_PATHS, ...CLIENT_PATHS])
})

t.test('an internal listener', async (t) => {
  const start = (file: ConfigFile = {}) => startRelay(t, { admin: ADMIN, ...file, http_server: { internal_port: '0' } })

  t.test('the API, the operators page, metrics and health are internal, client transports are not', async (t) => {
    const { url, internalUrl } = await start()

    t.same(await served(url), CLIENT_PATHS)
    t.same(await served(internalUrl), INTERNAL_PATHS)
  })

  t.test('http_api.external serves the API where clients connect', async (t) => {
    const { url, internalUrl } = await start({ http_api: { key: API_KEY, external: true } })
    const isApi = (path: string): boolean => path.startsWith('/api')

    t.same(await served(url), [...INTERNAL_PATHS.filter(isApi), ...CLIENT_PATHS])
    t.same(
      await served(internalUrl),
      INTERNAL_PATHS.filter((path) => !isApi(path))
    )
  })

  t.test('admin.external serves the operators page where clients connect', async (t) => {
    const { url, internalUrl } = await start({ admin: { ...ADMIN, external: true } })
    const isAdmin = (path: string): boolean => path.startsWith('/admin')

    t.same(await served(url), [...INTERNAL_PATHS.filter(isAdmin), ...CLIENT_PATHS])
    t.same(
      await served(internalUrl),
      INTERNAL_PATHS.filter((path) => !isAdmin(path))
    )
  })

  t.test('a WebSocket handshake at the internal port is 404', async (t) => {
    const { internalUrl } = await start()
    const headers = {
      connection: 'upgrade',
      upgrade: 'websocket',
      'sec-websocket-version': '13',
      'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ=='
    }

    t.equal((await send(internalUrl, '/connection/websocket', { headers })).status, 404)
  })
})

/** A built relay with an internal listener on a free port. */
const startProcess = async (t: Test, workers: number, http: ConfigFile): Promise<Child> => {
  const file = join(t.testdir(), 'relay.json')
  const content = {
    client: { token: { hmac_secret_key: HMAC_SECRET } },
    http_api: { key: API_KEY },
    channel: { namespaces: [{ name: 'floor', allow_subscribe_for_client: true }] },
    http_server: { port: 0, ...http }
  }
  writeFileSync(file, JSON.stringify(content))
  return startProgram(t, 'dist/src/relay/main.js', { RELAY_CONFIG: file, RELAY_WORKERS: String(workers) })
}

for (const workers of [1, 2]) {
  t.test(`a relay with ${workers} worker(s) listens on the internal port`, async (t) => {
    const program = await startProcess(t, workers, { internal_port: 0 })
    const urlIn = async (line: string): Promise<string> => /http:[^"]+/.exec(await program.waitForLine(line))?.[0] ?? ''
    const internalUrl = await urlIn('internal routes at')
    const url = await urlIn('listening at')
    const client = await openClient(t, url)
    await client.request({ id: 1, connect: { token: relayToken({ sub: '42' }) } })
    await client.request({ id: 2, subscribe: { channel: 'floor:7' } })
    const publish = (to: string) =>
      send(to, '/api/publish', {
        method: 'POST',
        body: '{"channel":"floor:7","data":1}',
        headers: { 'x-api-key': API_KEY }
      })
    // Consecutive connections go to different workers.
    for (let n = 0; n < workers; n++) {
      t.equal((await publish(url)).status, 404)
      t.equal((await publish(internalUrl)).status, 200)
      t.match(await client.next(), { push: { pub: { data: 1 } } })
      t.equal((await send(internalUrl, '/health')).status, 200)
      t.match((await send(internalUrl, '/metrics')).body, /^centrifugo_node_num_clients 1$/m)
    }
    program.signal('SIGTERM')

    t.same(await program.exited, { code: 0, signal: null })
  })

  t.test(`a relay with ${workers} worker(s) names internal_port if the port is in use`, async (t) => {
    const port = await freePort()
    const other = createServer().listen(port, '127.0.0.1')
    t.teardown(() => other.close())
    await eventually(() => other.listening)
    const program = await startProcess(t, workers, { internal_port: port })

    t.same(await program.exited, { code: 1, signal: null })
    t.match(program.stderr, /^relay: RELAY_CONFIG: http_server\.internal_port must be free \(/m)
  })
}
