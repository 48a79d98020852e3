import type { OutgoingHttpHeaders } from 'node:http'
import t from 'tap'
import { browserHeaders, startGateway, type TestGateway } from '../../helper/gateway.js'
import { type HttpResponse, sendRaw } from '../../helper/http.js'

/** One sign-in attempt with the headers of a proxy. */
const login = ({ send }: TestGateway, headers: OutgoingHttpHeaders = {}): Promise<HttpResponse> =>
  send('/api/auth/login', {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: '{"email":"ada@example.com","password":"a guess"}'
  })

const attempt = (gateway: TestGateway, from?: string): Promise<HttpResponse> =>
  login(gateway, from === undefined ? {} : { 'x-forwarded-for': from })

const attempts = async (gateway: TestGateway, count: number, from?: string): Promise<HttpResponse[]> => {
  const responses: HttpResponse[] = []
  while (responses.length < count) responses.push(await attempt(gateway, from))
  return responses
}

const statuses = (responses: readonly HttpResponse[]): number[] => responses.map(({ status }) => status)

const remaining = ({ headers }: HttpResponse): unknown => headers['x-ratelimit-remaining']

t.test('the login limit', async (t) => {
  t.test('five attempts pass, and each response has the remaining number', async (t) => {
    const gateway = await startGateway(t)

    const responses = await attempts(gateway, 5)

    t.same(statuses(responses), [200, 200, 200, 200, 200])
    t.same(responses.map(remaining), ['4', '3', '2', '1', '0'])
    for (const { headers } of responses) {
      t.equal(headers['x-ratelimit-limit'], '5')
      t.match(headers['x-ratelimit-reset'], /^[1-9]\d{0,2}$/)
      t.ok(Number(headers['x-ratelimit-reset']) <= 900, 'seconds until the window ends')
      t.equal(headers['retry-after'], undefined)
    }
    t.equal(gateway.backend.requests.length, 5)
  })

  t.test('the sixth attempt is rejected and does not reach the backend', async (t) => {
    const gateway = await startGateway(t)
    await attempts(gateway, 5)
    gateway.backend.requests.length = 0

    const response = await attempt(gateway)

    t.equal(response.status, 429)
    t.match(response.json(), {
      success: false,
      error: { code: 'RATE_LIMITED' },
      requestId: response.headers['x-request-id']
    })
    t.equal(response.headers['x-ratelimit-limit'], '5')
    t.equal(remaining(response), '0')
    t.match(response.headers['retry-after'], /^[1-9]\d{0,2}$/)
    t.equal(response.headers['retry-after'], response.headers['x-ratelimit-reset'])
    t.ok(Number(response.headers['retry-after']) <= 900)
    t.same(gateway.backend.requests, [])
  })

  t.test('further attempts are rejected too', async (t) => {
    const gateway = await startGateway(t)
    await attempts(gateway, 5)

    t.same(statuses(await attempts(gateway, 5)), [429, 429, 429, 429, 429])
    t.equal(gateway.backend.requests.length, 5)
  })

  t.test('five of twenty concurrent attempts pass', async (t) => {
    const gateway = await startGateway(t)

    const responses = await Promise.all(Array.from({ length: 20 }, () => attempt(gateway)))

    t.equal(statuses(responses).filter((status) => status === 200).length, 5)
    t.equal(statuses(responses).filter((status) => status === 429).length, 15)
    t.equal(gateway.backend.requests.length, 5)
  })

  t.test('attempts that the backend rejects are counted', async (t) => {
    const gateway = await startGateway(t)
    gateway.backend.respond = (_request, response) => response.writeHead(401).end('{}')

    t.same(statuses(await attempts(gateway, 6)), [401, 401, 401, 401, 401, 429])
  })

  t.test('an attempt is rejected before its body has arrived', async (t) => {
    const gateway = await startGateway(t)
    await attempts(gateway, 5)

    const head = `POST /api/auth/login HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\nConnection: close\r\n\r\n`
    const response = await sendRaw(gateway.url, head)

    t.equal(response.status, 429)
  })

  t.test('attempts are not limited in development', async (t) => {
    const gateway = await startGateway(t, { env: { NODE_ENV: 'development' } })

    const responses = await attempts(gateway, 8)

    t.same(statuses(responses), Array(8).fill(200))
    t.same(responses.map(remaining), Array(8).fill(undefined))
  })
})

