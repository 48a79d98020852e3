import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import t, { type Test } from 'tap'
import { urlOf } from '../../helper/address.js'
import { eventually } from '../../helper/eventually.js'
import { browse, responseOf } from '../../helper/exact-http.js'
import { startGateway, type TestGateway } from '../../helper/gateway.js'
import { RawClient } from '../../helper/raw-client.js'
import { collect, event, officialClient, startRelay, TRANSPORTS } from '../../helper/relay.js'

const NAMESPACE = {
  channel: {
    namespaces: [
      { name: 'chat', allow_subscribe_for_client: true, history_size: 100, history_ttl: '60s', force_recovery: true }
    ]
  }
}

const portOf = ({ url }: TestGateway): number => Number(new URL(url).port)

const startBoth = async (t: Test, env: Readonly<Record<string, string>> = {}, relayEnv = {}) => {
  const relay = await startRelay(t, NAMESPACE, relayEnv)
  const gateway = await startGateway(t, { env: { RELAY_UPSTREAM: relay.url, ...env } })
  return { relay, gateway, port: portOf(gateway) }
}

for (const transport of TRANSPORTS) {
  t.test(`the official client connects and recovers over ${transport} through the gateway`, async (t) => {
    const { relay, gateway, port } = await startBoth(t)
    const client = officialClient(t, { port }, transport)
    const connected = event(client, 'connected')
    const subscription = client.newSubscription('chat:1')
    const received = collect(subscription)
    const subscribed = event(subscription, 'subscribed')
    subscription.subscribe()
    client.connect()
    t.match(await connected, { transport })
    await subscribed
    t.match((await gateway.send('/metrics')).body, '\ngateway_relay_connections 1\n')

    for (let n = 1; n <= 20; n++) await relay.publish('chat:1', { n, text: 'å\n' })
    await received.until(({ length }) => length === 20)
    t.same(received.data.at(-1), { n: 20, text: 'å\n' })

    // The relay closes the connection; the client reconnects through the gateway and receives what it missed.
    const again = event(client, 'connected')
    await relay.api('disconnect', { user: '42', disconnect: { code: 3000, reason: 'test' } })
    await relay.publish('chat:1', { n: 21 })
    await again
    await received.until(({ length }) => length === 21)

    client.disconnect()
    await eventually(async () => (await gateway.send('/metrics')).body.includes('\ngateway_relay_connections 0\n'))
    await eventually(() => relay.relay.clients.length === 0)
  })
}

t.test('the disconnect code and reason of the relay reach the client', async (t) => {
  const { gateway } = await startBoth(t)
  const client = new RawClient(`${gateway.url}/connection/websocket`)
  await once(client.ws, 'open')
  client.send('not json')
  t.equal(await client.closed, '3501 bad request')
})

