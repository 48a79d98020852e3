import t from 'tap'
import { browserHeaders, tokenOf } from '../../helper/gateway.js'
import { startUpstreams } from './upstreams-fixture.js'

const ROW = {
  name: 'shop',
  paths: ['/shop'],
  public_paths: ['/shop/public'],
  strict_paths: ['/shop/account'],
  admin_paths: ['/shop/office']
}

const token = (role: string): Record<string, string> => ({ cookie: `auth_token=${tokenOf(role)}` })

t.test('the access rules of a row apply to its paths, outside of /api/ too', async (t) => {
  const gateway = await startUpstreams(t, [ROW])
  const CASES: readonly (readonly [path: string, headers: Record<string, string>, status: number])[] = [
    ['/shop/list', {}, 200],
    ['/shop/account', {}, 401],
    ['/shop/account/', {}, 401],
    ['/shop/account/x', {}, 401],
    ['/shop/account/x', token('operator'), 200],
    ['/shop/account/', token('operator'), 200],
    ['/shop/office/x', token('operator'), 403],
    ['/shop/office/x', token('admin'), 200],
    ['/shop/Account/x', token('operator'), 400],
    ['/shop/OFFICE', {}, 400],
    ['/shop/accounts', {}, 200]
  ]
  for (const [path, headers, status] of CASES)
    t.equal((await gateway.send(path, { headers })).status, status, `${path} ${JSON.stringify(headers).slice(0, 24)}`)
  t.match(await gateway.auditRecords(), [
    { event: 'unauthorized_access', resource: '/shop/account', reason: 'token-absent', status: 401 },
    { event: 'unauthorized_access', resource: '/shop/account/' },
    { event: 'unauthorized_access', resource: '/shop/account/x' },
    { event: 'forbidden_access', resource: '/shop/office/x', user: { id: 'operator-1' }, status: 403 }
  ])
})

t.test('write requests to a row need a CSRF token, an own origin and a user', async (t) => {
  const gateway = await startUpstreams(t, [ROW])
  const post = (headers: Record<string, string>, path = '/shop/orders') =>
    gateway.send(path, { method: 'POST', headers })
  t.equal((await post(browserHeaders())).status, 200)
  t.equal((await post({ cookie: browserHeaders().cookie ?? '' })).code, 'CSRF_MISMATCH')
  t.equal((await post({ ...browserHeaders(), origin: 'https://evil.example' })).code, 'ORIGIN_REFUSED')
  t.equal((await post(browserHeaders(null))).code, 'UNAUTHENTICATED')
  t.equal((await post(browserHeaders(null), '/shop/public/basket')).status, 200)
  t.equal((await post({}, '/shop/public/basket')).code, 'CSRF_MISMATCH')
  t.equal((await post(browserHeaders(), '/shop/orders?_method=DELETE')).code, 'VALIDATION_FAILED')
  t.equal(gateway.received().shop?.length, 2)
})

t.test('a row cannot open strict and admin paths of the gateway without naming them', async (t) => {
  const gateway = await startUpstreams(t, [{ name: 'tools', paths: ['/api/admin/tools'] }])
  t.equal((await gateway.send('/api/admin/tools/x')).status, 401)
  t.equal((await gateway.send('/api/admin/tools/x', { headers: token('operator') })).status, 403)
  t.equal((await gateway.send('/api/admin/tools/x', { headers: token('admin') })).status, 200)
})

t.test('a row lets the acting headers pass that it names, and no others', async (t) => {
  const gateway = await startUpstreams(t, [
    { name: 'app', paths: ['/app'], pass_response_headers: ['Service-Worker-Allowed', 'X-Accel-Redirect'] },
    { name: 'plain', paths: ['/plain'] }
  ])
  const acting = {
    'service-worker-allowed': '/app',
    'x-accel-redirect': '/files/1',
    nel: '{}',
    'x-accel-expires': '60'
  }
  for (const backend of Object.values(gateway.backends))
    backend.respond = (_request, response) => void response.writeHead(200, acting).end()
  const namesAt = async (path: string): Promise<string[]> => {
    const { headers } = await gateway.send(path)
    return Object.keys(acting).filter((name) => name in headers)
  }
  t.strictSame(await namesAt('/app'), ['service-worker-allowed', 'x-accel-redirect'])
  t.strictSame(await namesAt('/plain'), [])
})

const IDENTITY = { user: 'X-User', email: 'X-Email', role: 'Remote-Role', permissions: 'X-Perms' }

t.test('a backend receives the user in the headers that its row names, and no other spelling of them', async (t) => {
  const gateway = await startUpstreams(t, [
    { name: 'headers', paths: ['/headers'], token: 'none', identity_headers: IDENTITY },
    { name: 'plain', paths: ['/plain'] }
  ])
  const cookie = `auth_token=${tokenOf('operator', { permissions: ['read', 'write'] })}`
  const forged = {
    'x-user': 'root',
    'X-EMAIL': 'root@example.com',
    x_user: 'root',
    'x.user': 'root',
    'X-Perms': 'all',
    'remote~role': 'admin',
    Remote_Role: 'admin',
    authorization: 'Bearer forged',
    connection: 'x-user'
  }
  const forwarded = async (path: string, headers: Record<string, string>) => {
    t.equal((await gateway.send(path, { headers })).status, 200)
    return gateway.backends[path.slice(1)]?.requests.splice(0)[0]?.headers ?? {}
  }
  const names = (headers: object): string[] => Object.keys(headers).filter((name) => /user|email|role|perm/.test(name))
  const signedIn = await forwarded('/headers', { ...forged, cookie })
  t.match(signedIn, {
    'x-user': 'operator-1',
    'x-email': 'operator@example.com',
    'remote-role': 'operator',
    'x-perms': 'read,write'
  })
  t.strictSame(names(signedIn).sort(), ['remote-role', 'x-email', 'x-perms', 'x-user'])
  t.notOk('authorization' in signedIn || 'cookie' in signedIn)

  const anonymous = await forwarded('/headers', forged)
  t.strictSame(names(anonymous), [])
  t.notOk('authorization' in anonymous)
  const invalid = await forwarded('/headers', { ...forged, cookie: 'auth_token=x.y.z' })
  t.strictSame(names(invalid), [])
  t.match(await forwarded('/plain', { cookie }), { authorization: /^Bearer ey/ })
})

