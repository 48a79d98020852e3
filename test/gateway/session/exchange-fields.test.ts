import t from 'tap'
import { browserHeaders, startGateway } from '../../helper/gateway.js'
import { folderOf } from '../upstreams/upstreams-fixture.js'

const LOGIN = { email: 'ada@example.com', password: 'secret' }

/** The exchange of the gateway: the backend would open a session for it without a password. */
const EXCHANGE = { email: 'ceo@example.com', name: 'CEO', okta: true, groups: ['admins'] }

const UNLIMITED = { LOGIN_LIMIT_MAX: '100000' }

/** Names that some decoder reads as `okta`, `groups` or another field of the exchange. */
const NAMES = [
  ...['okta', 'OKTA', 'Okta', 'groups', 'Groups', 'provider', 'name'],
  ...[
    'okta ',
    ' okta',
    '\tokta',
    'okta\n',
    'okta\0',
    'okta\0x',
    '\ufeffokta',
    'okta\u200b',
    'o\u00adkta',
    '\u2060okta'
  ],
  ...['\uff4fkta', 'o\u212ata', 'group\u017f', '\u24dekta', 'okt\u00aa', '\u{1d428}kta', 'o\u0307kta', 'okt\u0430'],
  ...['okta[]', 'okta[0]', '[okta]', 'okta[', 'okta]', 'user[okta]', 'groups[]', 'okta(1i)', 'okta{}'],
  ...[
    'user.okta',
    'okta.x',
    'okta:bool',
    'okta::boolean',
    'user->okta',
    'user->>okta',
    "user->'okta'",
    '$.okta',
    '/okta'
  ],
  ...['user/okta', 'user:okta', 'user,okta', 'user|okta', 'user okta', 'user+okta', 'user__okta', 'user-okta', '#okta'],
  ...[
    '!okta',
    '_okta',
    '@okta',
    '$okta',
    '*okta',
    '.okta',
    'okta=true',
    'okta&x',
    'okta;x',
    '"okta"',
    "'okta'",
    '`okta`'
  ],
  ...['okta_attributes', 'isOkta', 'o_kta', 'o-kta', 'okta?', 'okta%00', '%6fkta', '\\u006fkta', '\\okta', 'data', '']
]

t.test('a login has the fields of a password login only, in body and query', async (t) => {
  const { send, backend } = await startGateway(t, { env: UNLIMITED })
  const rejected = async (path: string, body: object): Promise<boolean> => {
    const headers = { 'content-type': 'application/json' }
    const { code } = await send(path, { method: 'POST', headers, body: JSON.stringify(body) })
    return code === 'VALIDATION_FAILED'
  }
  for (const name of NAMES) {
    t.ok(await rejected('/api/auth/login', { ...LOGIN, [name]: true }), `${JSON.stringify(name)} in the body`)
    const query = encodeURIComponent(name)
    t.ok(await rejected(`/api/auth/backend-login?${query}=true`, LOGIN), `${JSON.stringify(name)} in the query`)
  }
  for (const [name, value] of Object.entries({
    user: { okta: true },
    email: { okta: true },
    rememberMe: { okta: true },
    username: ['ceo', { okta: true }],
    password: { okta: true }
  }))
    t.ok(await rejected('/api/auth/login', { ...LOGIN, [name]: value }), `an object as ${name}`)
  for (const query of [
    'okta=true',
    'a=1;okta=true',
    'email=x;okta',
    '%6fkta%5B%5D=1',
    'email=1?&okta=1',
    'email=x#&okta=1'
  ])
    t.ok(await rejected(`/api/auth/login?${query}`, LOGIN), query)
  t.same(backend.requests, [])
  t.notOk(await rejected('/api/auth/login?rememberMe=true', { ...LOGIN, username: 'ada', rememberMe: true }))
  t.equal(backend.requests.length, 1)
})

t.test('LOGIN_REQUEST_FIELDS adds fields with a text, a number or a boolean', async (t) => {
  const { send, backend } = await startGateway(t, {
    env: { ...UNLIMITED, LOGIN_REQUEST_FIELDS: 'otp,tenant,useCookies' }
  })
  const headers = { 'content-type': 'application/json' }
  const login = (query: string, fields: object) =>
    send(`/api/auth/login${query}`, { method: 'POST', headers, body: JSON.stringify({ ...LOGIN, ...fields }) })
  t.equal((await login('?useCookies=true', { otp: 123456, tenant: 'a' })).status, 200)
  t.same(JSON.parse(backend.requests[0]?.body ?? ''), { ...LOGIN, otp: 123456, tenant: 'a' })
  for (const fields of [{ tenant: { okta: true } }, { otp: ['okta'] }, { Otp: 1 }, { okta: true }, { 'otp[okta]': 1 }])
    t.equal((await login('', fields)).code, 'VALIDATION_FAILED', JSON.stringify(fields))
  t.equal(backend.requests.length, 1)
})