/** A server that records the headers of every request, in place of the relay. */
const startRecorder = async (t: Test) => {
  const requests: IncomingMessage[] = []
  const server = createServer((request, response) => {
    requests.push(request)
    request.resume()
    response.setHeader('set-cookie', 'auth_token=stolen')
    response.setHeader('server', 'x')
    response.end('ok')
  })
  server.on('upgrade', (request, socket) => {
    requests.push(request)
    socket.end('HTTP/1.1 403 Forbidden\r\nConnection: close\r\n\r\n')
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return { requests, url: urlOf(server) }
}

const BROWSER = {
  host: 'app.example.com',
  origin: 'https://app.example.com',
  'user-agent': 'a browser',
  cookie: 'auth_token=secret; oidc_session=secret',
  authorization: 'Bearer secret',
  'x-csrf-token': 'secret',
  'x-forwarded-for': '203.0.113.9',
  'x-forwarded-host': 'attacker.example.com',
  'x-api-key': 'secret'
}
const FORWARDED = {
  host: 'app.example.com',
  origin: 'https://app.example.com',
  'user-agent': 'a browser',
  'x-forwarded-for': '127.0.0.1',
  'x-forwarded-proto': 'http'
}

t.test('the relay receives host, origin and address of the browser, and no credentials', async (t) => {
  const recorder = await startRecorder(t)
  const gateway = await startGateway(t, { env: { RELAY_UPSTREAM: `${recorder.url}/behind/a/path/` } })
  const posted = await gateway.send('/connection/http_stream', {
    method: 'POST',
    headers: { ...BROWSER, 'content-type': 'application/json' },
    body: '{}'
  })
  t.match(posted, { status: 200, body: 'ok' })
  t.match(posted.headers, { 'x-frame-options': 'DENY', 'x-request-id': /./ })
  t.equal(posted.headers['set-cookie'], undefined)
  t.equal(posted.headers.server, undefined)
  await gateway.send('/connection/sse?cf_connect=%7B%7D', { headers: BROWSER })
  await gateway.send('/emulation', { method: 'POST', headers: BROWSER, body: '{}' })
  const rejected = new RawClient(`${gateway.url}/connection/websocket?a=b`, { headers: BROWSER })
  t.equal(await rejected.closed, '1006')

  t.same(
    recorder.requests.map(({ method, url }) => `${method} ${url}`),
    [
      'POST /behind/a/path/connection/http_stream',
      'GET /behind/a/path/connection/sse?cf_connect=%7B%7D',
      'POST /behind/a/path/emulation',
      'GET /behind/a/path/connection/websocket?a=b'
    ]
  )
  for (const { headers } of recorder.requests) {
    t.match(headers, FORWARDED)
    t.notMatch(JSON.stringify(headers), 'secret')
    t.notMatch(JSON.stringify(headers), 'attacker')
  }
})

t.test('the relay receives the address and host that a trusted proxy forwards', async (t) => {
  const recorder = await startRecorder(t)
  const gateway = await startGateway(t, { env: { RELAY_UPSTREAM: recorder.url, TRUST_PROXY: 'loopback' } })
  const forwarded = {
    'x-forwarded-for': '203.0.113.9',
    'x-forwarded-host': 'app.example.com',
    'x-forwarded-proto': 'https'
  }
  await gateway.send('/connection/sse', { headers: forwarded })
  t.match(recorder.requests.at(-1)?.headers, {
    host: 'app.example.com',
    'x-forwarded-for': '203.0.113.9',
    'x-forwarded-proto': 'https'
  })
})

t.test('other endpoints of the relay are not served, and ambiguous paths are rejected', async (t) => {
  const { gateway } = await startBoth(t)
  for (const path of ['/metrics/x', '/admin', '/health', '/connection', '/emulation/x']) {
    t.equal((await gateway.send(path, { headers: { 'x-forwarded-for': '1' } })).status, 404, path)
  }
  for (const path of [
    '/connection/../api',
    '/connection//websocket',
    '/connection/%2e%2e/admin',
    '/connection/a%2fb'
  ]) {
    t.equal((await gateway.send(path)).code, 'AMBIGUOUS_PATH', path)
  }
  t.equal((await gateway.send('/connection/websocket')).status, 426)
  t.equal((await gateway.send('/connection/unknown')).status, 404)
})

t.test('without RELAY_UPSTREAM the paths of the relay do not exist', async (t) => {
  const gateway = await startGateway(t)
  t.equal((await gateway.send('/connection/sse')).code, 'NOT_FOUND')
  t.equal((await gateway.send('/emulation', { method: 'POST' })).code, 'NOT_FOUND')
})

t.test('requests that offer another upgrade are served as ordinary requests', async (t) => {
  const { gateway } = await startBoth(t)
  const offer = { connection: 'Upgrade', upgrade: 'h2c' }
  t.equal((await gateway.send('/api/health', { headers: offer })).status, 200)
  const posted = { method: 'POST', headers: { ...offer, 'content-type': 'application/json' }, body: '{"a":1}' }
  t.equal((await gateway.send('/api/auth/logout', posted)).status, 403)
  const websocket = { connection: 'Upgrade', upgrade: 'websocket' }
  t.equal((await gateway.send('/api/health', { headers: websocket })).status, 200)
  t.equal((await gateway.send('/emulation', { headers: websocket })).status, 404)
})

t.test('a WebSocket is logged once with status 101 when it ends, without its query', async (t) => {
  const { gateway } = await startBoth(t, { LOG_LEVEL: 'trace' })
  await gateway.send('/connection/sse?token=secret')
  const client = new RawClient(`${gateway.url}/connection/websocket?token=secret`)
  await once(client.ws, 'open')
  client.ws.close()
  await client.closed
  const line = await eventually(() => gateway.logs.find(({ path }) => path === '/connection/websocket'))
  t.match(line, { status: 101, route: '/connection/*', ip: '127.0.0.1' })
  t.notMatch(JSON.stringify(gateway.logs), 'secret')
  t.equal(gateway.logs.filter(({ path }) => path === '/connection/websocket').length, 1)
})

t.test('a body larger than BODY_LIMIT is 413', async (t) => {
  const { gateway } = await startBoth(t, { BODY_LIMIT: '1KiB' })
  const large = { method: 'POST', headers: { 'content-type': 'application/json' }, body: 'x'.repeat(2000) }
  t.equal((await gateway.send('/emulation', large)).code, 'BODY_TOO_LARGE')
  const chunked = browse(gateway.url, '/emulation', { method: 'POST', headers: { 'transfer-encoding': 'chunked' } })
  chunked.write('x'.repeat(1000))
  chunked.write('x'.repeat(1000))
  t.equal((await responseOf(chunked.end())).statusCode, 413)
  const client = new RawClient(`${gateway.url}/connection/websocket`)
  await once(client.ws, 'open')
  client.send('x'.repeat(2000))
  t.match(await client.closed, /^1009/)
})
