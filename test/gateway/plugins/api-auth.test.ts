import { createHmac } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import t from 'tap'
import { createAppToken, userDetails } from '../../../src/shared/app-token.js'
import { API_SECRET, apiKey, browserHeaders, startGateway, tokenOf } from '../../helper/gateway.js'

const WRITE_METHODS = ['POST', 'PUT', 'PATCH', 'DELETE'] as const
const METHODS = ['GET', 'HEAD', 'OPTIONS', ...WRITE_METHODS] as const

const PUBLIC = ['/api/auth/a', '/api/auth/a/b', '/api/health/more']
const STRICT = ['/api/audit', '/api/audit/unknown', '/api/audit/export/a/b']
const ADMIN = ['/api/admin', '/api/admin/users', '/api/admin/a/b/c']
const OTHER = [
  '/api/things',
  '/api/things/7',
  '/api/administrators',
  '/api/admin-x',
  '/api/audits',
  '/api/authx',
  '/api/healthy',
  '/api/x/admin/y',
  '/api/constructor'
]

const pair = (token: string | null) => browserHeaders(token)

t.test('api auth in production', async (t) => {
  // One gateway for the whole table, because requests leave no state. There are fewer login attempts than the limit.
  const gateway = await startGateway(t, { env: { GATEWAY_AUTH_PATHS: '/api/auth/a' } })
  const { send, backend } = gateway

  const request = async (method: string, path: string, token: string | null) => {
    backend.requests.length = 0
    const { status, headers } = await send(path, { method, headers: pair(token) })
    return { status, code: headers['x-gateway-error'], reached: backend.requests.length }
  }
  const passed = { status: 200, code: undefined, reached: 1 }
  const unauthenticated = { status: 401, code: 'UNAUTHENTICATED', reached: 0 }
  const forbidden = { status: 403, code: 'FORBIDDEN', reached: 0 }

  for (const path of PUBLIC) {
    for (const method of METHODS.filter((method) => method !== 'POST')) {
      t.test(`${method} ${path} needs no token`, async (t) => {
        t.match(await request(method, path, null), passed)
      })
    }
  }

  t.test('a POST under /api/auth/ needs no token', async (t) => {
    t.match(await request('POST', '/api/auth/a', null), passed)
    t.match(await request('POST', '/api/auth/a/b', 'not.a.token'), passed)
  })

  for (const method of METHODS) {
    t.test(`${method} /api/dev-login is 404 without a token in production`, async (t) => {
      t.match(await request(method, '/api/dev-login', null), { status: 404, code: 'NOT_FOUND', reached: 0 })
    })
  }

  for (const path of [...STRICT, ...ADMIN]) {
    for (const method of METHODS) {
      t.test(`${method} ${path} without a token is rejected`, async (t) => {
        t.match(await request(method, path, null), unauthenticated)
      })
    }
  }

  for (const path of STRICT) {
    for (const method of METHODS) {
      t.test(`${method} ${path} with any valid token is forwarded`, async (t) => {
        t.match(await request(method, path, tokenOf('operator')), passed)
      })
    }
  }

  for (const path of ADMIN) {
    for (const method of METHODS) {
      t.test(`${method} ${path} is forwarded for admins only`, async (t) => {
        t.match(await request(method, path, tokenOf('operator')), forbidden)
        t.match(await request(method, path, tokenOf('admin')), passed)
      })
    }
  }

  for (const role of ['Admin', 'ADMIN', 'admin ', '', ['admin'], { admin: true }, true, 1, null]) {
    t.test(`the role ${JSON.stringify(role)} is not an admin`, async (t) => {
      t.match(await request('GET', '/api/admin/users', tokenOf('x', { role })), forbidden)
    })
  }

  for (const path of OTHER) {
    for (const method of METHODS) {
      const checked = WRITE_METHODS.some((each) => each === method)
      t.test(`${method} ${path} without a token is ${checked ? 'rejected' : 'forwarded'}`, async (t) => {
        t.match(await request(method, path, null), checked ? unauthenticated : passed)
      })
    }
    t.test(`a write request of ${path} with a valid token is forwarded`, async (t) => {
      for (const method of WRITE_METHODS) t.match(await request(method, path, tokenOf('operator')), passed)
    })
  }

  for (const method of WRITE_METHODS) {
    t.test(`an Authorization header does not replace the cookie for ${method}`, async (t) => {
      backend.requests.length = 0
      const headers = { ...pair(null), authorization: `Bearer ${tokenOf('admin')}` }
      t.equal((await send('/api/things', { method, headers })).code, 'UNAUTHENTICATED')
      t.same(backend.requests, [])
    })
  }

  t.test('a token in the legacy format is accepted', async (t) => {
    const token = createAppToken({ userId: 7, role: 'admin' }, apiKey, { format: 'legacy', lifetimeSeconds: 60 })
    t.match(await request('GET', '/api/admin/users', encodeURIComponent(token)), passed)
  })

  t.test('a token that is percent-encoded once is accepted', async (t) => {
    const token = tokenOf('operator').replaceAll('.', '%2E')
    t.match(await request('POST', '/api/things', token), passed)
    t.match(await request('POST', '/api/things', token.replaceAll('%', '%25')), unauthenticated)
  })

  t.test('expired and invalid tokens have different error codes, in both formats', async (t) => {
    for (const format of ['jwt', 'legacy'] as const) {
      const token = createAppToken({ userId: 7 }, apiKey, { format, lifetimeSeconds: 60, nowMs: Date.now() - 61_000 })
      t.match(await request('POST', '/api/things', encodeURIComponent(token)), {
        status: 401,
        code: 'TOKEN_EXPIRED',
        reached: 0
      })
    }
  })

  t.test('WWW-Authenticate is sent with 401 and not with 403', async (t) => {
    const unknown = await send('/api/admin')
    t.match(unknown.headers['www-authenticate'], /^Bearer/)
    const known = await send('/api/admin', { headers: pair(tokenOf('operator')) })
    t.equal(known.headers['www-authenticate'], undefined)
  })
})

