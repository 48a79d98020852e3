import fc from 'fast-check'
import t from 'tap'
import { browserHeaders, startGateway, tokenOf } from '../../helper/gateway.js'
import { sendRaw } from '../../helper/http.js'
import { couldBeStrict } from '../../helper/path-decoders.js'
import { checkProperty } from '../../helper/property.js'

// Each of these is a strict path to a server that decodes, normalises or ignores letter case. None may reach a backend
// unchecked.
const SPELLINGS = [
  '/api//admin/x',
  '//api/admin/x',
  '/api/admin//x',
  '/api///admin',
  '/api/./admin/x',
  '/./api/admin/x',
  '/api/admin/./x',
  '/api/x/../admin/y',
  '/api/../api/admin/x',
  '/x/../api/admin',
  '/api/admin/../admin/x',
  '/api/%2e/admin/x',
  '/api/x/%2e%2e/admin',
  '/api/x/.%2e/admin',
  '/api/x/%2E./admin',
  '/api/..;/api/admin/x',
  '/api/x/..;a=b/admin',
  '/api/.;/admin',
  '/api;/admin/x',
  '/api/admin;/x',
  '/api/admin;a=b/x',
  '/api/admin%3b/x',
  '/api/admin%3Ba=b',
  '/api\\admin\\x',
  '/api/admin\\x',
  '/api\\..\\api\\admin',
  '/api/x\\..\\admin',
  '/api%5cadmin%5cx',
  '/api/..%5cadmin',
  '/api%2fadmin%2fx',
  '/api/admin%2fx',
  '/api%2Fadmin',
  '/%2fapi/admin',
  '/api/%61dmin/x',
  '/api/ad%6din/x',
  '/api/admi%6E',
  '/%61%70%69/admin/x',
  '/api/%41dmin',
  '/api/%2561dmin/x',
  '/api/%25%36%31dmin',
  '/api/%252e%252e/api/admin',
  '/api/Admin/x',
  '/api/ADMIN',
  '/API/admin/x',
  '/Api/Audit/logs',
  '/api/aUDIT/logs',
  '/api/admin/',
  '/api/admin/x/',
  '/api/audit/',
  '/api/audit/logs/',
  '/api/admin%09',
  '/api/admin%00/x',
  '/api/admin%00.json',
  '/api/admin%3fx',
  '/api/admin%23x',
  '/api/admin#/x',
  '/api/%c0%aeadmin',
  '/api/%c1%a1dmin',
  '/api%c0%afadmin',
  '/api/%EF%BD%81dmin/x',
  '/api/%EF%BC%A1%EF%BC%A4%EF%BC%AD%EF%BC%A9%EF%BC%AE',
  '/api%EF%BC%8Fadmin',
  '/api/%u0061dmin',
  '/api/adm%C4%B1n',
  '/api/adm%C4%B0n',
  'http://evil.example/api/admin/x',
  'http:///api/admin',
  'api/admin/x',
  '/api/admin\t',
  '/api/admin%0d%0a'
]

// Resemble a strict or declared path, and are another path: valid ids and unknown paths.
const OTHER_PATHS = [
  '/api/zones/emergency@7',
  '/api/buildings/gateway-health.2024',
  '/api/zones/Emergency%20Exit',
  '/api/users.csv',
  '/api/audit.log',
  '/api/receivers/AA:BB:CC:DD:EE:FF',
  '/api/zon%C3%A9s',
  '/api/zones.json',
  '/api/zones/7/%20',
  '/api/admin./x',
  '/api/admin../x',
  '/api/admin%20/x',
  '/api/%20admin/x',
  '/api/admin.json',
  '/api/audit.csv',
  '/api/admin:x',
  '/api/admin@x/y',
  '/api/audit,x',
  '/api/admin+/x',
  '/api/%C3%A1dmin',
  '/api/%E2%80%8B/admin',
  '/api/+/admin',
  '/api/admin~/x',
  "/api/admin'/x",
  '/api/+admin.json',
  '/api/+admin..admin',
  '/api/~ad!min:x',
  '/api/+adm%C4%B1n.x',
  '/api/admin%C3%A9'
]

