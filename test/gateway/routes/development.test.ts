import t from 'tap'
import { AppTokenVerifier, decodeClaims } from '../../../src/shared/app-token.js'
import { apiKey, browserHeaders, startGateway, tokenOf } from '../../helper/gateway.js'

const DEVELOPMENT = { env: { NODE_ENV: 'development' } }
const PREFIXES = ['', '/api']
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']
const STUB = { userId: 'dev', email: 'dev@localhost', displayName: 'Developer', role: 'admin' }

const json = { 'content-type': 'application/json' }

for (const prefix of PREFIXES) {
  const path = `${prefix}/dev-login`

  t.test(`POST ${path} outside production`, async (t) => {
    const { send, backend } = await startGateway(t, DEVELOPMENT)

    const credentials: readonly (readonly [string, string, string?])[] = [
      ['an address and a password', '{"email":"ada@example.com","password":"x"}', 'ada@example.com'],
      ['an address alone', '{"email":"ada@example.com"}', 'ada@example.com'],
      ['a name and a password', '{"username":"ada","password":"x"}'],
      ['an address that is no text', '{"email":7}'],
      ['an empty address', '{"email":""}'],
      ['an empty object', '{}'],
      ['null', 'null'],
      ['a list', '[]'],
      ['text', '"ada"'],
      ['nothing', '']
    ]
    for (const [title, body, email = STUB.email] of credentials) {
      t.test(`POST ${path} accepts ${title} as credentials`, async (t) => {
        const response = await send(path, { method: 'POST', headers: json, body })
        t.equal(response.status, 200)
        const { success, data } = JSON.parse(response.body)
        t.equal(success, true)
        t.strictSame(data.user, { ...STUB, email })
        t.match(decodeClaims(data.token)?.claims, { ...STUB, email })
        t.strictSame(backend.requests, [], 'no request reaches the backend')
      })
    }

    t.test(`a foreign page cannot sign its visitor in at ${path}`, async (t) => {
      const post = (origin: string) =>
        send(path, {
          method: 'POST',
          headers: { 'content-type': 'application/x-www-form-urlencoded', origin },
          body: ''
        })
      const response = await post('https://evil.example')
      t.equal(response.code, 'ORIGIN_REFUSED')
      t.equal(response.headers['set-cookie'], undefined)
      t.equal((await post('http://localhost:5173')).status, 200)
    })

    const forms: readonly (readonly [string, string, string?])[] = [
      ['an address and a password', 'email=ada%40example.com&password=x', 'ada@example.com'],
      ['a name and a password', 'username=ada&password=x'],
      ['nothing', '']
    ]
    for (const [title, body, email = STUB.email] of forms) {
      t.test(`POST ${path} accepts a form with ${title} as credentials`, async (t) => {
        const headers = { 'content-type': 'application/x-www-form-urlencoded' }
        const response = await send(path, { method: 'POST', headers, body })
        t.equal(response.status, 200)
        t.strictSame(JSON.parse(response.body).data.user, { ...STUB, email })
      })
    }

    t.test(`POST ${path} without a body needs no content type`, async (t) => {
      t.equal((await send(path, { method: 'POST' })).status, 200)
    })

    t.test(`POST ${path} sets the session cookies and is not cacheable`, async (t) => {
      const response = await send(path, { method: 'POST', headers: json, body: '{}' })
      const { token, expiresIn } = JSON.parse(response.body).data
      const expiresAtMs = decodeClaims(token)?.expiresAtMs
      const readable = 'Path=/; SameSite=Lax'
      t.equal(expiresIn, 8 * 60 * 60)
      t.equal(response.headers['cache-control'], 'no-store')
      // The token was created a fraction of a second earlier.
      const cookies = response.headers['set-cookie']?.map((line) => line.replace(/Max-Age=28[78]\d\d/, 'Max-Age=28800'))
      t.strictSame(cookies?.toSorted(), [
        `auth_permissions=%5B%5D; Max-Age=28800; ${readable}`,
        `auth_token=${token}; Max-Age=28800; Path=/; HttpOnly; SameSite=Lax`,
        `auth_token_expiry=${expiresAtMs}; Max-Age=28800; ${readable}`,
        `auth_user=${encodeURIComponent(JSON.stringify(STUB))}; Max-Age=28800; ${readable}`,
        `auth_via_oidc=; Max-Age=0; ${readable}`,
        `oidc_exchange_failed=; Max-Age=0; ${readable}`
      ])
    })
  })

  t.test(`GET ${prefix}/dev-user outside production`, async (t) => {
    const { send, backend } = await startGateway(t, DEVELOPMENT)

    const UNAUTHENTICATED: readonly (readonly [string, Record<string, string>])[] = [
      ['no user is signed in', {}],
      ['the token has a wrong signature', { cookie: 'auth_token=e30.e30.c2ln' }],
      ['the token is the text null', { cookie: 'auth_token=null' }],
      ['the token is in a header', { authorization: `Bearer ${tokenOf('operator')}` }]
    ]
    for (const [title, headers] of UNAUTHENTICATED) {
      t.test(`GET ${prefix}/dev-user returns the stub user where ${title}`, async (t) => {
        const response = await send(`${prefix}/dev-user`, { headers })
        t.equal(response.status, 200)
        t.strictSame(JSON.parse(response.body), { success: true, data: STUB })
        t.strictSame(backend.requests, [], 'no request reaches the backend')
      })
    }

    t.test(`GET ${prefix}/dev-user returns the user who signed in`, async (t) => {
      const login = await send(path, { method: 'POST', headers: json, body: '{"email":"ada@example.com"}' })
      const cookie = login.headers['set-cookie']?.map((line) => line.split(';')[0]).join('; ') ?? ''
      const response = await send(`${prefix}/dev-user`, { headers: { cookie } })
      t.strictSame(JSON.parse(response.body), { success: true, data: { ...STUB, email: 'ada@example.com' } })
    })

    t.test(`GET ${prefix}/dev-user returns the claims of any valid token`, async (t) => {
      const response = await send(`${prefix}/dev-user`, { headers: { cookie: `auth_token=${tokenOf('operator')}` } })
      const user = { userId: 'operator-1', email: 'operator@example.com', displayName: null, role: 'operator' }
      t.strictSame(JSON.parse(response.body), { success: true, data: user })
    })
  })

  t.test(`${prefix}/ble outside production`, async (t) => {
    const { send, backend } = await startGateway(t, DEVELOPMENT)
    const responses: readonly (readonly [string, object])[] = [
      [`${prefix}/ble/scan`, { scanning: false, adapter: null, devices: 0 }],
      [`${prefix}/ble/status`, { devices: [] }]
    ]
    for (const [address, data] of responses) {
      t.test(`${address} returns an empty scan`, async (t) => {
        const response = await send(address)
        t.equal(response.status, 200)
        t.match(response.headers['content-type'], 'application/json')
        t.strictSame(JSON.parse(response.body), { success: true, data })
        t.strictSame(backend.requests, [])
      })
    }
  })
}

