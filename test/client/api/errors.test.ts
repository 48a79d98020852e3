import { createServer } from 'node:http'
import t from 'tap'
import { ApiError } from '../../../src/client/api/api-error.js'
import { createCaller } from '../../../src/client/api/caller.js'
import type { GatewayErrorCode } from '../../../src/client/api/error-codes.js'
import type { GatewayErrorCode as GatewayCode } from '../../../src/gateway/errors.js'
import { urlOf } from '../../helper/address.js'
import { openPage } from '../../helper/client-page.js'

// Does not compile if one list has a code that the other lacks.
const sameCodes: [
  GatewayCode extends GatewayErrorCode ? true : false,
  GatewayErrorCode extends GatewayCode ? true : false
] = [true, true]

const failure = async (call: Promise<unknown>): Promise<ApiError> => {
  const error = await call.then(
    () => null,
    (error: unknown) => error
  )
  if (!(error instanceof ApiError)) throw new Error(`expected an ApiError, got ${error}`)
  return error
}

t.test('an error of the gateway', async (t) => {
  t.same(sameCodes, [true, true])

  t.test('a gateway error has its code, status, message and request id', async (t) => {
    const { api, jar, logs } = await openPage(t)
    jar.delete('auth_token')
    const error = await failure(api.zones.create({ name: 'Lobby' }))

    t.match(error, { code: 'UNAUTHENTICATED', status: 401, message: 'Sign in to do this.', details: [] })
    t.ok(logs.some(({ requestId }) => requestId === error.requestId))
  })

  t.test('a gateway error has the retry delay', async (t) => {
    const { api } = await openPage(t)
    for (let attempt = 0; attempt < 5; attempt++) await api.auth.login({ email: 'ada@example.com', password: 'guess' })
    const error = await failure(api.auth.login({ email: 'ada@example.com', password: 'guess' }))

    t.match(error, { code: 'RATE_LIMITED', status: 429 })
    t.ok((error.retryAfterSeconds ?? 0) > 0)
  })

  t.test('an unreachable backend and an unreachable gateway have different codes', async (t) => {
    const { api, backend, gateway } = await openPage(t)
    backend.server.closeAllConnections()
    backend.server.close()
    t.match(await failure(api.zones.list()), { code: 'BACKEND_UNREACHABLE', status: 502 })

    await gateway.app.close()
    t.match(await failure(api.zones.list()), { code: 'NETWORK_FAILED', status: 0, requestId: null })
  })
})

t.test('an error of the backend', async (t) => {
  const { api, backend } = await openPage(t)
  const cases: readonly (readonly [title: string, status: number, body: string, expected: object])[] = [
    [
      'in the shape of the gateway',
      409,
      '{"success":false,"error":{"code":"NAME_TAKEN","message":"Taken","details":[{"path":"/name","message":"x"}]},"requestId":"r"}',
      { code: 'NAME_TAKEN', message: 'Taken', details: [{ path: '/name', message: 'x' }], requestId: 'r' }
    ],
    [
      'with malformed details',
      409,
      '{"error":{"code":"NAME_TAKEN","message":"Taken","details":[{"path":"/name","message":"x"},7,null]}}',
      { code: 'NAME_TAKEN', message: 'Taken', details: [{ path: '/name', message: 'x' }] }
    ],
    [
      'with a text',
      422,
      '{"success":false,"error":"No such floor"}',
      { code: 'BACKEND_REFUSED', message: 'No such floor' }
    ],
    ['with a message', 400, '{"message":"No","code":"E7"}', { code: 'E7', message: 'No' }],
    ['with an HTML page', 500, '<h1>Oh</h1>', { code: 'BACKEND_REFUSED', body: '<h1>Oh</h1>' }],
    ['with a list', 400, '[1]', { code: 'BACKEND_REFUSED', body: [1] }],
    ['with null', 400, 'null', { code: 'BACKEND_REFUSED' }],
    ['with an empty body', 400, '', { code: 'BACKEND_REFUSED', message: 'The service did not accept this.' }],
    [
      'without a message, because the address is unknown,',
      404,
      '<html>404 Not Found</html>',
      { code: 'BACKEND_REFUSED', message: 'The service does not know this address.' }
    ],
    [
      'of a proxy that cannot reach the service',
      502,
      '<html>502 Bad Gateway</html>',
      { code: 'BACKEND_REFUSED', message: 'The service behind this page does not answer at the moment.' }
    ],
    ['with an invalid code', 400, '{"error":{"code":7,"message":{}}}', { code: 'BACKEND_REFUSED' }]
  ]
  for (const [title, status, body, expected] of cases) {
    t.test(`a backend error ${title} becomes an ApiError`, async (t) => {
      backend.respond = (_request, response) =>
        response.writeHead(status, { 'content-type': 'application/json' }).end(body)
      t.match(await failure(api.zones.read(7)), { ...expected, status })
    })
  }
})

