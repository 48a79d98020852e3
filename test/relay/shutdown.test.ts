import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import type { Child } from '../helper/child.js'
import { send } from '../helper/http.js'
import { startProgram } from '../helper/program.js'
import { connectedClient } from '../helper/raw-client.js'
import { officialClient, startRelay, TRANSPORTS } from '../helper/relay.js'
import { API_KEY, HMAC_SECRET } from '../helper/relay-rules.js'

const DEADLINE_EXCEEDED = 'shutdown deadline exceeded'

const runRelay = async (t: Test, workers: number): Promise<{ program: Child; url: string }> => {
  const program = await startProgram(t, 'dist/src/relay/main.js', {
    RELAY_PORT: '0',
    RELAY_WORKERS: String(workers),
    REALTIME_HMAC_SECRET: HMAC_SECRET,
    REALTIME_API_KEY: API_KEY,
    RELAY_ADMIN_PASSWORD: 'a password for operators'
  })
  const [url = ''] = /http:[^"]+/.exec(await program.waitForLine('listening at')) ?? []
  return { program, url }
}

interface RawConnection {
  readonly socket: Socket
  /** The data sent by the relay; resolves when it has closed the connection. */
  readonly received: Promise<string>
}

const rawConnection = async (t: Test, url: string, text: string): Promise<RawConnection> => {
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  t.teardown(() => socket.destroy())
  let received = ''
  socket.setEncoding('latin1').on('data', (more: string) => {
    received += more
  })
  socket.on('error', () => undefined)
  await once(socket, 'connect')
  socket.write(text)
  return { socket, received: once(socket, 'close').then(() => received) }
}

const post = (path: string, body: string, length: number): string =>
  `POST ${path} HTTP/1.1\r\nHost: relay\r\nX-API-Key: ${API_KEY}\r\nContent-Length: ${length}\r\n\r\n${body}`

const UNFINISHED: Readonly<Record<string, string>> = {
  'a connection without a request': '',
  'half a request line': 'POST /ap',
  'half of the headers': 'POST /api HTTP/1.1\r\nHost: relay\r\nX-API-',
  'half a body for the API': post('/api/publish', '{"channel":', 100),
  'half a body for a stream': post('/connection/http_stream', '{"id":1,', 100),
  'half a body for the emulation': post('/emulation', '{"session":', 100),
  'half of the headers of a WebSocket': 'GET /connection/websocket HTTP/1.1\r\nUpgrade: websocket\r\n',
  'a finished request': 'GET /health HTTP/1.1\r\nHost: relay\r\n\r\n',
  'a finished request and half of the next': 'GET /health HTTP/1.1\r\nHost: relay\r\n\r\nGET /he'
}

for (const workers of [1, 2]) {
  t.test(
    `connections without a complete request do not delay the exit of a relay with ${workers} worker(s)`,
    async (t) => {
      const { program, url } = await runRelay(t, workers)
      const open = await Promise.all(Object.values(UNFINISHED).map((text) => rawConnection(t, url, text)))
      const client = await connectedClient(t, url)
      // The relay accepts connections in order, so it has accepted the others when it responds to these.
      for (let worker = 0; worker < workers; worker++) await send(url, '/health')
      program.signal('SIGTERM')

      t.equal(await client.closed, '3001 shutdown')
      t.same(await program.exited, { code: 0, signal: null })
      t.notMatch(program.stdout, DEADLINE_EXCEEDED)
      await Promise.all(open.map(({ received }) => received))
    }
  )
}

t.test('all API paths respond with 503 to requests that are incomplete when the relay shuts down', async (t) => {
  const { program, url } = await runRelay(t, 1)
  const paths = ['/api', '/api/publish', '/api/broadcast', '/api/batch', '/api/info']
  const open = await Promise.all(paths.map((path) => rawConnection(t, url, post(path, '{', 100))))
  await send(url, '/health')
  program.signal('SIGTERM')

  for (const [index, { received }] of open.entries()) {
    t.match(await received, /^HTTP\/1.1 503 .*connection: close/is, paths[index] ?? '')
  }
  t.same(await program.exited, { code: 0, signal: null })
})

t.test('all API paths respond with 503 to requests that arrive during shutdown', async (t) => {
  const relay = await startRelay(t)
  // A client that does not complete the close handshake keeps the relay draining.
  const client = await connectedClient(t, relay.url)
  client.ws.pause()
  // A connection that has served a request is not idle when the next request arrives.
  const open = await Promise.all(
    ['/api', '/api/publish', '/api/batch'].map(async (path) => {
      const connection = await rawConnection(t, relay.url, post('/api/info', '{}', 2))
      await once(connection.socket, 'data')
      return { path, ...connection }
    })
  )
  const closed = relay.running.close()
  for (const { path, socket } of open) socket.write(post(path, '{}', 2))
  for (const { path, received } of open) {
    const later = (await received).split('HTTP/1.1 ').slice(2)
    t.ok(
      later.every((response) => response.startsWith('503 ')),
      `${path} is not served`
    )
  }
  client.ws.terminate()
  await closed
})

for (const transport of TRANSPORTS) {
  t.test(`closeConnections closes clients over ${transport} with 3001`, async (t) => {
    const relay = await startRelay(t)
    const client = officialClient(t, relay, transport, { minReconnectDelay: 60_000, maxReconnectDelay: 60_000 })
    const connected = new Promise((resolve) => client.once('connected', resolve))
    client.connect()
    await connected
    const lost = new Promise((resolve) => client.once('connecting', resolve))
    relay.running.closeConnections()
    t.match(await lost, { code: 3001, reason: 'shutdown' })
  })
}
