import t from 'tap'
import { browserHeaders, startGateway, tokenOf } from '../helper/gateway.js'

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
