import { once } from 'node:events'
import { connect } from 'node:net'
import t from 'tap'
import { browserHeaders, startGateway, type TestGateway } from '../../helper/gateway.js'
import { type HttpResponse, sendRaw } from '../../helper/http.js'

const SAME_IN_BOTH = {
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'strict-origin-when-cross-origin',
  'permissions-policy': 'geolocation=(self), microphone=(), camera=(), payment=()'
}

const HOSTS = {
  CSP_SCRIPT_HOSTS: 'cdn.example.com',
  CSP_STYLE_HOSTS: 'cdn.example.com, fonts.example.com',
  CSP_IMG_HOSTS: '*.tiles.example.com,https://blobs.example.net',
  CSP_FONT_HOSTS: 'fonts.example.net',
  CSP_CONNECT_HOSTS: 'ws://localhost:8100'
}

const ENVIRONMENTS = {
  production: {
    'content-security-policy': [
      "default-src 'self'",
      "script-src 'self' 'unsafe-inline' cdn.example.com",
      "style-src 'self' 'unsafe-inline' cdn.example.com fonts.example.com",
      "img-src 'self' data: blob: *.tiles.example.com https://blobs.example.net",
      "font-src 'self' data: fonts.example.net",
      "connect-src 'self' wss: ws://localhost:8100",
      "frame-ancestors 'none'"
    ].join(';'),
    'strict-transport-security': 'max-age=31536000; includeSubDomains',
    ...SAME_IN_BOTH
  },
  development: {
    'content-security-policy': [
      "default-src 'self'",
      "script-src 'self' 'unsafe-inline' cdn.example.com 'unsafe-eval'",
      "style-src 'self' 'unsafe-inline' cdn.example.com fonts.example.com",
      "img-src 'self' data: blob: *.tiles.example.com https://blobs.example.net",
      "font-src 'self' data: fonts.example.net",
      "connect-src 'self' wss: ws://localhost:8100 ws: http://localhost:* http://127.0.0.1:*",
      "frame-ancestors 'none'"
    ].join(';'),
    'strict-transport-security': undefined,
    ...SAME_IN_BOTH
  }
}

interface ResponseKind {
  readonly title: string
  readonly status: number
  readonly request: (gateway: TestGateway) => Promise<HttpResponse>
}

const onBackend =
  (respond: TestGateway['backend']['respond'], path = '/api/zones', method = 'GET') =>
  ({ backend, send }: TestGateway): Promise<HttpResponse> => {
    backend.respond = respond
    return send(path, { method })
  }

const backendHeaders = {
  'content-security-policy': "default-src 'none'",
  'content-security-policy-report-only': "default-src 'none'",
  'strict-transport-security': 'max-age=1',
  'x-content-type-options': 'sniff',
  'x-frame-options': 'ALLOWALL',
  'referrer-policy': 'unsafe-url',
  'permissions-policy': 'camera=*',
  'x-powered-by': 'Express',
  server: 'Backend/1.0'
}

