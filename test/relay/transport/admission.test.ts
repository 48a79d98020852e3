import { once } from 'node:events'
import { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import t, { type Test } from 'tap'
import type { ClientOptions } from 'ws'
import { ClientAdmission, type ConnectionCounter, originCheck } from '../../../src/relay/transport/admission.js'
import { RateLimitedLog, Rejections } from '../../../src/relay/transport/rejections.js'
import { eventually } from '../../helper/eventually.js'
import { send } from '../../helper/http.js'
import { openClient, RawClient } from '../../helper/raw-client.js'
import { startRelay } from '../../helper/relay.js'
import { configOf, relayToken } from '../../helper/relay-rules.js'
import { required } from '../../helper/required.js'

t.test('allowed origins', async (t) => {
  const HOST = 'relay.example.com'
  const cases: [allowed: string[], origin: string | undefined, isAllowed: boolean, title: string][] = [
    [[], undefined, true, 'programs send none'],
    [[], 'https://relay.example.com', true, 'it is our own host'],
    [[], 'http://RELAY.example.com', true, 'letters have no case'],
    [[], 'https://relay.example.com:444', false, 'the port is another'],
    [[], 'https://app.example.com', false, 'it is another host'],
    [[], 'null', false, 'it is a page of nowhere'],
    [[], 'file://relay.example.com', false, 'it is not a web page'],
    [['https://app.example.com'], 'https://app.example.com', true, 'it is on the list'],
    [['https://app.example.com'], 'https://APP.example.com', true, 'letters have no case'],
    [['https://app.example.com'], 'http://app.example.com', false, 'the scheme is another'],
    [['https://app.example.com'], 'https://app.example.com:8443', false, 'the port is another'],
    [['https://app.example.com'], 'https://app.example.com.evil.org', false, 'it goes on'],
    [['https://app.example.com'], 'https://relay.example.com', false, 'with a list our own host must be on it'],
    [['https://app.example.com'], undefined, true, 'programs send none'],
    [['https://*.example.com'], 'https://a.example.com', true, 'one label'],
    [['https://*.example.com'], 'https://a.b.example.com', true, 'two labels'],
    [['https://*.example.com'], 'https://example.com', false, 'no label'],
    [['https://*.example.com'], 'https://.example.com', false, 'an empty label'],
    [['https://*.example.com'], 'https://evilexample.com', false, 'no dot'],
    [['https://*.example.com'], 'https://evil.org/.example.com', false, 'a path is no label'],
    [['https://*.example.com'], 'https://evil.org#.example.com', false, 'a fragment is no label'],
    [['https://*.example.com'], 'https://evil.org\\.example.com', false, 'browsers read a backslash as a slash'],
    [['https://*.example.com'], 'https://user@a.example.com', false, 'a user is no label'],
    [['https://*.example.com:8443'], 'https://a.example.com:8443', true, 'the port is the same'],
    [['http://localhost:*'], 'http://localhost:5173', true, 'any port'],
    [['http://localhost:*'], 'http://localhost', false, 'no port'],
    [['http://localhost:*'], 'http://localhost.evil.org:80', false, 'the host goes on'],
    [['http://localhost:*'], 'http://localhost:@evil.org', false, 'a user is no port'],
    [['https://*.example.com:*'], 'https://a.example.com:8443', true, 'any label and port'],
    [['https://*.example.com:*'], 'https://evil.org/.example.com:1', false, 'a path is no label'],
    [['*.example.com'], 'https://a.example.com', true, 'any scheme'],
    [['*://a.example.com'], 'capacitor://a.example.com', true, 'any scheme'],
    [['https://app-?.example.com'], 'https://app-7.example.com', true, 'one character'],
    [['https://app-[0-9].example.com'], 'https://app-x.example.com', false, 'not in the class'],
    [['https://{a,b}.example.com'], 'https://b.example.com', true, 'one of the names'],
    [['http://[::1]:3000'], 'http://[::1]:3000', true, 'brackets of an address'],
    [['http://[::1]:3000'], 'http://1:3000', false, 'brackets of an address are no class'],
    [['file://*'], 'file://', true, 'no host'],
    [['null'], 'null', true, 'it is on the list'],
    [[`*${'a*'.repeat(200)}b`], `https://${'a'.repeat(16_000)}`, false, 'no host is so long'],
    [['*'], 'https://anything', true, 'all are allowed'],
    [['*'], 'null', true, 'all are allowed']
  ]
  for (const [allowed, origin, isAllowed, title] of cases) {
    t.test(`${origin} is ${isAllowed ? '' : 'not '}allowed by [${allowed}]: ${title}`, async (t) => {
      t.equal(originCheck(allowed)(origin, HOST), isAllowed)
    })
  }
})

t.test('in development, pages of this machine may connect, whatever the list is', async (t) => {
  for (const [origin, isAllowed] of [
    ['http://localhost:5173', true],
    ['http://app.localhost:5173', true],
    ['https://127.0.0.1', true],
    ['http://[::1]:5173', true],
    ['http://localhost.evil.org:5173', false],
    ['http://127.0.0.1.evil.org', false],
    ['http://192.168.0.7:5173', false],
    ['null', false]
  ] as const) {
    for (const allowed of [[], ['https://app.example.com']]) {
      t.equal(originCheck(allowed, true)(origin, 'relay.example.com'), isAllowed, origin)
      t.notOk(originCheck(allowed)(origin, 'relay.example.com'), origin)
    }
  }
})

t.test('connections rejected during shutdown are not counted as rejected by a limit', async (t) => {
  // As in a worker, which asks the primary.
  const counter: ConnectionCounter = { acquire: async () => null, release: () => undefined }
  const reasons: string[] = []
  const rejections = new Rejections(
    { rejected: () => undefined },
    new RateLimitedLog({ warn: () => undefined, error: () => undefined }),
    {
      nowMs: () => 0,
      monotonicMs: () => 0
    }
  )
  const metrics = { connectionRejected: (reason: string) => void reasons.push(reason) }
  const admission = new ClientAdmission(configOf(), counter, metrics, rejections)
  const request = new IncomingMessage(new Socket())

  const before = admission.admit(request)
  admission.close()
  t.equal(await before, 503, 'shutdown began while the connection was being counted')
  t.equal(await admission.admit(request), 503)
  t.same(reasons, ['shutdown', 'shutdown'])
})

/** The status of an upgrade: 101 if it succeeds. */
const upgradeStatus = async (t: Test, url: string, options: ClientOptions = {}, path = ''): Promise<number> => {
  const { ws } = new RawClient(`${url}${path}`, options)
  t.teardown(() => ws.readyState === ws.OPEN && ws.terminate())
  return new Promise((resolve) => {
    ws.once('open', () => resolve(101))
    ws.once('unexpected-response', (request, response) => {
      request.destroy()
      resolve(response.statusCode ?? 0)
    })
  })
}

t.test('WebSocket upgrades', async (t) => {
  t.test('an upgrade from a foreign origin is rejected with 403', async (t) => {
    const { url, relay } = await startRelay(t, undefined, {
      RELAY_ALLOWED_ORIGINS: 'https://app.example.com,https://*.example.org'
    })

    t.equal(await upgradeStatus(t, url, { origin: 'https://evil.example' }), 403)
    t.equal(await upgradeStatus(t, url, { origin: 'https://app.example.com' }), 101)
    t.equal(await upgradeStatus(t, url, { origin: 'https://a.b.example.org' }), 101)
    t.equal(await upgradeStatus(t, url), 101)
    t.equal(relay.stats().clients, 3)
  })

  const PROTOBUF_UPGRADES: [query: string, subprotocols: string, isProtobuf: boolean, subprotocol: string][] = [
    ['', '', false, ''],
    ['?cf_protocol_version=v2', '', false, ''],
    ['?format=protobuf', '', true, ''],
    ['?a=b&cf_protocol=protobuf', '', true, ''],
    ['?format=protobuf2', '', false, ''],
    ['', 'centrifuge-protobuf', true, 'centrifuge-protobuf'],
    ['', 'centrifuge-json', false, 'centrifuge-json'],
    ['', 'centrifuge-json, centrifuge-protobuf', false, 'centrifuge-json'],
    ['', 'other, centrifuge-protobuf, centrifuge-json', true, 'centrifuge-protobuf']
  ]
  for (const [query, subprotocols, isProtobuf, subprotocol] of PROTOBUF_UPGRADES) {
    const title = `${isProtobuf ? 'protobuf' : 'JSON'} for query "${query}" and subprotocols "${subprotocols}"`
    t.test(`a WebSocket connection uses ${title}`, async (t) => {
      const { url, relay } = await startRelay(t)
      const headers = subprotocols === '' ? {} : { 'sec-websocket-protocol': subprotocols }
      const { ws } = new RawClient(`${url}/connection/websocket${query}`, { headers })
      t.teardown(() => ws.terminate())
      const [response] = await once(ws, 'upgrade')

      t.equal(response.headers['sec-websocket-protocol'] ?? '', subprotocol)
      await eventually(() => relay.clients.length === 1)
      t.equal(relay.clients[0]?.codec.name, isProtobuf ? 'protobuf' : 'json')
    })
  }

  t.test('a request for protobuf over server-sent events receives 400', async (t) => {
    const { url } = await startRelay(t)
    const octets = { 'content-type': 'application/octet-stream' }
    const rejected = { status: 400, body: 'this transport is JSON only\n' }

    t.match(await send(url, '/connection/sse', { method: 'POST', headers: octets, body: '\n' }), rejected)
    t.match(await send(url, '/connection/sse?format=protobuf&cf_connect={}'), rejected)
  })

  t.test('an upgrade on another path is handled as an ordinary request', async (t) => {
    const { url } = await startRelay(t)

    t.equal(await upgradeStatus(t, `${url}/api`), 401)
    t.equal(await upgradeStatus(t, `${url}/unknown`), 404)
  })

  t.test('an upgrade with an empty Sec-WebSocket-Protocol header succeeds', async (t) => {
    const { url } = await startRelay(t)

    t.equal(await upgradeStatus(t, url, { headers: { 'sec-websocket-protocol': '' } }), 101)
    t.equal(await upgradeStatus(t, url, { headers: { 'sec-websocket-protocol': ' ' } }), 101)
  })

  t.test('upgrades above the connection limits are rejected until a connection closes', async (t) => {
    // A fixed clock, so that the rate limit does not depend on the speed of the machine.
    const clock = { monotonicMs: 5000 }
    const { url } = await startRelay(
      t,
      { client: { connection_limit: 3, connections_per_address: 2, connection_rate_limit: 3 } },
      { TRUST_PROXY: 'loopback' },
      { monotonicMs: () => clock.monotonicMs }
    )
    const from = (address: string): ClientOptions => ({ headers: { 'x-forwarded-for': address } })
    const first = await openClient(t, url, from('10.0.0.1'))
    t.equal(await upgradeStatus(t, url, from('10.0.0.1')), 101)
    t.equal(await upgradeStatus(t, url, from('10.0.0.1')), 429)
    t.equal(await upgradeStatus(t, url, from('10.0.0.2, 10.0.0.3')), 101)
    t.equal(await upgradeStatus(t, url, from('10.0.0.4')), 503)
    first.ws.terminate()
    await once(first.ws, 'close')
    let status = await upgradeStatus(t, url, from('10.0.0.4'))
    t.equal(status, 503, 'the connection rate is exceeded')
    clock.monotonicMs += 1000
    do status = await upgradeStatus(t, url, from('10.0.0.4'))
    while (status === 503)
    t.equal(status, 101)
  })
})

t.test('HTTP transports', async (t) => {
  t.test('HTTP transports check origins and limits like WebSocket', async (t) => {
    const { url } = await startRelay(t, {
      client: { connection_limit: 1, allowed_origins: ['https://app.example.com'] }
    })
    const origin = 'https://evil.example'

    for (const path of ['/connection/http_stream', '/connection/sse', '/emulation']) {
      t.equal((await send(url, path, { method: 'POST', body: '{}', headers: { origin } })).status, 403)
      t.equal((await send(url, path, { method: 'OPTIONS', headers: { origin } })).status, 403)
    }
    await openClient(t, url)
    t.equal((await send(url, '/connection/sse', { method: 'POST', body: '{}' })).status, 503)
  })

  t.test('HTTP transports send CORS headers for allowed origins', async (t) => {
    const { url } = await startRelay(t, { client: { allowed_origins: ['https://app.example.com'] } })
    const headers = { origin: 'https://app.example.com', 'access-control-request-headers': 'content-type' }

    for (const path of ['/connection/http_stream', '/connection/sse', '/emulation']) {
      const response = await send(url, path, { method: 'OPTIONS', headers })
      t.equal(response.status, 204)
      t.match(response.headers, {
        'access-control-allow-origin': 'https://app.example.com',
        'access-control-allow-credentials': 'true',
        'access-control-allow-headers': 'content-type',
        vary: 'Origin'
      })
      const rejected = await send(url, path, { method: 'POST', headers, body: 'x'.repeat(65_537) })
      t.equal(rejected.status, 413)
      t.match(
        rejected.headers,
        { 'access-control-allow-origin': 'https://app.example.com' },
        'refusals can be read too'
      )
    }
  })

  t.test('HTTP transports disable caching and proxy buffering', async (t) => {
    const { url } = await startRelay(t)
    const body = JSON.stringify({ id: 1, connect: { token: relayToken({ sub: '42' }) } })
    const response = await fetch(`${url}/connection/http_stream`, { method: 'POST', body })
    const reader = required(response.body).getReader()
    const { value } = await reader.read()
    await reader.cancel()

    t.equal(response.headers.get('x-accel-buffering'), 'no')
    t.match(response.headers.get('cache-control'), 'no-store')
    t.match(JSON.parse(Buffer.from(required(value)).toString()), { id: 1, connect: { session: /./, node: /./ } })
  })

  t.test('a client whose HTTP request ends is removed', async (t) => {
    const { url, relay } = await startRelay(t)
    const abort = new AbortController()
    const body = JSON.stringify({ id: 1, connect: { token: relayToken({ sub: '42' }) } })
    await fetch(`${url}/connection/http_stream`, { method: 'POST', body, signal: abort.signal })
    t.equal(relay.stats().clients, 1)
    abort.abort()
    await eventually(() => relay.stats().clients === 0)

    t.same(relay.stats(), { clients: 0, users: 0, channels: 0, subscriptions: 0 })
  })
})
