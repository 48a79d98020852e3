import { METHODS } from 'node:http'
import t from 'tap'
import { startGateway } from '../helper/gateway.js'
import { sendRaw } from '../helper/http.js'

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
  const { url, backend, logs } = await startGateway(t)

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
