import { once } from 'node:events'
import type { OutgoingHttpHeaders, ServerResponse } from 'node:http'
import { gzipSync } from 'node:zlib'
import t, { type Test } from 'tap'
import { createAppToken } from '../../../src/shared/app-token.js'
import { secretKey } from '../../../src/shared/jwt.js'
import { eventually } from '../../helper/eventually.js'
import { browse } from '../../helper/exact-http.js'
import { apiKey, browserHeaders, startGateway, type TestGateway, tokenOf } from '../../helper/gateway.js'
import type { Answer } from '../../helper/http.js'
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

const answerWith = (
  backend: RecordingBackend,
  body: string | Buffer,
  status = 200,
  headers: OutgoingHttpHeaders = {}
): void => {
  backend.answer = (_request, response) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(body)
  }
}

/** For many logins at one gateway: each comes from another address, so that none meets the limit. */
const TRUSTING = { env: { TRUST_PROXY: 'loopback' } }
let addresses = 0

const login = (gateway: TestGateway, path: string = LOGIN_PATHS[0], body = CREDENTIALS): Promise<Answer> => {
  addresses += 1
  const headers = { 'content-type': 'application/json', 'x-forwarded-for': `10.0.${addresses >> 8}.${addresses & 255}` }
  return gateway.send(path, { method: 'POST', headers, body })
}

const logout = (gateway: TestGateway, headers: OutgoingHttpHeaders = browserHeaders()): Promise<Answer> =>
  gateway.send('/api/auth/logout', { method: 'POST', headers })

interface SetCookie {
  readonly value: string
  readonly maxAge: number
  /** All but the lifetime, which no two runs have in common. */
  readonly attributes: string
}

const cookiesOf = ({ headers }: Answer): ReadonlyMap<string, SetCookie> => {
  const cookies = (headers['set-cookie'] ?? []).map((line) => {
    const [, name = '', value = '', age, attributes = ''] = /^([^=]+)=([^;]*); Max-Age=(-?\d+); (.*)$/.exec(line) ?? []
    return [name, { value, maxAge: Number(age), attributes }] as const
  })
  return new Map(cookies)
}

const decodedCookie = (answer: Answer, name: string): unknown =>
  JSON.parse(decodeURIComponent(cookiesOf(answer).get(name)?.value ?? 'null'))

