import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { connect as tlsConnect } from 'node:tls'
import type { Test } from 'tap'
import { WebSocket } from 'ws'
import { freePort } from '../helper/free-port.js'
import { browserHeaders } from '../helper/gateway.js'
import { send } from '../helper/http.js'
import { type RecordedRequest, startBackend } from '../helper/recording-backend.js'
import { APP, REALTIME } from './certificate.js'
import { ExternalClient, PAGE } from './external-client.js'
import { PUBLISH_KEY, runGateway, runRelay } from './programs.js'
import type { StartProxy } from './proxies.js'
import { startScriptedGateway } from './scripted-gateway.js'
import { idleClient, subscribe } from './subscribers.js'

const PING_S = 3
const CONNECTIONS_PER_ADDRESS = 4
const OPERATORS_PASSWORD = 'a-password-for-operators'
/** Several, because a relay is selected by the address of the client. */
export const FURTHER_ADDRESSES = ['127.0.0.31', '127.0.0.32', '127.0.0.33', '127.0.0.34', '127.0.0.35', '127.0.0.36']
/** Paths of the realtime host that the relay does not have. */
const OTHER_PATHS = ['/', '/ingest/v1/batch?x=%2F1', '/connection', '/connections/websocket', '/apis', '/health']
const METRICS_SPELLINGS = ['/metrics', '/metrics?x=1', '/%6detrics', '/./metrics', '//metrics']

export interface Traits {
  /** Whether WebSockets survive a reload. If not, clients reconnect and recover missed publications. */
  readonly keepsSockets: boolean
  /** Seconds after which the proxy closes an idle connection; 0 if never. */
  readonly idleTimeoutS: number
}

