import { once } from 'node:events'
import { Redis } from 'ioredis'
import t, { type Test } from 'tap'
import { WebSocket } from 'ws'
import { decodeClaims } from '../../../src/shared/app-token.js'
import { eventually } from '../../helper/eventually.js'
import { browserHeaders, type TestGateway } from '../../helper/gateway.js'
import { startRedis } from '../../helper/redis.js'
import { PATIENT_TIMEOUTS } from '../../helper/redis-time.js'
import { startUpstreams } from '../upstreams/upstreams-fixture.js'
import { startWebSocketBackend, type WebSocketBackend } from '../websockets/websocket-backend.js'
import {
  getWith,
  REVOCATION_ENV,
  type RevocableGateway,
  startRevocable,
  tokenFrom,
  withInternalApi
} from './fixture.js'

const SHOP = {
  name: 'shop',
  paths: ['/shop'],
  strict_paths: ['/shop/account'],
  identity_headers: { user: 'X-User' }
}

t.test('a revoked token does not reach the backend of a row outside of /api/', async (t) => {
  const { backends, ...gateway } = await startUpstreams(t, [SHOP], { env: REVOCATION_ENV })
  const { revoke, send } = await withInternalApi(gateway)
  const token = tokenFrom(5, { userId: 'ada' })
  const forwarded = async (headers: Record<string, string>) => {
    const response = await send('/shop/list', { headers })
    t.equal(response.status, 200)
    const { authorization = null, 'x-user': user = null } = backends.shop?.requests.at(-1)?.headers ?? {}
    return { authorization, user, cleared: String(response.headers['set-cookie'] ?? '').includes('auth_token=;') }
  }
  const cookie = `auth_token=${token}`
  const NOTHING = { authorization: null, user: null }
  t.same(await forwarded({ cookie }), { authorization: `Bearer ${token}`, user: 'ada', cleared: false })

  t.equal((await revoke({ user: 'ada' })).status, 200)

  t.same(await forwarded({ cookie }), { ...NOTHING, cleared: true })
  t.same(await forwarded({ authorization: `Bearer ${token}` }), { ...NOTHING, cleared: false })
  t.equal((await send('/shop/account', { headers: { cookie } })).code, 'UNAUTHENTICATED')
  t.match(await gateway.auditRecords(), [{ resource: '/shop/account', reason: 'token-revoked', user: { id: 'ada' } }])
  const other = tokenFrom(5, { userId: 'bob' })
  t.match(await forwarded({ cookie: `auth_token=${other}` }), { authorization: `Bearer ${other}`, user: 'bob' })
})

const startLive = async (
  t: Test,
  backend: WebSocketBackend,
  env: Readonly<Record<string, string>> = {}
): Promise<RevocableGateway> => {
  const rows = [{ name: 'live', url: backend.url, paths: ['/live'], websocket: true }]
  const options = { env: { ...REVOCATION_ENV, ...env }, redisTimeouts: PATIENT_TIMEOUTS }
  return withInternalApi(await startUpstreams(t, rows, options))
}

const connect = ({ url }: TestGateway, token: string): WebSocket =>
  new WebSocket(`${url.replace('http', 'ws')}/live/x`, { headers: { cookie: `auth_token=${token}` } }).on(
    'error',
    () => undefined
  )

const open = async (gateway: TestGateway, token: string): Promise<WebSocket> => {
  const ws = connect(gateway, token)
  await once(ws, 'open')
  return ws
}

const closeOf = async (ws: WebSocket): Promise<readonly string[]> => (await once(ws, 'close')).map(String)

const ENDED = ['4401', 'session ended']

t.test('a revocation closes the WebSockets of its user or session with 4401, and no others', async (t) => {
  const backend = await startWebSocketBackend(t)
  const gateway = await startLive(t, backend)
  const ada = tokenFrom(5, { userId: 'ada', sid: 'one' })
  const [first, second, other] = await Promise.all([
    open(gateway, ada),
    open(gateway, tokenFrom(5, { userId: 'ada', sid: 'two' })),
    open(gateway, tokenFrom(5, { userId: 'bob' }))
  ])
  const firstClosed = closeOf(first)
  t.equal((await gateway.revoke({ session: 'one' })).status, 200)
  t.same(await firstClosed, ENDED)
  t.equal(second.readyState, WebSocket.OPEN)

  const secondClosed = closeOf(second)
  t.equal((await gateway.revoke({ user: 'ada' })).status, 200)
  t.same(await secondClosed, ENDED)
  await eventually(() => backend.closed.filter((text) => text === ENDED.join(' ')).length === 2)
  t.equal(other.readyState, WebSocket.OPEN)
  const [, response] = await once(connect(gateway, ada), 'unexpected-response')
  response.resume()
  t.equal(response.statusCode, 401)
  t.equal(backend.handshakes.length, 3)
})