t.test('path checks', async (t) => {
  const gateway = await startGateway(t, { hasAllRoutes: true })
  const { backend, url } = gateway

  const request = (path: string, headers = '') =>
    sendRaw(url, `GET ${path} HTTP/1.1\r\nHost: gate\r\nConnection: close\r\n${headers}\r\n`)

  for (const path of SPELLINGS) {
    t.test(`the path ${JSON.stringify(path)} is not forwarded unchecked`, async (t) => {
      backend.requests.length = 0
      const response = await request(path)
      t.equal(response.status, 400)
      t.match(response.code, /^(?:AMBIGUOUS_PATH|MALFORMED_REQUEST)$/)
      t.same(backend.requests, [], 'nothing reached the backend')

      await request(path, `Cookie: auth_token=${tokenOf('admin')}\r\n`)
      t.same(backend.requests, [], 'not from an admin either: it is refused, never repaired')
    })
  }

  for (const path of ['/api/auth/csrf-token/', '/api/auth/CSRF-TOKEN', '/api/Health', '/api/health/']) {
    t.test(`${path} is rejected as another spelling of a route`, async (t) => {
      t.equal((await request(path)).code, 'AMBIGUOUS_PATH')
    })
  }

  for (const path of [
    ...OTHER_PATHS,
    '/api/unknown/',
    '/api/Unknown/AA:BB',
    '/api/x/a%40b%20c',
    '/api/x/%C3%A9?q=%2F..%2f;//\\"<>',
    '/api/x?',
    '/api/x??a=1&a=2&a',
    "/api/x?filter[a]='b'&c=|^`"
  ]) {
    t.test(`${path} is forwarded unchanged`, async (t) => {
      backend.requests.length = 0
      t.equal((await request(path)).status, 200)
      t.equal(backend.requests[0]?.url, path)
    })
  }

  for (const header of [
    'X-Original-URL',
    'X-Rewrite-URL',
    'X-Forwarded-Uri',
    'X-Forwarded-Prefix',
    'X-HTTP-Method-Override'
  ]) {
    t.test(`${header} is not forwarded, because a backend might rewrite the path`, async (t) => {
      backend.requests.length = 0
      await request('/api/x', `${header}: /api/admin\r\n`)
      t.equal(backend.requests[0]?.headers[header.toLowerCase()], undefined)
    })
  }

  for (const host of ['gate/x', 'a@gate', 'gate?x', '"gate"', 'gate:x', 'gate, other', 'g\u00e4te', '<gate>']) {
    t.test(`the Host ${JSON.stringify(host)} is rejected`, async (t) => {
      backend.requests.length = 0
      const response = await sendRaw(url, `GET /api/x HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)
      t.equal(response.code, 'MALFORMED_REQUEST')
      t.same(backend.requests, [])
    })
  }

  for (const coding of ['gzip, chunked', 'Chunked, chunked', 'deflate,chunked']) {
    t.test(`a body with Transfer-Encoding: ${coding} is rejected`, async (t) => {
      backend.requests.length = 0
      const head = `POST /api/x HTTP/1.1\r\nHost: gate\r\nConnection: close\r\nTransfer-Encoding: ${coding}\r\n\r\n`
      const response = await sendRaw(url, `${head}1\r\nx\r\n0\r\n\r\n`)
      t.equal(response.code, 'MALFORMED_REQUEST')
      t.same(backend.requests, [])
    })
  }

  t.test('a long id does not bypass the schema through the catch-all', async (t) => {
    const headers = { ...browserHeaders(), 'content-type': 'application/json' }
    backend.requests.length = 0
    for (const length of [100, 101, 512, 513, 5_000]) {
      const response = await gateway.send(`/api/zones/${'a'.repeat(length)}`, {
        method: 'PUT',
        headers,
        body: '{"name":7}'
      })
      t.equal(response.code, 'VALIDATION_FAILED', `${length} characters`)
    }
    t.same(backend.requests, [])
  })

  t.test('the path prefix of BACKEND_URL is prepended', async (t) => {
    const prefixed = await startGateway(t, { backend, env: { BACKEND_URL: `${backend.url}/base/v1/` } })
    backend.requests.length = 0
    await prefixed.send('/api/x?a=1')
    t.equal(backend.requests[0]?.url, '/base/v1/api/x?a=1')
  })
})

const pieces = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom('admin', 'audit', 'Admin', 'aUdit', 'api', 'API', 'x') },
  {
    weight: 3,
    arbitrary: fc.constantFrom('/', '/', '//', '\\', ';', '.', '..', '%2e', '%2f', '%5c', '%25', '%00', '%20', '#', '?')
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom('%61', '%4d', '%EF%BD%81', '%c1%a1', '%E2%80%8B', '+', '~', ':', '@', '%u0061', '\t')
  },
  {
    weight: 1,
    arbitrary: fc.string({ unit: 'binary-ascii', maxLength: 2 }).map((text) => text.replace(/[\r\n ]/g, '_'))
  }
)

t.test('forwarded paths', async (t) => {
  const { backend, url } = await startGateway(t, { hasAllRoutes: true })

  t.test('no decoder turns a forwarded path of an anonymous client into a protected one', async (t) => {
    await checkProperty(
      t,
      fc.asyncProperty(fc.array(pieces, { maxLength: 8 }), async (parts) => {
        backend.requests.length = 0
        await sendRaw(url, `GET /api/${parts.join('')} HTTP/1.1\r\nHost: gate\r\nConnection: close\r\n\r\n`)
        return backend.requests.every((request) => !couldBeStrict(request.url.split('?', 1).join('')))
      }),
      { numRuns: 1_500 }
    )
  })
})
