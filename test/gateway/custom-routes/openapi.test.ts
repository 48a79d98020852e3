import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { dump } from 'js-yaml'
import t, { type Test } from 'tap'
import { browserHeaders, startGateway, type TestGateway, tokenOf } from '../../helper/gateway.js'
import type { HttpResponse } from '../../helper/http.js'

type Paths = Readonly<Record<string, unknown>>

/** A gateway with the routes of an OpenAPI document. */
const gatewayFor = (
  t: Test,
  paths: Paths,
  { env = {}, rest = {} }: { readonly env?: Record<string, string>; readonly rest?: object } = {}
): Promise<TestGateway> => {
  const file = join(t.testdir({}), 'openapi.json')
  writeFileSync(file, JSON.stringify({ openapi: '3.1.0', info: { title: 'x', version: '1' }, paths, ...rest }))
  return startGateway(t, { env: { GATEWAY_ROUTES: file, ...env } })
}

const body = (schema: unknown, more: object = {}) => ({
  requestBody: { content: { 'application/json': { schema } }, ...more }
})

const sendBody = (
  { send }: TestGateway,
  path: string,
  content: string,
  { method = 'POST', type = 'application/json' } = {}
): Promise<HttpResponse> =>
  send(path, { method, headers: { ...browserHeaders(), 'content-type': type }, body: content })

const errorOf = ({ status, body }: HttpResponse) => {
  const { error } = JSON.parse(body)
  return { status, code: error.code, details: error.details }
}

const NAMED = { type: 'object', required: ['name'], properties: { name: { type: 'string', minLength: 2 } } }

t.test('a JSON body is validated before it is forwarded', async (t) => {
  const gateway = await gatewayFor(t, { '/floors': { post: body(NAMED) } })

  t.equal((await sendBody(gateway, '/api/floors', '{ "name": "Ground", "level": 1.0 }')).status, 200)
  t.same(
    gateway.backend.requests.map(({ url, body }) => [url, body]),
    [['/api/floors', '{"name":"Ground","level":1}']]
  )
  t.same(errorOf(await sendBody(gateway, '/api/floors', '{"name":"G"}')), {
    status: 400,
    code: 'VALIDATION_FAILED',
    details: [{ path: '/name', message: 'must NOT have fewer than 2 characters' }]
  })
  t.same(errorOf(await sendBody(gateway, '/api/floors', '{}')).details, [{ path: '/name', message: 'is required' }])
  t.equal(errorOf(await sendBody(gateway, '/api/floors', '{"name"')).code, 'MALFORMED_BODY')
  t.equal(gateway.backend.requests.length, 1)
})

t.test('a YAML document with references to other files describes the routes', async (t) => {
  const folder = t.testdir({
    'openapi.yaml': dump({
      openapi: '3.0.3',
      servers: [{ url: 'https://api.example.com/v2' }],
      paths: { '/floors': { $ref: 'paths.yml#/floors' } }
    }),
    'paths.yml': dump({ floors: { put: body({ $ref: './models.json' }) } }),
    'models.json': JSON.stringify(NAMED)
  })
  const gateway = await startGateway(t, { env: { GATEWAY_ROUTES: join(folder, 'openapi.yaml') } })

  t.equal((await sendBody(gateway, '/api/v2/floors', '{"name":"Ground"}', { method: 'PUT' })).status, 200)
  t.equal((await sendBody(gateway, '/api/v2/floors', '{}', { method: 'PUT' })).status, 400)
})