t.test('NODE_ENV=test has the development routes too', async (t) => {
  const { send } = await startGateway(t, { env: { NODE_ENV: 'test' } })
  t.equal((await send('/dev-login', { method: 'POST' })).status, 200)
  t.equal((await send('/api/dev-user')).status, 200)
})

t.test('the session cookies of a development login are Secure where COOKIE_SECURE=true', async (t) => {
  const { send } = await startGateway(t, { env: { ...DEVELOPMENT.env, COOKIE_SECURE: 'true' } })
  const { headers } = await send('/dev-login', { method: 'POST' })
  t.equal(headers['set-cookie']?.filter((line) => line.includes('; Secure')).length, 6)
})

t.test('a token of the development login', async (t) => {
  const development = await startGateway(t, DEVELOPMENT)
  const login = await development.send('/dev-login', { method: 'POST', headers: json, body: '{}' })
  const { token } = JSON.parse(login.body).data

  t.test('a production gateway with the same API_SECRET rejects a development token', async (t) => {
    const production = await startGateway(t)
    const response = await production.send('/api/admin/users', { headers: { cookie: `auth_token=${token}` } })
    t.equal(response.code, 'UNAUTHENTICATED')
    t.match((await production.auditRecords())[0], { reason: 'token-bad-signature', user: null })
    t.strictSame(production.backend.requests, [])
  })

  t.test('a development token is not signed with API_SECRET', async (t) => {
    t.throws(() => new AppTokenVerifier(apiKey).verify(token), { name: 'InvalidToken', reason: 'bad-signature' })
  })

  t.test('another development gateway rejects a development token', async (t) => {
    const { send } = await startGateway(t, DEVELOPMENT)
    const response = await send('/dev-user', { headers: { cookie: `auth_token=${token}` } })
    t.strictSame(JSON.parse(response.body).data, STUB)
  })
})

