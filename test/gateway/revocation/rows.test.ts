import { once } from 'node:events'
import t, { type Test } from 'tap'
import { WebSocket } from 'ws'
import { eventually } from '../../helper/eventually.js'
import { browserHeaders } from '../../helper/gateway.js'
import { startRedis } from '../../helper/redis.js'
import { PATIENT_TIMEOUTS } from '../../helper/redis-time.js'
import { startUpstreams } from '../upstreams/upstreams-fixture.js'
import { startWebSocketBackend, type WebSocketBackend } from '../websockets/websocket-backend.js'
import { REVOCATION_ENV, type RevocableGateway, tokenFrom, withInternalApi } from './fixture.js'

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

const connect = ({ url }: RevocableGateway, token: string): WebSocket =>
  new WebSocket(`${url.replace('http', 'ws')}/live/x`, { headers: { cookie: `auth_token=${token}` } }).on(
    'error',
    () => undefined
  )

const open = async (gateway: RevocableGateway, token: string): Promise<WebSocket> => {
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

t.test('a logout closes the WebSockets of its session with 4401, and no others', async (t) => {
  const gateway = await startLive(t, await startWebSocketBackend(t))
  const token = tokenFrom(5, { userId: 'ada' })
  const other = await open(gateway, tokenFrom(6, { userId: 'ada' }))
  const closed = closeOf(await open(gateway, token))
  // A browser that is not signed in, and a forged token, end nothing.
  for (const each of [null, `${token.slice(0, -4)}AAAA`, token])
    t.equal((await gateway.send('/api/auth/logout', { method: 'POST', headers: browserHeaders(each) })).status, 200)
  t.same(await closed, ENDED)
  t.equal(other.readyState, WebSocket.OPEN)
})
