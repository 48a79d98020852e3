import t from 'tap'
import { CsrfTokens } from '../../../src/gateway/session/csrf-tokens.js'
import { API_SECRET, borrowGateway, browserHeaders, startGateway, tokenOf } from '../../helper/gateway.js'

const WRITE_METHODS = ['POST', 'PUT', 'PATCH', 'DELETE']
const READS = ['GET', 'HEAD', 'OPTIONS']
const PATH = '/api/things/7'

/** Signed in, with this pair of cookie and header. */
const withPair = (cookie: string | null, header: string | string[] | null) => ({
  cookie: `auth_token=${tokenOf('operator')}${cookie === null ? '' : `; csrf_token=${cookie}`}`,
  ...(header !== null && { 'x-csrf-token': header })
})

t.test('csrf', async (t) => {
  for (const method of WRITE_METHODS) {
    t.test(`a ${method} whose header equals the cookie is accepted`, async (t) => {
      const { send, backend } = await borrowGateway(t)
      const response = await send(PATH, { method, headers: withPair('abc', 'abc') })
      t.equal(response.status, 200)
      t.equal(backend.requests.length, 1)
    })

    const rejected: readonly (readonly [string, string | null, string | string[] | null])[] = [
      ['cookie and header differ', 'abc', 'abd'],
      ['the header is missing', 'abc', null],
      ['the cookie is missing', null, 'abc'],
      ['both are missing', null, null],
      ['both are empty', '', ''],
      ['both are empty in quotes', '""', ''],
      ['the header is only the beginning of the cookie', 'abcdef', 'abc'],
      ['the header differs in letter case', 'abc', 'ABC'],
      ['the header comes twice', 'abc', ['abc', 'abc']],
      ['the cookie comes twice with different values', 'abc; csrf_token=evil', 'evil']
    ]
    for (const [title, cookie, header] of rejected) {
      t.test(`a ${method} is rejected where ${title}`, async (t) => {
        const { send, backend } = await borrowGateway(t)
        const response = await send(PATH, { method, headers: withPair(cookie, header) })
        t.equal(response.status, 403)
        t.equal(response.code, 'CSRF_MISMATCH')
        t.same(backend.requests, [], 'nothing reached the backend')
      })
    }
  }

  for (const method of READS) {
    t.test(`a ${method} needs no CSRF token`, async (t) => {
      const { send, backend } = await borrowGateway(t)
      t.equal((await send(PATH, { method })).status, 200)
      t.equal(backend.requests.length, 1)
    })
  }

  for (const path of ['/api/auth/login', '/api/auth/backend-login']) {
    t.test(`${path} needs no CSRF token`, async (t) => {
      const { send, backend } = await startGateway(t)
      const headers = { 'content-type': 'application/json' }
      const body = '{"email":"a@example.com","password":"secret"}'
      t.equal((await send(path, { method: 'POST', headers, body })).status, 200)
      t.equal(backend.requests.length, 1)
    })
  }

  for (const path of ['/api/auth/csrf-token', '/api/health']) {
    t.test(`a POST to ${path} needs no CSRF token`, async (t) => {
      const { send } = await borrowGateway(t)
      t.not((await send(path, { method: 'POST' })).code, 'CSRF_MISMATCH')
    })
  }

  for (const path of ['/api/auth/logout', '/api/auth/unknown', '/api/health/ready', '/api/proxy/error-log']) {
    t.test(`a POST to ${path} needs a CSRF token`, async (t) => {
      const { send, backend } = await borrowGateway(t, { GATEWAY_AUTH_PATHS: '/api/auth/unknown' })
      t.equal((await send(path, { method: 'POST' })).code, 'CSRF_MISMATCH')
      t.same(backend.requests, [])
    })
  }

  t.test(
    'the CSRF check runs before authentication: a write request without any token is 403 and not audited',
    async (t) => {
      const { send, auditRecords } = await borrowGateway(t)
      t.equal((await send(PATH, { method: 'POST' })).code, 'CSRF_MISMATCH')
      t.same(await auditRecords(), [])
    }
  )

  t.test(
    'in development no token is required, and only pages of this machine and the own origin may write',
    async (t) => {
      const { send, backend } = await borrowGateway(t, { NODE_ENV: 'development' })
      const post = (headers: Record<string, string>) => send(PATH, { method: 'POST', headers })
      const LOOPBACK = [
        'http://localhost:5173',
        'https://127.0.0.1:8443',
        'http://127.1.2.3',
        'http://[::1]:1',
        'http://app.localhost:5173'
      ]
      t.equal((await post({})).status, 200)
      t.equal((await post({ host: 'app.example.com', origin: 'https://app.example.com' })).status, 200)
      for (const origin of LOOPBACK)
        t.equal((await post({ origin, 'sec-fetch-site': 'cross-site' })).status, 200, origin)
      t.equal(backend.requests.length, 2 + LOOPBACK.length)
      const FOREIGN = [
        'https://evil.example',
        'http://localhost.evil.example',
        'http://evillocalhost',
        'http://127.0.0.1.evil.example',
        'http://localhost:5173@evil.example',
        'null'
      ]
      for (const origin of FOREIGN) t.equal((await post({ origin })).code, 'ORIGIN_REFUSED', origin)
      t.equal((await post({ 'sec-fetch-site': 'cross-site' })).code, 'ORIGIN_REFUSED')
      t.equal(backend.requests.length, 2 + LOOPBACK.length)
      const production = await borrowGateway(t)
      const headers = { ...browserHeaders(), origin: 'http://localhost:5173' }
      t.equal((await production.send(PATH, { method: 'POST', headers })).code, 'ORIGIN_REFUSED')
    }
  )

  t.test('the CSRF token is not forwarded to the backend', async (t) => {
    const { send, backend } = await borrowGateway(t)
    await send(PATH, { method: 'POST', headers: browserHeaders() })
    t.equal(backend.requests[0]?.headers['x-csrf-token'], undefined)
    t.equal(backend.requests[0]?.headers.cookie, undefined)
  })
})

