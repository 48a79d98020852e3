import { METHODS } from 'node:http'
import t from 'tap'
import { browserHeaders, startGateway } from '../../helper/gateway.js'
import { detailsOf, sendRaw } from '../../helper/http.js'

const SERVED = ['DELETE', 'GET', 'HEAD', 'OPTIONS', 'PATCH', 'POST', 'PUT']
// CONNECT has no path and is tested separately.
const NOT_SERVED = METHODS.filter((method) => !SERVED.includes(method) && method !== 'CONNECT')

const BODIES = [
  ['without a body', ''],
  ['with a body of an unknown type', 'Content-Type: a/b\r\nContent-Length: 2\r\n'],
  ['with a body of no type', 'Content-Length: 2\r\n'],
  ['with a Content-Type that cannot be parsed', 'Content-Type: ;;\r\nContent-Length: 2\r\n']
] as const

t.test('every method that Node parses and the gateway does not serve is rejected', async (t) => {
  const { url, backend, logs } = await startGateway(t, { hasAllRoutes: true })

  for (const method of NOT_SERVED) {
    for (const [title, headers] of BODIES) {
      const rest = `HTTP/1.1\r\nHost: a\r\nConnection: close\r\n${headers}\r\n${headers && '{}'}`
      for (const path of ['/api/zones', '/api/unknown', '/api/audit']) {
        const response = await sendRaw(url, `${method} ${path} ${rest}`)
        t.equal(response.status, 405, `${method} ${path} ${title}`)
        t.match(response.headers, { allow: SERVED.join(', '), 'x-gateway-error': 'METHOD_NOT_ALLOWED' })
      }
      const elsewhere = await sendRaw(url, `${method} /nowhere ${rest}`)
      t.equal(elsewhere.code, 'NOT_FOUND', `${method} /nowhere ${title}`)
    }
  }

  t.same(backend.requests, [])
  t.same(
    logs.filter(({ level }) => Number(level) > 30),
    [],
    'no stack is logged'
  )
})

t.test('a request that names another method in its query or JSON body', async (t) => {
  const { send, backend } = await startGateway(t, { hasAllRoutes: true })
  const headers = { ...browserHeaders(), 'content-type': 'application/json' }

  const REJECTED: readonly (readonly [method: string, path: string, body?: string])[] = [
    ['POST', '/api/zones?_method=DELETE'],
    ['GET', '/api/things?_method=DELETE'],
    ['GET', '/api/things?a=1;_method=DELETE'],
    ['GET', '/api/things?%5fmethod=DELETE'],
    ['GET', '/api/things?a=1&_METHOD=DELETE'],
    ['GET', '/api/things?_method[]=DELETE'],
    ['GET', '/api/things?[_method]=DELETE'],
    ['GET', '/api/things?.method=DELETE'],
    ['GET', '/api/things?+_method%00x=DELETE'],
    ['POST', '/api/zones', '{"name":"x","_method":"DELETE"}']
  ]
  for (const [method, path, body] of REJECTED) {
    t.test(`${method} ${path} ${body ?? ''} is rejected`, async (t) => {
      const response = await send(path, { method, headers, ...(body !== undefined && { body }) })
      t.equal(response.code, 'VALIDATION_FAILED')
      t.same(
        detailsOf(response).map((detail) => detail.path),
        ['/_method']
      )
      t.same(backend.requests, [])
    })
  }

  for (const path of ['/api/things?method=x', '/api/things?pay_method=x', '/api/things?q=_method']) {
    t.test(`GET ${path} is forwarded`, async (t) => {
      t.equal((await send(path)).status, 200)
      t.equal(backend.requests.pop()?.url, path)
    })
  }
})

t.test('a framework error below 500 keeps its status in our error format and logs no stack', async (t) => {
  const EXPECTED = [
    [400, 400, 'MALFORMED_REQUEST'],
    [404, 404, 'NOT_FOUND'],
    [405, 405, 'METHOD_NOT_ALLOWED'],
    [408, 408, 'REQUEST_TIMEOUT'],
    [413, 413, 'BODY_TOO_LARGE'],
    [414, 414, 'URI_TOO_LONG'],
    [415, 415, 'UNSUPPORTED_MEDIA_TYPE'],
    [418, 400, 'MALFORMED_REQUEST'],
    [431, 431, 'HEADERS_TOO_LARGE'],
    [500, 500, 'INTERNAL'],
    [503, 500, 'INTERNAL']
  ] as const
  const { send, logs } = await startGateway(t, {
    hasAllRoutes: true,
    extend: (app) =>
      app.get<{ Params: { status: string } }>('/fails/:status', async ({ params: { status } }) => {
        throw Object.assign(new Error('inside'), { code: 'FST_ERR_OF_TOMORROW', statusCode: Number(status) })
      })
  })

  for (const [thrown, status, code] of EXPECTED) {
    const response = await send(`/fails/${thrown}`)
    t.equal(response.status, status)
    t.equal(response.code, code)
    t.notMatch(response.body, 'inside')
  }

  t.equal(logs.filter(({ msg }) => msg === 'request failed').length, 2, 'only the two internal errors are logged')
})
