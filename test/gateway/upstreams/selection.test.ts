import t from 'tap'
import { browserHeaders } from '../../helper/gateway.js'
import { startUpstreams } from './upstreams-fixture.js'

const ROWS = [
  { name: 'billing', paths: ['/api/billing'] },
  { name: 'invoices', paths: ['/api/billing/invoices', '/api/receipts'] },
  { name: 'reports', paths: ['/reports'], strip_prefix: true },
  { name: 'wiki', hosts: ['wiki.example.com', '[2001:db8::1]'], paths: ['/'] },
  { name: 'wiki-files', hosts: ['WIKI.example.com'], paths: ['/files'], strip_prefix: '/files' },
  { name: 'team', paths: ['/team/a', '/team/b'], strip_prefix: '/team' }
]

const CASES: readonly (readonly [target: string, host: string, row: string, forwarded?: string])[] = [
  ['/api/zones', 'app.example.com', 'default'],
  ['/api/billing', 'app.example.com', 'billing'],
  ['/api/billing/', 'app.example.com', 'billing'],
  ['/api/billing/x?a=/api/receipts', 'app.example.com', 'billing'],
  ['/api/billings', 'app.example.com', 'default'],
  ['/api/billing/invoices', 'app.example.com', 'invoices'],
  ['/api/billing/invoices/7', 'app.example.com', 'invoices'],
  ['/api/billing/invoices-old', 'app.example.com', 'billing'],
  ['/api/receipts/7', 'app.example.com', 'invoices'],
  ['/reports', 'app.example.com', 'reports', '/'],
  ['/reports?year=2026', 'app.example.com', 'reports', '/?year=2026'],
  ['/reports/', 'app.example.com', 'reports', '/'],
  ['/reports/2026/a.pdf?b=c', 'app.example.com', 'reports', '/2026/a.pdf?b=c'],
  ['/team/b/x', 'app.example.com', 'team', '/b/x'],
  ['/', 'wiki.example.com', 'wiki'],
  ['/Main_Page', 'Wiki.Example.com:8443', 'wiki'],
  ['/Main_Page', 'wiki.example.com.', 'wiki'],
  ['/Main_Page', '[2001:db8::1]:8080', 'wiki'],
  ['/api/billing', 'wiki.example.com', 'wiki'],
  ['/api/zones', 'wiki.example.com', 'wiki'],
  ['/files/logo.png', 'wiki.example.com', 'wiki-files', '/logo.png'],
  ['/filesystem', 'wiki.example.com', 'wiki']
]

t.test('the host and the longest path of a request select its backend', async (t) => {
  const gateway = await startUpstreams(t, ROWS)
  for (const [target, host, row, forwarded = target] of CASES) {
    const { status } = await gateway.send(target, { headers: { host } })
    t.strictSame([status, gateway.received()], [200, { [row]: [forwarded] }], `${host}${target}`)
  }
})

t.test('paths of the gateway itself belong to no row, also for hosts with a row for all paths', async (t) => {
  const gateway = await startUpstreams(t, ROWS)
  const headers = { host: 'wiki.example.com' }
  t.match((await gateway.send('/api/health', { headers })).json(), { status: 'ok' })
  t.match((await gateway.send('/api/auth/csrf-token', { headers })).json(), { success: true })
  t.match((await gateway.send('/metrics', { headers })).body, 'gateway_in_flight')
  t.equal((await gateway.send('/auth/oidc/login', { headers })).status, 404)
  t.equal((await gateway.send('/connection/websocket', { headers })).status, 404)
  t.strictSame(gateway.received(), {})
})

t.test('the host that a trusted proxy forwards selects the row, and that of another client does not', async (t) => {
  const headers = { host: 'app.example.com', 'x-forwarded-host': 'app.example.com, wiki.example.com' }
  const trusting = await startUpstreams(t, ROWS, { env: { TRUST_PROXY: 'loopback' } })
  await trusting.send('/', { headers })
  t.strictSame(trusting.received(), { wiki: ['/'] })
  const other = await startUpstreams(t, ROWS)
  t.equal((await other.send('/', { headers })).status, 404)
  t.strictSame(other.received(), {})
})

t.test('other spellings of the path of a row are 400 AMBIGUOUS_PATH and reach no backend', async (t) => {
  const gateway = await startUpstreams(t, [...ROWS, { name: 'unicode', paths: ['/b%C3%BCro'] }])
  for (const path of [
    '/API/billing',
    '/api/Billing/x',
    '/Reports',
    '/api/b%C4%B1lling',
    '/B%C3%9Cro',
    '/b%c3%bcro/x'
  ]) {
    for (const host of ['app.example.com', 'wiki.example.com'])
      t.equal((await gateway.send(path, { headers: { host } })).code, 'AMBIGUOUS_PATH', `${host}${path}`)
  }
  for (const path of [
    '/reports%2fx',
    '/reports%2Fx',
    '/reports/%2e%2e/api',
    '/reports/../api/zones',
    '/reports//x',
    '/reports\\x',
    '/reports;x'
  ])
    t.equal((await gateway.send(path)).code, 'AMBIGUOUS_PATH', path)
  t.strictSame(gateway.received(), {})
  t.equal((await gateway.send('/b%C3%BCro/x')).status, 200)
  t.strictSame(gateway.received(), { unicode: ['/b%C3%BCro/x'] })
})

t.test('every method and body is forwarded to the backend of the row', async (t) => {
  const gateway = await startUpstreams(t, ROWS)
  for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
    const headers = { ...browserHeaders(), 'content-type': 'text/plain' }
    t.equal((await gateway.send('/reports/x', { method, headers, body: 'text' })).status, 200, method)
    t.match(gateway.backends.reports?.requests.splice(0), [{ method, url: '/x', body: 'text' }])
  }
  t.equal((await gateway.send('/reports/x', { method: 'PROPFIND' })).status, 405)
})
