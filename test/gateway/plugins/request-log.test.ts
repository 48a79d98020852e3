import { once } from 'node:events'
import { request as httpRequest, type ServerResponse } from 'node:http'
import t from 'tap'
import { createLogger } from '../../../src/shared/logger.js'
import { responseOf } from '../../helper/exact-http.js'
import { browserHeaders, startGateway, type TestGateway, tokenOf } from '../../helper/gateway.js'
import { type HttpResponse, sendRaw } from '../../helper/http.js'
import { RecordingTracer } from '../../helper/recording-tracer.js'

const SECRET = 's3cr3t'
const INFO = 30

const SECRET_FIELDS = [
  'authorization',
  'cookie',
  'set-cookie',
  'x-api-key',
  'x-csrf-token',
  'x-exchange-secret',
  'token',
  'password',
  'newPassword',
  'secret'
]

/** Positions of a field in a log object. */
const SHAPES: readonly (readonly [position: string, objectWith: (field: object) => object])[] = [
  ['at the top', (field) => field],
  ['one step down', (field) => ({ user: field })],
  ['among headers', (field) => ({ headers: field })],
  ['in a body', (field) => ({ body: field })],
  ["among a request's headers", (field) => ({ req: { url: '/', headers: field } })],
  ["in a request's body", (field) => ({ req: { body: field } })],
  ["among a response's headers", (field) => ({ res: { statusCode: 200, headers: field } })],
  ['on an error', (field) => ({ err: Object.assign(new Error('failed'), field) })],
  ["among an error's headers", (field) => ({ err: Object.assign(new Error('failed'), { headers: field }) })]
]

const memoryLog = () => {
  const written = { text: '' }
  const stream = {
    write: (line: string) => {
      written.text += line
    }
  }
  return { log: createLogger({ name: 'test', level: 'trace', stream }), written }
}

t.test('a log line', async (t) => {
  for (const field of SECRET_FIELDS) {
    for (const [position, objectWith] of SHAPES) {
      t.test(`a log line redacts ${field} ${position}`, async (t) => {
        const { log, written } = memoryLog()

        log.info(objectWith({ [field]: SECRET, other: 'shown' }), 'message')

        t.notMatch(written.text, SECRET)
        t.match(written.text, `"${field}":"[redacted]"`)
        t.match(written.text, '"other":"shown"')
      })
    }

    t.test(`a child logger redacts ${field} in its bindings`, async (t) => {
      const { log, written } = memoryLog()

      log.child({ [field]: SECRET }).info('message')

      t.match(written.text, '"msg":"message"')
      t.notMatch(written.text, SECRET)
    })

    t.test(`a log line redacts a list in ${field}`, async (t) => {
      const { log, written } = memoryLog()

      log.info({ headers: { [field]: [SECRET, SECRET] } }, 'message')

      t.match(written.text, '"msg":"message"')
      t.notMatch(written.text, SECRET)
    })
  }

  t.test('a log line does not contain the raw packet of a parser error', async (t) => {
    const { log, written } = memoryLog()

    log.error({ err: Object.assign(new Error('not HTTP'), { data: `Cookie: ${SECRET}` }) }, 'message')

    t.match(written.text, 'not HTTP')
    t.notMatch(written.text, SECRET)
  })

  t.test('redaction does not change the logged object', async (t) => {
    const headers = { authorization: SECRET }

    memoryLog().log.info({ headers }, 'message')

    t.same(headers, { authorization: SECRET })
  })
})

/** The request lines. All of them are written when the gateway has closed. */
const requestLines = async ({ gateway, logs }: TestGateway): Promise<Record<string, unknown>[]> => {
  await gateway.app.close()
  return logs.filter(({ msg }) => msg === 'request')
}

const SECRET_QUERY = `?token=${SECRET}&code=${SECRET}`