// Signed with the right secret where possible, so that only the form is wrong.
const nowSeconds = Math.floor(Date.now() / 1000)
const base64url = (value: unknown): string =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url')
const mac = (text: string, hash = 'sha256', secret = API_SECRET) => createHmac(hash, secret).update(text)

const jwt = (header: unknown, payload: unknown, hash = 'sha256', secret = API_SECRET): string => {
  const signed = `${base64url(header)}.${base64url(payload)}`
  return `${signed}.${mac(signed, hash, secret).digest('base64url')}`
}
const legacy = (payload: unknown, change: (token: string) => string = (token) => token): string => {
  const data = Buffer.from(JSON.stringify(payload)).toString('base64')
  return change(`${data}.${mac(data).digest('hex')}`)
}

const HS256 = { alg: 'HS256', typ: 'JWT' }
const claims = { userId: 1, role: 'admin', exp: nowSeconds + 3600 }
const validToken = jwt(HS256, claims)
const unsigned = validToken.slice(0, validToken.lastIndexOf('.') + 1)

/** The last character of 32 bytes in base64url has two spare bits: another character decodes to the same bytes. */
const reEncoded = (token: string): string => {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
  const last = alphabet.indexOf(token.slice(-1))
  return token.slice(0, -1) + alphabet[last ^ 1]
}