/** Paths below `/api/auth` and other spellings of it. */
const PATHS = [
  ...[
    'login.json',
    'login%20',
    'login.',
    'login,',
    'login~',
    'login/x',
    'session',
    'v2/login',
    'login%C2%A0',
    'login=',
    ''
  ],
  ...[
    'login/',
    'Login',
    'LOGIN',
    'log%C4%B1n',
    '%EF%BD%8Cogin',
    'login%E2%80%8B',
    'lo%C2%ADgin',
    'login+',
    'login:80',
    '@login'
  ],
  ...[
    'login.php',
    'login.xml',
    'login.html',
    '+login',
    '%20login',
    'login%2Fx',
    'login%3Fx',
    'login;x',
    'login%3Bx',
    'login%00'
  ],
  ...[
    './login',
    '../auth/login',
    '//login',
    'login//',
    '%2e/login',
    'x/../login',
    'login/.',
    'login%09',
    'login\\',
    'login%5C'
  ],
  ...[
    'callback',
    'token',
    'signin',
    'sign-in',
    'oauth/token',
    'sessions/new',
    'logout/x',
    'providers/x',
    'backend-login.json'
  ],
  ...[
    'l%C3%B6gin',
    "login'",
    'login(1)',
    'login*',
    'login!',
    'login$',
    'login&x',
    'csrf-token/login',
    'backend-me/login'
  ]
].map((name) => `/api/auth/${name}`)

const OTHER_SPELLINGS = [
  ...[
    '/api/Auth/session',
    '/API/auth/session',
    '/Api/Auth/Session',
    '/api/%EF%BD%81uth/session',
    '/api/au%E2%80%8Bth/session'
  ],
  ...[
    '//api/auth/session',
    '/api//auth/session',
    '/api/./auth/session',
    '/api/x/../auth/session',
    '/api/%61uth/session'
  ],
  ...[
    '/api/auth.json/session',
    '/api/auth%20/session',
    '/api/auth./login',
    '/api/%20auth/login',
    '/api/a%C3%BAth/login'
  ],
  ...['/api/%20/auth/login', '/api/auth~/x', '/api/auth:80/x', '/api/.auth/x', '/api/auth%C2%A0/login'],
  ...['/api/auth', '/api/auth/', '/api/auth%2Fsession', '/api/auth;x/session', '/api\\auth\\session']
]

t.test('nothing below /api/auth reaches a backend unless a route declares it', async (t) => {
  const { send, backend } = await startGateway(t, { env: UNLIMITED })
  const message = {
    headers: { ...browserHeaders(null), 'content-type': 'application/json' },
    body: JSON.stringify(EXCHANGE)
  }
  for (const path of [...PATHS, ...OTHER_SPELLINGS])
    for (const method of ['POST', 'OPTIONS']) {
      const { status } = await send(path, { ...message, method })
      t.ok([400, 404].includes(status), `${method} ${path}: ${status}`)
    }
  const query = '?email=ceo@example.com&okta=true'
  for (const path of [...PATHS, ...OTHER_SPELLINGS].map((path) => `${path}${query}`)) {
    const { status } = await send(path, { headers: message.headers })
    t.ok([400, 404].includes(status), `GET ${path}: ${status}`)
  }
  for (const method of ['GET', 'HEAD', 'OPTIONS', 'PUT', 'PATCH', 'DELETE']) {
    const { status, headers } = await send(`/api/auth/login${query}`, { method, headers: browserHeaders() })
    t.equal(status, 405, `${method} of a declared path`)
    t.equal(headers.allow, 'POST')
  }
  t.same(backend.requests, [])
  t.equal((await send('/api/auth/backend-me', { method: 'HEAD' })).status, 200)
  t.equal((await send('/api/auth/backend-me')).status, 200)
  t.same(
    backend.requests.map(({ method }) => method),
    ['HEAD', 'GET']
  )
})

t.test('GATEWAY_AUTH_PATHS lists prefixes below /api/auth that are forwarded', async (t) => {
  const { send, backend } = await startGateway(t, { env: { ...UNLIMITED, GATEWAY_AUTH_PATHS: '/api/auth/refresh' } })
  const post = async (path: string) => (await send(path, { method: 'POST', headers: browserHeaders(null) })).status
  t.same(
    [await post('/api/auth/refresh'), await post('/api/auth/refresh/x'), await post('/api/auth/refresh.json')],
    [200, 200, 404]
  )
  t.same(
    [await post('/api/auth/Refresh'), await post('/api/auth/refreshed'), await post('/api/auth/x')],
    [404, 404, 404]
  )
  t.same(
    backend.requests.map(({ url }) => url),
    ['/api/auth/refresh', '/api/auth/refresh/x']
  )
})

t.test('a declared route counts below /api/auth only if it names the prefix', async (t) => {
  const body = { content: { 'application/json': { schema: { type: 'object' } } } }
  const document = {
    openapi: '3.1.0',
    info: { title: 'CRUD', version: '1' },
    paths: {
      '/api/{resource}/{id}': { post: { requestBody: body, responses: {} }, get: { responses: {} } },
      '/{any}/auth/{id}': { post: { requestBody: body, responses: {} } },
      '/api/auth/sessions/{id}': { post: { requestBody: body, responses: {} } },
      '/api/internal/{id}': { post: { requestBody: body, responses: {} } }
    }
  }
  const folder = folderOf(t, { 'crud.json': JSON.stringify(document) })
  const { send, backend, logs } = await startGateway(t, {
    env: { ...UNLIMITED, GATEWAY_ROUTES: `${folder}/crud.json` }
  })
  t.match(JSON.stringify(logs), /internal.*the gateway serves this path itself/)
  const headers = { ...browserHeaders(), 'content-type': 'application/json' }
  const post = async (path: string) => (await send(path, { method: 'POST', headers, body: '{}' })).status
  t.same([await post('/api/auth/session'), await post('/api/auth/7'), await post('/api/internal/7')], [404, 404, 404])
  t.same([await post('/api/auth/sessions/7'), await post('/api/zones/7')], [200, 200])
  t.equal((await send('/api/auth/session')).status, 404)
  t.equal((await send('/api/auth/sessions/7')).status, 405)
  t.equal(backend.requests.length, 2)
})