const SECRET_HEADERS = {
  authorization: `Bearer ${SECRET}`,
  cookie: `auth_token=${SECRET}; csrf_token=${SECRET}; other=${SECRET}`,
  'x-csrf-token': SECRET,
  'x-api-key': SECRET,
  'proxy-authorization': `Basic ${SECRET}`,
  referer: `https://app.example.com/?token=${SECRET}`
}

const signedIn = { ...SECRET_HEADERS, cookie: `auth_token=${tokenOf('operator')}; csrf_token=${SECRET}` }

interface RequestCase<Response = unknown> {
  readonly name: string
  readonly env?: Record<string, string>
  readonly request: (gateway: TestGateway) => Promise<Response>
}

const withBackend =
  (respond: TestGateway['backend']['respond']) =>
  ({ backend, send }: TestGateway): Promise<unknown> => {
    backend.respond = respond
    return send(`/api/zones${SECRET_QUERY}`, { headers: SECRET_HEADERS })
  }

const raw =
  (requestLine: string, headerLines = '') =>
  ({ url }: TestGateway): Promise<unknown> =>
    sendRaw(
      url,
      `${requestLine}\r\nHost: gateway\r\nConnection: close\r\nCookie: auth_token=${SECRET}\r\n${headerLines}\r\n`
    )

const SECRET_REQUESTS: readonly RequestCase[] = [
  { name: 'a read', request: ({ send }) => send(`/api/zones${SECRET_QUERY}`, { headers: SECRET_HEADERS }) },
  {
    name: 'a change',
    request: ({ send }) =>
      send(`/api/unknown${SECRET_QUERY}`, {
        method: 'POST',
        headers: { ...signedIn, 'content-type': 'application/json' },
        body: JSON.stringify({ password: SECRET, note: SECRET })
      })
  },
  {
    name: 'a login',
    request: ({ send }) =>
      send('/api/auth/login', { method: 'POST', headers: SECRET_HEADERS, body: JSON.stringify({ password: SECRET }) })
  },
  {
    name: 'a change with a token that is not one',
    request: ({ send }) => send(`/api/zones${SECRET_QUERY}`, { method: 'DELETE', headers: SECRET_HEADERS })
  },
  {
    name: 'a denied read',
    request: ({ send }) => send(`/api/admin/users${SECRET_QUERY}`, { headers: SECRET_HEADERS })
  },
  {
    name: 'a change without a CSRF token',
    request: ({ send }) =>
      send(`/api/zones${SECRET_QUERY}`, { method: 'POST', headers: { ...SECRET_HEADERS, 'x-csrf-token': 'other' } })
  },
  { name: 'an unknown page', request: ({ send }) => send(`/nowhere${SECRET_QUERY}`, { headers: SECRET_HEADERS }) },
  { name: 'an ambiguous path', request: ({ send }) => send(`/api//zones${SECRET_QUERY}`, { headers: SECRET_HEADERS }) },
  { name: 'a path that cannot be decoded', request: ({ send }) => send(`/api/%zz${SECRET_QUERY}`) },
  { name: 'an address that is too long', request: ({ send }) => send(`/api/zones?token=${SECRET.repeat(2000)}`) },
  {
    name: 'headers that are too large',
    request: raw('GET /api/zones HTTP/1.1', `X-Api-Key: ${SECRET.repeat(5000)}\r\n`)
  },
  { name: 'bytes that are not HTTP', request: raw(`GET /api/zones${SECRET_QUERY}`) },
  { name: 'an expectation', request: raw(`GET /api/zones${SECRET_QUERY} HTTP/1.1`, `Expect: ${SECRET}\r\n`) },
  { name: 'a request id that is not sane', request: raw('GET /api/zones HTTP/1.1', `X-Request-Id: ${SECRET} x\r\n`) },
  {
    name: 'a backend that sets cookies',
    request: withBackend((_request, response) =>
      response.setHeader('set-cookie', `session=${SECRET}`).end(JSON.stringify({ token: SECRET }))
    )
  },
  {
    name: 'a backend error',
    request: withBackend((_request, response) => response.writeHead(500, { 'x-token': SECRET }).end(SECRET))
  },
  {
    name: 'a backend with a malformed response',
    request: withBackend((_request, { socket }) =>
      socket?.end(`HTTP/1.1 200 OK\r\nNo Header\r\nSet-Cookie: ${SECRET}\r\n\r\n`)
    )
  },
  {
    name: 'a backend that resets the connection',
    request: withBackend((_request, { socket }) => socket?.resetAndDestroy())
  },
  { name: 'a backend that is too slow', env: { BACKEND_TIMEOUT_MS: '50' }, request: withBackend(() => undefined) },
  {
    name: 'a backend that is gone',
    env: { BACKEND_URL: 'http://127.0.0.1:1' },
    request: ({ send }) => send(`/api/zones${SECRET_QUERY}`, { headers: SECRET_HEADERS })
  },
  {
    name: 'a body that is too large',
    env: { UPLOAD_LIMIT: '1' },
    request: ({ send }) => send(`/api/unknown${SECRET_QUERY}`, { method: 'POST', headers: signedIn, body: SECRET })
  },
  {
    name: 'a browser that disconnects',
    request: async (gateway) => {
      await abortBeforeResponse(gateway, `/api/zones${SECRET_QUERY}`)
    }
  }
]

