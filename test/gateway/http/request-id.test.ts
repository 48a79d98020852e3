import t from 'tap'
import { borrowGateway, startGateway, type TestGateway } from '../../helper/gateway.js'
import { type HttpResponse, sendRaw } from '../../helper/http.js'

const GENERATED_ID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

/** A request with these header lines, as they stand. Bytes above 127 are written as they are in the text. */
const sendHeaders = ({ url }: TestGateway, path: string, headerLines: string): Promise<HttpResponse> =>
  sendRaw(url, `GET ${path} HTTP/1.1\r\nHost: gateway\r\nConnection: close\r\n${headerLines}\r\n`)

/** The ids in the request lines. All of them are written when the gateway has closed. */
const loggedIds = async ({ gateway, logs }: TestGateway): Promise<unknown[]> => {
  await gateway.app.close()
  return logs.filter(({ msg }) => msg === 'request').map(({ requestId }) => requestId)
}

const VALID_IDS = ['a', '0', 'req-42', 'A.b_C-9', '0af7651916cd43dd8448eb211c80319c', 'x'.repeat(64)]

t.test('a valid X-Request-Id', async (t) => {
  for (const id of VALID_IDS) {
    t.test(`a valid X-Request-Id is used in response, log and backend request: ${id}`, async (t) => {
      const gateway = await startGateway(t)

      const response = await sendHeaders(gateway, '/api/zones', `X-Request-Id: ${id}\r\n`)

      t.equal(response.status, 200)
      t.equal(response.headers['x-request-id'], id, 'in the response')
      t.equal(gateway.backend.requests[0]?.headers['x-request-id'], id, 'at the backend')
      t.same(await loggedIds(gateway), [id], 'in the log')
    })
  }

  // Each is rejected by a different step. Errors of the HTTP parser have no headers, and so no id to read.
  const REJECTED: readonly (readonly [title: string, status: number, path: string, headerLines: string])[] = [
    ['an unknown page', 404, '/nowhere', ''],
    ['a path that the router cannot decode', 400, '/api/%zz', ''],
    ['an ambiguous path', 400, '/api//zones', ''],
    ['a request without a token', 401, '/api/audit/logs', ''],
    ['an expectation that cannot be met', 417, '/api/zones', 'Expect: miracles\r\n']
  ]
  for (const [title, status, path, headerLines] of REJECTED) {
    t.test(`the error response to ${title} has the X-Request-Id of the request`, async (t) => {
      const response = await sendHeaders(await borrowGateway(t), path, `X-Request-Id: req-42\r\n${headerLines}`)

      t.equal(response.status, status)
      t.equal(response.headers['x-request-id'], 'req-42')
      t.equal(response.json().requestId, 'req-42')
    })
  }

  t.test('the audit record of a rejection has the X-Request-Id', async (t) => {
    const gateway = await startGateway(t)

    await sendHeaders(gateway, '/api/audit/logs', 'X-Request-Id: req-42\r\n')

    t.match(await gateway.auditRecords(), [{ requestId: 'req-42' }])
  })

  t.test('the log line of a failure has the X-Request-Id', async (t) => {
    const gateway = await startGateway(t, { env: { BACKEND_URL: 'http://127.0.0.1:1' } })

    const response = await sendHeaders(gateway, '/api/zones', 'X-Request-Id: req-42\r\n')

    t.equal(response.status, 502)
    t.match(
      gateway.logs.filter(({ msg }) => msg === 'request failed'),
      [{ requestId: 'req-42', code: 'BACKEND_UNREACHABLE' }]
    )
  })

  t.test('an X-Request-Id of the backend does not replace that of the request', async (t) => {
    const gateway = await startGateway(t)
    gateway.backend.respond = (_request, response) => response.setHeader('x-request-id', 'from-the-backend').end('{}')

    const reply = await sendHeaders(gateway, '/api/zones', 'X-Request-Id: req-42\r\n')

    t.equal(reply.headers['x-request-id'], 'req-42')
  })
})

const utf8 = (text: string): string => Buffer.from(text).toString('latin1')