t.test('a cross-site write request', async (t) => {
  const env = { PUBLIC_URL: 'https://app.example.com/base', ALLOWED_ORIGINS: 'https://partner.example.org' }

  const rejected: readonly (readonly [string, Record<string, string>])[] = [
    ['Sec-Fetch-Site is cross-site', { 'sec-fetch-site': 'cross-site' }],
    [
      'Sec-Fetch-Site is cross-site, though Origin claims our own',
      { 'sec-fetch-site': 'cross-site', origin: 'https://app.example.com' }
    ],
    ['Origin is another site', { origin: 'https://evil.example' }],
    ['Origin is null', { origin: 'null' }],
    ['Origin is empty', { origin: '' }],
    ['Origin begins with the allowed one', { origin: 'https://app.example.com.evil.example' }],
    ['Origin has the allowed host as its user', { origin: 'https://app.example.com@evil.example' }],
    ['Origin has another port', { origin: 'https://app.example.com:8443' }],
    ['Origin is another subdomain', { origin: 'https://other.example.com', 'sec-fetch-site': 'same-site' }],
    ['Origin is the public host over plain HTTP', { origin: 'http://app.example.com' }],
    ["Origin has the other scheme's port", { host: 'gate.local:80', origin: 'https://gate.local' }],
    ['Origin has another scheme', { origin: 'ftp://app.example.com' }],
    ['Origin is garbage', { origin: 'app.example.com' }]
  ]
  for (const [title, headers] of rejected) {
    t.test(`a write request with valid tokens is rejected where ${title}`, async (t) => {
      const { send, backend } = await startGateway(t, { env })
      for (const path of [PATH, '/api/auth/login', '/api/auth/backend-login']) {
        const response = await send(path, { method: 'POST', headers: { ...browserHeaders(), ...headers } })
        t.equal(response.status, 403, path)
        t.equal(response.code, 'ORIGIN_REFUSED', path)
      }
      t.same(backend.requests, [])
    })
  }

  const passed: readonly (readonly [string, Record<string, string>])[] = [
    ['there is no Origin', {}],
    ['Origin is the public address', { origin: 'https://app.example.com', 'sec-fetch-site': 'same-origin' }],
    ['Origin is an allowed one', { origin: 'https://partner.example.org', 'sec-fetch-site': 'cross-site' }],
    ['Origin is an allowed one in capitals', { origin: 'HTTPS://Partner.Example.ORG' }],
    ['Origin is the public address with its port', { origin: 'https://app.example.com:443' }],
    ['Origin is an allowed one with its port', { origin: 'https://partner.example.org:443' }],
    ['Host has the port that Origin leaves out', { host: 'gate.local:443', origin: 'https://gate.local' }],
    ['Origin has the port that Host leaves out', { host: 'gate.local', origin: 'http://gate.local:80' }],
    ['Origin is the requested host', { host: 'gate.local:3000', origin: 'http://gate.local:3000' }],
    ['Sec-Fetch-Site is none', { 'sec-fetch-site': 'none' }]
  ]
  for (const [title, headers] of passed) {
    t.test(`a write request is not cross-site where ${title}`, async (t) => {
      const { send } = await borrowGateway(t, env)
      t.equal((await send(PATH, { method: 'POST', headers: { ...browserHeaders(), ...headers } })).status, 200)
    })
  }

  t.test(
    'a page of an allowed origin on another host can send no write request: neither by form nor by script',
    async (t) => {
      const { send, backend } = await borrowGateway(t, env)
      const origin = 'https://partner.example.org'
      const { 'x-csrf-token': _header, ...formHeaders } = browserHeaders()
      const form = { ...formHeaders, origin, 'content-type': 'application/x-www-form-urlencoded' }
      t.equal((await send(PATH, { method: 'POST', headers: form, body: 'name=a' })).code, 'CSRF_MISMATCH')

      const preflight = {
        origin,
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'x-csrf-token'
      }
      backend.respond = (_request, response) => response.setHeader('access-control-allow-origin', origin).end()
      const { headers } = await send(PATH, { method: 'OPTIONS', headers: preflight })
      t.equal(headers['access-control-allow-origin'], undefined)
    }
  )

  t.test('X-Forwarded-Host of an untrusted proxy does not change the expected origin', async (t) => {
    const { send } = await borrowGateway(t)
    const headers = { ...browserHeaders(), 'x-forwarded-host': 'evil.example', origin: 'https://evil.example' }
    t.equal((await send(PATH, { method: 'POST', headers })).code, 'ORIGIN_REFUSED')
  })

  t.test('X-Forwarded-Host of a trusted proxy sets the expected origin', async (t) => {
    const { send } = await borrowGateway(t, { TRUST_PROXY: 'loopback' })
    const headers = { ...browserHeaders(), 'x-forwarded-host': 'app.example.com', origin: 'https://app.example.com' }
    t.equal((await send(PATH, { method: 'POST', headers })).status, 200)
  })

  t.test('a cross-site GET is forwarded', async (t) => {
    const { send } = await borrowGateway(t)
    t.equal((await send(PATH, { headers: { 'sec-fetch-site': 'cross-site' } })).status, 200)
  })
})