t.test('LOGIN_LIMIT_MAX and LOGIN_LIMIT_WINDOW_S set the login limit', async (t) => {
  const gateway = await startGateway(t, { env: { LOGIN_LIMIT_MAX: '2', LOGIN_LIMIT_WINDOW_S: '60' } })

  const responses = await attempts(gateway, 3)

  t.same(statuses(responses), [200, 200, 429])
  t.same(responses.map(remaining), ['1', '0', '0'])
  for (const { headers } of responses) {
    t.equal(headers['x-ratelimit-limit'], '2')
    t.ok(Number(headers['x-ratelimit-reset']) <= 60)
  }
})

t.test('a limited address can still sign out', async (t) => {
  const gateway = await startGateway(t)
  await attempts(gateway, 20)
  const response = await gateway.send('/api/auth/logout', { method: 'POST', headers: browserHeaders() })
  t.equal(response.status, 200)
  t.match(response.headers['set-cookie']?.join(), /auth_token=; Max-Age=0/)
})

t.test('shared count', async (t) => {
  t.test('all paths under /api/auth/ share one count', async (t) => {
    const { send } = await startGateway(t, { env: { GATEWAY_AUTH_PATHS: '/api/auth/unknown' } })
    const post = (path: string): Promise<HttpResponse> => send(path, { method: 'POST', headers: browserHeaders() })

    t.equal(remaining(await post('/api/auth/login')), '4')
    t.equal(remaining(await post('/api/auth/backend-login')), '3')
    t.equal(remaining(await post('/api/auth/unknown')), '2')
    t.equal(remaining(await post('/api/auth/login?next=/floors')), '1')
    t.equal(remaining(await post('/api/auth/unknown/x')), '0')

    for (const path of ['/api/auth/login', '/api/auth/backend-login', '/api/auth/unknown/y'])
      t.equal((await post(path)).code, 'RATE_LIMITED', path)
  })

  t.test('all connections of an address share one count', async (t) => {
    const gateway = await startGateway(t, { env: { GATEWAY_AUTH_PATHS: '/api/auth/unknown' } })
    const pair = 'Cookie: csrf_token=t0ken\r\nX-CSRF-Token: t0ken\r\n'
    const head = `POST /api/auth/unknown HTTP/1.1\r\nHost: x\r\n${pair}Content-Length: 0\r\n`
    await sendRaw(gateway.url, [...Array(4).fill(`${head}\r\n`), `${head}Connection: close\r\n\r\n`])
    t.equal(gateway.backend.requests.length, 5, 'five on one connection')

    t.equal((await attempt(gateway)).status, 429)
  })
})

t.test('requests that are not counted', async (t) => {
  for (const method of ['GET', 'HEAD', 'OPTIONS', 'PUT', 'PATCH', 'DELETE']) {
    t.test(`${method} requests under /api/auth/ are not counted`, async (t) => {
      const gateway = await startGateway(t, { env: { GATEWAY_AUTH_PATHS: '/api/auth/profile' } })

      for (let time = 0; time < 6; time++) {
        const response = await gateway.send('/api/auth/profile', { method, headers: browserHeaders() })
        t.equal(response.status, 200)
        t.equal(remaining(response), undefined)
      }

      t.equal(remaining(await attempt(gateway)), '4')
    })
  }

  for (const path of [
    '/api/auth/logout',
    '/api/unknown',
    '/api/unknown/auth/login',
    '/api/authors/7',
    '/api/auth-providers/login'
  ]) {
    t.test(`POST ${path} is not counted`, async (t) => {
      const gateway = await startGateway(t)

      for (let time = 0; time < 6; time++) {
        const response = await gateway.send(path, { method: 'POST', headers: browserHeaders() })
        t.equal(response.status, 200)
        t.equal(remaining(response), undefined)
      }

      t.equal(remaining(await attempt(gateway)), '4')
    })
  }

  for (const headers of [{ origin: 'https://evil.example' }, { 'sec-fetch-site': 'cross-site' }, { origin: 'null' }]) {
    t.test(`attempts of a foreign page are rejected and not counted: ${JSON.stringify(headers)}`, async (t) => {
      const gateway = await startGateway(t)
      for (let time = 0; time < 6; time++) t.equal((await login(gateway, headers)).code, 'ORIGIN_REFUSED')
      t.same(gateway.backend.requests, [])
      t.equal(remaining(await attempt(gateway)), '4')
    })
  }

  t.test('other requests of a limited address pass', async (t) => {
    const gateway = await startGateway(t)
    await attempts(gateway, 6)

    t.equal((await gateway.send('/api/auth/csrf-token')).status, 200)
    t.equal((await gateway.send('/api/auth/csrf-token', { method: 'POST' })).code, 'METHOD_NOT_ALLOWED')
    t.equal((await gateway.send('/api/auth/logout', { method: 'POST', headers: browserHeaders() })).status, 200)
    t.equal((await gateway.send('/api/unknown', { method: 'POST', headers: browserHeaders() })).status, 200)
  })
})

