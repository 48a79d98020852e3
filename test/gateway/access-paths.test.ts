import t from 'tap'
import { browserHeaders, startGateway, tokenOf } from '../helper/gateway.js'
import { gatewaySettingsErrors } from '../helper/settings-errors.js'
import { folderOf, startUpstreams } from './upstreams/upstreams-fixture.js'

t.test('the access lists replace the default prefixes, and the longest prefix of a path counts', async (t) => {
  const { send, backend } = await startGateway(t, {
    hasAllRoutes: true,
    env: {
      GATEWAY_PUBLIC_PATHS: '/api/news,/api/reports/internal/status',
      GATEWAY_STRICT_PATHS: '/api/reports',
      GATEWAY_ADMIN_PATHS: '/api/reports/internal,/api/users'
    }
  })
  const status = async (method: string, path: string, token: string | null): Promise<number> =>
    (await send(path, { method, headers: browserHeaders(token) })).status

  const CASES: readonly (readonly [string, string, string | null, number])[] = [
    ['GET', '/api/news', null, 200],
    ['POST', '/api/news/7', null, 200],
    ['POST', '/api/newsletter', null, 401],
    ['GET', '/api/reports/7', null, 401],
    ['GET', '/api/reports/7', tokenOf('operator'), 200],
    ['GET', '/api/reports/internal/7', tokenOf('operator'), 403],
    ['GET', '/api/reports/internal/7', tokenOf('admin'), 200],
    ['GET', '/api/reports/internal/status', null, 200],
    ['GET', '/api/Reports/7', tokenOf('operator'), 400],
    ['GET', '/api/reports/internal/', tokenOf('admin'), 400],
    ['GET', '/api/admin/unknown', null, 200],
    ['GET', '/api/audit', null, 200],
    ['GET', '/api/auth/backend-me', null, 200],
    ['GET', '/api/health', null, 200]
  ]
  for (const [method, path, token, expected] of CASES) {
    t.equal(
      await status(method, path, token),
      expected,
      `${method} ${path} ${token === null ? 'without' : 'with'} token`
    )
  }
  t.equal(backend.requests.filter(({ url }) => url.startsWith('/api/reports/7')).length, 1)
})

t.test('with /api as a strict prefix, only the login and the health check need no token', async (t) => {
  const { send } = await startGateway(t, { hasAllRoutes: true, env: { GATEWAY_STRICT_PATHS: '/api' } })

  t.equal((await send('/api/zones')).status, 401)
  t.equal((await send('/api/unknown')).status, 401)
  t.equal((await send('/api/auth/csrf-token')).status, 200)
  t.equal((await send('/api/health')).status, 200)
  t.equal((await send('/api/zones', { headers: browserHeaders(tokenOf('viewer')) })).status, 200)
})

/** Rows inside and outside of /api, on another host, with a document and a WebSocket. */
const ROWS = [
  { name: 'wiki', paths: ['/wiki'], public_paths: ['/wiki/news'] },
  { name: 'shop', paths: ['/api/shop'], routes: 'shop.json' },
  { name: 'rest', paths: ['/'], hosts: ['rest.example'], websocket: true }
]
const DOCUMENT = {
  openapi: '3.1.0',
  paths: {
    '/api/shop/items': { get: { security: [] } },
    '/api/shop/open': { get: { 'x-gatehouse-access': 'public' } }
  }
}
const files = { 'shop.json': JSON.stringify(DOCUMENT) }

t.test('GATEWAY_DEFAULT_ACCESS=session closes all rows and /api for reads too', async (t) => {
  const { send, received } = await startUpstreams(t, ROWS, {
    files,
    env: { GATEWAY_DEFAULT_ACCESS: 'session', GATEWAY_PUBLIC_PATHS: '/api/news' }
  })
  const status = async (path: string, token: string | null, host = 'app.example', method = 'GET') =>
    (await send(path, { method, headers: { ...browserHeaders(token), host } })).status
  const CLOSED: readonly (readonly [path: string, host?: string])[] = [
    ...(
      ['/wiki', '/wiki/', '/wiki/x', '/wiki/newsletter', '/api/shop', '/api/shop/items', '/api/shop/open'] as const
    ).map((path) => [path] as const),
    ...(['/api/zones', '/api/unknown', '/api/negotiate', '/api/newsletter'] as const).map((path) => [path] as const),
    ['/', 'rest.example'],
    ['/any/path', 'rest.example'],
    ['/api/zones', 'rest.example']
  ]
  for (const [path, host] of CLOSED) {
    for (const method of ['GET', 'HEAD', 'OPTIONS', 'POST'])
      t.equal(await status(path, null, host, method), 401, `${method} ${host ?? ''}${path}`)
    t.equal(await status(path, 'a.b.c', host), 401, `${path} with a forged token`)
  }
  t.same(received(), {})
  for (const path of [
    '/wiki/news',
    '/wiki/news/1',
    '/api/news',
    '/api/auth/csrf-token',
    '/api/health',
    '/api/auth/backend-me'
  ])
    t.equal(await status(path, null), 200, path)
  for (const [path, host] of CLOSED.filter(([path]) => path !== '/api/shop'))
    t.equal(await status(path, tokenOf('viewer'), host), 200, path)
})

t.test('strict and admin paths may be paths of rows', async (t) => {
  const { send } = await startUpstreams(t, ROWS, {
    files,
    env: { GATEWAY_STRICT_PATHS: '/wiki/private,/api/shop', GATEWAY_ADMIN_PATHS: '/wiki/private/admin' }
  })
  const status = async (path: string, token: string | null) =>
    (await send(path, { headers: browserHeaders(token) })).status
  t.same([await status('/wiki/x', null), await status('/wiki/private/x', null)], [200, 401])
  t.same([await status('/wiki/Private/x', null), await status('/wiki/pri%C2%ADvate/x', null)], [400, 400])
  t.same([await status('/wiki/private', tokenOf('viewer')), await status('/api/shop/items', null)], [200, 401])
  t.equal(await status('/wiki/private/admin', tokenOf('viewer')), 403)
})

t.test('/ as a strict prefix closes all rows', async (t) => {
  const { send } = await startUpstreams(t, ROWS, { files, env: { GATEWAY_STRICT_PATHS: '/' } })
  for (const path of ['/wiki/x', '/api/shop/items', '/api/zones']) t.equal((await send(path)).status, 401, path)
  t.same([(await send('/wiki/news')).status, (await send('/api/health')).status], [200, 200])
})

t.test('a strict or admin path that nothing serves is an error', async (t) => {
  const row = { name: 'wiki', url: 'http://127.0.0.1:9', paths: ['/wiki/pages'] }
  const GATEWAY_UPSTREAMS = `${folderOf(t, { 'rows.json': JSON.stringify([row]) })}/rows.json`
  const errorsOf = (path: string) => gatewaySettingsErrors({ GATEWAY_UPSTREAMS, GATEWAY_STRICT_PATHS: path })
  for (const path of ['/wiki', '/wiki/pages', '/wiki/pages/a', '/', '/api/x']) t.same(errorsOf(path), [], path)
  for (const path of ['/wiki/other', '/wikis', '/apis'])
    t.match(errorsOf(path), [`GATEWAY_STRICT_PATHS must not contain ${path}, which is neither below /api nor`])
})