t.test('a required body is required, another may be missing', async (t) => {
  const gateway = await gatewayFor(t, {
    '/required': { post: body(NAMED, { required: true }) },
    '/optional': { post: body(NAMED) },
    '/none': { post: {} }
  })
  const { send } = gateway
  const headers = browserHeaders()

  t.same(errorOf(await send('/api/required', { method: 'POST', headers })), {
    status: 400,
    code: 'VALIDATION_FAILED',
    details: [{ path: '', message: 'a body is required' }]
  })
  t.equal((await sendBody(gateway, '/api/required', '')).status, 400)
  t.equal((await send('/api/optional', { method: 'POST', headers })).status, 200)
  t.equal((await sendBody(gateway, '/api/optional', '')).status, 200)
  t.equal((await send('/api/none', { method: 'POST', headers })).status, 200)
  t.equal(errorOf(await sendBody(gateway, '/api/none', '{}')).code, 'UNSUPPORTED_MEDIA_TYPE')
  t.equal((await sendBody(gateway, '/api/optional', 'null')).status, 400)
})

t.test('a body of null is forwarded if the schema allows it', async (t) => {
  const gateway = await gatewayFor(t, { '/x': { post: body({ type: ['object', 'null'] }, { required: true }) } })

  t.equal((await sendBody(gateway, '/api/x', 'null')).status, 200)
  t.equal(gateway.backend.requests[0]?.body, 'null')
})

t.test('bodies with a +json type are validated with the schema of their type, undeclared types are 415', async (t) => {
  const content = {
    'application/json': { schema: NAMED },
    'application/merge-patch+json': { schema: { type: 'object', minProperties: 1 } }
  }
  const gateway = await gatewayFor(t, { '/x': { patch: { requestBody: { content } } } })
  const patch = (text: string, type: string) => sendBody(gateway, '/api/x', text, { method: 'PATCH', type })

  t.equal((await patch('{"level":1}', 'application/merge-patch+json; charset=utf-8')).status, 200)
  t.equal(gateway.backend.requests[0]?.headers['content-type'], 'application/merge-patch+json')
  t.equal((await patch('{}', 'application/merge-patch+json')).status, 400)
  t.equal((await patch('{"level":1}', 'application/json')).status, 400)
  for (const type of [
    'application/vnd.x+json',
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data'
  ])
    t.equal(errorOf(await patch('{"name":"Ground"}', type)).code, 'UNSUPPORTED_MEDIA_TYPE', type)
  t.equal(gateway.backend.requests.length, 1)
})

t.test('multipart forms and other declared types are streamed to the backend unchanged', async (t) => {
  const content = { 'multipart/form-data': { schema: { type: 'object' } }, 'image/*': {} }
  const gateway = await gatewayFor(
    t,
    { '/photo': { post: { requestBody: { required: true, content } } } },
    { env: { BODY_LIMIT: '1KiB', UPLOAD_LIMIT: '100KiB' } }
  )
  const post = (text: string, type: string) => sendBody(gateway, '/api/photo', text, { type })
  const form = `--b\r\ncontent-disposition: form-data; name="f"\r\n\r\n${'x'.repeat(50_000)}\r\n--b--\r\n`

  t.equal((await post(form, 'multipart/form-data; boundary=b')).status, 200)
  t.equal(gateway.backend.requests[0]?.body, form)
  t.equal((await post('png', 'image/png')).status, 200)
  t.equal(errorOf(await post(form, 'multipart/form-data')).code, 'UNSUPPORTED_MEDIA_TYPE', 'without a boundary')
  t.equal(errorOf(await post('{}', 'application/json')).code, 'UNSUPPORTED_MEDIA_TYPE')
  t.equal(errorOf(await post('x'.repeat(200_000), 'image/png')).code, 'BODY_TOO_LARGE')
  t.equal(errorOf(await post('', 'multipart/form-data; boundary=b')).status, 400)
})

