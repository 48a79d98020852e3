import { once } from 'node:events'
import type { OutgoingHttpHeaders, ServerResponse } from 'node:http'
import { gzipSync } from 'node:zlib'
import t, { type Test } from 'tap'
import { createAppToken } from '../../../src/shared/app-token.js'
import { secretKey } from '../../../src/shared/jwt.js'
import { eventually } from '../../helper/eventually.js'
import { browse } from '../../helper/exact-http.js'
import { apiKey, browserHeaders, startGateway, type TestGateway, tokenOf } from '../../helper/gateway.js'
import type { HttpResponse } from '../../helper/http.js'
import { MIB } from '../../helper/large-bodies.js'
import type { RecordingBackend } from '../../helper/recording-backend.js'

const LOGIN_PATHS = ['/api/auth/login', '/api/auth/backend-login'] as const
const PASSWORD = 'correct horse'
const CREDENTIALS = `{"email":"ada@example.com","password":"${PASSWORD}"}`
const USER = { userId: 7, email: 'ada@example.com', displayName: 'Ada Example', role: 'operator' }
const WARN = 40
const ERROR = 50

const loginBody = (data: Readonly<Record<string, unknown>> = {}): string =>
  JSON.stringify({ success: true, data: { token: tokenOf('operator'), user: USER, expiresIn: 60, ...data } })

/** What the browser receives of it. */
const withoutToken = (body: string): string => body.replace(/"token":"[^"]*",/, '')

const respondWith = (
  backend: RecordingBackend,
  body: string | Buffer,
  status = 200,
  headers: OutgoingHttpHeaders = {}
): void => {
  backend.respond = (_request, response) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(body)
  }
}

/** Each login comes from a different address, so that the login limit does not apply. */
const TRUSTING = { env: { TRUST_PROXY: 'loopback' } }
let addresses = 0

const login = (gateway: TestGateway, path: string = LOGIN_PATHS[0], body = CREDENTIALS): Promise<HttpResponse> => {
  addresses += 1
  const headers = { 'content-type': 'application/json', 'x-forwarded-for': `10.0.${addresses >> 8}.${addresses & 255}` }
  return gateway.send(path, { method: 'POST', headers, body })
}

const logout = (gateway: TestGateway, headers: OutgoingHttpHeaders = browserHeaders()): Promise<HttpResponse> =>
  gateway.send('/api/auth/logout', { method: 'POST', headers })

interface SetCookie {
  readonly value: string
  readonly maxAge: number
  /** All attributes except the lifetime, which differs between runs. */
  readonly attributes: string
}

const cookiesOf = ({ headers }: HttpResponse): ReadonlyMap<string, SetCookie> => {
  const cookies = (headers['set-cookie'] ?? []).map((line) => {
    const [, name = '', value = '', age, attributes = ''] = /^([^=]+)=([^;]*); Max-Age=(-?\d+); (.*)$/.exec(line) ?? []
    return [name, { value, maxAge: Number(age), attributes }] as const
  })
  return new Map(cookies)
}

const decodedCookie = (response: HttpResponse, name: string): unknown =>
  JSON.parse(decodeURIComponent(cookiesOf(response).get(name)?.value ?? 'null'))

/** Stores cookies like a browser. */
const keepCookies = (jar: Map<string, string>, response: HttpResponse): void => {
  for (const [name, { value, maxAge }] of cookiesOf(response)) {
    if (maxAge > 0) jar.set(name, value)
    else jar.delete(name)
  }
}

const cookieHeader = (jar: ReadonlyMap<string, string>): string =>
  [...jar].map(([name, value]) => `${name}=${value}`).join('; ')

const logged = ({ logs }: TestGateway, level: number) => logs.filter((line) => line.level === level)

const close = async ({ server }: RecordingBackend): Promise<void> => {
  const closed = once(server, 'close')
  server.close()
  await closed
}

const SESSION_COOKIES = [
  'auth_token',
  'auth_user',
  'auth_permissions',
  'auth_token_expiry',
  'auth_via_oidc',
  'csrf_token',
  'oidc_exchange_failed'
]

const cleared = (attributes: string): string[] =>
  SESSION_COOKIES.map((name) => `${name}=; Max-Age=0; ${attributes}`).toSorted()

/** A legacy token whose base64 contains +, / and =. */
const legacyToken = (): string => {
  for (let padding = ''; ; padding += 'x') {
    const claims = { userId: 7, role: 'operator', odd: `${padding}???>>>` }
    const token = createAppToken(claims, apiKey, { format: 'legacy', lifetimeSeconds: 7200 })
    if (/\+.*\/|\/.*\+/.test(token) && token.includes('=')) return token
  }
}

