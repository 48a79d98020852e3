import t from 'tap'
import { createAppToken } from '../../src/shared/app-token.js'
import { apiKey, startGateway, tokenOf } from '../helper/gateway.js'

const CREDENTIALS = {
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: '{"username":"ada","password":"x"}'
}

const FIELDS = {
  LOGIN_TOKEN_FIELD: 'access_token',
  LOGIN_USER_FIELD: 'profile',
  LOGIN_PERMISSIONS_FIELD: 'profile.scopes',
  LOGIN_EXPIRES_IN_FIELD: 'expires_in'
}

/** The cookies that a response sets, with decoded values. */
const cookiesOf = (headers: Readonly<Record<string, unknown>>): Record<string, string> => {
  const lines = [headers['set-cookie'] ?? []].flat().map(String)
  return Object.fromEntries(
    lines.map((line) => {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      return [name, decodeURIComponent(value)]
    })
  )
}

t.test('the login fields map the response of another backend to the session cookies', async (t) => {
  const { send, backend } = await startGateway(t, { env: FIELDS })
  const token = tokenOf('viewer')
  const body = {
    access_token: token,
    token_type: 'bearer',
    expires_in: 60,
    profile: { id: 7, name: 'Ada', email: 'ada@example.com', role: 'viewer', scopes: ['zones.read'] }
  }
  backend.respond = (_request, response) => void response.end(JSON.stringify(body))
  const reply = await send('/api/auth/login', CREDENTIALS)
  const cookies = cookiesOf(reply.headers)

  t.equal(reply.status, 200)
  const { access_token: omitted, ...shown } = body
  t.same(JSON.parse(reply.body), shown)
  t.equal(cookies.auth_token, token)
  t.same(JSON.parse(cookies.auth_user ?? ''), {
    userId: 7,
    email: 'ada@example.com',
    displayName: 'Ada',
    role: 'viewer'
  })
  t.same(JSON.parse(cookies.auth_permissions ?? ''), ['zones.read'])
})

t.test('with login fields, a login that the backend rejects with success: false sets no cookies', async (t) => {
  const { send, backend } = await startGateway(t, { env: FIELDS })
  backend.respond = (_request, response) =>
    void response.end(JSON.stringify({ success: false, access_token: tokenOf('viewer') }))

  t.same(cookiesOf((await send('/api/auth/login', CREDENTIALS)).headers), {})
})

t.test('a response without a token at its field sets no cookies, and the log names the field', async (t) => {
  const { send, backend, logs } = await startGateway(t, { env: FIELDS })
  backend.respond = (_request, response) =>
    void response.end(JSON.stringify({ success: true, data: { token: tokenOf('viewer') } }))

  t.same(cookiesOf((await send('/api/auth/login', CREDENTIALS)).headers), {})
  t.match(
    logs.find(({ msg }) => msg === 'login response without a session'),
    { missing: 'access_token' }
  )
})

t.test('a name that objects inherit is not a login field', async (t) => {
  const { send, backend } = await startGateway(t, {
    env: { ...FIELDS, LOGIN_TOKEN_FIELD: '__proto__.constructor.name' }
  })
  backend.respond = (_request, response) => void response.end(JSON.stringify({ expires_in: 60 }))

  t.same(cookiesOf((await send('/api/auth/login', CREDENTIALS)).headers), {})
})

t.test('the login response has no token in its field, and everything else', async (t) => {
  const env = { LOGIN_TOKEN_FIELD: 'result.auth.token' }
  const { send, backend } = await startGateway(t, { env })
  const token = createAppToken({ permissions: ['a'] }, apiKey, { format: 'jwt', lifetimeSeconds: 60 })
  backend.respond = (_request, response) =>
    void response.end(JSON.stringify({ result: { auth: { token, kind: 'x' }, more: [1] } }))
  const reply = await send('/api/auth/login', CREDENTIALS)

  t.same(JSON.parse(reply.body), { result: { auth: { kind: 'x' }, more: [1] } })
  t.equal(cookiesOf(reply.headers).auth_token, token)
  t.same(JSON.parse(cookiesOf(reply.headers).auth_permissions ?? ''), ['a'], 'from the claims of the token')
})