/** Responses of every kind, including those that no hook handles. */
const KINDS: readonly ResponseKind[] = [
  { title: 'a proxied GET', status: 200, request: ({ send }) => send('/api/zones') },
  { title: 'a proxied HEAD', status: 200, request: ({ send }) => send('/api/zones', { method: 'HEAD' }) },
  { title: 'a proxied OPTIONS', status: 200, request: ({ send }) => send('/api/zones', { method: 'OPTIONS' }) },
  {
    title: 'a proxied write request',
    status: 200,
    request: ({ send }) => send('/api/unknown', { method: 'POST', headers: browserHeaders(), body: '{}' })
  },
  {
    title: 'a backend that sends its own copies',
    status: 200,
    request: onBackend((_request, response) => response.writeHead(200, backendHeaders).end('{}'))
  },
  {
    title: 'a backend error that carries its own copies',
    status: 500,
    request: onBackend((_request, response) => response.writeHead(500, backendHeaders).end('{}'))
  },
  {
    title: 'a backend without content',
    status: 204,
    request: onBackend((_request, response) => response.writeHead(204, backendHeaders).end())
  },
  {
    title: 'a backend that is not modified',
    status: 304,
    request: onBackend((_request, response) => response.writeHead(304, backendHeaders).end())
  },
  {
    title: 'a backend that resets the connection',
    status: 502,
    request: onBackend((_request, { socket }) => socket?.destroy())
  },
  { title: 'a response of the gateway', status: 200, request: ({ send }) => send('/api/health') },
  { title: 'the CSRF token', status: 200, request: ({ send }) => send('/api/auth/csrf-token') },
  { title: 'an unknown page', status: 404, request: ({ send }) => send('/nowhere') },
  {
    title: 'a HEAD request for an unknown page',
    status: 404,
    request: ({ send }) => send('/nowhere', { method: 'HEAD' })
  },
  { title: 'an ambiguous path', status: 400, request: ({ send }) => send('/api//zones') },
  { title: 'a path with broken encoding', status: 400, request: ({ send }) => send('/api/%zz') },
  {
    title: 'a method that is not forwarded',
    status: 405,
    request: ({ send }) => send('/api/zones', { method: 'PROPFIND' })
  },
  {
    title: 'a CONNECT request',
    status: 405,
    request: ({ url }) => sendRaw(url, 'CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n')
  },
  { title: 'an address that is too long', status: 414, request: ({ send }) => send(`/api/${'a'.repeat(9_000)}`) },
  {
    title: 'a request line over the limit of the parser',
    status: 414,
    request: ({ url }) => sendRaw(url, `GET /api/${'a'.repeat(40_000)} HTTP/1.1\r\nHost: x\r\n\r\n`)
  },
  {
    title: 'headers that are too large',
    status: 431,
    request: ({ url }) => sendRaw(url, `GET /api/zones HTTP/1.1\r\nHost: x\r\nX-Big: ${'a'.repeat(40_000)}\r\n\r\n`)
  },
  { title: 'bytes that are not HTTP', status: 400, request: ({ url }) => sendRaw(url, 'hello there\r\n\r\n') },
  {
    title: 'a length and a transfer coding at once',
    status: 400,
    request: ({ url }) =>
      sendRaw(
        url,
        'POST /api/zones HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'
      )
  },
  {
    title: 'no Host header',
    status: 400,
    request: ({ url }) => sendRaw(url, 'GET /api/zones HTTP/1.1\r\nConnection: close\r\n\r\n')
  },
  {
    title: 'two Host headers',
    status: 400,
    request: ({ url }) => sendRaw(url, 'GET /api/zones HTTP/1.1\r\nHost: a\r\nHost: b\r\nConnection: close\r\n\r\n')
  },
  {
    title: 'an HTTP version that we do not speak',
    status: 400,
    request: ({ url }) => sendRaw(url, 'GET /api/zones HTTP/2.0\r\nHost: a\r\nConnection: close\r\n\r\n')
  },
  {
    title: 'an expectation that cannot be met',
    status: 417,
    request: ({ url }) => sendRaw(url, 'GET /api/zones HTTP/1.1\r\nHost: a\r\nExpect: miracles\r\n\r\n')
  }
]

const PRODUCTION_ONLY: readonly ResponseKind[] = [
  { title: 'a CSRF rejection', status: 403, request: ({ send }) => send('/api/zones', { method: 'POST' }) },
  {
    title: 'a write request from a foreign page',
    status: 403,
    request: ({ send }) => send('/api/zones', { method: 'POST', headers: { origin: 'https://evil.example' } })
  },
  { title: 'a request without a token', status: 401, request: ({ send }) => send('/api/audit/logs') },
  {
    title: 'a request that the limiter refuses',
    status: 429,
    request: async ({ send }) => {
      for (let attempt = 0; attempt < 5; attempt++) await send('/api/auth/login', { method: 'POST' })
      return send('/api/auth/login', { method: 'POST' })
    }
  }
]

t.test("CSP_INLINE=refuse removes 'unsafe-inline' from script-src and style-src", async (t) => {
  const { send } = await startGateway(t, { env: { CSP_INLINE: 'refuse', ...HOSTS } })
  const policy = String((await send('/api/zones')).headers['content-security-policy'])
  t.notMatch(policy, 'unsafe-inline')
  t.match(policy, /;script-src 'self' cdn\.example\.com;/)
  t.match(policy, /;style-src 'self' 'sha256-[\w+/]{43}=' cdn\.example\.com fonts\.example\.com;/)
  const others = (text: string): string[] =>
    text.split(';').filter((directive) => !/^(?:script|style)-src/.test(directive))
  t.same(others(policy), others(ENVIRONMENTS.production['content-security-policy']))
})

t.test('CSP_INLINE=refuse changes nothing in development', async (t) => {
  const { send } = await startGateway(t, { env: { NODE_ENV: 'development', CSP_INLINE: 'refuse', ...HOSTS } })
  const { headers } = await send('/api/zones')
  t.equal(headers['content-security-policy'], ENVIRONMENTS.development['content-security-policy'])
})