/** Disconnects when the backend has the request. Resolves when the gateway has cancelled it at the backend. */
const abortBeforeResponse = async ({ url, backend }: TestGateway, path: string): Promise<void> => {
  const atBackend = new Promise<ServerResponse>((resolve) => {
    backend.respond = (_request, response) => resolve(response)
  })
  const request = httpRequest(`${url}${path}`, { headers: SECRET_HEADERS, agent: false }).end()
  // Expected: there is no response.
  request.on('error', () => undefined)
  const response = await atBackend
  request.destroy()
  await once(response, 'close')
}

t.test('the log of the gateway', async (t) => {
  for (const { name, env, request } of SECRET_REQUESTS) {
    t.test(`the log does not contain the secrets of ${name}`, async (t) => {
      const gateway = await startGateway(t, { env: { LOG_LEVEL: 'trace', ...env } })

      await request(gateway)

      // Not every case is logged. This line shows that the test sees the log.
      await gateway.send('/api/health')
      await gateway.gateway.app.close()
      t.not(gateway.logs.length, 0)
      t.notMatch(JSON.stringify(gateway.logs), SECRET)
    })
  }

  const CODES: readonly (readonly [method: string, path: string, headers: object, line: object])[] = [
    ['GET', '/api/zones/7', {}, { status: 200, route: '/api/zones/:id', code: undefined }],
    ['GET', '/api/unknown', {}, { status: 200, route: '/api/*', code: undefined }],
    [
      'POST',
      '/api/zones',
      { ...signedIn, origin: 'https://app.example.com' },
      { status: 403, route: '/api/zones', code: 'ORIGIN_REFUSED', origin: 'https://app.example.com' }
    ],
    ['POST', '/api/zones', {}, { status: 403, route: '/api/zones', code: 'CSRF_MISMATCH', origin: undefined }],
    ['GET', '/api/admin/x', {}, { status: 401, route: '/api/*', code: 'UNAUTHENTICATED' }],
    ['GET', '/nowhere', {}, { status: 404, route: 'none', code: 'NOT_FOUND' }],
    ['GET', '/api//zones', {}, { status: 400, code: 'AMBIGUOUS_PATH' }],
    ['GET', '/api/%zz', {}, { status: 400, route: 'none', code: 'AMBIGUOUS_PATH' }]
  ]
  for (const [method, path, headers, line] of CODES) {
    t.test(`the line of ${method} ${path} has route and error code: ${JSON.stringify(line)}`, async (t) => {
      const gateway = await startGateway(t, { env: { PUBLIC_URL: 'https://wrong.example.com' } })
      await gateway.send(path, { method, headers: { ...headers } })
      const lines = await requestLines(gateway)
      t.match(lines, [line])
      t.equal(lines.length, 1)
    })
  }

  t.test('the log has the error code of an unreachable backend', async (t) => {
    const gateway = await startGateway(t, { env: { BACKEND_URL: 'http://127.0.0.1:1' } })
    await gateway.send('/api/zones')
    t.match(await requestLines(gateway), [{ status: 502, route: '/api/zones', code: 'BACKEND_UNREACHABLE' }])
  })

  const PHONE_PATHS: readonly (readonly [path: string, logged: string])[] = [
    [`/api/phone-beacon/${SECRET}`, '/api/phone-beacon/…'],
    [`/api/phone-beacon/${SECRET.repeat(10)}`, '/api/phone-beacon/…'],
    [`/api/phone-beacon/${SECRET}/more`, '/api/phone-beacon/…'],
    [`/api/phone-beacon/onboarding-token/${SECRET}`, '/api/phone-beacon/…'],
    [`/api/phone-beacon/onboarding-token-${SECRET}`, '/api/phone-beacon/…'],
    [`/api//phone-beacon/${SECRET}`, '/api//phone-beacon/…'],
    [`/api/phone-beacon//${SECRET}`, '/api/phone-beacon/…'],
    [`/api/phone-beacon%2f${SECRET}`, '/api/phone-beacon/…'],
    [`/api/Phone-Beacon/${SECRET};x`, '/api/Phone-Beacon/…'],
    [`/api/%70hone-beacon/${SECRET}`, '/api/%70hone-beacon/…'],
    [`/api/%zz/phone-beacon/${SECRET}`, '/api/%zz/phone-beacon/…'],
    [`/phone-beacon/${SECRET}`, '/phone-beacon/…'],
    ['/api/phone-beacon/onboarding-token', '/api/phone-beacon/onboarding-token'],
    ['/api/phone-beacon/complete-enrollment', '/api/phone-beacon/complete-enrollment'],
    ['/api/phone-beacon/irk-records', '/api/phone-beacon/irk-records']
  ]
  t.test('log, spans and metrics have the path of an onboarding token without the token', async (t) => {
    const tracer = new RecordingTracer()
    const gateway = await startGateway(t, { env: { LOG_LEVEL: 'trace' }, tracer })
    for (const [path] of PHONE_PATHS) await gateway.send(`${path}?token=${SECRET}`)
    t.notMatch((await gateway.send('/metrics')).body, SECRET)

    const lines = (await requestLines(gateway)).slice(0, PHONE_PATHS.length)
    for (const [index, [path, logged]] of PHONE_PATHS.entries()) t.equal(lines[index]?.path, logged, path)
    const traced = tracer.spans.filter(({ kind }) => kind === 'server').map(({ attributes }) => attributes['url.path'])
    // The router rejects a malformed encoding before any hook.
    t.same(
      traced,
      PHONE_PATHS.filter(([path]) => !path.includes('%zz')).map(([, logged]) => logged)
    )
    for (const { name, attributes } of tracer.spans) t.notMatch(JSON.stringify([name, attributes]), SECRET)
    t.notMatch(JSON.stringify(gateway.logs), SECRET)
  })
})