t.test('a gateway without API_SECRET accepts its own development tokens', async (t) => {
  const { send } = await startGateway(t, { env: { ...DEVELOPMENT.env, API_SECRET: '' } })
  const login = await send('/dev-login', { method: 'POST', headers: json, body: '{"email":"ada@example.com"}' })
  const cookie = `auth_token=${JSON.parse(login.body).data.token}`
  t.equal(JSON.parse((await send('/dev-user', { headers: { cookie } })).body).data.email, 'ada@example.com')
})

t.test('in production', async (t) => {
  const { send, backend } = await startGateway(t)
  const signedIn = browserHeaders(tokenOf('admin'))
  t.beforeEach(() => {
    backend.requests.length = 0
  })

  for (const path of ['/dev-login', '/api/dev-login', '/api/dev-login?again', '/api/dev-login/more']) {
    for (const method of METHODS) {
      t.test(`${method} ${path} is 404 in production and not forwarded`, async (t) => {
        const response = await send(path, { method, headers: signedIn })
        t.equal(response.status, 404)
        t.equal(response.headers['x-gateway-error'], 'NOT_FOUND')
        t.equal(response.headers['set-cookie'], undefined)
        t.strictSame(backend.requests, [])
      })
    }
  }

  for (const path of ['/api/dev-login/', '/api/Dev-Login', '/API/dev-login']) {
    t.test(`other spellings of development routes are rejected in production: ${path}`, async (t) => {
      const response = await send(path, { method: 'POST', headers: signedIn })
      t.equal(response.headers['x-gateway-error'], 'AMBIGUOUS_PATH')
      t.strictSame(backend.requests, [])
    })
  }

  const bodies: readonly (readonly [string, string])[] = [
    ['application/json', '{"email":"ada@example.com","password":"x"}'],
    ['application/json', '{'],
    ['application/json', ''],
    ['application/x-www-form-urlencoded', 'email=ada'],
    ['application/xml', '<x/>']
  ]
  for (const path of ['/dev-login', '/api/dev-login']) {
    for (const [type, body] of bodies) {
      t.test(`POST ${path} is 404 in production for ${type} ${body}`, async (t) => {
        const response = await send(path, { method: 'POST', headers: { ...signedIn, 'content-type': type }, body })
        t.equal(response.status, 404)
        t.equal(response.code, 'NOT_FOUND')
        t.strictSame(backend.requests, [])
      })
    }
  }

  for (const path of ['/dev-user', '/ble/scan', '/ble/status']) {
    for (const method of METHODS) {
      t.test(`${method} ${path} is 404 in production`, async (t) => {
        const response = await send(path, { method, headers: signedIn })
        t.equal(response.status, 404)
        t.equal(response.headers['x-gateway-error'], 'NOT_FOUND')
        t.strictSame(backend.requests, [])
      })
    }
  }

  for (const path of ['/api/dev-user', '/api/ble/scan', '/api/ble/status', '/api/dev-logins']) {
    t.test(`GET ${path} is forwarded in production`, async (t) => {
      const response = await send(path)
      t.equal(response.status, 200)
      t.equal(response.body, '{"success":true}')
      t.strictSame(
        backend.requests.map(({ method, url }) => [method, url]),
        [['GET', path]]
      )
    })

    t.test(`POST ${path} needs a session in production`, async (t) => {
      t.equal((await send(path, { method: 'POST', headers: browserHeaders(null) })).code, 'UNAUTHENTICATED')
      t.strictSame(backend.requests, [])
      t.equal((await send(path, { method: 'POST', headers: signedIn })).status, 200)
      t.equal(backend.requests.length, 1)
    })
  }
})