for (const [environment, expected] of Object.entries(ENVIRONMENTS)) {
  t.test(`security headers in ${environment}`, async (t) => {
    const kinds = environment === 'production' ? [...KINDS, ...PRODUCTION_ONLY] : KINDS
    for (const { title, status, request } of kinds) {
      t.test(`the response to ${title} has the security headers in ${environment}`, async (t) => {
        const gateway = await startGateway(t, { env: { NODE_ENV: environment, ...HOSTS } })

        const response = await request(gateway)

        t.equal(response.status, status)
        for (const [name, value] of Object.entries(expected)) t.equal(response.headers[name], value, name)
        t.equal(response.headers['x-powered-by'], undefined, 'x-powered-by')
        t.equal(response.headers.server, undefined, 'server')
        t.equal(
          response.headers['content-security-policy-report-only'],
          undefined,
          'a report-only policy of the backend is not forwarded'
        )
        t.match(response.headers['x-request-id'], /^[A-Za-z0-9._-]{1,64}$/, 'x-request-id')
      })
    }

    t.test(`the response without a backend has the security headers in ${environment}`, async (t) => {
      const gateway = await startGateway(t, {
        env: { NODE_ENV: environment, ...HOSTS, BACKEND_URL: 'http://127.0.0.1:1' }
      })

      const response = await gateway.send('/api/zones')

      t.equal(response.status, 502)
      t.equal(response.code, 'BACKEND_UNREACHABLE')
      t.match(response.headers, expected['strict-transport-security'] === undefined ? SAME_IN_BOTH : expected)
    })

    t.test(`the response to a malformed HEAD has the security headers and no body in ${environment}`, async (t) => {
      const { url } = await startGateway(t, { env: { NODE_ENV: environment, ...HOSTS } })
      const response = await sendRaw(url, 'HEAD /api/\xe9 HTTP/1.1\r\nHost: x\r\n\r\n')
      t.equal(response.status, 400)
      t.equal(response.headers['x-frame-options'], 'DENY')
      t.equal(response.body, '')
    })

    t.test(
      `the response to a malformed request after a valid one has the security headers in ${environment}`,
      async (t) => {
        const { url } = await startGateway(t, { env: { NODE_ENV: environment, ...HOSTS } })
        const socket = connect(Number(new URL(url).port), '127.0.0.1')
        let text = ''
        socket.setEncoding('latin1').on('data', (chunk) => {
          text += chunk
        })
        socket.write('GET /api/health HTTP/1.1\r\nHost: x\r\n\r\n')
        while (!text.includes('"ok"')) await once(socket, 'data')
        socket.write('nonsense\r\n\r\n')
        await once(socket, 'close')

        const second = text.slice(text.lastIndexOf('HTTP/1.1 '))
        t.match(second, /^HTTP\/1\.1 400 /)
        t.match(second, /\r\nx-frame-options: DENY\r\n/)
        t.match(second, /"code":"MALFORMED_REQUEST"/)
      }
    )
  })
}

t.test('CSP_MODE', async (t) => {
  const HARDENED = [
    "default-src 'self'",
    "script-src 'self' 'unsafe-inline' cdn.example.com",
    "style-src 'self' 'unsafe-inline' cdn.example.com fonts.example.com",
    "img-src 'self' data: blob: *.tiles.example.com https://blobs.example.net",
    "font-src 'self' data: fonts.example.net",
    "connect-src 'self' ws://localhost:8100",
    "base-uri 'none'",
    "form-action 'self'",
    "frame-ancestors 'none'",
    'report-uri /csp-reports'
  ].join(';')
  const STANDARD = ENVIRONMENTS.production['content-security-policy']
  const policiesOf = async (CSP_MODE: string): Promise<unknown[]> => {
    const { send, url } = await startGateway(t, { env: { CSP_MODE, ...HOSTS } })
    const responses = [await send('/api/zones'), await send('/nowhere'), await sendRaw(url, 'nonsense\r\n\r\n')]
    const policies = responses.map(({ headers }) => [
      headers['content-security-policy'],
      headers['content-security-policy-report-only']
    ])
    for (const each of policies) t.same(each, policies[0], 'every kind of response has the same policies')
    return policies[0] ?? []
  }

  t.test('the mode standard is the default', async (t) => {
    t.same(await policiesOf('standard'), [STANDARD, undefined])
  })
  t.test('the mode hardened restricts base, forms and connections', async (t) => {
    t.same(await policiesOf('hardened'), [HARDENED, undefined])
  })
  t.test('the mode report-only enforces the standard policy and reports on the hardened one', async (t) => {
    t.same(await policiesOf('report-only'), [STANDARD, HARDENED])
  })
})

t.test('CSP_FRAME_ANCESTORS', async (t) => {
  const CASES: readonly (readonly [hosts: string, ancestors: string, frameOptions: string | undefined])[] = [
    ['', "'none'", 'DENY'],
    ['self', "'self'", 'SAMEORIGIN'],
    ['https://portal.example.com', 'https://portal.example.com', undefined],
    ['self,*.example.com', "'self' *.example.com", undefined]
  ]
  for (const [hosts, ancestors, frameOptions] of CASES) {
    t.test(`pages of ${hosts || 'no host'} may show the web application in a frame`, async (t) => {
      const { send } = await startGateway(t, { env: { CSP_FRAME_ANCESTORS: hosts } })
      const { headers } = await send('/api/zones')
      t.ok(String(headers['content-security-policy']).endsWith(`;frame-ancestors ${ancestors}`))
      t.equal(headers['x-frame-options'], frameOptions)
    })
  }
})