interface Line {
  readonly method: string
  readonly path: string
  readonly status: number
}

const get = (path: string, status: number): Line => ({ method: 'GET', path, status })

const REQUESTS: readonly (RequestCase<HttpResponse> & { readonly line: Line })[] = [
  { name: 'a read', request: ({ send }) => send('/api/zones?page=2'), line: get('/api/zones', 200) },
  {
    name: 'an id that is encoded',
    request: ({ send }) => send('/api/zones/a%20b'),
    line: get('/api/zones/a%20b', 200)
  },
  {
    name: 'a HEAD',
    request: ({ send }) => send('/api/zones', { method: 'HEAD' }),
    line: { method: 'HEAD', path: '/api/zones', status: 200 }
  },
  {
    name: 'a change with a body',
    request: ({ send }) => send('/api/unknown', { method: 'PUT', headers: browserHeaders(), body: '{"a":1}' }),
    line: { method: 'PUT', path: '/api/unknown', status: 200 }
  },
  {
    name: 'a change without a body',
    request: ({ send }) => send('/api/unknown/7', { method: 'DELETE', headers: browserHeaders() }),
    line: { method: 'DELETE', path: '/api/unknown/7', status: 200 }
  },
  { name: 'a health probe', request: ({ send }) => send('/api/health'), line: get('/api/health', 200) },
  { name: 'a response without content', request: respondWith(204), line: get('/api/zones', 204) },
  { name: 'an error of the backend', request: respondWith(503), line: get('/api/zones', 503) },
  { name: 'an unknown page', request: ({ send }) => send('/nowhere?a=b'), line: get('/nowhere', 404) },
  { name: 'a denied read', request: ({ send }) => send('/api/audit/logs?a=b'), line: get('/api/audit/logs', 401) },
  {
    name: 'a change without a CSRF token',
    request: ({ send }) => send('/api/zones', { method: 'POST' }),
    line: { method: 'POST', path: '/api/zones', status: 403 }
  },
  { name: 'an ambiguous path', request: ({ send }) => send('/api//zones?a=b'), line: get('/api//zones', 400) },
  {
    name: 'a method that is not forwarded',
    request: ({ send }) => send('/api/zones', { method: 'PROPFIND' }),
    line: { method: 'PROPFIND', path: '/api/zones', status: 405 }
  },
  {
    name: 'a path longer than 256 characters',
    request: ({ send }) => send(`/api/${'a'.repeat(1000)}`),
    line: get(`/api/${'a'.repeat(251)}`, 200)
  },
  {
    name: 'a body that is too large',
    env: { UPLOAD_LIMIT: '1' },
    request: ({ send }) => send('/api/unknown', { method: 'POST', headers: browserHeaders(), body: 'too much' }),
    line: { method: 'POST', path: '/api/unknown', status: 413 }
  },
  {
    name: 'a backend that is gone',
    env: { BACKEND_URL: 'http://127.0.0.1:1' },
    request: ({ send }) => send('/api/zones'),
    line: get('/api/zones', 502)
  }
]