t.test('declared path and query parameters are validated, and details[].path names the parameter', async (t) => {
  const parameters = [
    { name: 'floor-id', in: 'path', required: true, schema: { type: 'integer', minimum: 1 } },
    { name: 'limit', in: 'query', schema: { type: 'integer', maximum: 100 } },
    { name: 'tags', in: 'query', schema: { type: 'array', items: { enum: ['a', 'b'] } } },
    { name: 'ids', in: 'query', explode: false, schema: { type: 'array', items: { type: 'integer' } } },
    { name: 'size', in: 'query', schema: { oneOf: [{ type: 'integer' }, { type: 'string', minLength: 1 }] } },
    { name: 'level', in: 'query', schema: { enum: [1, 2] } },
    { name: 'q', in: 'query', required: true, schema: { type: 'string', pattern: '^\\p{L}+$' } }
  ]
  const { send, backend } = await gatewayFor(t, { '/floors/{floor-id}': { parameters, get: {} } })
  const detailsOf = async (url: string) => errorOf(await send(url)).details

  const valid = '/api/floors/7?q=%C3%A4&limit=5&tags=a&tags=b&ids=01,-2&ids=3e1&size=5&level=2&other=x&other=y'
  t.equal((await send(valid)).status, 200)
  t.equal(backend.requests[0]?.url, valid, 'the request is forwarded unchanged')
  t.same(await detailsOf('/api/floors/x?q=a'), [{ path: 'floor-id', message: 'must be integer' }])
  t.same(await detailsOf('/api/floors/0?q=a'), [{ path: 'floor-id', message: 'must be >= 1' }])
  t.same(await detailsOf('/api/floors/7'), [{ path: 'q', message: 'is required' }])
  t.match(await detailsOf('/api/floors/7?q=1'), [{ path: 'q' }])
  t.same(await detailsOf('/api/floors/7?q=a&limit=1&limit=2'), [{ path: 'limit', message: 'must not be repeated' }])
  t.same(await detailsOf('/api/floors/7?q=a&limit=101&tags=c&level=3'), [
    { path: 'limit', message: 'must be <= 100' },
    { path: 'tags', message: 'must be one of "a", "b"' },
    { path: 'level', message: 'must be one of 1, 2' }
  ])
  t.same(await detailsOf('/api/floors/7?q=a&ids=1,x'), [{ path: 'ids', message: 'must be integer' }])
  for (const number of ['0x10', '%205', '5%20', '%2B5', '1_0', 'Infinity', '1.5', '', '5.']) {
    t.same(
      await detailsOf(`/api/floors/7?q=a&limit=${number}`),
      [{ path: 'limit', message: 'must be integer' }],
      number
    )
    t.same(await detailsOf(`/api/floors/7?q=a&ids=1,${number}`), [{ path: 'ids', message: 'must be integer' }], number)
  }
  t.equal(backend.requests.length, 1)
})

t.test('HEAD is validated and needs the same access as GET', async (t) => {
  const parameters = [{ name: 'limit', in: 'query', schema: { type: 'integer' } }]
  const { send, backend } = await gatewayFor(t, { '/x': { get: { parameters, 'x-gatehouse-access': 'user' } } })
  const head = async (url: string, token: string | null) =>
    (await send(url, { method: 'HEAD', headers: browserHeaders(token) })).status

  t.equal(await head('/api/x', null), 401)
  t.equal(await head('/api/x?limit=x', tokenOf('viewer')), 400)
  t.equal(await head('/api/x?limit=1', tokenOf('viewer')), 200)
  t.same(
    backend.requests.map(({ method }) => method),
    ['HEAD']
  )
})

t.test('an undeclared write request of a declared path is 405, other paths go through the catch-all', async (t) => {
  const { send, backend } = await gatewayFor(t, {
    '/floors/{id}': { get: {}, put: body(NAMED) },
    '/floors/special': { get: {} }
  })
  const headers = browserHeaders()
  const post = await send('/api/floors/7', { method: 'POST', headers })

  t.equal(post.status, 405)
  t.equal(post.headers.allow, 'GET, HEAD, OPTIONS, PUT')
  t.equal((await send('/api/floors/special', { method: 'PUT', headers })).status, 405, 'not PUT /floors/{id}')
  t.equal((await send('/api/floors/7', { method: 'OPTIONS', headers })).status, 200)
  t.equal((await send('/api/other', { method: 'POST', headers })).status, 200)
  t.equal((await send('/api/zones', { method: 'POST', headers })).status, 200, 'the built-in tables are replaced')
  t.same(
    backend.requests.map(({ method, url }) => `${method} ${url}`),
    ['OPTIONS /api/floors/7', 'POST /api/other', 'POST /api/zones']
  )
})