t.test('order of the login limit', async (t) => {
  t.test('the login limit runs before the CSRF check', async (t) => {
    const { send } = await startGateway(t, { env: { GATEWAY_AUTH_PATHS: '/api/auth/other' } })
    const responses: HttpResponse[] = []
    for (let time = 0; time < 6; time++) responses.push(await send('/api/auth/other', { method: 'POST' }))

    t.same(statuses(responses), [403, 403, 403, 403, 403, 429])
    t.same(
      responses.map(({ code }) => code),
      [...Array(5).fill('CSRF_MISMATCH'), 'RATE_LIMITED']
    )
    t.same(responses.map(remaining), ['4', '3', '2', '1', '0', '0'], 'each was counted before it was refused')
  })

  t.test('the login limit runs after the security headers', async (t) => {
    const gateway = await startGateway(t)
    await attempts(gateway, 5)

    const { status, headers } = await attempt(gateway)

    t.equal(status, 429)
    t.equal(headers['x-frame-options'], 'DENY')
    t.match(headers['content-security-policy'], /default-src 'self'/)
  })
})

t.test('untrusted proxy headers', async (t) => {
  const unbelieved: [trusted: string, header: string, title: string][] = [
    ['', 'x-forwarded-for', 'when no proxy is trusted'],
    ['', 'x-real-ip', 'when no proxy is trusted'],
    ['', 'forwarded', 'when no proxy is trusted'],
    ['203.0.113.0/24', 'x-forwarded-for', 'when the peer is outside the trusted range'],
    ['127.0.0.2, ::1', 'x-forwarded-for', 'when the peer is none of the trusted addresses'],
    ['loopback', 'x-real-ip', 'even from a trusted proxy'],
    ['loopback', 'x-client-ip', 'even from a trusted proxy'],
    ['loopback', 'true-client-ip', 'even from a trusted proxy']
  ]
  for (const [trusted, header, title] of unbelieved) {
    t.test(`the login limit ignores ${header} ${title}`, async (t) => {
      const gateway = await startGateway(t, { env: { TRUST_PROXY: trusted } })
      const responses: HttpResponse[] = []

      for (let host = 1; host <= 6; host++) {
        const address = `203.0.113.${host}`
        responses.push(await login(gateway, { [header]: header === 'forwarded' ? `for=${address}` : address }))
      }

      t.same(statuses(responses), [200, 200, 200, 200, 200, 429])
    })
  }
})