function respondWith(status: number) {
  return ({ backend, send }: TestGateway): Promise<HttpResponse> => {
    backend.respond = (_request, response) => response.writeHead(status).end()
    return send('/api/zones')
  }
}

const LINE_FIELDS = [
  'hostname',
  'ip',
  'level',
  'method',
  'ms',
  'msg',
  'name',
  'path',
  'pid',
  'requestId',
  'route',
  'status',
  'time'
]

t.test('the line of a request', async (t) => {
  for (const { name, env, request, line } of REQUESTS) {
    t.test(`the request line is written once, with the outcome: ${name}`, async (t) => {
      const gateway = await startGateway(t, { ...(env && { env }) })

      const { headers } = await request(gateway)

      const lines = await requestLines(gateway)
      t.equal(lines.length, 1)
      t.match(lines, [{ level: INFO, ...line, ip: '127.0.0.1', ms: Number, requestId: headers['x-request-id'] }])
      const { code, ...fields } = lines[0] ?? {}
      t.equal(code, headers['x-gateway-error'], 'the error code of a rejection')
      t.same(Object.keys(fields).sort(), LINE_FIELDS, 'the line has no other fields')
    })
  }

  t.test('every request on a connection has a request line', async (t) => {
    const gateway = await startGateway(t)

    await sendRaw(
      gateway.url,
      ['/api/zones/1', '/api/zones/2', '/nowhere']
        .map((path, index) => `GET ${path} HTTP/1.1\r\nHost: x\r\n${index === 2 ? 'Connection: close\r\n' : ''}\r\n`)
        .join('')
    )

    const lines = await requestLines(gateway)
    t.same(lines.map(({ path }) => path).sort(), ['/api/zones/1', '/api/zones/2', '/nowhere'])
  })

  t.test('no request line is written with a higher log level', async (t) => {
    const gateway = await startGateway(t, { env: { LOG_LEVEL: 'warn' } })

    t.equal((await gateway.send('/api/zones')).status, 200)

    t.same(await requestLines(gateway), [])
    t.same(gateway.logs, [])
  })
})

