import { once } from 'node:events'
import { Agent, type ClientRequest, request as httpRequest, type ServerResponse } from 'node:http'
import { createServer, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import { createAppToken } from '../../src/shared/app-token.js'
import { urlOf } from '../helper/address.js'
import { responseOf } from '../helper/exact-http.js'
import { apiKey, borrowGateway, browserHeaders, startGateway, type TestGateway, tokenOf } from '../helper/gateway.js'
import { type HttpResponse, sendRaw } from '../helper/http.js'
import type { RecordingBackend } from '../helper/recording-backend.js'

// Implementation details that no response may contain: stack traces, file names, error codes of libraries.
const INSIDES =
  /\bat \S+ \(|[\\/](?:src|dist|work|node_modules)[\\/]|\.[cm]?[jt]s\b|Error|\b(?:FST|HPE|UND|ERR)_|\bE[A-Z]{4,}\b/

/** Every error response has this shape and these headers. */
const isErrorResponse = (
  t: Test,
  response: HttpResponse,
  status: number,
  code: string,
  details: readonly object[] = []
): void => {
  t.equal(response.status, status)
  t.match(response.headers, {
    'content-type': 'application/json; charset=utf-8',
    'cache-control': 'no-store',
    'x-gateway-error': code
  })
  const body = response.json()
  t.same(body, {
    success: false,
    error: { code, message: body.error.message, details },
    requestId: response.headers['x-request-id']
  })
  t.match(body.error.message, /^[A-Z][^\n]+\.$/, 'a sentence for a person')
  t.match(body.requestId, /^[A-Za-z0-9._-]{1,64}$/)
  t.notMatch(response.body.replace(code, ''), INSIDES)
}

interface Case {
  readonly code: string
  readonly status: number
  readonly title: string
  readonly request: (gateway: TestGateway) => Promise<HttpResponse>
  readonly env?: Record<string, string>
  readonly exchange?: NonNullable<Parameters<typeof startGateway>[1]>['exchange']
  /** Additional headers of this error. */
  readonly headers?: Record<string, string | RegExp>
  readonly details?: readonly { readonly path: string; readonly message: string }[]
}

const get =
  (path: string, headers: Record<string, string> = {}) =>
  ({ send }: TestGateway): Promise<HttpResponse> =>
    send(path, { headers })

const post =
  (path: string, headers: Record<string, string> = {}, body = '{}') =>
  ({ send }: TestGateway): Promise<HttpResponse> =>
    send(path, { method: 'POST', headers, body })

const raw =
  (bytes: string) =>
  ({ url }: TestGateway): Promise<HttpResponse> =>
    sendRaw(url, bytes)

const expiredToken = (): string =>
  createAppToken({ userId: '7' }, apiKey, { format: 'jwt', lifetimeSeconds: 60, nowMs: Date.now() - 61_000 })

const json = { 'content-type': 'application/json' }
const bearerWanted = { 'www-authenticate': /^Bearer/ }

const CASES: readonly Case[] = [
  { code: 'MALFORMED_REQUEST', status: 400, title: 'bytes that are not HTTP', request: raw('hello there\r\n\r\n') },
  {
    code: 'MALFORMED_REQUEST',
    status: 400,
    title: 'no Host header',
    request: raw('GET /api/zones HTTP/1.1\r\nConnection: close\r\n\r\n')
  },
  {
    code: 'MALFORMED_REQUEST',
    status: 400,
    title: 'two Host headers',
    request: raw('GET /api/zones HTTP/1.1\r\nHost: a\r\nHost: b\r\nConnection: close\r\n\r\n')
  },
  { code: 'AMBIGUOUS_PATH', status: 400, title: 'a double slash', request: get('/api//zones') },
  { code: 'AMBIGUOUS_PATH', status: 400, title: 'broken encoding', request: get('/api/%zz') },
  { code: 'MALFORMED_BODY', status: 400, title: 'JSON that is none', request: post('/nowhere', json, '{"a":') },
  { code: 'MALFORMED_BODY', status: 400, title: 'JSON that is empty', request: post('/nowhere', json, '') },
  {
    code: 'VALIDATION_FAILED',
    status: 400,
    title: 'a body that does not fit its schema',
    request: post('/api/zones', { ...browserHeaders(), ...json }, '{"name":7,"color":{}}'),
    details: [
      { path: '/name', message: 'must be string' },
      { path: '/color', message: 'must be string or null' }
    ]
  },
  {
    code: 'UNAUTHENTICATED',
    status: 401,
    title: 'a strict path without a token',
    request: get('/api/audit/logs'),
    headers: bearerWanted
  },
  {
    code: 'UNAUTHENTICATED',
    status: 401,
    title: 'a write request with a forged token',
    request: post('/api/zones', browserHeaders('not.a.token')),
    headers: bearerWanted
  },
  {
    code: 'TOKEN_EXPIRED',
    status: 401,
    title: 'a token past its expiry',
    request: post('/api/zones', browserHeaders(expiredToken())),
    headers: bearerWanted
  },
  {
    code: 'FORBIDDEN',
    status: 403,
    title: 'a user without the admin role',
    request: get('/api/admin/users', browserHeaders(tokenOf('operator')))
  },
  { code: 'CSRF_MISMATCH', status: 403, title: 'a write request without the token pair', request: post('/api/zones') },
  {
    code: 'ORIGIN_REFUSED',
    status: 403,
    title: 'a write request from a foreign page',
    request: post('/api/zones', { ...browserHeaders(), origin: 'https://evil.example' })
  },
  { code: 'NOT_FOUND', status: 404, title: 'an unknown page', request: get('/nowhere') },
  {
    code: 'METHOD_NOT_ALLOWED',
    status: 405,
    title: 'a method that is not forwarded',
    request: ({ send }) => send('/api/zones', { method: 'PROPFIND' }),
    headers: { allow: 'DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT' }
  },
  {
    code: 'REQUEST_TIMEOUT',
    status: 408,
    title: 'headers that do not end in time',
    // The error of Node's connection check, without waiting for its interval.
    request: ({ url, gateway: { app } }) => {
      const timeout = Object.assign(new Error('Request timeout'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' })
      app.server.once('connection', (socket) => app.server.emit('clientError', timeout, socket))
      return sendRaw(url, 'GET /api/zones HTTP/1.1\r\n')
    },
    headers: { connection: 'close' }
  },
  { code: 'URI_TOO_LONG', status: 414, title: 'an address that is too long', request: get(`/api/${'a'.repeat(9000)}`) },
  {
    code: 'URI_TOO_LONG',
    status: 414,
    title: 'a request line that the parser gives up on',
    request: raw(`GET /api/${'a'.repeat(40_000)} HTTP/1.1\r\nHost: a\r\n\r\n`)
  },
  {
    code: 'UNSUPPORTED_MEDIA_TYPE',
    status: 415,
    title: 'a content type that is none',
    request: post('/api/zones', { ...browserHeaders(), 'content-type': 'garbage;;' })
  },
  {
    code: 'EXPECTATION_FAILED',
    status: 417,
    title: 'an expectation that cannot be met',
    request: raw('GET /api/zones HTTP/1.1\r\nHost: a\r\nExpect: miracles\r\n\r\n')
  },
  {
    code: 'RATE_LIMITED',
    status: 429,
    title: 'a sixth login attempt',
    request: async (gateway) => {
      for (let attempt = 1; attempt <= 5; attempt++) await post('/api/auth/login')(gateway)
      return post('/api/auth/login')(gateway)
    },
    headers: {
      'retry-after': /^[1-9]\d*$/,
      'x-ratelimit-limit': '5',
      'x-ratelimit-remaining': '0',
      'x-ratelimit-reset': /^[1-9]\d*$/
    }
  },
  {
    code: 'HEADERS_TOO_LARGE',
    status: 431,
    title: 'headers that are too large',
    request: raw(`GET /api/zones HTTP/1.1\r\nHost: a\r\nX-Big: ${'a'.repeat(40_000)}\r\n\r\n`)
  },
  {
    code: 'INTERNAL',
    status: 500,
    title: 'a fault of our own',
    request: get('/api/zones'),
    exchange: {
      exchange: async () => {
        throw new TypeError('cannot read /srv/gateway/secret.js')
      }
    }
  },
  {
    code: 'BACKEND_UNREACHABLE',
    status: 502,
    title: 'a backend that is gone',
    request: get('/api/zones'),
    env: { BACKEND_URL: 'http://127.0.0.1:1' }
  }
]

t.test('error responses', async (t) => {
  for (const { code, status, title, request, env, exchange, headers = {}, details } of CASES) {
    t.test(`the response is ${status} ${code} for ${title}`, async (t) => {
      const gateway = await startGateway(t, { ...(env && { env }), ...(exchange && { exchange }) })

      const response = await request(gateway)

      isErrorResponse(t, response, status, code, details)
      t.match(response.headers, headers)
    })
  }

  t.test('the cause of an INTERNAL error is logged', async (t) => {
    const exchange = async () => {
      throw new TypeError('what really happened')
    }
    const { send, logs } = await startGateway(t, { exchange: { exchange } })

    const response = await send('/api/zones')

    t.match(
      logs.filter(({ msg }) => msg === 'request failed'),
      [
        {
          level: 50,
          code: 'INTERNAL',
          err: { message: 'what really happened', stack: String },
          requestId: response.json().requestId
        }
      ]
    )
  })
})

/** A TCP server as a backend. */
const startRawBackend = async (t: Test, onConnection: (socket: Socket) => void): Promise<string> => {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    // The gateway may reset the connection.
    socket.on('error', () => undefined)
    onConnection(socket)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return urlOf(server)
}

const onRequest = (act: (socket: Socket) => void) => (socket: Socket) => void socket.once('data', () => act(socket))
const respondAndEnd = (bytes: string) => onRequest((socket) => socket.end(bytes))

const BROKEN_BACKENDS: readonly (readonly [title: string, onConnection: (socket: Socket) => void])[] = [
  ['resets the connection at once', (socket) => socket.resetAndDestroy()],
  ['resets the connection when it has the request', onRequest((socket) => socket.resetAndDestroy())],
  ['closes the connection at once', (socket) => socket.end()],
  ['closes the connection without a response', respondAndEnd('')],
  ['closes in the middle of the status line', respondAndEnd('HTTP/1.1 20')],
  ['closes in the middle of the headers', respondAndEnd('HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nX-')],
  ['does not speak HTTP', respondAndEnd('220 mail.example.com ESMTP ready\r\n')],
  ['responds with a body without a head', respondAndEnd('<html>at main (/srv/backend/index.js:1)</html>')],
  ['responds with a malformed status', respondAndEnd('HTTP/1.1 abc OK\r\n\r\n')],
  ['responds with a malformed header', respondAndEnd('HTTP/1.1 200 OK\r\nNo Header\r\n\r\n{}')],
  [
    'responds with two Content-Length headers',
    respondAndEnd('HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}')
  ],
  ['responds with too many header bytes', respondAndEnd(`HTTP/1.1 200 OK\r\nX-Big: ${'a'.repeat(100_000)}\r\n\r\n{}`)],
  ['tells us to go on, unasked', respondAndEnd('HTTP/1.1 100 Continue\r\n\r\n')],
  ['switches protocols unasked', respondAndEnd('HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n')]
]

t.test('BACKEND_UNREACHABLE', async (t) => {
  for (const [title, onConnection] of BROKEN_BACKENDS) {
    t.test(`BACKEND_UNREACHABLE is the response if the backend ${title}`, async (t) => {
      const { send, logs } = await startGateway(t, { env: { BACKEND_URL: await startRawBackend(t, onConnection) } })

      const response = await send('/api/zones')

      isErrorResponse(t, response, 502, 'BACKEND_UNREACHABLE')
      t.match(
        logs.filter(({ msg }) => msg === 'request failed'),
        [{ level: 50, code: 'BACKEND_UNREACHABLE', requestId: response.json().requestId, err: { message: /./ } }],
        'the cause is in the log'
      )
    })

    t.test(`a write request is sent once and gets BACKEND_UNREACHABLE if the backend ${title}`, async (t) => {
      let connections = 0
      const url = await startRawBackend(t, (socket) => {
        connections += 1
        onConnection(socket)
      })
      const { send } = await startGateway(t, { env: { BACKEND_URL: url } })

      const response = await send('/api/unknown', { method: 'POST', headers: browserHeaders(), body: '{"a":1}' })

      isErrorResponse(t, response, 502, 'BACKEND_UNREACHABLE')
      t.equal(connections, 1)
    })
  }

  t.test('requests succeed again after BACKEND_UNREACHABLE', async (t) => {
    const { send, backend } = await startGateway(t)
    const respondWell = backend.respond
    backend.respond = (_request, { socket }) => socket?.destroy()
    t.equal((await send('/api/zones')).status, 502)

    backend.respond = respondWell

    t.equal((await send('/api/zones')).status, 200)
  })
})

t.test('BACKEND_TIMEOUT', async (t) => {
  const SLOW_BACKENDS: readonly (readonly [title: string, bytes: string])[] = [
    ['says nothing', ''],
    ['stops in the middle of the headers', 'HTTP/1.1 200 OK\r\nX-Begun: yes\r\n'],
    ['responds only with 102 Processing', 'HTTP/1.1 102 Processing\r\n\r\n']
  ]
  for (const [title, bytes] of SLOW_BACKENDS) {
    t.test(
      `BACKEND_TIMEOUT is the response if the backend ${title}, and the backend request is cancelled`,
      async (t) => {
        const closed: Promise<unknown>[] = []
        const url = await startRawBackend(t, (socket) => {
          closed.push(new Promise((resolve) => socket.once('close', resolve)))
          onRequest(() => socket.write(bytes))(socket)
        })
        const { send, logs } = await startGateway(t, { env: { BACKEND_URL: url, BACKEND_TIMEOUT_MS: '500' } })

        const response = await send('/api/zones')

        isErrorResponse(t, response, 504, 'BACKEND_TIMEOUT')
        t.match(
          logs.filter(({ msg }) => msg === 'request failed'),
          [{ level: 50, code: 'BACKEND_TIMEOUT', requestId: response.json().requestId }]
        )
        t.equal((await Promise.all(closed)).length, 1, 'one connection, which is closed')
      }
    )
  }

  t.test('a backend timeout during a response cuts it off', async (t) => {
    const bytes = 'HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nhalf'
    const url = await startRawBackend(
      t,
      onRequest((socket) => socket.write(bytes))
    )
    const { send } = await startGateway(t, { env: { BACKEND_URL: url, BACKEND_TIMEOUT_MS: '500' } })

    await t.rejects(send('/api/zones'), { code: 'ECONNRESET' })
  })
})

/** A backend that holds requests until the test releases them. */
const holdRequests = (backend: RecordingBackend) => {
  const pending: ServerResponse[] = []
  const waiters: (() => void)[] = []
  backend.respond = (_request, response) => {
    pending.push(response)
    for (const wake of waiters.splice(0)) wake()
  }
  return async (count: number): Promise<ServerResponse[]> => {
    while (pending.length < count) await new Promise<void>((resolve) => waiters.push(resolve))
    return pending
  }
}

/** A request that the browser may abort. */
const browse = ({ url }: TestGateway, path: string): ClientRequest =>
  // Expected: there is no response if the browser disconnects.
  httpRequest(`${url}${path}`, { agent: false })
    .on('error', () => undefined)
    .end()

/** A slot is free when the gateway has closed the response, which the client cannot observe. */
const untilServed = async ({ send }: TestGateway, path: string): Promise<HttpResponse> => {
  for (;;) {
    const response = await send(path)
    if (response.status !== 503) return response
  }
}

t.test('OVERLOADED', async (t) => {
  const FULL = { env: { GATEWAY_MAX_IN_FLIGHT: '2', BACKEND_ANONYMOUS_PERCENT: '100' } }

  t.test('OVERLOADED is the response while the maximum number of requests is in flight', async (t) => {
    const gateway = await startGateway(t, FULL)
    const pending = holdRequests(gateway.backend)
    const earlier = [gateway.send('/api/zones/1'), gateway.send('/api/zones/2')]
    await pending(2)

    const reply = await gateway.send('/api/zones/3')

    isErrorResponse(t, reply, 503, 'OVERLOADED')
    t.equal(reply.headers['retry-after'], '1')
    t.equal(gateway.backend.requests.length, 2, 'the backend is left alone')
    t.match((await gateway.send('/metrics')).body, 'gateway_refusals_total{code="OVERLOADED"} 1', 'it is counted')
    t.same(
      gateway.logs.filter(({ level }) => Number(level) > 30),
      [],
      'and not written about'
    )
    for (const response of await pending(2)) response.end('{}')
    t.same(
      (await Promise.all(earlier)).map(({ status }) => status),
      [200, 200],
      'and those before are served'
    )
  })

  t.test('OVERLOADED ends when an earlier request completes', async (t) => {
    const gateway = await startGateway(t, FULL)
    const pending = holdRequests(gateway.backend)
    const earlier = [gateway.send('/api/zones/1'), gateway.send('/api/zones/2')]
    const [first] = await pending(2)

    gateway.backend.respond = (_request, response) => response.end('{}')
    first?.end('{}')
    await Promise.race(earlier)

    t.equal((await untilServed(gateway, '/api/zones/3')).status, 200)
  })

  t.test('OVERLOADED ends when earlier requests fail', async (t) => {
    const gateway = await startGateway(t, FULL)
    const pending = holdRequests(gateway.backend)
    const earlier = [gateway.send('/api/zones/1'), gateway.send('/api/zones/2')]

    for (const { socket } of await pending(2)) socket?.destroy()
    for (const { status } of await Promise.all(earlier)) t.equal(status, 502)
    gateway.backend.respond = (_request, response) => response.end('{}')

    t.equal((await untilServed(gateway, '/api/zones/3')).status, 200)
  })

  t.test('OVERLOADED ends when browsers disconnect before their response', async (t) => {
    const gateway = await startGateway(t, FULL)
    const pending = holdRequests(gateway.backend)
    const browsers = [browse(gateway, '/api/zones/1'), browse(gateway, '/api/zones/2')]
    const closed = (await pending(2)).map((response) => once(response, 'close'))

    for (const browser of browsers) browser.destroy()
    await Promise.all(closed)
    gateway.backend.respond = (_request, response) => response.end('{}')

    const responses = await Promise.all([gateway.send('/api/zones/3'), gateway.send('/api/zones/4')])
    t.same(
      responses.map(({ status }) => status),
      [200, 200]
    )
  })

  t.test('OVERLOADED ends when a browser disconnects during its response', async (t) => {
    const gateway = await startGateway(t, { env: { GATEWAY_MAX_IN_FLIGHT: '1' } })
    const pending = holdRequests(gateway.backend)
    const browser = browse(gateway, '/api/zones/1')
    const [response] = await pending(1)
    response?.write('half')
    const begun = await responseOf(browser)
    begun.on('error', () => undefined)

    const closed = response && once(response, 'close')
    browser.destroy()
    await closed
    gateway.backend.respond = (_request, response) => response.end('{}')

    t.equal((await gateway.send('/api/zones/2')).status, 200)
  })

  t.test('a browser that disconnects before admission does not occupy a slot', async (t) => {
    let requestCount = 0
    let closed = (): void => undefined
    const hasClosed = new Promise<void>((resolve) => {
      closed = resolve
    })
    const gateway = await startGateway(t, {
      env: { GATEWAY_MAX_IN_FLIGHT: '1' },
      exchange: {
        exchange: async (_request, { raw }) => {
          if (requestCount++ > 0) return null
          browser.destroy()
          await once(raw, 'close')
          // Runs after the following hooks.
          setImmediate(closed)
          return null
        }
      }
    })
    const browser = browse(gateway, '/api/zones/1')
    await hasClosed

    t.equal((await untilServed(gateway, '/api/zones/2')).status, 200)
    t.equal((await gateway.send('/api/zones/3')).status, 200)
    t.same(
      gateway.backend.requests.map(({ url }) => url),
      ['/api/zones/2', '/api/zones/3'],
      'the aborted request is not sent to the backend'
    )
  })

  t.test('OVERLOADED does not apply to health checks and paths outside /api', async (t) => {
    const gateway = await startGateway(t, FULL)
    const pending = holdRequests(gateway.backend)
    const earlier = [gateway.send('/api/zones/1'), gateway.send('/api/zones/2')]
    await pending(2)

    t.equal((await gateway.send('/api/health')).status, 200)
    t.equal((await gateway.send('/nowhere')).status, 404)
    t.equal((await gateway.send('/api/healthy')).status, 503, 'a path with the same beginning is not a health check')
    for (const response of await pending(2)) response.end('{}')
    await Promise.all(earlier)
  })
})

t.test('BODY_TOO_LARGE', async (t) => {
  const LIMIT = { env: { UPLOAD_LIMIT: '1KiB' } }
  // A keep-alive agent, so that only the gateway closes connections.
  const agent = new Agent({ keepAlive: true })
  t.teardown(() => agent.destroy())
  const upload = ({ url }: TestGateway, headers: Record<string, string>): ClientRequest =>
    httpRequest(`${url}/api/unknown`, { method: 'POST', headers: { ...browserHeaders(), ...headers }, agent })

  const wholeResponse = async (request: ClientRequest): Promise<HttpResponse> => {
    const response = await responseOf(request)
    const body = await text(response)
    const { statusCode = 0, headers } = response
    return { status: statusCode, headers, body, json: () => JSON.parse(body), code: '' }
  }

  t.test('BODY_TOO_LARGE is the response to a Content-Length over the limit, before the body is sent', async (t) => {
    const gateway = await startGateway(t, LIMIT)
    const request = upload(gateway, { 'content-length': '1025' })
    request.flushHeaders()

    const response = await wholeResponse(request)

    isErrorResponse(t, response, 413, 'BODY_TOO_LARGE')
    t.equal(response.headers.connection, 'close')
    t.same(gateway.backend.requests, [])
    request.destroy()
  })

  t.test('BODY_TOO_LARGE is the response to a chunked body as soon as it exceeds the limit', async (t) => {
    let backendNotified: Promise<unknown> = Promise.resolve()
    const url = await startRawBackend(t, (socket) => {
      backendNotified = new Promise((resolve) => socket.resume().once('close', resolve))
    })
    const gateway = await startGateway(t, { env: { ...LIMIT.env, BACKEND_URL: url } })
    const request = upload(gateway, { 'transfer-encoding': 'chunked' })
    request.write('a'.repeat(1000))
    request.write('a'.repeat(25))

    const response = await wholeResponse(request)

    isErrorResponse(t, response, 413, 'BODY_TOO_LARGE')
    t.equal(response.headers.connection, 'close')
    await backendNotified
    request.destroy()
  })

  for (const [title, headers] of [
    ['with a length', { 'content-length': '1024' }],
    ['without a length', { 'transfer-encoding': 'chunked' }]
  ] as const) {
    t.test(`a body of exactly the limit ${title} is accepted`, async (t) => {
      const gateway = await startGateway(t, LIMIT)
      const request = upload(gateway, headers)
      request.write('a'.repeat(1000))
      request.end('b'.repeat(24))

      const response = await wholeResponse(request)
      t.equal(response.status, 200)
      t.equal(response.headers.connection, 'keep-alive')
      t.equal(gateway.backend.requests[0]?.body, 'a'.repeat(1000) + 'b'.repeat(24))
    })
  }

  t.test('BODY_TOO_LARGE is the response to JSON over BODY_LIMIT on a local route', async (t) => {
    const { send } = await startGateway(t, { env: { BODY_LIMIT: '10' } })

    const response = await send('/nowhere', { method: 'POST', headers: json, body: '"0123456789"' })

    isErrorResponse(t, response, 413, 'BODY_TOO_LARGE')
  })
})

t.test('an error of the backend', async (t) => {
  const BODIES: readonly (readonly [title: string, contentType: string, bytes: Buffer])[] = [
    ['JSON with odd spacing', 'application/json', Buffer.from('{ "error" :\t"n\\u00e4ive" }\r\n\r\n')],
    ['text in an old encoding', 'text/plain; charset=iso-8859-1', Buffer.from('na\xefve', 'latin1')],
    ['arbitrary bytes', 'application/x-thing', Buffer.from([0, 255, 254, 13, 10, 0, 128])],
    ['nothing', 'text/plain', Buffer.alloc(0)]
  ]
  for (const status of [400, 401, 403, 404, 405, 409, 413, 418, 422, 429, 500, 501, 502, 503, 504, 599]) {
    for (const [title, contentType, bytes] of BODIES) {
      t.test(`an error response of the backend is forwarded unchanged: ${status} with ${title}`, async (t) => {
        const { url, backend } = await borrowGateway(t)
        backend.respond = (_request, response) =>
          response.writeHead(status, { 'content-type': contentType, 'retry-after': '7', 'x-mine': 'yes' }).end(bytes)

        const reply = await fetch(`${url}/api/zones`)

        t.equal(reply.status, status)
        t.equal(reply.headers.get('content-type'), contentType)
        t.equal(reply.headers.get('retry-after'), '7')
        t.equal(reply.headers.get('x-mine'), 'yes')
        t.equal(reply.headers.get('x-gateway-error'), null, 'the error is not marked as one of the gateway')
        t.same(Buffer.from(await reply.arrayBuffer()), bytes)
        t.equal(backend.requests.length, 1, 'the backend receives one request')
      })
    }
  }

  t.test('an error response of the backend that imitates the gateway is forwarded unchanged', async (t) => {
    const { send, backend } = await startGateway(t)
    const body = '{"success":false,"error":{"code":"CSRF_MISMATCH"}}'
    backend.respond = (_request, response) => response.writeHead(403, json).end(body)

    const reply = await send('/api/zones')

    t.equal(reply.body, body)
    t.equal(reply.headers['x-gateway-error'], undefined)
  })
})

// Longer than any test, so that a request ends only because the browser disconnected.
const PATIENT = { BACKEND_TIMEOUT_MS: '600000' }

t.test('a browser that disconnects', async (t) => {
  t.test('the backend request is cancelled if the browser disconnects before the response', async (t) => {
    const gateway = await startGateway(t, { env: PATIENT })
    const pending = holdRequests(gateway.backend)
    const browser = browse(gateway, '/api/zones')
    const [response] = await pending(1)

    const aborted = new Promise<void>((resolve) => response?.once('close', resolve))
    browser.destroy()

    await aborted
    t.equal(response?.writableFinished, false)
  })

  t.test('the backend request is cancelled if the browser disconnects during the response', async (t) => {
    const gateway = await startGateway(t, { env: PATIENT })
    const pending = holdRequests(gateway.backend)
    const browser = browse(gateway, '/api/zones')
    const [response] = await pending(1)
    response?.write('half')
    const begun = await responseOf(browser)
    begun.on('error', () => undefined)

    const aborted = new Promise<void>((resolve) => response?.once('close', resolve))
    browser.destroy()

    await aborted
    t.equal(response?.writableFinished, false)
  })

  t.test('the backend request is cancelled if the browser disconnects during an upload', async (t) => {
    let atBackend = (_socket: Socket): void => undefined
    const reached = new Promise<Socket>((resolve) => {
      atBackend = resolve
    })
    const url = await startRawBackend(t, (socket) => void socket.once('data', () => atBackend(socket)))
    const gateway = await startGateway(t, { env: { ...PATIENT, BACKEND_URL: url } })
    const browser = httpRequest(`${gateway.url}/api/unknown`, {
      method: 'POST',
      headers: { ...browserHeaders(), 'content-length': '100' },
      agent: false
    }).on('error', () => undefined)
    browser.write('not all of it')
    const socket = await reached

    const aborted = new Promise<void>((resolve) => socket.once('close', resolve))
    browser.destroy()

    await aborted
    t.equal(socket.destroyed, true)
  })

  t.test('a browser that disconnects does not affect requests of others', async (t) => {
    const gateway = await startGateway(t, { env: PATIENT })
    const pending = holdRequests(gateway.backend)
    const browser = browse(gateway, '/api/zones/1')
    const [first] = await pending(1)
    const other = gateway.send('/api/zones/2')
    const [, second] = await pending(2)

    const aborted = new Promise<void>((resolve) => first?.once('close', resolve))
    browser.destroy()
    await aborted
    second?.end('{"still":"here"}')

    t.equal((await other).body, '{"still":"here"}')
  })
})