t.test('trusted proxy', async (t) => {
  const env = { TRUST_PROXY: 'loopback, 10.0.0.0/8' }

  t.test('each client behind a trusted proxy has its own count', async (t) => {
    const gateway = await startGateway(t, { env })

    t.same(statuses(await attempts(gateway, 6, '203.0.113.1')), [200, 200, 200, 200, 200, 429])
    t.same(statuses(await attempts(gateway, 6, '203.0.113.2')), [200, 200, 200, 200, 200, 429])
  })

  const together: [one: string | undefined, other: string | undefined, title: string][] = [
    ['203.0.113.1', '203.0.113.1', 'the same address'],
    [
      '198.51.100.1, 203.0.113.1',
      '198.51.100.2, 203.0.113.1',
      'what a client wrote before the proxy added its address'
    ],
    ['10.0.0.1, 203.0.113.1', '10.0.0.2, 203.0.113.1', 'what a client wrote to look like a trusted proxy'],
    ['unknown, 203.0.113.1', '203.0.113.1', 'garbage that a client wrote before'],
    ['203.0.113.1', '203.0.113.1, 10.1.2.3', 'the same client by way of another trusted proxy'],
    ['203.0.113.1', '203.0.113.1, 10.1.2.3:443, [::1]:80', 'trusted proxies that are named with their ports'],
    ['203.0.113.1, 192.0.2.9', '203.0.113.2, 192.0.2.9', 'all that comes from a proxy that is not trusted'],
    ['203.0.113.1', '203.0.113.1, ,', 'entries that are empty'],
    ['203.0.113.1:1024', '203.0.113.1:65535', 'ports'],
    ['203.0.113.1', '[203.0.113.1]:443', 'brackets around IPv4'],
    ['2001:db8::1', '[2001:db8::1]', 'brackets'],
    ['[2001:db8::1]:1024', '[2001:db8::1]:1025', 'brackets and ports'],
    ['2001:db8:0:1::1', '2001:db8:0:1:ffff:ffff:ffff:ffff', 'the whole of one /64'],
    ['2001:db8:0:1::1', '2001:0DB8:0000:0001:0:0:0:1', 'another spelling of an IPv6 address'],
    ['fe80::1%eth0', 'fe80::1%eth1', 'zones'],
    ['203.0.113.1', '::ffff:203.0.113.1', 'IPv4 on a dual-stack socket'],
    ['203.0.113.1', '[::ffff:203.0.113.1]:443', 'the same with brackets and a port'],
    ['203.0.113.1', '::ffff:cb00:7101', 'the same in hexadecimal'],
    ['203.0.113.1', '0:0:0:0:0:FFFF:203.0.113.1', 'the same in full length'],
    ['unknown', '_hidden', 'clients that the proxy does not name'],
    ['unknown', undefined, 'those and the proxy itself'],
    ['203.0.113.1, unknown', '203.0.113.2, unknown', 'what stands before garbage'],
    ['', undefined, 'an empty header and none']
  ]
  for (const [one, other, title] of together) {
    t.test(`${one} and ${other} share a count: ${title}`, async (t) => {
      const gateway = await startGateway(t, { env })

      t.equal(remaining(await attempt(gateway, one)), '4')
      t.equal(remaining(await attempt(gateway, other)), '3')
    })
  }

  const apart: [one: string, other: string | undefined, title: string][] = [
    ['203.0.113.1', '203.0.113.2', 'two addresses'],
    ['203.0.113.1', undefined, 'a client and the proxy itself'],
    ['203.0.113.1, 10.1.2.3', '203.0.113.2, 10.1.2.3', 'two clients of a proxy behind the proxy'],
    ['198.51.100.1, 203.0.113.1', '198.51.100.1, 203.0.113.2', 'two clients that wrote the same before'],
    ['203.0.113.1:443', '203.0.113.2:443', 'two addresses with the same port'],
    ['2001:db8:0:1::1', '2001:db8:0:2::1', 'two networks of /64'],
    ['2001:db8:0:1:ffff:ffff:ffff:ffff', '2001:db8:0:2::', 'the last address of one /64 and the first of the next'],
    ['::ffff:203.0.113.1', '::ffff:203.0.113.2', 'two IPv4 addresses on a dual-stack socket'],
    ['::ffff:cb00:7101', '::ffff:cb00:7102', 'the same in hexadecimal'],
    ['10.0.0.1', '10.0.0.2', 'two trusted addresses that are themselves the client']
  ]
  for (const [one, other, title] of apart) {
    t.test(`${one} and ${other} have separate counts: ${title}`, async (t) => {
      const gateway = await startGateway(t, { env })

      t.equal(remaining(await attempt(gateway, one)), '4')
      t.equal(remaining(await attempt(gateway, other)), '4')
    })
  }

  t.test('several X-Forwarded-For lines are read as one list', async (t) => {
    const gateway = await startGateway(t, { env })

    t.equal(remaining(await login(gateway, { 'x-forwarded-for': ['198.51.100.1', '203.0.113.1'] })), '4')
    t.equal(remaining(await attempt(gateway, '203.0.113.1')), '3')
  })
})