t.test('with GATEWAY_UNKNOWN_PATHS=refuse, other paths are 404 and undeclared methods 405', async (t) => {
  const { send, backend } = await gatewayFor(
    t,
    { '/floors/{id}': { get: {} }, '/jobs': { post: {} } },
    { env: { GATEWAY_UNKNOWN_PATHS: 'refuse' } }
  )
  const headers = browserHeaders()
  const status = async (method: string, path: string) => (await send(path, { method, headers })).status

  t.equal(await status('GET', '/api/floors/7'), 200)
  t.equal(await status('HEAD', '/api/floors/7'), 200)
  t.equal(await status('POST', '/api/jobs'), 200)
  t.equal(backend.requests.length, 3)
  t.equal(await status('GET', '/api/other'), 404)
  t.equal(await status('DELETE', '/api/zones/7'), 404)
  t.equal(await status('GET', '/api/floors/7/more'), 404)
  t.equal(await status('GET', '/api/jobs'), 405)
  t.equal(await status('HEAD', '/api/jobs'), 405)
  t.equal(await status('OPTIONS', '/api/floors/7'), 405)
  t.equal((await send('/api/floors/7', { method: 'PUT', headers })).headers.allow, 'GET, HEAD')
  t.equal(await status('GET', '/api/health'), 200)
  t.equal(await status('GET', '/api/auth/csrf-token'), 200)
  t.equal(backend.requests.length, 3)
})

t.test('with GATEWAY_UNKNOWN_PATHS=refuse, the built-in routes are all that is served', async (t) => {
  const { send, backend } = await startGateway(t, { env: { GATEWAY_UNKNOWN_PATHS: 'refuse' } })
  const headers = browserHeaders()
  const status = async (method: string, path: string) => (await send(path, { method, headers })).status

  t.equal(await status('GET', '/api/zones'), 200)
  t.equal(await status('HEAD', '/api/zones/7'), 200)
  t.equal(await status('OPTIONS', '/api/zones'), 405)
  t.equal(await status('GET', '/api/auth/logout'), 405)
  t.equal(await status('GET', '/api/other'), 404)
  t.equal(backend.requests.length, 2)
})

t.test('the log shows paths with x-gatehouse-secret-path up to their first parameter', async (t) => {
  const { send, logs } = await gatewayFor(
    t,
    {
      '/invitations/{token}': { 'x-gatehouse-secret-path': true, get: {} },
      '/shares/{token}': { get: {}, put: { 'x-gatehouse-secret-path': true } },
      '/links/{token}': { $ref: '#/components/pathItems/Link' },
      '/floors/{id}': { 'x-gatehouse-secret-path': false, get: {} }
    },
    { rest: { components: { pathItems: { Link: { 'x-gatehouse-secret-path': true, get: {} } } } } }
  )
  for (const path of ['invitations/s3cr3t', 'shares/s3cr3t', 'links/s3cr3t', 'LINKS/s3cr3t', 'floors/7'])
    await send(`/api/${path}`)

  t.same(
    logs.filter(({ msg }) => msg === 'request').map(({ path }) => path),
    ['/api/invitations/…', '/api/shares/…', '/api/links/…', '/api/LINKS/…', '/api/floors/7']
  )
})