const HOSTILE: readonly (readonly [string, string])[] = [
  ['alg none without a signature', `${base64url({ alg: 'none' })}.${base64url(claims)}.`],
  ['alg none with our signature', jwt({ alg: 'none' }, claims)],
  ['alg nOnE', jwt({ alg: 'nOnE' }, claims)],
  ['alg HS384 with the right secret', jwt({ alg: 'HS384' }, claims, 'sha384')],
  ['alg HS512 with the right secret', jwt({ alg: 'HS512' }, claims, 'sha512')],
  ['alg RS256 signed with the secret as HMAC', jwt({ alg: 'RS256' }, claims)],
  ['alg in lower case', jwt({ alg: 'hs256' }, claims)],
  ['alg as a list', jwt({ alg: ['HS256'] }, claims)],
  ['no alg', jwt({ typ: 'JWT' }, claims)],
  ['a header that is no object', jwt('"HS256"', claims)],
  ['a critical header', jwt({ ...HS256, crit: ['exp'] }, claims)],
  ['an empty signature', unsigned],
  ['a truncated signature', validToken.slice(0, -2)],
  ['a re-encoded signature', reEncoded(validToken)],
  ['a padded signature', `${validToken}=`],
  [
    'a signature over another payload',
    `${base64url(HS256)}.${base64url({ ...claims, userId: 2 })}.${validToken.split('.')[2]}`
  ],
  ['a signature with another secret', jwt(HS256, claims, 'sha256', 'another-secret-of-a-relay-0123456789')],
  ['a fourth part', `${validToken}.x`],
  ['a leading dot', `.${validToken}`],
  ['a single part', base64url(claims)],
  ['no expiry', jwt(HS256, { userId: 1, role: 'admin' })],
  ['an expiry in milliseconds', jwt(HS256, { ...claims, exp: Date.now() + 3_600_000 })],
  ['an expiry that is text', jwt(HS256, { ...claims, exp: `${nowSeconds + 3600}` })],
  ['an expiry that is null', jwt(HS256, { ...claims, exp: null })],
  ['an nbf in the future', jwt(HS256, { ...claims, nbf: nowSeconds + 600 })],
  ['an iat in the future', jwt(HS256, { ...claims, iat: nowSeconds + 600 })],
  ['a list as payload', jwt(HS256, [claims])],
  ['text as payload', jwt(HS256, '"admin"')],
  ['null as payload', jwt(HS256, 'null')],
  ['broken JSON as payload', jwt(HS256, '{"role":"admin"')],
  ['nine thousand characters', jwt(HS256, { ...claims, pad: 'x'.repeat(9000) })],
  ['no expiry in the legacy format', legacy({ userId: 1, role: 'admin' })],
  ['an expiry in seconds in the legacy format', legacy(claims)],
  ['an expiry that is text in the legacy format', legacy({ ...claims, exp: `${Date.now() + 3_600_000}` })],
  [
    'a legacy signature in upper case',
    legacy({ ...claims, exp: Date.now() + 3_600_000 }, (token) => token.replace(/[^.]+$/, (hex) => hex.toUpperCase()))
  ],
  ['a truncated legacy signature', legacy({ ...claims, exp: Date.now() + 3_600_000 }, (token) => token.slice(0, -1))],
  ['a longer legacy signature', legacy({ ...claims, exp: Date.now() + 3_600_000 }, (token) => `${token}0`)],
  ['a list as payload in the legacy format', legacy([{ ...claims, exp: Date.now() + 3_600_000 }])],
  ['the value null', 'null'],
  ['the value undefined', 'undefined'],
  ['a line break in it', 'a%0d%0ax-evil:%201'],
  ['a second, different cookie', `${validToken}; auth_token=${tokenOf('admin')}`]
]

const UNUSUAL: [title: string, token: string][] = [
  ['a fractional exp', jwt(HS256, { ...claims, exp: nowSeconds + 3600.5 })],
  ['typ in lower case', jwt({ alg: 'HS256', typ: 'jwt' }, claims)],
  ['typ in mixed case', jwt({ alg: 'HS256', typ: 'Jwt' }, claims)],
  ['an nbf within the clock skew', jwt(HS256, { ...claims, nbf: nowSeconds + 50 })],
  ['a fractional exp in the legacy format', legacy({ ...claims, exp: Date.now() + 3_600_000.5 })]
]

t.test('api auth accepts', async (t) => {
  const { send, backend } = await startGateway(t)

  for (const [title, token] of UNUSUAL) {
    t.test(`api auth accepts a token with ${title}`, async (t) => {
      backend.requests.length = 0
      const response = await send('/api/admin/users', {
        headers: { cookie: `auth_token=${encodeURIComponent(token)}` }
      })
      t.equal(response.status, 200)
      t.equal(backend.requests.length, 1)
    })
  }
})

t.test('rejected tokens', async (t) => {
  const { send, backend, auditRecords } = await startGateway(t)

  for (const [title, token] of HOSTILE) {
    t.test(`api auth rejects a token with ${title}`, async (t) => {
      backend.requests.length = 0
      const cookie = token.includes(';') || token.includes('%') ? token : encodeURIComponent(token)
      const response = await send('/api/admin/users', { headers: { cookie: `auth_token=${cookie}` } })
      t.equal(response.status, 401)
      t.equal(response.code, 'UNAUTHENTICATED')
      t.same(backend.requests, [], 'nothing reached the backend')
    })
  }

  t.test('audit records of rejected tokens have no user', async (t) => {
    const records = await auditRecords()
    t.equal(records.length, HOSTILE.length)
    for (const record of records) t.match(record, { event: 'unauthorized_access', user: null, reason: /^token-/ })
  })

  t.test('the unmodified token is accepted', async (t) => {
    t.equal((await send('/api/admin/users', { headers: { cookie: `auth_token=${validToken}` } })).status, 200)
  })
})

