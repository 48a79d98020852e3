import { once } from 'node:events'
import { createServer as createHttpServer } from 'node:http'
import { createServer, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import { WebSocket, WebSocketServer } from 'ws'
import { urlOf } from '../../helper/address.js'
import { eventually } from '../../helper/eventually.js'
import { browse, openSocket, responseOf } from '../../helper/exact-http.js'
import { freePort } from '../../helper/free-port.js'
import { startGateway, type TestGateway } from '../../helper/gateway.js'
import { RawClient } from '../../helper/raw-client.js'
import { event, officialClient, startRelay } from '../../helper/relay.js'
import { relayToken } from '../../helper/relay-rules.js'
import { startTcpProxy } from '../../helper/tcp-proxy.js'

const NAMESPACE = { channel: { namespaces: [{ name: 'chat', allow_subscribe_for_client: true }] } }
const UPGRADE =
  'GET /connection/websocket HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n' +
  'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n'

const connectionsOf = async ({ send }: TestGateway): Promise<number> =>
  Number(/^gateway_relay_connections (\d+)$/m.exec((await send('/metrics')).body)?.[1])

/** The gateway's response to a WebSocket handshake that it rejects. */
const rejection = async (url: string): Promise<{ status: number; code: unknown }> => {
  const ws = new WebSocket(`${url.replace('http', 'ws')}/connection/websocket`)
  ws.on('error', () => undefined)
  const [, response] = await once(ws, 'unexpected-response')
  return { status: response.statusCode, code: response.headers['x-gateway-error'] }
}

const open = async (gateway: TestGateway): Promise<RawClient> => {
  const client = new RawClient(`${gateway.url}/connection/websocket`)
  await once(client.ws, 'open')
  return client
}

t.test('an unreachable relay is 502 RELAY_UNREACHABLE over every transport', async (t) => {
  const gateway = await startGateway(t, { env: { RELAY_UPSTREAM: `http://127.0.0.1:${await freePort()}` } })
  t.same(await rejection(gateway.url), { status: 502, code: 'RELAY_UNREACHABLE' })
  for (const [method, path] of [
    ['GET', '/connection/sse'],
    ['POST', '/connection/http_stream'],
    ['POST', '/emulation']
  ] as const) {
    const response = await gateway.send(path, { method })
    t.equal(response.status, 502, path)
    t.match(response.json(), { success: false, error: { code: 'RELAY_UNREACHABLE' }, requestId: /./ })
    t.notMatch(response.body, '127.0.0.1')
  }
  t.equal(await connectionsOf(gateway), 0)
})

/** Accepts connections and never responds. */
const startSilentServer = async (t: Test): Promise<{ url: string; sockets: Socket[] }> => {
  const sockets: Socket[] = []
  const server = createServer((socket) => {
    sockets.push(socket)
    socket.on('error', () => undefined).resume()
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return { url: urlOf(server), sockets }
}

t.test('a hung relay is 504 RELAY_TIMEOUT, and the connections are released', async (t) => {
  const silent = await startSilentServer(t)
  const gateway = await startGateway(t, { env: { RELAY_UPSTREAM: silent.url } })
  t.same(await rejection(gateway.url), { status: 504, code: 'RELAY_TIMEOUT' })
  t.equal((await gateway.send('/connection/sse')).code, 'RELAY_TIMEOUT')
  t.equal(await connectionsOf(gateway), 0)
})

/** A server that passes the health check of the gateway. */
const startFakeRelay = async (t: Test, handleUpgrade: (ws: WebSocket) => void) => {
  const server = createHttpServer((_request, response) => response.end())
  const webSockets = new WebSocketServer({ server })
  webSockets.on('connection', (ws) => {
    ws.on('error', () => undefined)
    handleUpgrade(ws)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => {
    for (const ws of webSockets.clients) ws.terminate()
    server.closeAllConnections()
    server.close()
  })
  return urlOf(server)
}

t.test('the client reconnects after its connection to the relay was cut', async (t) => {
  const relay = await startRelay(t, NAMESPACE)
  const link = await startTcpProxy(t, relay.port)
  const gateway = await startGateway(t, { env: { RELAY_UPSTREAM: `http://127.0.0.1:${link.port}` } })
  const port = Number(new URL(gateway.url).port)
  for (const transport of ['websocket', 'http_stream', 'sse'] as const) {
    const client = officialClient(t, { port }, transport)
    const connected = event(client, 'connected')
    client.connect()
    await connected
    const again = event(client, 'connected')
    link.redirect(relay.port)
    await again
    client.disconnect()
  }
  await eventually(async () => (await connectionsOf(gateway)) === 0)
})

t.test('a relay that stops responding is detected, and the browser is disconnected', async (t) => {
  const relay = await startRelay(t, NAMESPACE)
  const link = await startTcpProxy(t, relay.port)
  const gateway = await startGateway(t, {
    env: { RELAY_UPSTREAM: `http://127.0.0.1:${link.port}`, RELAY_UPSTREAM_IDLE_MS: '1000' }
  })
  const client = await open(gateway)
  await client.request({ id: 1, connect: { token: relayToken({ sub: '42' }) } })
  link.stopForwarding('GET /connection/websocket')
  await client.closed
  await eventually(() => gateway.logs.some(({ msg, side }) => msg === 'silent WebSocket closed' && side === 'relay'))
  await eventually(async () => (await connectionsOf(gateway)) === 0)

  const stream = await responseOf(
    browse(gateway.url, '/connection/sse?cf_connect=%7B%22id%22%3A1%2C%22connect%22%3A%7B%7D%7D').end()
  )
  t.equal(stream.statusCode, 200)
  link.stopForwarding('GET /connection/sse')
  stream.resume()
  await once(stream, 'close')
  await eventually(async () => (await connectionsOf(gateway)) === 0)
})

t.test('a browser that stops responding is detected', async (t) => {
  const closed: number[] = []
  const url = await startFakeRelay(t, (ws) => ws.once('close', (code) => closed.push(code)))
  const gateway = await startGateway(t, { env: { RELAY_UPSTREAM: url, RELAY_UPSTREAM_IDLE_MS: '1000' } })
  const socket = await openSocket(gateway.url)
  socket.write(UPGRADE)
  // It does not respond to pings.
  socket.resume()
  await once(socket, 'close')
  await eventually(() => closed.length === 1)
  t.ok(gateway.logs.some(({ msg, side }) => msg === 'silent WebSocket closed' && side === 'browser'))
})

t.test('a silent WebSocket whose sides respond to pings stays open', async (t) => {
  let pings = 0
  const url = await startFakeRelay(t, (ws) => ws.on('ping', () => (pings += 1)))
  const gateway = await startGateway(t, { env: { RELAY_UPSTREAM: url, RELAY_UPSTREAM_IDLE_MS: '1000' } })
  const client = await open(gateway)
  await eventually(() => pings >= 3)
  t.equal(client.ws.readyState, WebSocket.OPEN)
  client.ws.terminate()
})

t.test('messages for a browser that does not read are not buffered without a limit', async (t) => {
  let sent = 0
  let ended = false
  const chunk = Buffer.alloc(64 * 1024)
  const url = await startFakeRelay(t, (ws) => {
    const send = (): void => {
      if (ws.readyState !== WebSocket.OPEN) return
      ws.send(chunk, () => {
        sent += chunk.length
        send()
      })
    }
    ws.once('close', () => {
      ended = true
    })
    send()
  })
  const gateway = await startGateway(t, {
    env: { RELAY_UPSTREAM: url, CLIENT_MIN_RATE: '1KiB', CLIENT_RATE_WINDOW_MS: '2000' }
  })
  const before = process.memoryUsage().rss
  const socket = await openSocket(gateway.url)
  socket.pause()
  socket.write(UPGRADE)
  // The relay's connection stalls, and the gateway then disconnects the browser, which is below the minimum rate.
  await eventually(() => ended)
  t.ok(sent < 64 * 1024 * 1024, `${sent} bytes`)
  t.ok(process.memoryUsage().rss - before < 128 * 1024 * 1024)
  socket.destroy()
})

t.test('the connection limits are 503 OVERLOADED', async (t) => {
  const relay = await startRelay(t, NAMESPACE)
  const env = { RELAY_UPSTREAM: relay.url, TRUST_PROXY: 'loopback' }
  const total = await startGateway(t, { env: { ...env, RELAY_UPSTREAM_CONNECTIONS: '2' } })
  const clients = [await open(total), await open(total)]
  t.same(await rejection(total.url), { status: 503, code: 'OVERLOADED' })
  t.equal((await total.send('/connection/sse')).headers['retry-after'], '1')
  t.equal((await total.send('/api/health')).status, 200)
  for (const { ws } of clients) ws.terminate()
  await eventually(async () => (await connectionsOf(total)) === 0)
  ;(await open(total)).ws.terminate()

  const perAddress = await startGateway(t, { env: { ...env, RELAY_UPSTREAM_CONNECTIONS_PER_ADDRESS: '1' } })
  const first = await open(perAddress)
  t.same(await rejection(perAddress.url), { status: 503, code: 'OVERLOADED' })
  const statusFrom = async (address: string): Promise<number> => {
    const ws = new WebSocket(`${perAddress.url.replace('http', 'ws')}/connection/websocket`, {
      headers: { 'x-forwarded-for': address }
    })
    ws.on('error', () => undefined)
    t.teardown(() => ws.terminate())
    return Promise.race([
      once(ws, 'open').then(() => 101),
      once(ws, 'unexpected-response').then(([, response]) => response.statusCode)
    ])
  }
  t.equal(await statusFrom('203.0.113.9'), 101)
  t.equal(await statusFrom('2001:db8:1:2::1'), 101)
  t.equal(await statusFrom('2001:db8:1:2:ffff::9'), 503, 'the addresses of an IPv6 /64 network count together')
  t.equal(await statusFrom('2001:db8:1:3::1'), 101)
  first.ws.terminate()
})

t.test('connections that are reset during the handshake do not end the process', async (t) => {
  const silent = await startSilentServer(t)
  const gateway = await startGateway(t, { env: { RELAY_UPSTREAM: silent.url } })
  for (let count = 0; count < 20; count++) {
    const socket = await openSocket(gateway.url)
    socket.write(UPGRADE)
    // While the gateway waits for the health check of the relay.
    socket.resetAndDestroy()
  }
  await eventually(async () => (await connectionsOf(gateway)) === 0)
  t.equal((await gateway.send('/api/health')).status, 200)
})

t.test('a certificate error of the relay is not disclosed to the browser', async (t) => {
  const relay = await startRelay(t, NAMESPACE)
  const gateway = await startGateway(t, { env: { RELAY_UPSTREAM: relay.url.replace('http:', 'https:') } })
  t.same(await rejection(gateway.url), { status: 502, code: 'RELAY_UNREACHABLE' })
})

t.test('a shutdown disconnects WebSockets with 3001 and ends streams', async (t) => {
  const relay = await startRelay(t, NAMESPACE)
  const gateway = await startGateway(t, { env: { RELAY_UPSTREAM: relay.url } })
  const client = await open(gateway)
  const stuck = await openSocket(gateway.url)
  stuck.write(UPGRADE)
  await once(stuck, 'data')
  const stream = await responseOf(
    browse(gateway.url, '/connection/sse?cf_connect=%7B%22id%22%3A1%2C%22connect%22%3A%7B%7D%7D').end()
  )
  const ended = once(stream.resume(), 'close')

  const closed = gateway.gateway.app.close()
  t.equal(await client.closed, '3001 shutdown')
  await ended
  // A client that does not complete the close handshake is disconnected too.
  await closed
  await eventually(() => relay.relay.clients.length === 0)
})