t.test('strict and admin paths win over the access level of the operation, of its path, and security', async (t) => {
  const get = (more: object = {}) => ({ get: more })
  const gateway = await gatewayFor(
    t,
    {
      '/operation': { 'x-gatehouse-access': 'admin', ...get({ 'x-gatehouse-access': 'public' }) },
      '/reports/public': get({ 'x-gatehouse-access': 'public' }),
      '/admin/public': { 'x-gatehouse-access': 'public', ...get(), post: { 'x-gatehouse-access': 'user' } },
      '/{area}/public-parameter': get({ 'x-gatehouse-access': 'public' }),
      '/{area}/user-parameter': get({ 'x-gatehouse-access': 'user' }),
      '/reports/path': { 'x-gatehouse-access': 'admin', ...get({ security: [] }) },
      '/reports/security': get({ security: [] }),
      '/reports/other-security': get({ security: [{ key: [] }] }),
      '/reports/list': get(),
      '/default': { get: {}, post: {} },
      '/open': { post: { security: [] } },
      '/admin/open': { post: { security: [] } },
      '/{area}/parameter': get({ security: [] }),
      '/user': { get: { 'x-gatehouse-access': 'user' } },
      '/admin-path/{id}': { 'x-gatehouse-access': 'admin', delete: {} },
      '/admin-path/{id}/items': { get: {} },
      '/admin-path/special': { 'x-gatehouse-access': 'public', delete: {} },
      '/shared': { $ref: '#/components/pathItems/Shared', 'x-gatehouse-access': 'admin' }
    },
    {
      env: { GATEWAY_STRICT_PATHS: '/api/reports' },
      rest: { components: { pathItems: { Shared: { 'x-gatehouse-access': 'user', get: {} } } } }
    }
  )
  const statuses = async (method: string, path: string) => {
    const tokens = [null, tokenOf('viewer'), tokenOf('admin')]
    const responses = tokens.map((token) => gateway.send(path, { method, headers: browserHeaders(token) }))
    return (await Promise.all(responses)).map(({ status }) => status)
  }

  t.same(
    gateway.logs
      .filter(({ msg }) => String(msg).startsWith('public'))
      .map(({ level, operations }) => [level, operations]),
    [
      [
        40,
        [
          'GET /api/operation',
          'GET /api/{area}/public-parameter',
          'POST /api/open',
          'GET /api/{area}/parameter',
          'DELETE /api/admin-path/special'
        ]
      ]
    ]
  )
  const CASES: readonly (readonly [string, string, readonly number[]])[] = [
    ['GET', '/api/operation', [200, 200, 200]],
    ['GET', '/api/reports/public', [401, 200, 200]],
    ['GET', '/api/admin/public', [401, 403, 200]],
    ['HEAD', '/api/admin/public', [401, 403, 200]],
    ['POST', '/api/admin/public', [401, 403, 200]],
    ['DELETE', '/api/admin/public', [401, 403, 405]],
    ['GET', '/api/other/public-parameter', [200, 200, 200]],
    ['GET', '/api/admin/public-parameter', [401, 403, 200]],
    ['GET', '/api/reports/public-parameter', [401, 200, 200]],
    ['GET', '/api/admin/user-parameter', [401, 403, 200]],
    ['GET', '/api/reports/path', [401, 403, 200]],
    ['GET', '/api/reports/security', [401, 200, 200]],
    ['POST', '/api/admin/open', [401, 403, 200]],
    ['GET', '/api/other/parameter', [200, 200, 200]],
    ['GET', '/api/admin/parameter', [401, 403, 200]],
    ['GET', '/api/reports/parameter', [401, 200, 200]],
    ['GET', '/api/reports/other-security', [401, 200, 200]],
    ['GET', '/api/reports/list', [401, 200, 200]],
    ['GET', '/api/default', [200, 200, 200]],
    ['POST', '/api/default', [401, 200, 200]],
    ['POST', '/api/open', [200, 200, 200]],
    ['GET', '/api/user', [401, 200, 200]],
    ['DELETE', '/api/admin-path/7', [401, 403, 200]],
    ['GET', '/api/admin-path/7', [401, 403, 200]],
    ['POST', '/api/admin-path/7', [401, 403, 405]],
    ['GET', '/api/admin-path/7/items', [200, 200, 200]],
    ['DELETE', '/api/admin-path/special', [200, 200, 200]],
    ['GET', '/api/admin-path/special', [200, 200, 200]],
    ['GET', '/api/shared', [401, 403, 200]]
  ]
  for (const [method, path, expected] of CASES) t.same(await statuses(method, path), expected, `${method} ${path}`)
})