t.test('CSRF_MODE=signed', async (t) => {
  const env = { CSRF_MODE: 'signed' }

  t.test('CSRF_MODE=signed accepts a token that this service issued', async (t) => {
    const { send } = await borrowGateway(t, env)
    const token = JSON.parse((await send('/api/auth/csrf-token')).body).csrfToken
    t.equal((await send(PATH, { method: 'POST', headers: withPair(token, token) })).status, 200)
  })

  const valid = new CsrfTokens(API_SECRET).issue()
  const yesterday = new CsrfTokens(API_SECRET, () => Date.now() - 25 * 3600_000).issue()
  const tomorrow = new CsrfTokens(API_SECRET, () => Date.now() + 3600_000).issue()
  const foreign = new CsrfTokens(`${API_SECRET}!`).issue()
  const rejected: readonly (readonly [string, string])[] = [
    ['an equal pair that the gateway did not issue', 'abc'],
    ['a token signed with another secret', foreign],
    ['a token that is too old', yesterday],
    ['a token from the future', tomorrow],
    ['a token whose date was changed', valid.replace(/\.([0-9a-z]+)\.([^.]+)$/, '.zzzzzz.$2')],
    [
      'a token whose random part was changed',
      valid.replace(/^v1\.(.)/, (_, first) => `v1.${first === '-' ? '_' : '-'}`)
    ],
    ['a token without its signature', valid.slice(0, valid.lastIndexOf('.'))],
    ['a token with a cut signature', valid.slice(0, -1)],
    ['a token with something behind it', `${valid}.x`]
  ]
  for (const [title, token] of rejected) {
    t.test(`CSRF_MODE=signed rejects ${title}`, async (t) => {
      const { send, backend } = await borrowGateway(t, env)
      t.equal((await send(PATH, { method: 'POST', headers: withPair(token, token) })).code, 'CSRF_MISMATCH')
      t.same(backend.requests, [])
    })
  }
})

t.test('GET /api/auth/csrf-token', async (t) => {
  t.test('the csrf_token cookie has the returned token and is readable by scripts', async (t) => {
    const { send } = await borrowGateway(t)
    const response = await send('/api/auth/csrf-token')
    const { success, csrfToken } = JSON.parse(response.body)
    t.equal(response.status, 200)
    t.equal(success, true)
    t.same(response.headers['set-cookie'], [`csrf_token=${csrfToken}; Max-Age=86400; Path=/; Secure; SameSite=Lax`])
    t.equal(response.headers['cache-control'], 'no-store')
  })

  t.test('the csrf_token cookie is not Secure with COOKIE_SECURE=false', async (t) => {
    const { send } = await borrowGateway(t, { COOKIE_SECURE: 'false' })
    t.notMatch((await send('/api/auth/csrf-token')).headers['set-cookie']?.[0], /Secure/)
  })

  t.test('a valid CSRF token is returned again, by other instances too', async (t) => {
    const one = await startGateway(t)
    const other = await startGateway(t)
    const { csrfToken } = JSON.parse((await one.send('/api/auth/csrf-token')).body)
    const again = await other.send('/api/auth/csrf-token', { headers: { cookie: `csrf_token=${csrfToken}` } })
    t.equal(JSON.parse(again.body).csrfToken, csrfToken)
  })

  for (const cookie of ['csrf_token=planted', 'csrf_token=', 'csrf_token=v1.a.b.c']) {
    t.test(`the CSRF token replaces the cookie ${cookie}`, async (t) => {
      const { send } = await borrowGateway(t)
      const { csrfToken } = JSON.parse((await send('/api/auth/csrf-token', { headers: { cookie } })).body)
      t.match(csrfToken, /^v1\.[\w-]{32}\.[0-9a-z]+\.[\w-]{43}$/)
    })
  }

  t.test('every browser gets a different CSRF token', async (t) => {
    const { send } = await borrowGateway(t)
    const responses = await Promise.all(Array.from({ length: 50 }, () => send('/api/auth/csrf-token')))
    t.equal(new Set(responses.map(({ body }) => JSON.parse(body).csrfToken)).size, 50)
  })
})