const ADDRESSES: readonly (readonly [trusted: string, forwardedFor: string, ip: string, title: string])[] = [
  ['', '203.0.113.9', '127.0.0.1', 'no proxy is trusted'],
  ['10.0.0.0/8', '203.0.113.9', '127.0.0.1', 'another proxy is trusted'],
  ['loopback', '203.0.113.9', '203.0.113.9', 'the proxy is trusted'],
  ['loopback', '198.51.100.1, 203.0.113.9', '203.0.113.9', 'the client put an address of its own in front'],
  ['loopback,203.0.113.9', '198.51.100.1, 203.0.113.9', '198.51.100.1', 'both proxies are trusted'],
  ['loopback', '203.0.113.9:5555', '203.0.113.9', 'the proxy adds a port'],
  ['loopback', '[2001:DB8::1]:443', '2001:db8::1', 'the proxy adds brackets'],
  ['loopback', '::ffff:203.0.113.9', '203.0.113.9', 'the proxy listens on both families'],
  ['loopback', 'unknown', '127.0.0.1', 'the proxy does not know'],
  ['loopback', `"${SECRET}"`, '127.0.0.1', 'it is no address']
]

t.test("the client's address in the line of a request", async (t) => {
  for (const [trusted, forwardedFor, ip, title] of ADDRESSES) {
    t.test(`the logged address is ${ip} where ${title}`, async (t) => {
      const gateway = await startGateway(t, { env: { TRUST_PROXY: trusted } })

      await gateway.send('/api/zones', { headers: { 'x-forwarded-for': forwardedFor } })

      t.match(await requestLines(gateway), [{ ip }])
    })
  }
})

t.test('an aborted request', async (t) => {
  t.test('a request is logged if the browser disconnects before the response', async (t) => {
    const gateway = await startGateway(t)

    await abortBeforeResponse(gateway, '/api/zones')

    const lines = await requestLines(gateway)
    t.equal(lines.length, 1)
    t.match(lines, [{ ...get('/api/zones', 499), cutShort: true, ip: '127.0.0.1' }])
    t.ok(
      gateway.logs.every(({ level }) => level === INFO),
      'which is nothing that someone must look at'
    )
  })

  t.test('a request is logged if the browser disconnects during the response', async (t) => {
    const gateway = await startGateway(t)
    const { request, pending } = await requestHalf(gateway)

    request.destroy()
    await once(pending, 'close')

    const lines = await requestLines(gateway)
    t.equal(lines.length, 1)
    t.match(lines, [{ ...get('/api/zones', 200), cutShort: true, ip: '127.0.0.1' }])
    t.ok(
      gateway.logs.every(({ level }) => level === INFO),
      'which is nothing that someone must look at'
    )
  })

  t.test('a request is logged if the backend fails during the response', async (t) => {
    const gateway = await startGateway(t)
    const { response, pending } = await requestHalf(gateway)

    pending.destroy()
    await new Promise((resolve) => response.once('close', resolve))

    const lines = await requestLines(gateway)
    t.equal(lines.length, 1)
    t.match(lines, [{ ...get('/api/zones', 200), cutShort: true }])
  })
})

/** A response of which half has arrived. */
const requestHalf = async ({ url, backend }: TestGateway) => {
  const atBackend = new Promise<ServerResponse>((resolve) => {
    backend.respond = (_request, response) => {
      response.writeHead(200, { 'content-length': 8 }).write('half')
      resolve(response)
    }
  })
  const request = httpRequest(`${url}/api/zones`, { agent: false }).end()
  const response = await responseOf(request)
  // Expected: the connection is reset on both ends.
  for (const end of [request, response]) end.on('error', () => undefined)
  await once(response, 'data')
  return { request, response, pending: await atBackend }
}