t.test('another spelling of a declared path is rejected', async (t) => {
  const { send, backend } = await gatewayFor(t, {
    '/userGroups/{id}': { get: {} },
    '/files/{name}.json': { get: {} },
    '/list/': { get: {} }
  })
  const status = async (path: string) => (await send(path)).status

  for (const path of ['/api/userGroups/A', '/api/files/Report.v2.json', '/api/list/', '/api/other/'])
    t.equal(await status(path), 200, path)
  for (const path of ['/api/usergroups/A', '/api/userGroups/A/', '/api/files/a.JSON', '/api/list', '/api/LIST/'])
    t.equal(await status(path), 400, path)
  t.equal(backend.requests.length, 4)
})

t.test('operations on paths of the gateway are ignored and logged as warnings', async (t) => {
  const { send, backend, logs } = await gatewayFor(t, {
    '/auth/login': { post: body({ type: 'object', required: ['impossible'] }) },
    '/auth/refresh': { post: body(NAMED) },
    '/health': { get: { 'x-gatehouse-access': 'admin' } },
    '/docs/json': { get: {} }
  })
  const headers = { ...browserHeaders(), 'content-type': 'application/json' }

  t.same(
    logs.filter(({ location }) => location !== undefined).map(({ location, msg }) => `${msg}: ${location}`),
    ['~1auth~1login/post', '~1health/get', '~1docs~1json/get'].map(
      (pointer) => `operation ignored, the gateway serves this path itself: openapi.json#/paths/${pointer}`
    )
  )
  t.equal((await send('/api/health')).status, 200)
  t.equal((await send('/api/docs/json')).status, 404)
  t.equal((await send('/api/auth/login', { method: 'POST', headers, body: '{"password":"x"}' })).status, 200)
  t.equal((await send('/api/auth/refresh', { method: 'POST', headers, body: '{}' })).status, 400)
  t.same(
    backend.requests.map(({ url }) => url),
    ['/api/auth/login']
  )
})

t.test('unknown fields of a path are ignored and logged as warnings', async (t) => {
  const { logs } = await gatewayFor(t, {
    '/x': { summary: 'X', servers: [], 'x-internal': true, get: {}, psot: {}, trace: {} }
  })

  t.same(
    logs.filter(({ level }) => level === 40).map(({ location, msg }) => `${msg}: ${location}`),
    ['psot', 'trace'].map((name) => `unknown method or field ignored: openapi.json#/paths/~1x/${name}`)
  )
})

t.test('a document may begin with a byte order mark', async (t) => {
  for (const [name, text] of [
    ['openapi.json', '{"openapi":"3.1.0","paths":{"/x":{"get":{}}}}'],
    ['openapi.yaml', 'openapi: 3.1.0\npaths: { /x: { get: {} } }\n']
  ] as const) {
    const file = join(t.testdir({}), name)
    writeFileSync(file, `\uFEFF${text}`)
    const { send } = await startGateway(t, { env: { GATEWAY_ROUTES: file, GATEWAY_UNKNOWN_PATHS: 'refuse' } })
    t.equal((await send('/api/x')).status, 200, name)
  }
})

t.test('with BACKEND_STRIP_API_PREFIX, a declared path is forwarded as the document has it', async (t) => {
  const gateway = await gatewayFor(
    t,
    { '/floors': { post: body(NAMED) } },
    { env: { BACKEND_STRIP_API_PREFIX: 'true' } }
  )

  await sendBody(gateway, '/api/floors?x=1', '{"name":"Ground"}')
  t.equal(gateway.backend.requests[0]?.url, '/floors?x=1')
})

t.test('metrics and logs name the template of an operation', async (t) => {
  const { send, logs } = await gatewayFor(t, { '/floors/{floorId}/zones/{zone-id}': { get: {} } })
  await send('/api/floors/7/zones/9')

  t.equal(logs.find(({ msg }) => msg === 'request')?.route, '/api/floors/:floorId/zones/:zone_id')
})