for (const path of LOGIN_PATHS) {
  t.test(`POST ${path}`, async (t) => {
    t.test(`POST ${path} forwards the credentials to the same path`, async (t) => {
      const gateway = await startGateway(t, { env: { LOGIN_REQUEST_FIELDS: 'tenant' } })
      await login(gateway, `${path}?tenant=north`)
      const [request] = gateway.backend.requests
      t.equal(gateway.backend.requests.length, 1)
      t.equal(request?.method, 'POST')
      t.equal(request?.url, `${path}?tenant=north`)
      t.equal(request?.body, CREDENTIALS)
      t.equal(request?.headers['content-type'], 'application/json')
    })

    t.test(`POST ${path} forwards the validated body in its serialised form`, async (t) => {
      const gateway = await startGateway(t, { env: { LOGIN_REQUEST_FIELDS: 'otp' } })
      const response = await login(
        gateway,
        path,
        '{ "username": "ad\\u0061",\n  "password": "x", "rememberMe": true, "otp": "1" }\n'
      )
      t.equal(response.status, 200)
      t.equal(gateway.backend.requests[0]?.body, '{"username":"ada","password":"x","rememberMe":true,"otp":"1"}')
    })

    const rejected: readonly (readonly [string, string, string])[] = [
      ['without a password', '{"email":"ada@example.com"}', 'VALIDATION_FAILED'],
      ['with the field that only the server may send', CREDENTIALS.replace('}', ',"okta":true}'), 'VALIDATION_FAILED'],
      ['with that field in capitals', CREDENTIALS.replace('}', ',"OKTA":true}'), 'VALIDATION_FAILED'],
      ['with that field in look-alike letters', CREDENTIALS.replace('}', ',"o\u212ata":true}'), 'VALIDATION_FAILED'],
      ['with groups', CREDENTIALS.replace('}', ',"groups":["admins"]}'), 'VALIDATION_FAILED'],
      ['that is empty', '', 'VALIDATION_FAILED'],
      ['that is not JSON', 'email=ada', 'MALFORMED_BODY']
    ]
    const shared = await startGateway(t, TRUSTING)
    for (const [title, body, code] of rejected) {
      t.test(`POST ${path} rejects a body ${title}`, async (t) => {
        const response = await login(shared, path, body)
        t.equal(response.status, 400)
        t.equal(response.code, code)
        t.equal(response.headers['set-cookie'], undefined)
        t.strictSame(shared.backend.requests, [], 'nothing reached the backend')
      })
    }

    t.test(`POST ${path} sets the session cookies`, async (t) => {
      const gateway = await startGateway(t)
      const token = tokenOf('operator')
      respondWith(gateway.backend, loginBody({ token, user: { ...USER, permissions: ['zones.read', 'zones.write'] } }))
      const response = await login(gateway, path)
      t.equal(response.status, 200)

      const readable = 'Path=/; Secure; SameSite=Lax'
      const attributes = [...cookiesOf(response)].map(([name, cookie]) => [name, cookie.attributes])
      t.strictSame(Object.fromEntries(attributes), {
        auth_token: 'Path=/; HttpOnly; Secure; SameSite=Lax',
        auth_user: readable,
        auth_permissions: readable,
        auth_token_expiry: readable,
        auth_via_oidc: readable,
        oidc_exchange_failed: readable
      })
      t.equal(cookiesOf(response).get('auth_token')?.value, token)
      t.strictSame(decodedCookie(response, 'auth_user'), USER)
      t.strictSame(decodedCookie(response, 'auth_permissions'), ['zones.read', 'zones.write'])
    })

    t.test(`POST ${path} forwards a rejected login and sets no cookie`, async (t) => {
      const gateway = await startGateway(t)
      respondWith(gateway.backend, '{"success":false,"error":"bad credentials"}', 401)
      const response = await login(gateway, path)
      t.equal(response.status, 401)
      t.equal(response.body, '{"success":false,"error":"bad credentials"}')
      t.equal(response.headers['set-cookie'], undefined)
    })
  })
}