const DOCUMENT = `
openapi: 3.1.0
info: { title: Shop, version: 1.0.0 }
paths:
  /orders:
    post:
      requestBody:
        required: true
        content:
          application/json:
            schema: { type: object, required: [item], properties: { item: { type: string } } }
      responses: { '201': { description: Created } }
  /shop/orders/{id}:
    get:
      x-gatehouse-access: user
      x-gatehouse-secret-path: true
      parameters: [{ name: id, in: path, required: true, schema: { type: integer } }]
      responses: { '200': { description: An order } }
`

t.test('the OpenAPI document of a row validates its requests, and those of no other row', async (t) => {
  const rows = [
    { name: 'shop', paths: ['/shop'], routes: 'shop.yaml', strip_prefix: true },
    { name: 'other', hosts: ['other.example.com'], paths: ['/shop'] }
  ]
  const gateway = await startUpstreams(t, rows, { files: { 'shop.yaml': DOCUMENT } })
  const post = (path: string, body: string, host = 'app.example.com') =>
    gateway.send(path, {
      method: 'POST',
      body,
      headers: { ...browserHeaders(), 'content-type': 'application/json', host }
    })
  t.match((await post('/shop/orders', '{}')).json(), { error: { code: 'VALIDATION_FAILED' } })
  t.equal((await post('/shop/orders/', '{}')).code, 'AMBIGUOUS_PATH')
  t.equal((await post('/shop/Orders', '{}')).code, 'AMBIGUOUS_PATH')
  t.equal((await post('/shop/orders', '{"item":"a"}')).status, 200)
  t.equal((await post('/shop/orders/7', '{}')).status, 405)
  t.equal((await gateway.send('/shop/orders/7')).status, 401)
  t.equal((await gateway.send('/shop/orders/x', { headers: token('operator') })).status, 400)
  t.equal((await gateway.send('/shop/orders/7', { headers: token('operator') })).status, 200)
  t.equal((await post('/shop/anything', '{}')).status, 200)
  t.strictSame(gateway.received(), { shop: ['/orders', '/orders/7', '/anything'] })
  t.equal((await post('/shop/orders', '{}', 'other.example.com')).status, 200)
  t.strictSame(gateway.received(), { other: ['/shop/orders'] })
  t.match((await gateway.auditRecords())[0], { resource: '/shop/orders/…' })
})

t.test('GATEWAY_UNKNOWN_PATHS=refuse applies to rows with a document', async (t) => {
  const rows = [
    { name: 'shop', paths: ['/shop'], routes: 'shop.yaml' },
    { name: 'free', paths: ['/free'] }
  ]
  const env = { GATEWAY_UNKNOWN_PATHS: 'refuse' }
  const gateway = await startUpstreams(t, rows, { files: { 'shop.yaml': DOCUMENT }, env })
  t.equal((await gateway.send('/shop/anything')).status, 404)
  t.equal((await gateway.send('/shop')).status, 404)
  t.equal((await gateway.send('/free/anything')).status, 200)
})

t.test('redirects of a backend lead to the paths of its row', async (t) => {
  const gateway = await startUpstreams(t, [{ name: 'wiki', paths: ['/wiki'], strip_prefix: true }])
  const { wiki } = gateway.backends
  if (wiki === undefined) throw new Error('no backend')
  for (const location of ['/login', `${wiki.url}/login`]) {
    wiki.respond = (_request, response) => response.writeHead(302, { location, 'set-cookie': 'a=b' }).end()
    const { headers } = await gateway.send('/wiki/')
    t.equal(headers.location, '/wiki/login')
    t.notOk('set-cookie' in headers)
  }
})

t.test('a row and forward authentication name a user in the same way', async (t) => {
  const names = { user: 'X-Auth-User', email: 'X-Auth-Email', role: 'X-Auth-Role', permissions: 'X-Auth-Permissions' }
  const { backends, send } = await startUpstreams(t, [{ name: 'shop', paths: ['/shop'], identity_headers: names }], {
    env: { GATEWAY_FORWARD_AUTH: 'true', TRUST_PROXY: 'loopback' }
  })
  const identity = (headers: object = {}) =>
    Object.fromEntries(Object.values(names).map((name) => [name, Reflect.get(headers, name.toLowerCase())]))
  for (const claims of [
    {},
    { userId: 7, permissions: ['a,b', 'ü', 5] },
    { userId: 'ä%20 ', email: 3, role: ['admin'] }
  ]) {
    const headers = { cookie: `auth_token=${tokenOf('operator', claims)}`, 'x-auth-role': 'admin', x_auth_user: 'root' }
    await send('/shop/x', { headers })
    const verified = await send('/auth/verify', { headers })
    t.equal(verified.status, 200)
    t.ok(verified.headers['x-auth-user'])
    t.same(identity(backends.shop?.requests.at(-1)?.headers), identity(verified.headers))
  }
})