const RETRYABLE: readonly (readonly [status: number, code: string, retryable: boolean])[] = [
  [0, 'NETWORK_FAILED', true],
  [0, 'ABORTED', false],
  [0, 'VALIDATION_FAILED', false],
  [200, 'UNEXPECTED_ANSWER', false],
  [400, 'BACKEND_REFUSED', false],
  [401, 'TOKEN_EXPIRED', false],
  [403, 'FORBIDDEN', false],
  [404, 'BACKEND_REFUSED', false],
  [408, 'REQUEST_TIMEOUT', true],
  [429, 'RATE_LIMITED', true],
  [500, 'INTERNAL', true],
  [502, 'BACKEND_UNREACHABLE', true],
  [503, 'OVERLOADED', true],
  [504, 'BACKEND_TIMEOUT', true]
]
for (const [status, code, retryable] of RETRYABLE) {
  t.test(`an error with status ${status} and code ${code} is ${retryable ? '' : 'not '}retryable`, async (t) => {
    t.equal(new ApiError({ status, code, message: '' }).retryable, retryable)
  })
}

t.test('a malformed response', async (t) => {
  t.test('a malformed JSON response is an error', async (t) => {
    const { api, backend } = await openPage(t)
    backend.respond = (_request, response) =>
      response.writeHead(200, { 'content-type': 'application/json' }).end('{"a"')

    t.match(await failure(api.zones.list()), { code: 'UNEXPECTED_ANSWER', status: 200 })
  })

  t.test('a truncated response is a connection error', async (t) => {
    const server = createServer((_request, response) => {
      response.writeHead(200, { 'content-length': '100' })
      response.write('{"a"', () => response.destroy())
    })
    await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
    t.teardown(() => server.close())
    const call = createCaller({ baseUrl: urlOf(server) })

    t.match(await failure(call('GET', '/api/zones')), { code: 'NETWORK_FAILED', status: 0 })
  })

  t.test('a malformed CSRF token response is an error', async (t) => {
    const call = createCaller({
      fetch: async () => new Response('{"success":true}', { headers: { 'content-type': 'application/json' } })
    })
    t.match(await failure(call('DELETE', '/api/zones/7')), { code: 'UNEXPECTED_ANSWER' })
  })
})

t.test('an invalid body', async (t) => {
  t.test('an invalid body is rejected before it is sent, with the error of the gateway', async (t) => {
    const { api, backend, jar, send } = await openPage(t)
    const body = { name: '', capacity: -1, isExit: 'yes' }
    // A form may contain values that the types exclude.
    const error = await failure(api.zones.create(body as never))

    t.match(error, { code: 'VALIDATION_FAILED', status: 0, requestId: null })
    t.equal(error.fieldError('isExit'), 'must be boolean or null')
    t.equal(error.fieldError('/name'), error.details.find(({ path }) => path === '/name')?.message)
    t.equal(error.fieldError('color'), null)
    t.same(backend.requests, [])

    jar.set('csrf_token', 't0ken')
    const response = await send('/api/zones', {
      method: 'POST',
      headers: { cookie: jar.header, 'x-csrf-token': 't0ken', 'content-type': 'application/json' },
      body: JSON.stringify(body)
    })
    t.same(error.details, response.json().error.details)
    t.equal(error.message, response.json().error.message)
  })

  t.test('a body is validated in its JSON form', async (t) => {
    const { api, backend } = await openPage(t)
    const date = new Date(0)
    // The types allow neither value; both have a JSON form that the route accepts.
    await api.personnel.create({ name: 'Ada', startDate: date as never, phone: undefined as never })

    t.same(JSON.parse(backend.requests[0]?.body ?? ''), { name: 'Ada', startDate: date.toISOString() })
  })

  t.test('a missing body is rejected if the route requires one', async (t) => {
    const { api } = await openPage(t)
    // The types require a body.
    t.match(await failure(api.zones.create(undefined as never)), { details: [{ path: '', message: /required/ }] })
  })
})