t.test('the audit log', async (t) => {
  t.test('the audit record of a rejection has the user of a verified token', async (t) => {
    const { send, auditRecords } = await startGateway(t)
    const response = await send('/api/admin/users?secret=1', {
      method: 'DELETE',
      headers: { ...pair(tokenOf('operator')), 'user-agent': 'probe/1', 'x-request-id': 'req-7' }
    })
    t.equal(response.status, 403)
    const [record, ...others] = await auditRecords()
    t.same(others, [])
    t.match(record, {
      timestamp: /^\d{4}-\d\d-\d\dT/,
      event: 'forbidden_access',
      ip: '127.0.0.1',
      resource: '/api/admin/users',
      method: 'DELETE',
      result: 'denied',
      status: 403,
      reason: 'not-admin',
      user: { id: 'operator-1', email: 'operator@example.com', role: 'operator' },
      requestId: 'req-7',
      userAgent: 'probe/1'
    })
    t.notMatch(JSON.stringify(record), /secret|eyJ|t0ken/, 'no query, token or cookie')
  })

  t.test('the audit log does not contain the token in an onboarding path', async (t) => {
    const { send, auditRecords } = await startGateway(t)
    await send('/api/phone-beacon/s3cr3t-onboarding-token', { method: 'DELETE', headers: pair(null) })
    await send('/api/v1/phone-beacon/s3cr3t-onboarding-token', { method: 'DELETE', headers: pair(null) })
    t.match(await auditRecords(), [{ resource: '/api/phone-beacon/…' }, { resource: '/api/v1/phone-beacon/…' }])
  })

  t.test('the audit record has the user of an expired token', async (t) => {
    const { send, auditRecords } = await startGateway(t)
    const token = createAppToken({ userId: 7, email: 'a@b.c', role: 'operator' }, apiKey, {
      format: 'jwt',
      lifetimeSeconds: 60,
      nowMs: Date.now() - 61_000
    })
    await send('/api/things', { method: 'PUT', headers: pair(token) })
    t.match(await auditRecords(), [
      { event: 'unauthorized_access', reason: 'token-expired', user: { id: '7', email: 'a@b.c', role: 'operator' } }
    ])
  })

  t.test('the audit record of a rejection is one line with any headers', async (t) => {
    const { send, auditRecords } = await startGateway(t)
    const hostile = ['\u2028{"event":"x"}', '\u0085', 'a\tb', '"},{"', '\\n\\r', 'x'.repeat(5_000)]
    for (const agent of hostile) {
      await send('/api/admin', { headers: { 'user-agent': Buffer.from(agent).toString('latin1') } })
    }
    const records = await auditRecords()
    t.equal(records.length, hostile.length)
    for (const { userAgent } of records) t.ok(String(userAgent).length <= 256)
  })

  t.test('the audit record has the client address from a trusted proxy', async (t) => {
    const { send, auditRecords } = await startGateway(t, { env: { TRUST_PROXY: '127.0.0.0/8' } })
    await send('/api/admin', { headers: { 'x-forwarded-for': '198.51.100.9, 203.0.113.5:4711' } })
    t.match(await auditRecords(), [{ ip: '203.0.113.5' }])
  })

  t.test('the audit record ignores headers of an untrusted proxy', async (t) => {
    const { send, auditRecords } = await startGateway(t)
    await send('/api/admin', { headers: { 'x-forwarded-for': '203.0.113.5' } })
    t.match(await auditRecords(), [{ ip: '127.0.0.1' }])
  })
})

t.test('api auth in development', async (t) => {
  t.test('development requires no token', async (t) => {
    const { send, auditRecords } = await startGateway(t, { env: { NODE_ENV: 'development' } })
    for (const path of ['/api/admin', '/api/audit/unknown', '/api/things']) {
      t.equal((await send(path, { method: 'POST' })).status, 200)
      t.equal((await send(path, { headers: { cookie: 'auth_token=nonsense' } })).status, 200)
    }
    t.same(await auditRecords(), [])
  })

  for (const NODE_ENV of ['development', 'production']) {
    t.test(`claims of valid tokens only are attached to requests in ${NODE_ENV}`, async (t) => {
      const seen: unknown[] = []
      const extend = (app: FastifyInstance) =>
        void app.addHook('onResponse', async ({ auth }) => {
          seen.push(auth && userDetails(auth).id)
        })
      const { send } = await startGateway(t, { env: { NODE_ENV }, extend })

      for (const token of [tokenOf('operator'), reEncoded(validToken), 'null']) {
        t.equal((await send('/api/things', { headers: { cookie: `auth_token=${token}` } })).status, 200)
      }

      t.same(seen, ['operator-1', null, null])
    })
  }
})