t.test('login cookies', async (t) => {
  const secure: readonly (readonly [string, Record<string, string>, boolean])[] = [
    ['login cookies are Secure in production', {}, true],
    ['login cookies are not Secure in production if COOKIE_SECURE=false', { COOKIE_SECURE: 'false' }, false],
    ['login cookies are not Secure in development', { NODE_ENV: 'development' }, false],
    [
      'login cookies are Secure in development if COOKIE_SECURE=true',
      { NODE_ENV: 'development', COOKIE_SECURE: 'true' },
      true
    ]
  ]
  for (const [title, env, expected] of secure) {
    t.test(title, async (t) => {
      const gateway = await startGateway(t, { env })
      respondWith(gateway.backend, loginBody())
      const cookies = [...cookiesOf(await login(gateway)).values()]
      t.equal(cookies.length, 6)
      for (const { attributes } of cookies) t.equal(attributes.split('; ').includes('Secure'), expected)
    })
  }

  t.test('cookie values are percent-encoded once', async (t) => {
    const gateway = await startGateway(t)
    const token = legacyToken()
    respondWith(gateway.backend, loginBody({ token, user: { ...USER, permissions: ['50%', 'a;b', 'c d'] } }))
    const cookies = cookiesOf(await login(gateway))
    t.equal(cookies.get('auth_token')?.value, encodeURIComponent(token))
    t.equal(cookies.get('auth_user')?.value, encodeURIComponent(JSON.stringify(USER)))
    t.equal(cookies.get('auth_permissions')?.value, encodeURIComponent('["50%","a;b","c d"]'))
  })

  const shared = await startGateway(t, TRUSTING)
  for (const displayName of ['Zoë Ångström', '日本 太郎', '👩‍🚒', 'a"; Domain=evil', 'line\r\nbreak', 'half \ud800']) {
    t.test(`the auth_user cookie has the name ${JSON.stringify(displayName)}`, async (t) => {
      respondWith(shared.backend, loginBody({ user: { ...USER, displayName } }))
      const response = await login(shared)
      t.strictSame(decodedCookie(response, 'auth_user'), { ...USER, displayName })
      t.match(cookiesOf(response).get('auth_user')?.value, /^[\w%.!~*'()-]+$/)
    })
  }

  const jwt = tokenOf('operator')
  const legacy = legacyToken()
  const claims = (part: string, encoding: 'base64' | 'base64url') => JSON.parse(Buffer.from(part, encoding).toString())
  const ownExpiry: readonly (readonly [string, string, number, number])[] = [
    ['standard', jwt, claims(jwt.split('.')[1] ?? '', 'base64url').exp * 1000, 3600],
    ['legacy', legacy, claims(legacy.split('.')[0] ?? '', 'base64').exp, 7200]
  ]
  for (const [format, token, expiresAtMs, lifetime] of ownExpiry) {
    t.test(`session cookies expire with a ${format} token, regardless of the response`, async (t) => {
      const gateway = await startGateway(t)
      respondWith(gateway.backend, loginBody({ token, expiresIn: 60 }))
      const cookies = cookiesOf(await login(gateway))
      t.equal(cookies.get('auth_token_expiry')?.value, String(expiresAtMs))
      for (const name of ['auth_token', 'auth_user', 'auth_permissions', 'auth_token_expiry']) {
        const { maxAge = 0 } = cookies.get(name) ?? {}
        t.ok(maxAge > lifetime - 600 && maxAge <= lifetime, `${name} lives ${maxAge} s`)
      }
    })
  }

  t.test('session cookies expire as the response says if the token has no expiry', async (t) => {
    const gateway = await startGateway(t)
    respondWith(gateway.backend, loginBody({ token: 'opaque', expiresIn: 5400 }))
    const before = Date.now()
    const cookies = cookiesOf(await login(gateway))
    const expiresAtMs = Number(cookies.get('auth_token_expiry')?.value)
    t.ok(expiresAtMs >= before + 5_400_000 && expiresAtMs <= Date.now() + 5_400_000)
    for (const name of ['auth_token', 'auth_user', 'auth_permissions', 'auth_token_expiry']) {
      t.equal(cookies.get(name)?.maxAge, 5400, name)
    }
  })

  t.test('a login clears the cookies of a provider session', async (t) => {
    const gateway = await startGateway(t)
    respondWith(gateway.backend, loginBody())
    const cookies = cookiesOf(await login(gateway))
    for (const name of ['auth_via_oidc', 'oidc_exchange_failed']) {
      t.equal(cookies.get(name)?.value, '')
      t.equal(cookies.get(name)?.maxAge, 0)
    }
  })

  for (const [format, token] of [
    ['standard', tokenOf('operator')],
    ['legacy', legacyToken()]
  ] as const) {
    t.test(`login cookies authenticate the next request, with a ${format} token`, async (t) => {
      const gateway = await startGateway(t)
      const jar = new Map<string, string>()
      respondWith(gateway.backend, loginBody({ token }))
      keepCookies(jar, await login(gateway))
      t.strictSame([...jar.keys()].toSorted(), ['auth_permissions', 'auth_token', 'auth_token_expiry', 'auth_user'])

      const response = await gateway.send('/api/audit/logs', { headers: { cookie: cookieHeader(jar) } })
      t.equal(response.status, 200)
      t.equal(gateway.backend.requests[1]?.headers.authorization, `Bearer ${token}`)
      t.equal(gateway.backend.requests[1]?.headers.cookie, undefined)
    })
  }

  t.test('a request after a logout is not authenticated', async (t) => {
    const gateway = await startGateway(t)
    const jar = new Map([['csrf_token', 't0ken']])
    respondWith(gateway.backend, loginBody())
    keepCookies(jar, await login(gateway))
    keepCookies(jar, await logout(gateway, { cookie: cookieHeader(jar), 'x-csrf-token': 't0ken' }))
    t.strictSame([...jar.keys()], [])
    t.equal((await gateway.send('/api/audit/logs')).code, 'UNAUTHENTICATED')
  })
})

t.test('login token', async (t) => {
  const long = (characters: number) => 'a'.repeat(characters)
  const sizes: readonly (readonly [string, string, boolean])[] = [
    ['as long as a cookie can be', long(4086), true],
    ['longer than a cookie can be', long(4087), false],
    ['as long as a cookie can be once it is encoded', `${long(4080)}==`, true],
    ['longer than a cookie can be once it is encoded', `${long(4080)}+==`, false]
  ]
  for (const [title, token, fits] of sizes) {
    t.test(`a login starts ${fits ? 'a' : 'no'} session where the token is ${title}`, async (t) => {
      const gateway = await startGateway(t)
      const body = loginBody({ token })
      respondWith(gateway.backend, body)
      const response = await login(gateway)
      t.equal(response.status, 200)
      t.equal(response.body, withoutToken(body))
      t.equal(cookiesOf(response).size, fits ? 6 : 0)
      t.match(logged(gateway, ERROR)[0]?.msg, fits ? /API_SECRET/ : /too large for a cookie/)
    })
  }

  t.test('a login with a valid token logs no warning', async (t) => {
    const gateway = await startGateway(t)
    respondWith(gateway.backend, loginBody())
    t.equal(cookiesOf(await login(gateway)).size, 6)
    t.strictSame([...logged(gateway, WARN), ...logged(gateway, ERROR)], [])
  })

  t.test('a token that API_SECRET does not verify starts a session and is logged as an error', async (t) => {
    const gateway = await startGateway(t)
    const key = secretKey('another-secret-0123456789-abcdefghij')
    const token = createAppToken({ role: 'operator' }, key, { format: 'jwt', lifetimeSeconds: 3600 })
    respondWith(gateway.backend, loginBody({ token }))
    t.equal(cookiesOf(await login(gateway)).get('auth_token')?.value, token)
    t.match(logged(gateway, ERROR), [{ msg: /API_SECRET/, requestId: String }])
    t.equal(logged(gateway, ERROR).length, 1)
  })

  t.test('the log contains neither token nor password', async (t) => {
    const gateway = await startGateway(t, { env: { LOG_LEVEL: 'trace' } })
    const key = secretKey('another-secret-0123456789-abcdefghij')
    const token = createAppToken({ role: 'operator' }, key, { format: 'jwt', lifetimeSeconds: 3600 })
    respondWith(gateway.backend, loginBody({ token }))
    await login(gateway)
    const log = JSON.stringify(gateway.logs)
    t.match(log, 'API_SECRET')
    t.notMatch(log, token)
    t.notMatch(log, PASSWORD)
  })
})

t.test('a successful login response without a session', async (t) => {
  const user = { userId: 7 }
  const FORMATS: readonly (readonly [body: string, missing: string])[] = [
    ['OK', 'a JSON object'],
    ['[]', 'a JSON object'],
    ['{"token":"abc.def"}', 'success'],
    ['{"success":"true","data":{"token":"abc.def"}}', 'success'],
    ['{"success":true,"token":"abc.def"}', 'data'],
    [JSON.stringify({ success: true, data: { accessToken: 'abc.def', user } }), 'data.token'],
    [JSON.stringify({ success: true, data: { token: 'null', user } }), 'data.token'],
    [JSON.stringify({ success: true, data: { token: 'opaque', user } }), 'data.expiresIn'],
    [JSON.stringify({ success: true, data: { token: 'opaque', user, expiresIn: '3600' } }), 'data.expiresIn'],
    [JSON.stringify({ success: true, data: { token: 'e30.eyJleHAiOjF9.c2ln', user } }), 'a future exp in data.token']
  ]
  for (const [body, missing] of FORMATS) {
    t.test(`a login response without a session is logged once as a warning with ${missing}: ${body}`, async (t) => {
      const gateway = await startGateway(t)
      respondWith(gateway.backend, body)
      const response = await login(gateway)
      t.equal(response.status, 200)
      t.equal(response.body, body)
      t.equal(cookiesOf(response).size, 0)
      t.match(logged(gateway, WARN), [{ msg: 'login response without a session', missing, status: 200 }])
      t.equal(logged(gateway, WARN).length, 1)
    })
  }

  t.test('a rejected login is not logged as a warning', async (t) => {
    const gateway = await startGateway(t)
    respondWith(gateway.backend, '{"success":false,"error":"wrong password"}')
    t.equal((await login(gateway)).status, 200)
    t.strictSame(logged(gateway, WARN), [])
  })
})

t.test('permissions', async (t) => {
  const listOf = (characters: number) => ['p'.repeat(characters - encodeURIComponent('[""]').length)]

  t.test('permissions are in a cookie if they fit', async (t) => {
    const gateway = await startGateway(t)
    respondWith(gateway.backend, loginBody({ permissions: listOf(3800) }))
    const response = await login(gateway)
    t.strictSame(decodedCookie(response, 'auth_permissions'), listOf(3800))
    t.equal(response.headers['x-auth-permissions-at'], undefined)
    t.strictSame(logged(gateway, WARN), [])
  })

  const tooMany: readonly (readonly [string, readonly string[]])[] = [
    ['one byte too long', listOf(3801)],
    ['thousands', Array.from({ length: 5_000 }, (_, index) => `area.${index}.read`)]
  ]
  for (const [title, permissions] of tooMany) {
    t.test(`a login succeeds where the permissions are ${title}`, async (t) => {
      const gateway = await startGateway(t)
      const token = tokenOf('operator')
      const body = loginBody({ token, permissions })
      // The backend may not set this header.
      respondWith(gateway.backend, body, 200, { 'x-auth-permissions-at': '/elsewhere' })
      const response = await login(gateway)
      t.equal(response.status, 200)
      t.equal(response.body, withoutToken(body))
      t.equal(response.headers['x-auth-permissions-at'], '/api/auth/backend-me')

      const cookies = cookiesOf(response)
      t.equal(cookies.get('auth_token')?.value, token)
      t.strictSame(decodedCookie(response, 'auth_user'), USER)
      t.strictSame(cookies.get('auth_permissions'), {
        value: '',
        maxAge: 0,
        attributes: 'Path=/; Secure; SameSite=Lax'
      })
      t.match(logged(gateway, WARN), [{ msg: 'permissions too large for a cookie', permissions: permissions.length }])
      t.equal(logged(gateway, WARN).length, 1)
    })
  }

  const LONG_USERS: readonly (readonly [string, Record<string, string>, readonly string[]])[] = [
    ['display name', { displayName: '語'.repeat(200), email: `${'語'.repeat(240)}@example.com` }, ['displayName']],
    [
      'display name and email',
      { id: '語'.repeat(128), role: '語'.repeat(64), email: `${'語'.repeat(240)}@a` },
      ['displayName', 'email']
    ]
  ]
  for (const [title, details, omitted] of LONG_USERS) {
    t.test(`the cookie auth_user contains no ${title} if the details are too large`, async (t) => {
      const gateway = await startGateway(t)
      const user = { id: '7', displayName: 'Ada', role: 'operator', email: 'ada@example.com', ...details }
      respondWith(gateway.backend, loginBody({ user }))
      const response = await login(gateway)

      const cookie = (response.headers['set-cookie'] ?? []).find((text) => text.startsWith('auth_user=')) ?? ''
      t.ok(cookie.slice(0, cookie.indexOf(';')).length <= 4096)
      t.match(decodedCookie(response, 'auth_user'), {
        userId: user.id,
        role: user.role,
        ...Object.fromEntries(omitted.map((name) => [name, null]))
      })
      t.match(logged(gateway, WARN), [{ msg: 'user details too large for a cookie', omitted }])
    })
  }

  t.test('a request with the largest permitted cookies is not 431', async (t) => {
    const gateway = await startGateway(t)
    const sizes: number[] = []
    for (const [token, permissions] of [
      ['a'.repeat(4086), listOf(3800)],
      ['a'.repeat(4086), listOf(1900)],
      ['a'.repeat(200), listOf(3800)]
    ] as const) {
      const user = {
        id: '語'.repeat(128),
        displayName: '語'.repeat(200),
        role: '語'.repeat(64),
        email: 'a@example.com'
      }
      respondWith(gateway.backend, loginBody({ token, permissions, user }))
      const set = (await login(gateway)).headers['set-cookie'] ?? []
      const pairs = set.map((text) => text.slice(0, text.indexOf(';'))).filter((pair) => !pair.endsWith('='))
      // The largest cookies that sign-in through an identity provider sets.
      pairs.push(`__Host-oidc_session=${'s'.repeat(4096 - '__Host-oidc_session'.length)}`)
      for (let tab = 0; tab < 5; tab++) pairs.push(`__Host-oidc_login_t0t0t0_0123456789${tab}=${'l'.repeat(614)}`)
      pairs.push('auth_via_oidc=true', `csrf_token=${'c'.repeat(100)}`, `oidc_exchange_failed=${'f'.repeat(50)}`)
      const headers = { cookie: pairs.join('; '), 'user-agent': 'u'.repeat(300), accept: 'a'.repeat(900) }
      sizes.push(headers.cookie.length)
      t.equal(
        (await gateway.send(`/api/health?${'q'.repeat(800)}`, { headers })).status,
        200,
        `${headers.cookie.length}`
      )
    }
    t.ok(Math.max(...sizes) < 14 * 1024, `${sizes}`)
  })

  t.test('permissions are available at the address in the header', async (t) => {
    const gateway = await startGateway(t)
    respondWith(gateway.backend, loginBody({ permissions: listOf(3801) }))
    const jar = new Map<string, string>()
    const response = await login(gateway)
    keepCookies(jar, response)

    respondWith(gateway.backend, '{"success":true,"data":{"permissions":["p"]}}')
    const path = String(response.headers['x-auth-permissions-at'])
    const me = await gateway.send(path, { headers: { cookie: cookieHeader(jar) } })
    t.equal(me.body, '{"success":true,"data":{"permissions":["p"]}}')
    t.equal(gateway.backend.requests[1]?.url, '/api/auth/backend-me')
    t.equal(gateway.backend.requests[1]?.headers.authorization, `Bearer ${jar.get('auth_token')}`)
  })
})

t.test('login response', async (t) => {
  const token = tokenOf('operator')
  // Would change if it were serialised again: spaces, escapes, key order, an integer above 2^53, a duplicate key.
  const odd = `{ "data" : {"user":{"id":12345678901234567890,"name":"Z\\u00eb 日本"},"token":"${token}", "token":"${token}"},
  "success":true }\r\n`

  t.test('the login response has the body of the backend without the token, and no other change', async (t) => {
    const gateway = await startGateway(t)
    respondWith(gateway.backend, odd)
    const response = await login(gateway)
    t.equal(
      response.body,
      '{ "data" : {"user":{"id":12345678901234567890,"name":"Z\\u00eb 日本"}},\n  "success":true }\r\n'
    )
    t.equal(cookiesOf(response).get('auth_token')?.value, token)
  })

  t.test('LOGIN_BODY_TOKEN=keep leaves the body of the backend unchanged', async (t) => {
    const gateway = await startGateway(t, { env: { LOGIN_BODY_TOKEN: 'keep' } })
    respondWith(gateway.backend, odd, 201, { 'content-type': 'application/json; charset=UTF-8; odd=1' })
    const response = await login(gateway)
    t.equal(response.status, 201)
    t.equal(response.body, odd)
    t.equal(response.headers['content-type'], 'application/json; charset=UTF-8; odd=1')
    t.equal(cookiesOf(response).get('auth_token')?.value, token)
  })

  t.test('copies of the token in the login response are empty, and headers with it are removed', async (t) => {
    const gateway = await startGateway(t)
    const body = { success: true, access_token: token, data: { token, header: `Bearer ${token}`, user: USER } }
    respondWith(gateway.backend, JSON.stringify(body), 200, { authorization: `Bearer ${token}`, 'x-other': 'kept' })
    const response = await login(gateway)
    t.strictSame(JSON.parse(response.body), {
      success: true,
      access_token: '',
      data: { header: 'Bearer ', user: USER }
    })
    t.equal(response.headers.authorization, undefined)
    t.equal(response.headers['x-other'], 'kept')
    t.equal(cookiesOf(response).get('auth_token')?.value, token)
  })

  t.test('a placeholder in place of a token does not change other words of the login response', async (t) => {
    const gateway = await startGateway(t)
    const user = { ...USER, displayName: 'a device' }
    respondWith(gateway.backend, JSON.stringify({ success: true, data: { token: 'dev', user, expiresIn: 60 } }))
    t.strictSame(JSON.parse((await login(gateway)).body), { success: true, data: { user, expiresIn: 60 } })
  })

  t.test('fields of the login response that are also called token stay', async (t) => {
    const gateway = await startGateway(t)
    const body = {
      success: true,
      token: 'kept',
      data: { token, user: { ...USER, token: 'kept' }, expiresIn: 60 },
      more: [1]
    }
    respondWith(gateway.backend, JSON.stringify(body))
    const response = await login(gateway)
    t.equal(response.status, 200)
    t.strictSame(JSON.parse(response.body), {
      success: true,
      token: 'kept',
      data: { user: { ...USER, token: 'kept' }, expiresIn: 60 },
      more: [1]
    })
    t.notMatch(response.body, token)
    t.equal(cookiesOf(response).get('auth_token')?.value, token)
  })

  t.test('a login response without a session is not changed', async (t) => {
    const gateway = await startGateway(t)
    respondWith(gateway.backend, ' {"success":false,"data":{"token":null}} ', 401)
    t.equal((await login(gateway)).body, ' {"success":false,"data":{"token":null}} ')
  })

  for (const [status, body] of [
    [200, loginBody()],
    [401, '{"success":false}']
  ] as const) {
    t.test(`a login response with ${status} has no cookies of the backend`, async (t) => {
      const gateway = await startGateway(t)
      const cookies = ['auth_token=backend; Path=/', 'csrf_token=backend', 'sid=backend']
      respondWith(gateway.backend, body, status, { 'set-cookie': cookies, 'clear-site-data': '"cookies"' })
      const response = await login(gateway)
      t.equal(response.status, status)
      t.notMatch(String(response.headers['set-cookie']), 'backend')
      t.equal(response.headers['clear-site-data'], undefined)
    })

    t.test(`a login response with ${status} is not cacheable`, async (t) => {
      const gateway = await startGateway(t)
      respondWith(gateway.backend, body, status, { 'cache-control': 'public, max-age=600' })
      t.equal((await login(gateway)).headers['cache-control'], 'no-store')
    })

    t.test(`a login response with ${status} has the rate limit headers of the gateway`, async (t) => {
      const gateway = await startGateway(t)
      const backendHeaders = { 'x-ratelimit-limit': '999', 'x-ratelimit-remaining': '998', 'x-ratelimit-reset': '1' }
      respondWith(gateway.backend, body, status, backendHeaders)
      const { headers } = await login(gateway)
      t.equal(headers['x-ratelimit-limit'], '5')
      t.equal(headers['x-ratelimit-remaining'], '4')
      t.equal(headers['x-ratelimit-reset'], '900')
    })
  }

  t.test('the login response has all other headers of the backend', async (t) => {
    const gateway = await startGateway(t)
    const headers = { 'www-authenticate': ['Bearer', 'Basic realm="x"'], 'retry-after': '30', 'x-lock': 'until noon' }
    respondWith(gateway.backend, '{}', 423, headers)
    const response = await login(gateway)
    t.equal(response.headers['www-authenticate'], 'Bearer, Basic realm="x"')
    t.equal(response.headers['retry-after'], '30')
    t.equal(response.headers['x-lock'], 'until noon')
  })

  t.test('the login request to the backend does not accept compression', async (t) => {
    const gateway = await startGateway(t)
    const headers = { 'content-type': 'application/json', 'accept-encoding': 'gzip, br' }
    await gateway.send('/api/auth/login', { method: 'POST', headers, body: CREDENTIALS })
    t.equal(gateway.backend.requests[0]?.headers['accept-encoding'], 'identity')
  })

  t.test('a compressed login response is forwarded without a session', async (t) => {
    const gateway = await startGateway(t)
    const body = loginBody()
    respondWith(gateway.backend, gzipSync(body), 200, { 'content-encoding': 'gzip' })
    const headers = { 'content-type': 'application/json' }
    const response = await fetch(`${gateway.url}/api/auth/login`, { method: 'POST', headers, body: CREDENTIALS })
    t.equal(response.status, 200)
    t.equal(await response.text(), body)
    t.strictSame(response.headers.getSetCookie(), [])
  })
})

t.test('failed login', async (t) => {
  const expired = (format: 'jwt' | 'legacy') =>
    createAppToken({ role: 'operator' }, apiKey, { format, lifetimeSeconds: 60, nowMs: Date.now() - 3_600_000 })
  const opaque = (expiresIn: unknown) => loginBody({ token: 'opaque', expiresIn })

  const failures: readonly (readonly [title: string, body: string, status?: number])[] = [
    ['the backend responds with 400', '{"success":false}', 400],
    ['the backend responds with 401 with a whole session', loginBody(), 401],
    ['the backend responds with 423', '{"success":false,"error":"locked"}', 423],
    ['the backend responds with 500 with a whole session', loginBody(), 500],
    ['the backend responds with 302 with a whole session', loginBody(), 302],
    ['success is false', JSON.stringify({ ...JSON.parse(loginBody()), success: false })],
    ['success is missing', JSON.stringify({ data: JSON.parse(loginBody()).data })],
    ['the token is missing', loginBody({ token: undefined })],
    ['the token is null', loginBody({ token: null })],
    ['the token is the word null', loginBody({ token: 'null' })],
    ['the token is empty', loginBody({ token: '' })],
    ['the token has a line break in it', loginBody({ token: 'abc\r\nset-cookie: evil=1' })],
    ['the token has a semicolon in it', loginBody({ token: 'abc; Domain=evil.example' })],
    ['the token has a letter of another alphabet in it', loginBody({ token: 'абв' })],
    ['the standard token has expired', loginBody({ token: expired('jwt'), expiresIn: 3600 })],
    ['the legacy token has expired', loginBody({ token: expired('legacy'), expiresIn: 3600 })],
    ['nothing says how long the token lives', opaque(undefined)],
    ['the token lives for 0 seconds', opaque(0)],
    ['the token lives for less than that', opaque(-1)],
    ['the lifetime is null', opaque(null)],
    ['the lifetime is text', opaque('3600')],
    ['the lifetime is infinite', opaque(1).replace('"expiresIn":1', '"expiresIn":1e999')],
    ['the lifetime is NaN', opaque(1).replace('"expiresIn":1', '"expiresIn":NaN')],
    ['data is null', '{"success":true,"data":null}'],
    ['data is text', '{"success":true,"data":"token"}'],
    ['data is a list', '{"success":true,"data":[]}'],
    ['the body is null', 'null'],
    ['the body is a page', '<!doctype html><title>Welcome</title>'],
    ['the body is cut short', loginBody().slice(0, -1)]
  ]
  const shared = await startGateway(t, TRUSTING)
  for (const [title, body, status = 200] of failures) {
    t.test(`the login response is forwarded without a cookie where ${title}`, async (t) => {
      respondWith(shared.backend, body, status)
      const response = await login(shared)
      t.equal(response.status, status)
      t.equal(response.body, body)
      t.equal(response.headers['set-cookie'], undefined)
      t.equal(response.headers['cache-control'], 'no-store')
    })
  }

  t.test('a login gets 204 without a cookie if the backend has no content', async (t) => {
    const gateway = await startGateway(t)
    respondWith(gateway.backend, '')
    const response = await login(gateway)
    t.equal(response.status, 204)
    t.equal(response.body, '')
    t.equal(response.headers['set-cookie'], undefined)
    t.equal(response.headers['content-type'], undefined)
  })

  t.test('a login gets 201 if the backend responds with 201 and no body', async (t) => {
    const gateway = await startGateway(t)
    respondWith(gateway.backend, '', 201, { location: '/api/sessions/7' })
    const response = await login(gateway)
    t.equal(response.status, 201)
    t.equal(response.body, '')
    t.equal(response.headers.location, '/api/sessions/7')
    t.equal(response.headers['set-cookie'], undefined)
  })

  t.test('a login response of the maximum size is forwarded complete', async (t) => {
    const gateway = await startGateway(t)
    const body = 'a'.repeat(MIB)
    respondWith(gateway.backend, body, 401)
    const response = await login(gateway)
    t.equal(response.status, 401)
    t.ok(response.body === body)
  })

  const half = loginBody().slice(0, 40)
  const broken: readonly (readonly [string, number, string, RecordingBackend['respond']])[] = [
    ['closes the connection', 502, 'BACKEND_UNREACHABLE', (_request, response) => response.destroy()],
    [
      'closes the connection during its response',
      502,
      'BACKEND_UNREACHABLE',
      (_request, response) => {
        response.writeHead(200, { 'content-length': '1000' })
        response.write(half, () => response.destroy())
      }
    ],
    [
      'responds with more than a megabyte',
      502,
      'BACKEND_UNREACHABLE',
      (_request, response) => response.end(Buffer.alloc(MIB + 1, 'a'))
    ],
    [
      'sends an endless response',
      502,
      'BACKEND_UNREACHABLE',
      (_request, response) => {
        const more = (): void => void response.write(Buffer.alloc(MIB, 'a'), (error) => error ?? more())
        more()
      }
    ],
    [
      'responds with an invalid status',
      502,
      'BACKEND_UNREACHABLE',
      (_request, { socket }) => socket?.end('HTTP/1.1 600 Odd\r\ncontent-length: 2\r\n\r\n{}')
    ],
    ['never responds', 504, 'BACKEND_TIMEOUT', () => undefined],
    [
      'never ends its response',
      504,
      'BACKEND_TIMEOUT',
      (_request, response) => void response.writeHead(200, { 'content-length': '1000' }).write(half)
    ]
  ]
  for (const [title, status, code, respondBadly] of broken) {
    t.test(`a login gets ${status} without a cookie if the backend ${title}`, async (t) => {
      const env = status === 504 ? { BACKEND_TIMEOUT_MS: '50' } : {}
      const gateway = await startGateway(t, { env })
      gateway.backend.respond = respondBadly
      const response = await login(gateway)
      t.equal(response.status, status)
      t.equal(response.code, code)
      t.equal(response.headers['set-cookie'], undefined)
      t.equal(response.headers['cache-control'], 'no-store')
    })
  }

  t.test('a login gets 502 without a cookie if the backend is down', async (t) => {
    const gateway = await startGateway(t)
    await close(gateway.backend)
    const response = await login(gateway)
    t.equal(response.status, 502)
    t.equal(response.code, 'BACKEND_UNREACHABLE')
    t.equal(response.headers['set-cookie'], undefined)
  })
})

const SIGNING: readonly (readonly [path: string, headers: () => OutgoingHttpHeaders, body: string])[] = [
  ...LOGIN_PATHS.map((path) => [path, () => ({ 'content-type': 'application/json' }), CREDENTIALS] as const),
  ['/api/auth/logout', browserHeaders, '']
]

t.test('signing in and out', async (t) => {
  for (const [path, headers, body] of SIGNING) {
    t.test(`the backend request of ${path} is cancelled without a warning if the browser disconnects`, async (t) => {
      const gateway = await startGateway(t, { env: { BACKEND_TIMEOUT_MS: '600000' } })
      const arrived = new Promise<ServerResponse>((resolve) => {
        gateway.backend.respond = (_request, response) => resolve(response)
      })
      const browser = browse(gateway.url, path, { method: 'POST', headers: headers() }).end(body)
      const response = await arrived
      const closed = once(response, 'close')

      browser.destroy()

      await closed
      t.equal(response.writableFinished, false)
      await eventually(async () => (await gateway.send('/metrics')).body.includes('\ngateway_in_flight 0\n'))
      t.strictSame([...logged(gateway, WARN), ...logged(gateway, ERROR)], [])
      t.notMatch((await gateway.send('/metrics')).body, /\ngateway_backend_errors_total\{.*\} [1-9]/)
    })

    t.test(`a queued request to ${path} is dropped if the browser disconnects`, async (t) => {
      const gateway = await startGateway(t, { env: { BACKEND_CONNECTIONS: '1', BACKEND_TIMEOUT_MS: '600000' } })
      const pending = new Promise<ServerResponse>((resolve) => {
        gateway.backend.respond = (_request, response) => resolve(response)
      })
      const first = gateway.send('/api/zones')
      const response = await pending
      const message = { method: 'POST', headers: headers() }
      const leaver = browse(gateway.url, path, message).end(body)
      const inFlight = async (count: number): Promise<void> => {
        await eventually(async () => (await gateway.send('/metrics')).body.includes(`\ngateway_in_flight ${count}\n`))
      }
      await inFlight(2)
      leaver.destroy()
      await inFlight(1)
      const second = gateway.send(path, { ...message, body })
      await inFlight(2)
      respondWith(gateway.backend, '{}')
      response.end('{}')

      t.equal((await first).status, 200)
      t.equal((await second).status, 200)
      t.strictSame(
        gateway.backend.requests.map(({ url }) => url),
        ['/api/zones', path]
      )
    })

    t.test(`the backend metrics include ${path}`, async (t) => {
      const gateway = await startGateway(t)
      await gateway.send(path, { method: 'POST', headers: headers(), body })
      gateway.backend.respond = (_request, response) => response.destroy()
      await gateway.send(path, { method: 'POST', headers: headers(), body })

      const { body: numbers } = await gateway.send('/metrics')
      t.match(numbers, `\ngateway_backend_duration_seconds_count{route="${path}"} 1\n`)
      t.match(numbers, '\ngateway_backend_errors_total{code="UND_ERR_SOCKET"} 1\n')
    })
  }
})

/** All session cookies are cleared. */
const endsAlone = (t: Test, gateway: TestGateway, response: HttpResponse): void => {
  t.equal(response.status, 200)
  t.strictSame(JSON.parse(response.body), { success: true })
  t.strictSame(response.headers['set-cookie']?.toSorted(), cleared('Path=/; Secure; SameSite=Lax'))
  t.equal(response.headers['cache-control'], 'no-store')
  t.match(logged(gateway, WARN), [{ msg: 'backend logout failed', requestId: String }])
}

t.test('POST /api/auth/logout', async (t) => {
  t.test('a logout without a CSRF token is rejected and clears nothing', async (t) => {
    const gateway = await startGateway(t)
    const response = await logout(gateway, { cookie: `auth_token=${tokenOf('operator')}; csrf_token=t0ken` })
    t.equal(response.status, 403)
    t.equal(response.code, 'CSRF_MISMATCH')
    t.equal(response.headers['set-cookie'], undefined)
    t.strictSame(gateway.backend.requests, [])
  })

  t.test('a logout is forwarded with the token', async (t) => {
    const gateway = await startGateway(t)
    const token = legacyToken()
    await logout(gateway, browserHeaders(encodeURIComponent(token)))
    const [request] = gateway.backend.requests
    t.equal(request?.method, 'POST')
    t.equal(request?.url, '/api/auth/logout')
    t.equal(request?.headers.authorization, `Bearer ${token}`)
    t.equal(request?.headers.cookie, undefined)
    t.equal(request?.body, '')
  })

  t.test('a logout forwards a validated note', async (t) => {
    const gateway = await startGateway(t)
    const headers = { ...browserHeaders(), 'content-type': 'application/json' }
    const body = '{ "reason": "end of shift" }'
    t.equal((await gateway.send('/api/auth/logout', { method: 'POST', headers, body })).status, 200)
    t.equal(gateway.backend.requests[0]?.body, '{"reason":"end of shift"}')
  })

  const responses: readonly (readonly [number, string, number])[] = [
    [200, '{"success":true,"data":{"ended":1}}', 200],
    [200, '', 204],
    [204, '', 204],
    [401, '{"success":false,"error":"no session"}', 401],
    [500, '{"success":false}', 500]
  ]
  for (const [status, body, expected] of responses) {
    t.test(`a logout clears every cookie if the backend responds with ${status} ${body}`, async (t) => {
      const gateway = await startGateway(t)
      respondWith(gateway.backend, body, status, { 'set-cookie': 'auth_token=backend', 'cache-control': 'public' })
      const response = await logout(gateway)
      t.equal(response.status, expected)
      t.equal(response.body, body)
      t.strictSame(response.headers['set-cookie']?.toSorted(), cleared('Path=/; Secure; SameSite=Lax'))
      t.equal(response.headers['cache-control'], 'no-store')
    })
  }

  const silent: readonly (readonly [string, Record<string, string>, RecordingBackend['respond']])[] = [
    ['is slow', { BACKEND_TIMEOUT_MS: '50' }, () => undefined],
    ['closes the connection', {}, (_request, response) => response.destroy()]
  ]
  for (const [title, env, respondBadly] of silent) {
    t.test(`a logout clears every cookie if the backend ${title}`, async (t) => {
      const gateway = await startGateway(t, { env })
      gateway.backend.respond = respondBadly
      endsAlone(t, gateway, await logout(gateway))
    })
  }

  t.test('a logout clears every cookie if the backend is down', async (t) => {
    const gateway = await startGateway(t)
    await close(gateway.backend)
    endsAlone(t, gateway, await logout(gateway))
  })

  t.test('a logout clears cookies without Secure with COOKIE_SECURE=false', async (t) => {
    const gateway = await startGateway(t, { env: { COOKIE_SECURE: 'false' } })
    t.strictSame((await logout(gateway)).headers['set-cookie']?.toSorted(), cleared('Path=/; SameSite=Lax'))
  })

  const withoutSession: readonly (readonly [string, string | null])[] = [
    ['no session', null],
    ['a session that has ended', createAppToken({}, apiKey, { format: 'jwt', lifetimeSeconds: 1, nowMs: 0 })],
    ['a token that is none', 'null'],
    ['two tokens', 'a.b; auth_token=c.d']
  ]
  for (const [title, token] of withoutSession) {
    t.test(`a logout clears every cookie of a browser with ${title}`, async (t) => {
      const gateway = await startGateway(t)
      const response = await logout(gateway, browserHeaders(token))
      t.equal(response.status, 200)
      t.equal(response.headers['set-cookie']?.length, SESSION_COOKIES.length)
      t.equal(gateway.backend.requests.length, 1)
    })
  }

  t.test('a logout needs no CSRF token in development', async (t) => {
    const gateway = await startGateway(t, { env: { NODE_ENV: 'development' } })
    const response = await logout(gateway, {})
    t.equal(response.status, 200)
    t.strictSame(response.headers['set-cookie']?.toSorted(), cleared('Path=/; SameSite=Lax'))
  })
})

t.test('GET /api/auth/backend-me', async (t) => {
  t.test('GET /api/auth/backend-me is forwarded with the token', async (t) => {
    const gateway = await startGateway(t)
    const token = tokenOf('operator')
    respondWith(gateway.backend, ' {"success":true,"data":{"role":"operator"}}')
    const response = await gateway.send('/api/auth/backend-me?full=1', { headers: { cookie: `auth_token=${token}` } })
    t.equal(response.status, 200)
    t.equal(response.body, ' {"success":true,"data":{"role":"operator"}}')
    t.equal(response.headers['set-cookie'], undefined)
    t.equal(gateway.backend.requests[0]?.url, '/api/auth/backend-me?full=1')
    t.equal(gateway.backend.requests[0]?.headers.authorization, `Bearer ${token}`)
  })

  t.test('GET /api/auth/backend-me without a token is forwarded', async (t) => {
    const gateway = await startGateway(t)
    respondWith(gateway.backend, '{"success":false}', 401)
    const response = await gateway.send('/api/auth/backend-me')
    t.equal(response.status, 401)
    t.equal(response.body, '{"success":false}')
    t.equal(gateway.backend.requests[0]?.headers.authorization, undefined)
  })
})