t.test('a revocation at one gateway closes the WebSockets at another one', async (t) => {
  const { url } = await startRedis(t)
  const backend = await startWebSocketBackend(t)
  const one = await startLive(t, backend, { REDIS_URL: url })
  const two = await startLive(t, backend, { REDIS_URL: url })
  const closed = closeOf(await open(two, tokenFrom(5, { userId: 'ada' })))
  t.equal((await one.revoke({ user: 'ada' })).status, 200)
  t.same(await closed, ENDED)
})

const logOut = async (gateway: TestGateway, token: string | null): Promise<number> =>
  (await gateway.send('/api/auth/logout', { method: 'POST', headers: browserHeaders(token) })).status

t.test('a logout closes the WebSockets of its session with 4401, and no others', async (t) => {
  const backend = await startWebSocketBackend(t)
  const { url } = await startRedis(t)
  const token = tokenFrom(5, { userId: 'ada' })
  const rows = [{ name: 'live', url: backend.url, paths: ['/live'], websocket: true }]
  const gateways = {
    'at a gateway without revocation': [await startUpstreams(t, rows)],
    'at a gateway with revocation': [await startLive(t, backend)],
    'at all gateways with revocation and Redis': [
      await startLive(t, backend, { REDIS_URL: url }),
      await startLive(t, backend, { REDIS_URL: url })
    ]
  }
  for (const [where, [one, two = one]] of Object.entries(gateways)) {
    t.test(where, async (t) => {
      if (one === undefined || two === undefined) throw new Error('no gateway')
      // With an id, because a token of another second could have the same claims.
      const other = await open(two, tokenFrom(6, { userId: 'ada', jti: 'other' }))
      const sockets = await Promise.all([open(one, token), open(two, token)])
      const closed = Promise.all(sockets.map(closeOf))
      // A browser that is not signed in, and a forged token, end nothing.
      for (const each of [null, `${token.slice(0, -4)}AAAA`, token]) t.equal(await logOut(one, each), 200)
      t.same(await closed, [ENDED, ENDED])
      t.equal(other.readyState, WebSocket.OPEN)
      other.terminate()
    })
  }
})

t.test('the token of a logout is rejected at all gateways until it expires, and no other token', async (t) => {
  const redis = await startRedis(t)
  const start = () => startRevocable(t, { env: { REDIS_URL: redis.url }, redisTimeouts: PATIENT_TIMEOUTS })
  const [one, two] = [await start(), await start()]
  const [token, other] = [tokenFrom(5, { userId: 'ada' }), tokenFrom(6, { userId: 'ada' })]
  for (const each of [token, other]) t.equal((await getWith(two, each)).status, 200)
  t.equal(await logOut(one, token), 200)
  t.equal(one.backend.requests.at(-1)?.headers.authorization, `Bearer ${token}`, 'the backend signs the user out')
  await eventually(async () => (await getWith(two, token)).status === 401)
  t.equal((await getWith(two, other)).status, 200)
  t.equal((await getWith(await start(), token)).status, 401, 'a gateway that starts later')

  const client = new Redis(redis.url)
  t.teardown(() => client.disconnect())
  const [, score] = await client.zrange('gatehouse:revoked:ended', '0', '-1', 'WITHSCORES')
  const keptUntil = Number(score) + 2_592_000_000
  t.equal(keptUntil, decodeClaims(token)?.expiresAtMs ?? 0, 'not kept longer than the token is valid')

  t.test('it is valid again after a sign-in for which the backend has issued the same token', async (t) => {
    one.backend.respond = (_request, response) =>
      response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify({ success: true, data: { token, user: { userId: 'ada' }, expiresIn: 60 } }))
    await one.send('/api/auth/login', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"email":"ada@example.com","password":"x"}'
    })
    t.equal((await getWith(one, token)).status, 200)
    await eventually(async () => (await getWith(two, token)).status === 200)
  })
})