/** Tests of a shipped proxy configuration in front of both programs. */
export const proxySuite = async (
  t: Test,
  startProxy: StartProxy,
  { keepsSockets, idleTimeoutS }: Traits
): Promise<void> => {
  t.testdir()
  const [backend, ingest] = [await startBackend(t), await startBackend(t)]
  const relay = await runRelay(
    t,
    {
      ping_interval: `${PING_S}s`,
      pong_timeout: `${PING_S * 1000 - 100}ms`,
      connections_per_address: CONNECTIONS_PER_ADDRESS
    },
    { RELAY_ADMIN_PASSWORD: OPERATORS_PASSWORD }
  )
  const gateway = await runGateway(t, backend.url, { RELAY_UPSTREAM: relay.url })
  const upstreams = { gateways: [gateway.address], relays: [relay.address] }
  const proxy = await startProxy(t, upstreams)
  const external = new ExternalClient(proxy)

  // Stays idle during the other tests, for the test of the idle timeout.
  const idle = await idleClient(t, external)

  // The gateway of the application host passes realtime connections on to the relay.
  for (const name of [REALTIME, APP]) {
    for (const transport of ['websocket', 'http_stream'] as const) {
      t.test(`a client uses ${transport} at ${name} over TLS, and the proxy buffers nothing`, async (t) => {
        const channel = `floor:${name}-${transport}`
        const { received } = await subscribe(t, external, transport, channel, { name })

        for (const number of [1, 2]) {
          await external.publish(channel, number)
          await received.until((publications) => publications.length === number)
        }
        t.same(received.data, [1, 2])
      })
    }
  }

  t.test('the proxy delivers an event of the backend before the response ends', async (t) => {
    const { respond } = backend
    const responding = new Promise<ServerResponse>((resolve) => {
      backend.respond = (_request, response) => resolve(response)
    })
    const beginning = external.begin(APP, '/api/floors/events')
    const response = await responding
    backend.respond = respond
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write('data: 1\n\n')
    const stream = await beginning
    const [first] = await once(stream, 'data')
    t.equal(String(first), 'data: 1\n\n')
    response.end('data: 2\n\n')
    const [second] = await once(stream, 'data')
    t.equal(String(second), 'data: 2\n\n')
  })

  t.test('the relay rejects a WebSocket from a foreign origin behind the proxy', async (t) => {
    const socket = external.socket({ origin: 'https://evil.example.net' })
    const [, response] = await once(socket, 'unexpected-response')

    t.equal(response.statusCode, 403)
  })

  t.test(
    'the gateway accepts write requests from its own origin and rejects foreign origins behind the proxy',
    async (t) => {
      for (const [origin, status] of [
        [PAGE, 200],
        [`https://${APP}:${proxy.port}`, 200],
        ['https://evil.example.net', 403]
      ] as const) {
        const headers = { ...browserHeaders(), origin, 'content-type': 'application/json' }
        const response = await external.send(APP, '/api/emergency/trigger', { method: 'POST', headers, body: '{"type":"fire"}' })
        t.equal(response.status, status, origin)
      }
    }
  )

  t.test('the proxy replaces forwarding headers of the client for the gateway and the backend', async (t) => {
    const headers = { 'x-forwarded-for': '203.0.113.9', forwarded: 'for=203.0.113.9', 'x-forwarded-host': 'evil' }
    await external.send(APP, '/api/zones/4711', { from: '127.0.0.9', headers })

    t.match(await gateway.program.waitForLine('/api/zones/4711'), '"ip":"127.0.0.9"')
    const { headers: forwarded } = requestFor(backend.requests, '/api/zones/4711')
    t.equal(forwarded['x-forwarded-for'], '127.0.0.9')
    t.equal(forwarded['x-forwarded-proto'], 'https')
    t.equal(forwarded['x-forwarded-host'], APP)
    t.equal(forwarded.forwarded, undefined)
  })

  t.test('the proxy passes the client address to the relay', async (t) => {
    const open = async (from: string): Promise<WebSocket> => {
      const socket = external.socket({ from })
      t.teardown(() => socket.terminate())
      await once(socket, 'open')
      return socket
    }
    for (let count = 0; count < CONNECTIONS_PER_ADDRESS; count++) await open('127.0.0.5')
    const [, response] = await once(external.socket({ from: '127.0.0.5' }), 'unexpected-response')

    t.equal(response.statusCode, 429, 'another connection from the same address')
    t.equal((await open('127.0.0.6')).readyState, WebSocket.OPEN, 'a connection from another address')
  })

  t.test(
    'operators sign in through the proxy with a Secure cookie, and the events of their page are streamed',
    async (t) => {
      const headers = { origin: `https://${REALTIME}:${proxy.port}`, 'content-type': 'application/json' }
      const body = JSON.stringify({ password: OPERATORS_PASSWORD })
      const signedIn = await external.send(REALTIME, '/admin/api/sign-in', {
        ...{ method: 'POST', headers, body }
      })
      const [cookie = ''] = signedIn.headers['set-cookie'] ?? []
      t.match(cookie, '; Secure')
      t.match(await relay.program.waitForLine('admin sign-in'), '"ip":"127.0.0.1"')

      const live = await external.begin(REALTIME, '/admin/api/live', { headers: { cookie: cookie.split(';')[0] } })
      t.equal(live.statusCode, 200)
      const [first] = await once(live, 'data')
      t.ok(first.length > 0, 'before the response ends')
      live.destroy()
    }
  )

  t.test('the proxy rejects publishers and operators from other machines', async (t) => {
    const headers = { 'x-api-key': PUBLISH_KEY, 'content-type': 'application/json' }
    for (const path of ['/api', '/api/publish', '/api/info', '/admin', '/admin/', '/admin/api/sign-in']) {
      for (const spelling of [path, `/.${path}`, `/%61${path.slice(2)}`]) {
        const { status } = await external.send(REALTIME, spelling, {
          method: 'POST',
          from: '127.0.0.9',
          headers,
          body: '{}'
        })
        t.equal(status, 403, spelling)
      }
    }
  })

  t.test('the proxy does not expose metrics', async (t) => {
    for (const { url } of [gateway, relay]) t.equal((await send(url, '/metrics')).status, 200, 'without the proxy')
    for (const path of METRICS_SPELLINGS) {
      for (const host of [APP, REALTIME]) {
        const { status, body } = await external.send(host, path)
        t.notMatch(body, /process_cpu|gateway_|centrifugo_/, `${host}${path}`)
        t.ok(status >= 400, `${status} for ${host}${path}`)
      }
    }
  })

  t.test('the proxy forwards no other path of the realtime host', async (t) => {
    for (const path of OTHER_PATHS) t.equal((await external.send(REALTIME, path)).status, 404, path)
  })

  t.test('the proxy redirects HTTP to HTTPS', async (t) => {
    const headers = { host: APP }
    const response = await send(`http://127.0.0.1:${proxy.plainPort}`, '/page?x=1', { headers })

    t.equal(response.status, 308)
    t.match(response.headers.location, /^https:\/\/app\.example\.com(:\d+)?\/page\?x=1$/)
  })

  t.test('the proxy does not redirect unknown hosts', async (t) => {
    const headers = { host: 'evil.example.net' }
    const closed = { status: 0, headers: {} }
    const response = await send(`http://127.0.0.1:${proxy.plainPort}`, '/page', { headers }).catch(() => closed)

    t.notMatch(response.headers, { location: /evil/ }, `${response.status}`)
  })

  t.test('the proxy rejects TLS handshakes for other names', async (t) => {
    const servername = 'evil.example.net'
    const socket = tlsConnect({ host: '127.0.0.1', port: proxy.port, servername, rejectUnauthorized: false })
    const [error] = await once(socket, 'error')

    t.match(error.message, /alert/)
  })

  t.test('a client that only responds to pings outlives the idle timeout of the proxy', async (t) => {
    await idle.pinged(Math.ceil(idleTimeoutS / PING_S) + 1)

    t.equal(idle.sockets.length, 1)
    t.equal(idle.client.state, 'connected')
  })

  t.test('a reload of the proxy completes requests in flight and loses no publication', async (t) => {
    const { received, sockets } = await subscribe(t, external, 'websocket', 'floor:9')
    const arrived = new Promise<ServerResponse>((resolve) => {
      backend.respond = (_request, response) => resolve(response)
    })
    const inFlight = external.send(APP, '/api/floors/slow')
    const response = await arrived
    await external.publish('floor:9', 'before')
    await proxy.reload(upstreams)
    await external.publish('floor:9', 'after')
    response.end('late')

    t.equal((await inFlight).body, 'late')
    await received.until((publications) => publications.length === 2)
    t.same(received.data, ['before', 'after'])
    if (keepsSockets) t.equal(sockets.length, 1, 'on the same connection')
  })

  t.test('an enabled ingest process receives all other paths of the realtime host, unchanged', async (t) => {
    await proxy.reload({ ...upstreams, ingest: new URL(ingest.url).host })
    for (const path of [...METRICS_SPELLINGS, '/api/publish', '/%61dmin/', '/./api'])
      await external.send(REALTIME, path, { from: '127.0.0.9' })
    t.same(
      ingest.requests.filter(({ url }) => url === '/metrics' || /api|admin/.test(url)),
      [],
      'it receives no request for the relay'
    )
    for (const path of OTHER_PATHS) {
      const headers = { 'content-type': 'application/x-thing', 'x-device': 'a b', authorization: 'Basic eDp5' }
      const response = await external.send(REALTIME, path, { method: 'PUT', headers, body: '{"a": 1}' })

      const forwarded = requestFor(ingest.requests, path)
      t.match(forwarded, { method: 'PUT', body: '{"a": 1}', headers }, path)
      t.equal(response.body, '{"success":true}')
    }
  })

  t.test('requests, publishers and clients reach the remaining instances while others are down', async (t) => {
    const dead = `127.0.0.1:${await freePort()}`
    await proxy.reload({ ...upstreams, gateways: [dead, gateway.address], relays: [dead, relay.address] })
    backend.respond = (_request, response) => response.end('{}')

    for (const from of FURTHER_ADDRESSES) {
      t.equal((await external.send(APP, '/api/zones', { from, headers: browserHeaders() })).status, 200, from)
      await subscribe(t, external, 'websocket', 'floor:7', { from })
    }
    t.equal((await external.publish('floor:7', 1)).status, 200)
  })

  t.test('gateways that end connections early stay in service', async (t) => {
    await proxy.reload({ ...upstreams, gateways: [await startScriptedGateway(t), await startScriptedGateway(t)] })
    for (let count = 0; count < 6; count++) {
      const failed = await external.send(APP, '/api/end-early', { method: 'POST', body: '{}' })
      t.equal(failed.status, 502)
      t.equal((await external.send(APP, '/api/zones')).status, 200, 'another client is not affected')
    }
  })

  t.test('the proxy passes on upgrades to WebSocket only', async (t) => {
    await proxy.reload({ ...upstreams, gateways: [await startScriptedGateway(t)] })
    const headers = { connection: 'upgrade', upgrade: 'h2c', 'http2-settings': 'AAMAAABkAARAAAAAAAIAAAAA' }
    t.equal((await external.send(APP, '/api/upgrade', { headers })).body, 'upgrade: undefined')
  })

  t.test('the proxy passes on 12 KB of cookies in both directions', async (t) => {
    await proxy.reload({ ...upstreams, gateways: [await startScriptedGateway(t)] })
    const cookie = 'x'.repeat(12_000)
    const { status, headers, body } = await external.send(APP, '/api/cookies', { headers: { cookie } })
    t.equal(status, 200)
    t.equal(body, cookie)
    t.equal(headers['set-cookie']?.length, 3)
  })

  t.test('the proxy logs neither queries nor credentials when an upstream is down', async (t) => {
    const dead = `127.0.0.1:${await freePort()}`
    await proxy.reload({ gateways: [dead], relays: [dead], ingest: dead })
    const headers = {
      'x-api-key': 'secret-in-key',
      authorization: 'Bearer secret-in-authorization',
      cookie: '__Host-token=secret-in-cookie',
      referer: 'https://app.example.com/?secret-in-referer'
    }
    const requests: readonly (readonly [string, string])[] = [
      [APP, '/api/floors?token=secret-in-query'],
      [REALTIME, '/connection/http_stream?cf_connect=secret-in-query'],
      [REALTIME, '/api/publish?api_key=secret-in-query'],
      [REALTIME, '/ingest?key=secret-in-query']
    ]
    for (const [host, path] of requests) {
      const { status } = await external.send(host, path, { method: 'POST', headers, body: '{}' })
      t.ok(status === 502 || status === 503, `${status} for ${path}`)
    }

    t.notMatch(await proxy.logs(), /secret-in/)
  })
}

const requestFor = (requests: readonly RecordedRequest[], url: string): RecordedRequest => {
  const found = requests.find((request) => request.url === url)
  if (found === undefined) throw new Error(`no request for ${url}, only for ${requests.map((one) => one.url)}`)
  return found
}