/** Does with cookies what a browser does. */
const keepCookies = (jar: Map<string, string>, answer: Answer): void => {
  for (const [name, { value, maxAge }] of cookiesOf(answer)) {
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

/** A legacy token in which base64 shows all its odd characters. */
const legacyToken = (): string => {
  for (let padding = ''; ; padding += 'x') {
    const claims = { userId: 7, role: 'operator', odd: `${padding}???>>>` }
    const token = createAppToken(claims, apiKey, { format: 'legacy', lifetimeSeconds: 7200 })
    if (/\+.*\/|\/.*\+/.test(token) && token.includes('=')) return token
  }
}

for (const path of LOGIN_PATHS) {
  t.test(`POST ${path}`, async (t) => {
    t.test('hands the credentials to the backend at the same path', async (t) => {
      const gateway = await startGateway(t)
      await login(gateway, `${path}?tenant=north`)
      const [request] = gateway.backend.requests
      t.equal(gateway.backend.requests.length, 1)
      t.equal(request?.method, 'POST')
      t.equal(request?.url, `${path}?tenant=north`)
      t.equal(request?.body, CREDENTIALS)
      t.equal(request?.headers['content-type'], 'application/json')
    })

    t.test('hands on the body that was checked, however it was written', async (t) => {
      const gateway = await startGateway(t)
      const answer = await login(
        gateway,
        path,
        '{ "username": "ad\\u0061",\n  "password": "x", "rememberMe": true, "otp": "1" }\n'
      )
      t.equal(answer.status, 200)
      t.equal(gateway.backend.requests[0]?.body, '{"username":"ada","password":"x","rememberMe":true,"otp":"1"}')
    })

    const refused: readonly (readonly [string, string, string])[] = [
      ['without a password', '{"email":"ada@example.com"}', 'VALIDATION_FAILED'],
      ['with the field that only the server may send', CREDENTIALS.replace('}', ',"okta":true}'), 'VALIDATION_FAILED'],
      ['with that field in capitals', CREDENTIALS.replace('}', ',"OKTA":true}'), 'VALIDATION_FAILED'],
      ['with that field in look-alike letters', CREDENTIALS.replace('}', ',"o\u212ata":true}'), 'VALIDATION_FAILED'],
      ['with groups', CREDENTIALS.replace('}', ',"groups":["admins"]}'), 'VALIDATION_FAILED'],
      ['that is empty', '', 'VALIDATION_FAILED'],
      ['that is not JSON', 'email=ada', 'MALFORMED_BODY']
    ]
    const shared = await startGateway(t, TRUSTING)
    for (const [what, body, code] of refused) {
      t.test(`refuses a body ${what}`, async (t) => {
        const answer = await login(shared, path, body)
        t.equal(answer.status, 400)
        t.equal(answer.code, code)
        t.equal(answer.headers['set-cookie'], undefined)
        t.strictSame(shared.backend.requests, [], 'nothing reached the backend')
      })
    }

    t.test('sets the cookies of the session', async (t) => {
      const gateway = await startGateway(t)
      const token = tokenOf('operator')
      answerWith(gateway.backend, loginBody({ token, user: { ...USER, permissions: ['zones.read', 'zones.write'] } }))
      const answer = await login(gateway, path)
      t.equal(answer.status, 200)

      const readable = 'Path=/; Secure; SameSite=Lax'
      const attributes = [...cookiesOf(answer)].map(([name, cookie]) => [name, cookie.attributes])
      t.strictSame(Object.fromEntries(attributes), {
        auth_token: 'Path=/; HttpOnly; Secure; SameSite=Lax',
        auth_user: readable,
        auth_permissions: readable,
        auth_token_expiry: readable,
        auth_via_oidc: readable,
        oidc_exchange_failed: readable
      })
      t.equal(cookiesOf(answer).get('auth_token')?.value, token)
      t.strictSame(decodedCookie(answer, 'auth_user'), USER)
      t.strictSame(decodedCookie(answer, 'auth_permissions'), ['zones.read', 'zones.write'])
    })

    t.test('passes a refused login on and sets no cookie', async (t) => {
      const gateway = await startGateway(t)
      answerWith(gateway.backend, '{"success":false,"error":"bad credentials"}', 401)
      const answer = await login(gateway, path)
      t.equal(answer.status, 401)
      t.equal(answer.body, '{"success":false,"error":"bad credentials"}')
      t.equal(answer.headers['set-cookie'], undefined)
    })
  })
}

t.test('the cookies of a login', async (t) => {
  const secure: readonly (readonly [string, Record<string, string>, boolean])[] = [
    ['are Secure in production', {}, true],
    ['are not Secure in production where COOKIE_SECURE=false', { COOKIE_SECURE: 'false' }, false],
    ['are not Secure in development', { NODE_ENV: 'development' }, false],
    ['are Secure in development where COOKIE_SECURE=true', { NODE_ENV: 'development', COOKIE_SECURE: 'true' }, true]
  ]
  for (const [what, env, expected] of secure) {
    t.test(what, async (t) => {
      const gateway = await startGateway(t, { env })
      answerWith(gateway.backend, loginBody())
      const cookies = [...cookiesOf(await login(gateway)).values()]
      t.equal(cookies.length, 6)
      for (const { attributes } of cookies) t.equal(attributes.split('; ').includes('Secure'), expected)
    })
  }

  t.test('carry values that are percent-encoded once', async (t) => {
    const gateway = await startGateway(t)
    const token = legacyToken()
    answerWith(gateway.backend, loginBody({ token, user: { ...USER, permissions: ['50%', 'a;b', 'c d'] } }))
    const cookies = cookiesOf(await login(gateway))
    t.equal(cookies.get('auth_token')?.value, encodeURIComponent(token))
    t.equal(cookies.get('auth_user')?.value, encodeURIComponent(JSON.stringify(USER)))
    t.equal(cookies.get('auth_permissions')?.value, encodeURIComponent('["50%","a;b","c d"]'))
  })

  const shared = await startGateway(t, TRUSTING)
  for (const displayName of ['Zoë Ångström', '日本 太郎', '👩‍🚒', 'a"; Domain=evil', 'line\r\nbreak', 'half \ud800']) {
    t.test(`carry the name ${JSON.stringify(displayName)}`, async (t) => {
      answerWith(shared.backend, loginBody({ user: { ...USER, displayName } }))
      const answer = await login(shared)
      t.strictSame(decodedCookie(answer, 'auth_user'), { ...USER, displayName })
      t.match(cookiesOf(answer).get('auth_user')?.value, /^[\w%.!~*'()-]+$/)
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
    t.test(`live as long as a ${format} token, whatever the answer says`, async (t) => {
      const gateway = await startGateway(t)
      answerWith(gateway.backend, loginBody({ token, expiresIn: 60 }))
      const cookies = cookiesOf(await login(gateway))
      t.equal(cookies.get('auth_token_expiry')?.value, String(expiresAtMs))
      for (const name of ['auth_token', 'auth_user', 'auth_permissions', 'auth_token_expiry']) {
        const { maxAge = 0 } = cookies.get(name) ?? {}
        t.ok(maxAge > lifetime - 600 && maxAge <= lifetime, `${name} lives ${maxAge} s`)
      }
    })
  }

  t.test('live as long as the answer says where the token does not', async (t) => {
    const gateway = await startGateway(t)
    answerWith(gateway.backend, loginBody({ token: 'opaque', expiresIn: 5400 }))
    const before = Date.now()
    const cookies = cookiesOf(await login(gateway))
    const expiresAtMs = Number(cookies.get('auth_token_expiry')?.value)
    t.ok(expiresAtMs >= before + 5_400_000 && expiresAtMs <= Date.now() + 5_400_000)
    for (const name of ['auth_token', 'auth_user', 'auth_permissions', 'auth_token_expiry']) {
      t.equal(cookies.get(name)?.maxAge, 5400, name)
    }
  })

  t.test('end what an identity provider left behind', async (t) => {
    const gateway = await startGateway(t)
    answerWith(gateway.backend, loginBody())
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
    t.test(`authenticate the next request, with a ${format} token`, async (t) => {
      const gateway = await startGateway(t)
      const jar = new Map<string, string>()
      answerWith(gateway.backend, loginBody({ token }))
      keepCookies(jar, await login(gateway))
      t.strictSame([...jar.keys()].toSorted(), ['auth_permissions', 'auth_token', 'auth_token_expiry', 'auth_user'])

      const answer = await gateway.send('/api/audit/logs', { headers: { cookie: cookieHeader(jar) } })
      t.equal(answer.status, 200)
      t.equal(gateway.backend.requests[1]?.headers.authorization, `Bearer ${token}`)
      t.equal(gateway.backend.requests[1]?.headers.cookie, undefined)
    })
  }

  t.test('authenticate nothing any more after a logout', async (t) => {
    const gateway = await startGateway(t)
    const jar = new Map([['csrf_token', 't0ken']])
    answerWith(gateway.backend, loginBody())
    keepCookies(jar, await login(gateway))
    keepCookies(jar, await logout(gateway, { cookie: cookieHeader(jar), 'x-csrf-token': 't0ken' }))
    t.strictSame([...jar.keys()], [])
    t.equal((await gateway.send('/api/audit/logs')).code, 'UNAUTHENTICATED')
  })
})

t.test('the token of a login', async (t) => {
  const long = (characters: number) => 'a'.repeat(characters)
  const sizes: readonly (readonly [string, string, boolean])[] = [
    ['as long as a cookie can be', long(4086), true],
    ['longer than a cookie can be', long(4087), false],
    ['as long as a cookie can be once it is encoded', `${long(4080)}==`, true],
    ['longer than a cookie can be once it is encoded', `${long(4080)}+==`, false]
  ]
  for (const [what, token, fits] of sizes) {
    t.test(`${fits ? 'makes' : 'makes no half of'} a session where it is ${what}`, async (t) => {
      const gateway = await startGateway(t)
      const body = loginBody({ token })
      answerWith(gateway.backend, body)
      const answer = await login(gateway)
      t.equal(answer.status, 200)
      t.equal(answer.body, body)
      t.equal(cookiesOf(answer).size, fits ? 6 : 0)
      t.match(logged(gateway, ERROR)[0]?.msg, fits ? /API_SECRET/ : /too large for a cookie/)
    })
  }

  t.test('makes a session without a word where it is good', async (t) => {
    const gateway = await startGateway(t)
    answerWith(gateway.backend, loginBody())
    t.equal(cookiesOf(await login(gateway)).size, 6)
    t.strictSame([...logged(gateway, WARN), ...logged(gateway, ERROR)], [])
  })

  t.test('makes a session and an error in the log where API_SECRET does not verify it', async (t) => {
    const gateway = await startGateway(t)
    const key = secretKey('another-secret-0123456789-abcdefghij')
    const token = createAppToken({ role: 'operator' }, key, { format: 'jwt', lifetimeSeconds: 3600 })
    answerWith(gateway.backend, loginBody({ token }))
    t.equal(cookiesOf(await login(gateway)).get('auth_token')?.value, token)
    t.match(logged(gateway, ERROR), [{ msg: /API_SECRET/, requestId: String }])
    t.equal(logged(gateway, ERROR).length, 1)
  })

  t.test('is never in the log, nor is the password', async (t) => {
    const gateway = await startGateway(t, { env: { LOG_LEVEL: 'trace' } })
    const key = secretKey('another-secret-0123456789-abcdefghij')
    const token = createAppToken({ role: 'operator' }, key, { format: 'jwt', lifetimeSeconds: 3600 })
    answerWith(gateway.backend, loginBody({ token }))
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
    t.test(`is logged as one warning that names ${missing}: ${body}`, async (t) => {
      const gateway = await startGateway(t)
      answerWith(gateway.backend, body)
      const answer = await login(gateway)
      t.equal(answer.status, 200)
      t.equal(answer.body, body)
      t.equal(cookiesOf(answer).size, 0)
      t.match(logged(gateway, WARN), [{ msg: 'login response without a session', missing, status: 200 }])
      t.equal(logged(gateway, WARN).length, 1)
    })
  }

  t.test('is not logged where the backend refuses the login', async (t) => {
    const gateway = await startGateway(t)
    answerWith(gateway.backend, '{"success":false,"error":"wrong password"}')
    t.equal((await login(gateway)).status, 200)
    t.strictSame(logged(gateway, WARN), [])
  })
})

t.test('permissions', async (t) => {
  const listOf = (characters: number) => ['p'.repeat(characters - encodeURIComponent('[""]').length)]

  t.test('stand in a cookie as long as they fit', async (t) => {
    const gateway = await startGateway(t)
    answerWith(gateway.backend, loginBody({ permissions: listOf(3800) }))
    const answer = await login(gateway)
    t.strictSame(decodedCookie(answer, 'auth_permissions'), listOf(3800))
    t.equal(answer.headers['x-auth-permissions-at'], undefined)
    t.strictSame(logged(gateway, WARN), [])
  })

  const tooMany: readonly (readonly [string, readonly string[]])[] = [
    ['one byte too long', listOf(3801)],
    ['thousands', Array.from({ length: 5_000 }, (_, index) => `area.${index}.read`)]
  ]
  for (const [what, permissions] of tooMany) {
    t.test(`do not keep anybody from signing in where they are ${what}`, async (t) => {
      const gateway = await startGateway(t)
      const token = tokenOf('operator')
      const body = loginBody({ token, permissions })
      // Not the backend's to say.
      answerWith(gateway.backend, body, 200, { 'x-auth-permissions-at': '/elsewhere' })
      const answer = await login(gateway)
      t.equal(answer.status, 200)
      t.equal(answer.body, body)
      t.equal(answer.headers['x-auth-permissions-at'], '/api/auth/backend-me')

      const cookies = cookiesOf(answer)
      t.equal(cookies.get('auth_token')?.value, token)
      t.strictSame(decodedCookie(answer, 'auth_user'), USER)
      t.strictSame(cookies.get('auth_permissions'), {
        value: '',
        maxAge: 0,
        attributes: 'Path=/; Secure; SameSite=Lax'
      })
      t.match(logged(gateway, WARN), [{ msg: 'permissions too large for a cookie', permissions: permissions.length }])
      t.equal(logged(gateway, WARN).length, 1)
    })
  }

  t.test('are at the address that the header names', async (t) => {
    const gateway = await startGateway(t)
    answerWith(gateway.backend, loginBody({ permissions: listOf(3801) }))
    const jar = new Map<string, string>()
    const answer = await login(gateway)
    keepCookies(jar, answer)

    answerWith(gateway.backend, '{"success":true,"data":{"permissions":["p"]}}')
    const path = String(answer.headers['x-auth-permissions-at'])
    const me = await gateway.send(path, { headers: { cookie: cookieHeader(jar) } })
    t.equal(me.body, '{"success":true,"data":{"permissions":["p"]}}')
    t.equal(gateway.backend.requests[1]?.url, '/api/auth/backend-me')
    t.equal(gateway.backend.requests[1]?.headers.authorization, `Bearer ${jar.get('auth_token')}`)
  })
})

t.test('the answer to a login', async (t) => {
  const token = tokenOf('operator')
  // What parsing and writing it again would change: spaces, escapes, key order, an integer past 2^53, a double key.
  const odd = `{ "data" : {"user":{"id":12345678901234567890,"name":"Z\\u00eb 日本"},"token":"${token}", "token":"${token}"},
  "success":true }\r\n`

  t.test('is the whole body of the backend to the byte', async (t) => {
    const gateway = await startGateway(t)
    answerWith(gateway.backend, odd, 201, { 'content-type': 'application/json; charset=UTF-8; odd=1' })
    const answer = await login(gateway)
    t.equal(answer.status, 201)
    t.equal(answer.body, odd)
    t.equal(answer.headers['content-type'], 'application/json; charset=UTF-8; odd=1')
    t.equal(cookiesOf(answer).get('auth_token')?.value, token)
  })

  t.test('lacks the token and nothing else where LOGIN_BODY_TOKEN=omit', async (t) => {
    const gateway = await startGateway(t, { env: { LOGIN_BODY_TOKEN: 'omit' } })
    const body = {
      success: true,
      token: 'kept',
      data: { token, user: { ...USER, token: 'kept' }, expiresIn: 60 },
      more: [1]
    }
    answerWith(gateway.backend, JSON.stringify(body))
    const answer = await login(gateway)
    t.equal(answer.status, 200)
    t.strictSame(JSON.parse(answer.body), {
      success: true,
      token: 'kept',
      data: { user: { ...USER, token: 'kept' }, expiresIn: 60 },
      more: [1]
    })
    t.notMatch(answer.body, token)
    t.equal(cookiesOf(answer).get('auth_token')?.value, token)
  })

  t.test('holds no token where the backend sends it twice and LOGIN_BODY_TOKEN=omit', async (t) => {
    const gateway = await startGateway(t, { env: { LOGIN_BODY_TOKEN: 'omit' } })
    answerWith(gateway.backend, odd)
    t.notMatch((await login(gateway)).body, token)
  })

  t.test('is whole where there is no session, though LOGIN_BODY_TOKEN=omit', async (t) => {
    const gateway = await startGateway(t, { env: { LOGIN_BODY_TOKEN: 'omit' } })
    answerWith(gateway.backend, ' {"success":false,"data":{"token":null}} ', 401)
    t.equal((await login(gateway)).body, ' {"success":false,"data":{"token":null}} ')
  })

  for (const [status, body] of [
    [200, loginBody()],
    [401, '{"success":false}']
  ] as const) {
    t.test(`carries none of the backend's own cookies when it is ${status}`, async (t) => {
      const gateway = await startGateway(t)
      const cookies = ['auth_token=backend; Path=/', 'csrf_token=backend', 'sid=backend']
      answerWith(gateway.backend, body, status, { 'set-cookie': cookies, 'clear-site-data': '"cookies"' })
      const answer = await login(gateway)
      t.equal(answer.status, status)
      t.notMatch(String(answer.headers['set-cookie']), 'backend')
      t.equal(answer.headers['clear-site-data'], undefined)
    })

    t.test(`is not kept by anybody when it is ${status}, whatever the backend says`, async (t) => {
      const gateway = await startGateway(t)
      answerWith(gateway.backend, body, status, { 'cache-control': 'public, max-age=600' })
      t.equal((await login(gateway)).headers['cache-control'], 'no-store')
    })

    t.test(`counts attempts as the gateway does when it is ${status}`, async (t) => {
      const gateway = await startGateway(t)
      const theirs = { 'x-ratelimit-limit': '999', 'x-ratelimit-remaining': '998', 'x-ratelimit-reset': '1' }
      answerWith(gateway.backend, body, status, theirs)
      const { headers } = await login(gateway)
      t.equal(headers['x-ratelimit-limit'], '5')
      t.equal(headers['x-ratelimit-remaining'], '4')
      t.equal(headers['x-ratelimit-reset'], '900')
    })
  }

  t.test('carries the other headers of the backend, all of them', async (t) => {
    const gateway = await startGateway(t)
    const headers = { 'www-authenticate': ['Bearer', 'Basic realm="x"'], 'retry-after': '30', 'x-lock': 'until noon' }
    answerWith(gateway.backend, '{}', 423, headers)
    const answer = await login(gateway)
    t.equal(answer.headers['www-authenticate'], 'Bearer, Basic realm="x"')
    t.equal(answer.headers['retry-after'], '30')
    t.equal(answer.headers['x-lock'], 'until noon')
  })

  t.test('is asked for without compression', async (t) => {
    const gateway = await startGateway(t)
    const headers = { 'content-type': 'application/json', 'accept-encoding': 'gzip, br' }
    await gateway.send('/api/auth/login', { method: 'POST', headers, body: CREDENTIALS })
    t.equal(gateway.backend.requests[0]?.headers['accept-encoding'], 'identity')
  })

  t.test('passes whole but without a session where it comes compressed all the same', async (t) => {
    const gateway = await startGateway(t)
    const body = loginBody()
    answerWith(gateway.backend, gzipSync(body), 200, { 'content-encoding': 'gzip' })
    const headers = { 'content-type': 'application/json' }
    const response = await fetch(`${gateway.url}/api/auth/login`, { method: 'POST', headers, body: CREDENTIALS })
    t.equal(response.status, 200)
    t.equal(await response.text(), body)
    t.strictSame(response.headers.getSetCookie(), [])
  })
})

t.test('a login that failed', async (t) => {
  const expired = (format: 'jwt' | 'legacy') =>
    createAppToken({ role: 'operator' }, apiKey, { format, lifetimeSeconds: 60, nowMs: Date.now() - 3_600_000 })
  const opaque = (expiresIn: unknown) => loginBody({ token: 'opaque', expiresIn })

  const failures: readonly (readonly [why: string, body: string, status?: number])[] = [
    ['the backend answers 400', '{"success":false}', 400],
    ['the backend answers 401 with a whole session', loginBody(), 401],
    ['the backend answers 423', '{"success":false,"error":"locked"}', 423],
    ['the backend answers 500 with a whole session', loginBody(), 500],
    ['the backend answers 302 with a whole session', loginBody(), 302],
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
  for (const [why, body, status = 200] of failures) {
    t.test(`passes through without a cookie where ${why}`, async (t) => {
      answerWith(shared.backend, body, status)
      const answer = await login(shared)
      t.equal(answer.status, status)
      t.equal(answer.body, body)
      t.equal(answer.headers['set-cookie'], undefined)
      t.equal(answer.headers['cache-control'], 'no-store')
    })
  }

  t.test('is a 204 without a cookie where the backend has nothing to say', async (t) => {
    const gateway = await startGateway(t)
    answerWith(gateway.backend, '')
    const answer = await login(gateway)
    t.equal(answer.status, 204)
    t.equal(answer.body, '')
    t.equal(answer.headers['set-cookie'], undefined)
    t.equal(answer.headers['content-type'], undefined)
  })

  t.test('is a 201 where the backend says only that something was created', async (t) => {
    const gateway = await startGateway(t)
    answerWith(gateway.backend, '', 201, { location: '/api/sessions/7' })
    const answer = await login(gateway)
    t.equal(answer.status, 201)
    t.equal(answer.body, '')
    t.equal(answer.headers.location, '/api/sessions/7')
    t.equal(answer.headers['set-cookie'], undefined)
  })

  t.test('passes whole where it is as long as an answer may be', async (t) => {
    const gateway = await startGateway(t)
    const body = 'a'.repeat(MIB)
    answerWith(gateway.backend, body, 401)
    const answer = await login(gateway)
    t.equal(answer.status, 401)
    t.ok(answer.body === body)
  })

  const half = loginBody().slice(0, 40)
  const broken: readonly (readonly [string, number, string, RecordingBackend['answer']])[] = [
    ['closes the connection', 502, 'BACKEND_UNREACHABLE', (_request, response) => response.destroy()],
    [
      'closes the connection within its answer',
      502,
      'BACKEND_UNREACHABLE',
      (_request, response) => {
        response.writeHead(200, { 'content-length': '1000' })
        response.write(half, () => response.destroy())
      }
    ],
    [
      'answers more than a megabyte',
      502,
      'BACKEND_UNREACHABLE',
      (_request, response) => response.end(Buffer.alloc(MIB + 1, 'a'))
    ],
    [
      'answers without end',
      502,
      'BACKEND_UNREACHABLE',
      (_request, response) => {
        const more = (): void => void response.write(Buffer.alloc(MIB, 'a'), (error) => error ?? more())
        more()
      }
    ],
    [
      'answers with a status that there is not',
      502,
      'BACKEND_UNREACHABLE',
      (_request, { socket }) => socket?.end('HTTP/1.1 600 Odd\r\ncontent-length: 2\r\n\r\n{}')
    ],
    ['never answers', 504, 'BACKEND_TIMEOUT', () => undefined],
    [
      'never ends its answer',
      504,
      'BACKEND_TIMEOUT',
      (_request, response) => void response.writeHead(200, { 'content-length': '1000' }).write(half)
    ]
  ]
  for (const [what, status, code, answerBadly] of broken) {
    t.test(`is a ${status} without a cookie where the backend ${what}`, async (t) => {
      const env = status === 504 ? { BACKEND_TIMEOUT_MS: '50' } : {}
      const gateway = await startGateway(t, { env })
      gateway.backend.answer = answerBadly
      const answer = await login(gateway)
      t.equal(answer.status, status)
      t.equal(answer.code, code)
      t.equal(answer.headers['set-cookie'], undefined)
      t.equal(answer.headers['cache-control'], 'no-store')
    })
  }

  t.test('is a 502 without a cookie where the backend is down', async (t) => {
    const gateway = await startGateway(t)
    await close(gateway.backend)
    const answer = await login(gateway)
    t.equal(answer.status, 502)
    t.equal(answer.code, 'BACKEND_UNREACHABLE')
    t.equal(answer.headers['set-cookie'], undefined)
  })
})

const SIGNING: readonly (readonly [path: string, headers: () => OutgoingHttpHeaders, body: string])[] = [
  ...LOGIN_PATHS.map((path) => [path, () => ({ 'content-type': 'application/json' }), CREDENTIALS] as const),
  ['/api/auth/logout', browserHeaders, '']
]

t.test('signing in and out', async (t) => {
  for (const [path, headers, body] of SIGNING) {
    t.test(`ends at the backend when the browser leaves ${path}, without a complaint`, async (t) => {
      const gateway = await startGateway(t, { env: { BACKEND_TIMEOUT_MS: '600000' } })
      const arrived = new Promise<ServerResponse>((resolve) => {
        gateway.backend.answer = (_request, response) => resolve(response)
      })
      const browser = browse(gateway.url, path, { method: 'POST', headers: headers() }).end(body)
      const response = await arrived
      const closed = once(response, 'close')

      browser.destroy()

      await closed
      t.equal(response.writableFinished, false)
      await eventually(async () => (await gateway.send('/metrics')).body.includes('\ngateway_in_flight 0\n'))
      t.strictSame([...logged(gateway, WARN), ...logged(gateway, ERROR)], [])
      t.notMatch((await gateway.send('/metrics')).body, '\ngateway_backend_errors_total{')
    })

    t.test(`waits for its turn at ${path}, and not once the browser has left`, async (t) => {
      const gateway = await startGateway(t, { env: { BACKEND_CONNECTIONS: '1', BACKEND_TIMEOUT_MS: '600000' } })
      const held = new Promise<ServerResponse>((resolve) => {
        gateway.backend.answer = (_request, response) => resolve(response)
      })
      const first = gateway.send('/api/zones')
      const response = await held
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
      answerWith(gateway.backend, '{}')
      response.end('{}')

      t.equal((await first).status, 200)
      t.equal((await second).status, 200)
      t.strictSame(
        gateway.backend.requests.map(({ url }) => url),
        ['/api/zones', path]
      )
    })

    t.test(`is among the numbers of the backend: ${path}`, async (t) => {
      const gateway = await startGateway(t)
      await gateway.send(path, { method: 'POST', headers: headers(), body })
      gateway.backend.answer = (_request, response) => response.destroy()
      await gateway.send(path, { method: 'POST', headers: headers(), body })

      const { body: numbers } = await gateway.send('/metrics')
      t.match(numbers, `\ngateway_backend_duration_seconds_count{route="${path}"} 1\n`)
      t.match(numbers, '\ngateway_backend_errors_total{code="UND_ERR_SOCKET"} 1\n')
    })
  }
})

/** The session is over here, though the backend does not know. */
const endsAlone = (t: Test, gateway: TestGateway, answer: Answer): void => {
  t.equal(answer.status, 200)
  t.strictSame(JSON.parse(answer.body), { success: true })
  t.strictSame(answer.headers['set-cookie']?.toSorted(), cleared('Path=/; Secure; SameSite=Lax'))
  t.equal(answer.headers['cache-control'], 'no-store')
  t.match(logged(gateway, WARN), [{ msg: 'backend logout failed', requestId: String }])
}

t.test('POST /api/auth/logout', async (t) => {
  t.test('is refused without the CSRF pair, and ends nothing', async (t) => {
    const gateway = await startGateway(t)
    const answer = await logout(gateway, { cookie: `auth_token=${tokenOf('operator')}; csrf_token=t0ken` })
    t.equal(answer.status, 403)
    t.equal(answer.code, 'CSRF_MISMATCH')
    t.equal(answer.headers['set-cookie'], undefined)
    t.strictSame(gateway.backend.requests, [])
  })

  t.test('tells the backend whose session ends', async (t) => {
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

  t.test('hands a note on to the backend, once it is checked', async (t) => {
    const gateway = await startGateway(t)
    const headers = { ...browserHeaders(), 'content-type': 'application/json' }
    const body = '{ "reason": "end of shift" }'
    t.equal((await gateway.send('/api/auth/logout', { method: 'POST', headers, body })).status, 200)
    t.equal(gateway.backend.requests[0]?.body, '{"reason":"end of shift"}')
  })

  const answers: readonly (readonly [number, string, number])[] = [
    [200, '{"success":true,"data":{"ended":1}}', 200],
    [200, '', 204],
    [204, '', 204],
    [401, '{"success":false,"error":"no session"}', 401],
    [500, '{"success":false}', 500]
  ]
  for (const [status, body, expected] of answers) {
    t.test(`clears every cookie where the backend answers ${status} ${body}`, async (t) => {
      const gateway = await startGateway(t)
      answerWith(gateway.backend, body, status, { 'set-cookie': 'auth_token=backend', 'cache-control': 'public' })
      const answer = await logout(gateway)
      t.equal(answer.status, expected)
      t.equal(answer.body, body)
      t.strictSame(answer.headers['set-cookie']?.toSorted(), cleared('Path=/; Secure; SameSite=Lax'))
      t.equal(answer.headers['cache-control'], 'no-store')
    })
  }

  const silent: readonly (readonly [string, Record<string, string>, RecordingBackend['answer']])[] = [
    ['is slow', { BACKEND_TIMEOUT_MS: '50' }, () => undefined],
    ['closes the connection', {}, (_request, response) => response.destroy()]
  ]
  for (const [what, env, answerBadly] of silent) {
    t.test(`clears every cookie where the backend ${what}`, async (t) => {
      const gateway = await startGateway(t, { env })
      gateway.backend.answer = answerBadly
      endsAlone(t, gateway, await logout(gateway))
    })
  }

  t.test('clears every cookie where the backend is down', async (t) => {
    const gateway = await startGateway(t)
    await close(gateway.backend)
    endsAlone(t, gateway, await logout(gateway))
  })

  t.test('clears cookies that are not Secure where COOKIE_SECURE=false', async (t) => {
    const gateway = await startGateway(t, { env: { COOKIE_SECURE: 'false' } })
    t.strictSame((await logout(gateway)).headers['set-cookie']?.toSorted(), cleared('Path=/; SameSite=Lax'))
  })

  const strangers: readonly (readonly [string, string | null])[] = [
    ['no session', null],
    ['a session that has ended', createAppToken({}, apiKey, { format: 'jwt', lifetimeSeconds: 1, nowMs: 0 })],
    ['a token that is none', 'null'],
    ['two tokens', 'a.b; auth_token=c.d']
  ]
  for (const [what, token] of strangers) {
    t.test(`clears every cookie of a browser with ${what}`, async (t) => {
      const gateway = await startGateway(t)
      const answer = await logout(gateway, browserHeaders(token))
      t.equal(answer.status, 200)
      t.equal(answer.headers['set-cookie']?.length, SESSION_COOKIES.length)
      t.equal(gateway.backend.requests.length, 1)
    })
  }

  t.test('needs no CSRF pair in development', async (t) => {
    const gateway = await startGateway(t, { env: { NODE_ENV: 'development' } })
    const answer = await logout(gateway, {})
    t.equal(answer.status, 200)
    t.strictSame(answer.headers['set-cookie']?.toSorted(), cleared('Path=/; SameSite=Lax'))
  })
})

t.test('GET /api/auth/backend-me', async (t) => {
  t.test('is forwarded with the token, and its answer comes back as it is', async (t) => {
    const gateway = await startGateway(t)
    const token = tokenOf('operator')
    answerWith(gateway.backend, ' {"success":true,"data":{"role":"operator"}}')
    const answer = await gateway.send('/api/auth/backend-me?full=1', { headers: { cookie: `auth_token=${token}` } })
    t.equal(answer.status, 200)
    t.equal(answer.body, ' {"success":true,"data":{"role":"operator"}}')
    t.equal(answer.headers['set-cookie'], undefined)
    t.equal(gateway.backend.requests[0]?.url, '/api/auth/backend-me?full=1')
    t.equal(gateway.backend.requests[0]?.headers.authorization, `Bearer ${token}`)
  })

  t.test('lets the backend say that nobody is signed in', async (t) => {
    const gateway = await startGateway(t)
    answerWith(gateway.backend, '{"success":false}', 401)
    const answer = await gateway.send('/api/auth/backend-me')
    t.equal(answer.status, 401)
    t.equal(answer.body, '{"success":false}')
    t.equal(gateway.backend.requests[0]?.headers.authorization, undefined)
  })
})
