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
import { idleClient, listen } from './listeners.js'
import { Outside, PAGE } from './outside.js'
import { PUBLISH_KEY, runGateway, runRelay } from './programs.js'
import type { StartProxy } from './proxies.js'

const PING_S = 3
const CONNECTIONS_PER_ADDRESS = 4
const OPERATORS_PASSWORD = 'a-password-for-operators'
const METRICS_SPELLINGS = ['/metrics', '/metrics?x=1', '/%6detrics', '/./metrics', '//metrics']

export interface Traits {
  /** Whether WebSockets outlive a reload. Where they do not, clients come back and are told what they missed. */
  readonly keepsSockets: boolean
  /** After so many seconds of silence it takes a connection for dead; 0 where it never does. */
  readonly silenceS: number
}

/** What must hold for every proxy that is shipped, in front of both programs as they are deployed. */
export const proxySuite = async (
  t: Test,
  startProxy: StartProxy,
  { keepsSockets, silenceS }: Traits
): Promise<void> => {
  t.testdir()
  const [backend, ingest] = [await startBackend(t), await startBackend(t)]
  const gateway = await runGateway(t, backend.url)
  const relay = await runRelay(
    t,
    {
      ping_interval: `${PING_S}s`,
      pong_timeout: `${PING_S * 1000 - 100}ms`,
      connections_per_address: CONNECTIONS_PER_ADDRESS
    },
    { RELAY_ADMIN_PASSWORD: OPERATORS_PASSWORD }
  )
  const behind = { gateways: [gateway.address], relays: [relay.address], ingest: new URL(ingest.url).host }
  const proxy = await startProxy(t, behind)
  const outside = new Outside(proxy)

  // It says nothing while the other tests run, and the last one looks at it.
  const idle = await idleClient(t, outside)

  t.test('carries the official client over TLS, and publications to it', async (t) => {
    const { received } = await listen(t, outside, 'websocket', 'floor:7')

    t.equal((await outside.publish('floor:7', { type: 'position-batch' })).status, 200)
    await received.until((publications) => publications.length === 1)
    t.same(received.data, [{ type: 'position-batch' }])
  })

  t.test('hands out streams without holding anything back', async (t) => {
    const { received } = await listen(t, outside, 'http_stream', 'floor:8')

    for (const number of [1, 2]) {
      await outside.publish('floor:8', number)
      await received.until((publications) => publications.length === number)
    }
    t.same(received.data, [1, 2])
  })

  t.test('lets the relay refuse the page of a stranger', async (t) => {
    const socket = outside.socket({ origin: 'https://evil.example.net' })
    const [, response] = await once(socket, 'unexpected-response')

    t.equal(response.statusCode, 403)
  })

  t.test('lets the gateway see its own host, so that its pages may mutate and those of others may not', async (t) => {
    for (const [origin, status] of [
      [PAGE, 200],
      [`https://${APP}:${proxy.port}`, 200],
      ['https://evil.example.net', 403]
    ] as const) {
      const headers = { ...browserHeaders(), origin, 'content-type': 'application/json' }
      const answer = await outside.send(APP, '/api/emergency/trigger', { method: 'POST', headers, body: '{}' })
      t.equal(answer.status, status, origin)
    }
  })

  t.test('tells the gateway and the backend who the client is, whatever the client says', async (t) => {
    const headers = { 'x-forwarded-for': '203.0.113.9', forwarded: 'for=203.0.113.9', 'x-forwarded-host': 'evil' }
    await outside.send(APP, '/api/zones/4711', { from: '127.0.0.9', headers })

    t.match(await gateway.program.waitForLine('/api/zones/4711'), '"ip":"127.0.0.9"')
    const { headers: seen } = requestFor(backend.requests, '/api/zones/4711')
    t.equal(seen['x-forwarded-for'], '127.0.0.9')
    t.equal(seen['x-forwarded-proto'], 'https')
    t.equal(seen['x-forwarded-host'], APP)
    t.equal(seen.forwarded, undefined)
  })

  t.test('tells the relay who the client is', async (t) => {
    const open = async (from: string): Promise<WebSocket> => {
      const socket = outside.socket({ from })
      t.teardown(() => socket.terminate())
      await once(socket, 'open')
      return socket
    }
    for (let count = 0; count < CONNECTIONS_PER_ADDRESS; count++) await open('127.0.0.5')
    const [, response] = await once(outside.socket({ from: '127.0.0.5' }), 'unexpected-response')

    t.equal(response.statusCode, 429, 'one more from the same address')
    t.equal((await open('127.0.0.6')).readyState, WebSocket.OPEN, 'and one from another')
  })

  t.test('lets operators in, with a cookie for TLS alone, and streams what their page shows', async (t) => {
    const headers = { origin: `https://${REALTIME}:${proxy.port}`, 'content-type': 'application/json' }
    const body = JSON.stringify({ password: OPERATORS_PASSWORD })
    const signedIn = await outside.send(REALTIME, '/admin/api/sign-in', {
      ...{ method: 'POST', headers, body }
    })
    const [cookie = ''] = signedIn.headers['set-cookie'] ?? []
    t.match(cookie, '; Secure')
    t.match(await relay.program.waitForLine('admin sign-in'), '"address":"127.0.0.1"')

    const live = await outside.begin(REALTIME, '/admin/api/live', { headers: { cookie: cookie.split(';')[0] } })
    t.equal(live.statusCode, 200)
    const [first] = await once(live, 'data')
    t.ok(first.length > 0, 'before the answer ends')
    live.destroy()
  })

  t.test('rejects publishers and operators from other machines', async (t) => {
    const headers = { 'x-api-key': PUBLISH_KEY, 'content-type': 'application/json' }
    for (const path of ['/api', '/api/publish', '/api/info', '/admin', '/admin/', '/admin/api/sign-in']) {
      for (const spelling of [path, `/.${path}`, `/%61${path.slice(2)}`]) {
        const { status } = await outside.send(REALTIME, spelling, {
          method: 'POST',
          from: '127.0.0.9',
          headers,
          body: '{}'
        })
        t.equal(status, 403, spelling)
      }
    }
    t.notOk(
      ingest.requests.some(({ url }) => /api|admin/.test(url)),
      'the ingest process receives none of them'
    )
  })

  t.test('gives away no numbers', async (t) => {
    for (const { url } of [gateway, relay]) t.equal((await send(url, '/metrics')).status, 200, 'on the machine itself')
    for (const path of METRICS_SPELLINGS) {
      for (const host of [APP, REALTIME]) {
        const { status, body } = await outside.send(host, path)
        t.notMatch(body, /process_cpu|gateway_|centrifugo_/, `${host}${path}`)
        if (host === APP || path === '/metrics') t.ok(status >= 400, `${status} for ${host}${path}`)
      }
    }
    t.notOk(
      ingest.requests.some(({ url }) => url === '/metrics'),
      'nor those of the ingest process'
    )
  })

  t.test('sends every other path of the realtime host to the ingest process, unchanged', async (t) => {
    for (const path of ['/', '/ingest/v1/batch?x=%2F1', '/connection', '/connections/websocket', '/apis', '/health']) {
      const headers = { 'content-type': 'application/x-thing', 'x-device': 'a b', authorization: 'Basic eDp5' }
      const answer = await outside.send(REALTIME, path, { method: 'PUT', headers, body: '{"a": 1}' })

      const seen = requestFor(ingest.requests, path)
      t.match(seen, { method: 'PUT', body: '{"a": 1}', headers }, path)
      t.equal(answer.body, '{"success":true}')
    }
  })

  t.test('sends plain HTTP to TLS', async (t) => {
    const headers = { host: APP }
    const answer = await send(`http://127.0.0.1:${proxy.plainPort}`, '/page?x=1', { headers })

    t.equal(answer.status, 308)
    t.match(answer.headers.location, /^https:\/\/app\.example\.com(:\d+)?\/page\?x=1$/)
  })

  t.test('redirects no unknown host to TLS', async (t) => {
    const headers = { host: 'evil.example.net' }
    const closed = { status: 0, headers: {} }
    const answer = await send(`http://127.0.0.1:${proxy.plainPort}`, '/page', { headers }).catch(() => closed)

    t.notMatch(answer.headers, { location: /evil/ }, `${answer.status}`)
  })

  t.test('speaks TLS for no other name', async (t) => {
    const servername = 'evil.example.net'
    const socket = tlsConnect({ host: '127.0.0.1', port: proxy.port, servername, rejectUnauthorized: false })
    const [error] = await once(socket, 'error')

    t.match(error.message, /alert/)
  })

  t.test('keeps a client that is idle for longer than it waits for one', async (t) => {
    await idle.pinged(Math.ceil(silenceS / PING_S) + 1)

    t.equal(idle.sockets.length, 1)
    t.equal(idle.client.state, 'connected')
  })

  t.test('finishes what is under way when its configuration is read again', async (t) => {
    const { received, sockets } = await listen(t, outside, 'websocket', 'floor:9')
    const asked = new Promise<ServerResponse>((resolve) => {
      backend.answer = (_request, response) => resolve(response)
    })
    const underWay = outside.send(APP, '/api/floors/slow')
    const response = await asked
    await outside.publish('floor:9', 'before')
    await proxy.reload(behind)
    await outside.publish('floor:9', 'after')
    response.end('late')

    t.equal((await underWay).body, 'late')
    await received.until((publications) => publications.length === 2)
    t.same(received.data, ['before', 'after'])
    if (keepsSockets) t.equal(sockets.length, 1, 'on the same connection')
  })

  t.test('logs neither queries nor credentials when an upstream is down', async (t) => {
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
      const { status } = await outside.send(host, path, { method: 'POST', headers, body: '{}' })
      t.ok(status === 502 || status === 503, `${status} for ${path}`)
    }

    t.notMatch(await proxy.logs(), /secret-in/)
  })
}

const requestFor = (requests: readonly RecordedRequest[], url: string): RecordedRequest => {
  const found = requests.find((request) => request.url === url)
  if (found === undefined) throw new Error(`nothing came for ${url}, but for ${requests.map((one) => one.url)}`)
  return found
}