const INVALID_IDS: readonly (readonly [title: string, headerLines: string])[] = [
  ['there is none', ''],
  ['it is empty', 'X-Request-Id:\r\n'],
  ['it is blank', 'X-Request-Id:  \t \r\n'],
  ['it is too long', `X-Request-Id: ${'x'.repeat(65)}\r\n`],
  ['it is much too long', `X-Request-Id: ${'x'.repeat(8000)}\r\n`],
  ['it holds a space', 'X-Request-Id: a b\r\n'],
  ['it holds a tab', 'X-Request-Id: a\tb\r\n'],
  ['it holds a quote', 'X-Request-Id: a"b\r\n'],
  ['it holds markup', 'X-Request-Id: <script>\r\n'],
  ['it holds a slash', 'X-Request-Id: ../a\r\n'],
  ['it holds an encoded line break', 'X-Request-Id: a%0d%0ab\r\n'],
  ['it holds a terminal sequence', 'X-Request-Id: a[31m\r\n'],
  ['it holds an accent', `X-Request-Id: ${utf8('é')}\r\n`],
  ['it holds Unicode', `X-Request-Id: ${utf8('名前')}\r\n`],
  ['it holds a line separator', `X-Request-Id: a${utf8('\u2028')}b\r\n`],
  ['there are two', 'X-Request-Id: a\r\nX-Request-Id: b\r\n'],
  ['there are two that are equal', 'X-Request-Id: a\r\nX-Request-Id: a\r\n']
]

t.test('generated request ids', async (t) => {
  for (const [title, headerLines] of INVALID_IDS) {
    t.test(`a request id is generated where ${title}`, async (t) => {
      const gateway = await startGateway(t)

      const response = await sendHeaders(gateway, '/api/zones', headerLines)

      const id = response.headers['x-request-id']
      t.equal(response.status, 200)
      t.match(id, GENERATED_ID)
      t.equal(gateway.backend.requests[0]?.headers['x-request-id'], id, 'the same at the backend')
      t.same(await loggedIds(gateway), [id], 'the log has the same id')
    })

    t.test(`a request id is generated for an error response where ${title}`, async (t) => {
      const response = await sendHeaders(await borrowGateway(t), '/nowhere', headerLines)

      t.equal(response.status, 404)
      t.match(response.headers['x-request-id'], GENERATED_ID)
      t.equal(response.json().requestId, response.headers['x-request-id'])
    })
  }

  t.test('every request gets a different generated id', async (t) => {
    const { send } = await startGateway(t)

    const responses = await Promise.all(Array.from({ length: 20 }, () => send('/api/health')))

    t.equal(new Set(responses.map(({ headers }) => headers['x-request-id'])).size, 20)
  })

  t.test('a request id is generated for bytes that are not HTTP', async (t) => {
    const { url } = await startGateway(t)

    const response = await sendRaw(url, 'hello there\r\n\r\n')

    t.equal(response.status, 400)
    t.match(response.headers['x-request-id'], GENERATED_ID)
    t.equal(response.json().requestId, response.headers['x-request-id'])
  })
})

t.test('an X-Request-Id cannot add a line break to a response', async (t) => {
  for (const [title, lineBreak] of [
    ['CR', '\r'],
    ['LF', '\n'],
    ['CR LF and a space', '\r\n ']
  ] as const) {
    t.test(`an X-Request-Id with ${title} adds no header to the response`, async (t) => {
      const gateway = await startGateway(t)

      const response = await sendHeaders(gateway, '/api/zones', `X-Request-Id: a${lineBreak}X-Injected: yes\r\n`)

      t.equal(response.headers['x-injected'], undefined)
      t.match(response.headers['x-request-id'], /^[A-Za-z0-9._-]{1,64}$/)
    })
  }
})

t.test('trace context', async (t) => {
  const TRACES: readonly (readonly [title: string, traceparent: string])[] = [
    ['sampled', '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'],
    ['not sampled', '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00'],
    ['of a later version', '01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more']
  ]
  for (const [title, traceparent] of TRACES) {
    t.test(`trace context is forwarded unchanged: ${title}`, async (t) => {
      const { send, backend } = await borrowGateway(t)

      await send('/api/zones', { headers: { traceparent, tracestate: 'a=1,b=2', baggage: 'k=v' } })

      t.match(backend.requests[0]?.headers, { traceparent, tracestate: 'a=1,b=2', baggage: 'k=v' })
    })
  }

  t.test('trace context is not added to a request without one', async (t) => {
    const { send, backend } = await startGateway(t)

    await send('/api/zones')

    t.equal(backend.requests.length, 1)
    t.equal(backend.requests[0]?.headers.traceparent, undefined)
  })
})
