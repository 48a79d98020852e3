import jwt from 'jsonwebtoken'
import t, { type Test } from 'tap'
import { API_SECRET, startGateway } from '../../helper/gateway.js'
import { detailsOf, send } from '../../helper/http.js'
import { startBackend } from '../../helper/recording-backend.js'
import { getWith, INTERNAL_KEY, REVOCATION_ENV, STRICT_PATH, startRevocable, tokenFrom } from './fixture.js'

const withoutIat = (claims: object): string =>
  jwt.sign({ ...claims, exp: Math.floor(Date.now() / 1000) + 600 }, API_SECRET, { noTimestamp: true })

const TOKENS = {
  'a token': tokenFrom(10, { userId: 'ada' }),
  'a token in the format of the backend': tokenFrom(10, { userId: 'ada' }, 'legacy'),
  'a token without iat': withoutIat({ userId: 'ada' }),
  'a token with the user in sub': tokenFrom(10, { sub: 'ada' }),
  'a token of this second': tokenFrom(0, { userId: 'ada' })
}

t.test('a revoked user', async (t) => {
  const gateway = await startRevocable(t)
  for (const token of Object.values(TOKENS)) t.equal((await getWith(gateway, token)).status, 200)
  const { status, body } = await gateway.revoke({ user: 'ada' })
  t.equal(status, 200)
  t.match(JSON.parse(body), { success: true, data: { issuedBefore: Number } })

  for (const [name, token] of Object.entries(TOKENS)) {
    t.test(`${name} of a revoked user is rejected`, async (t) => {
      const { status, code, headers } = await getWith(gateway, token)
      t.equal(status, 401)
      t.equal(code, 'UNAUTHENTICATED')
      t.ok(String(headers['set-cookie']).includes('auth_token=;'), 'the browser is signed out')
      t.match((await gateway.auditRecords()).at(-1), { reason: 'token-revoked', user: { id: 'ada' } })
    })
  }

  t.test('a revoked token is not forwarded with a read that needs no token', async (t) => {
    const token = TOKENS['a token']
    t.equal((await getWith(gateway, token, '/api/zones')).status, 200)
    t.equal(gateway.backend.requests.at(-1)?.headers.authorization, undefined)
  })

  t.test('a revoked token is not forwarded from a Bearer header', async (t) => {
    const headers = { authorization: `Bearer ${TOKENS['a token']}` }
    t.equal((await gateway.send('/api/zones', { headers })).status, 200)
    t.equal(gateway.backend.requests.at(-1)?.headers.authorization, undefined)
    const other = { authorization: 'Bearer a-key-of-the-backend' }
    await gateway.send('/api/zones', { headers: other })
    t.equal(gateway.backend.requests.at(-1)?.headers.authorization, other.authorization)
  })

  t.test('other users are not affected by a revocation', async (t) => {
    for (const id of ['Ada', 'ada ', 'bob', 'sid-1'])
      t.equal((await getWith(gateway, tokenFrom(10, { userId: id }))).status, 200, id)
  })
})

t.test('a number and its text are the same revoked user', async (t) => {
  const gateway = await startRevocable(t)
  await gateway.revoke({ user: 7 })
  t.equal((await getWith(gateway, tokenFrom(5, { userId: 7 }))).status, 401)
  t.equal((await getWith(gateway, tokenFrom(5, { id: '7' }))).status, 401)
})

t.test('a revocation with issuedBefore leaves newer tokens valid', async (t) => {
  const gateway = await startRevocable(t)
  const issuedBefore = Math.floor(Date.now() / 1000) - 60
  t.equal((await gateway.revoke({ user: 'ada', issuedBefore })).status, 200)
  t.equal((await getWith(gateway, tokenFrom(120, { userId: 'ada' }))).status, 401)
  t.equal((await getWith(gateway, tokenFrom(30, { userId: 'ada' }))).status, 200)
})

for (const claim of ['sid', 'jti']) {
  t.test(`a revoked session ends the tokens with its ${claim} only`, async (t) => {
    const gateway = await startRevocable(t)
    t.equal((await gateway.revoke({ session: 'one' })).status, 200)
    t.equal((await getWith(gateway, tokenFrom(5, { userId: 'ada', [claim]: 'one' }))).status, 401)
    t.equal((await getWith(gateway, tokenFrom(5, { userId: 'ada', [claim]: 'two' }))).status, 200)
    t.equal((await getWith(gateway, tokenFrom(5, { userId: 'one' }))).status, 200)
  })
}

t.test('signing in after a revocation', async (t) => {
  const logIn = async (t: Test, tokenAt: (seconds: number) => string) => {
    const backend = await startBackend(t)
    const gateway = await startRevocable(t, { backend })
    const { body } = await gateway.revoke({ user: 'ada' })
    const token = tokenAt(Math.floor(JSON.parse(body).data.issuedBefore))
    backend.respond = (_request, response) =>
      response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify({ success: true, data: { token, user: { userId: 'ada' }, expiresIn: 60 } }))
    t.equal((await getWith(gateway, token)).status, 401, 'before the sign-in')
    const { status } = await gateway.send('/api/auth/login', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"email":"ada@example.com","password":"x"}'
    })
    t.equal(status, 200)
    return (await getWith(gateway, token)).status
  }
  const sign = (claims: object): string =>
    jwt.sign({ userId: 'ada', ...claims }, API_SECRET, { noTimestamp: !('iat' in claims) })
  const exp = Math.floor(Date.now() / 1000) + 600

  t.test('a token of the second of the revocation is valid after its sign-in', async (t) => {
    t.equal(await logIn(t, (iat) => sign({ iat, exp })), 200)
  })

  t.test('a token without iat is valid after its sign-in', async (t) => {
    t.equal(await logIn(t, () => sign({ exp })), 200)
  })

  t.test('an older token stays revoked even if the backend returns it again', async (t) => {
    t.equal(await logIn(t, (iat) => sign({ iat: iat - 1, exp })), 401)
  })
})

t.test('a token that is older than revocations are kept is rejected', async (t) => {
  const gateway = await startRevocable(t, { env: { GATEWAY_MAX_TOKEN_AGE_S: '600' } })
  t.equal((await getWith(gateway, tokenFrom(500, { userId: 'ada' }))).status, 200)
  t.equal((await getWith(gateway, tokenFrom(700, { userId: 'ada' }))).status, 401)
})

t.test('the revocation of a user that does not exist succeeds', async (t) => {
  const gateway = await startRevocable(t)
  t.equal((await gateway.revoke({ user: 'nobody' })).status, 200)
})

t.test('invalid requests to the internal API', async (t) => {
  const gateway = await startRevocable(t)
  const future = Math.floor(Date.now() / 1000) + 3600
  const invalid: readonly (readonly [unknown, string])[] = [
    [{}, ''],
    [[], ''],
    ['null', ''],
    [{ user: 'ada', session: 's' }, ''],
    [{ user: '' }, '/user'],
    [{ user: null }, '/user'],
    [{ user: { $gt: '' } }, '/user'],
    [{ user: 1.5 }, '/user'],
    [{ user: 'x'.repeat(1025) }, '/user'],
    [{ session: ['a'] }, '/session'],
    [{ user: 'ada', issuedBefore: future }, '/issuedBefore'],
    [{ user: 'ada', issuedBefore: Date.now() }, '/issuedBefore'],
    [{ user: 'ada', issuedBefore: '2026-01-01' }, '/issuedBefore'],
    [{ user: 'ada', issuedBefore: -1 }, '/issuedBefore'],
    [{ user: 'ada', issued_before: 1 }, '/issued_before']
  ]
  for (const [body, path] of invalid) {
    t.test(`the internal API rejects ${JSON.stringify(body).slice(0, 60)}`, async (t) => {
      const response = await gateway.revoke(body)
      t.equal(response.status, 400)
      t.equal(response.code, 'VALIDATION_FAILED')
      t.ok(detailsOf(response).some((detail) => detail.path === path))
    })
  }
  t.equal((await gateway.revoke('{"user":')).code, 'MALFORMED_BODY')
  t.equal((await gateway.revoke({ user: 'x'.repeat(5000) })).code, 'BODY_TOO_LARGE')
  t.equal((await getWith(gateway, tokenFrom(5, { userId: 'ada' }))).status, 200, 'nothing was revoked')
})

t.test('the key of the internal API', async (t) => {
  const gateway = await startRevocable(t)
  const keys = {
    'no key': {},
    'a wrong key': { 'x-api-key': 'wrong' },
    'a wrong key of the same length': { 'x-api-key': INTERNAL_KEY.replace('a', 'b') },
    'the key as a Bearer token': { authorization: `Bearer ${INTERNAL_KEY}` }
  }
  for (const [name, headers] of Object.entries(keys)) {
    t.test(`the internal API rejects a request with ${name}`, async (t) => {
      const { status, code } = await gateway.revoke({ user: 'ada' }, headers)
      t.equal(status, 401)
      t.equal(code, 'UNAUTHENTICATED')
      t.match((await gateway.auditRecords()).at(-1), { reason: 'internal-key', resource: '/api/internal/revoke' })
    })
  }
  t.equal((await getWith(gateway, tokenFrom(5, { userId: 'ada' }))).status, 200, 'nothing was revoked')
  t.equal((await gateway.revoke({ user: 'ada' }, { authorization: `apikey ${INTERNAL_KEY}` })).status, 200)
})

t.test('during a rotation the internal API accepts both keys and no others', async (t) => {
  const previous = 'the-internal-key-before-0123456789-abc'
  const gateway = await startRevocable(t, { env: { GATEWAY_INTERNAL_KEY_PREVIOUS: previous } })
  for (const key of [previous, INTERNAL_KEY])
    t.equal((await gateway.revoke({ user: 'ada' }, { 'x-api-key': key })).status, 200)
  for (const key of ['', 'null', `${previous},${INTERNAL_KEY}`])
    t.equal((await gateway.revoke({ user: 'ada' }, { 'x-api-key': key })).status, 401)
})

t.test('the public listener does not serve the internal API', async (t) => {
  const gateway = await startRevocable(t)
  const headers = { 'x-api-key': INTERNAL_KEY, 'content-type': 'application/json' }
  const message = { method: 'POST', headers, body: '{"user":"ada"}' }
  for (const path of [
    '/api/internal/revoke',
    '/api/internal',
    '/api/internal/',
    '/api/internal/other?x',
    '/api/internal%20/revoke'
  ])
    t.equal((await gateway.send(path, message)).code, 'NOT_FOUND', path)
  for (const path of ['/api/Internal/revoke', '/api/%EF%BD%89nternal/revoke', '/api/inter%C2%ADnal/revoke'])
    t.equal((await gateway.send(path, message)).code, 'AMBIGUOUS_PATH', path)
  t.same(gateway.backend.requests, [])
  t.equal((await getWith(gateway, tokenFrom(5, { userId: 'ada' }))).status, 200)
  t.equal((await send(gateway.internalUrl, STRICT_PATH, { headers })).status, 404, 'and the internal one nothing else')
})

t.test('without the settings of revocation there is no internal API', async (t) => {
  const { gateway } = await startGateway(t)
  t.equal(gateway.internal, null)
})

t.test('the relay is informed of a revoked user', async (t) => {
  const relay = await startBackend(t)
  const env = { ...REVOCATION_ENV, RELAY_API_URL: `${relay.url}/api`, REALTIME_API_KEY: 'the-key-of-the-relay' }
  const gateway = await startRevocable(t, { env })
  const json = (body: object) => JSON.stringify(body)

  relay.respond = (_request, response) => response.writeHead(200).end(json({ result: {} }))
  t.equal((await gateway.revoke({ user: 'ada', issuedBefore: 1700000000.5 })).status, 200)
  const [request] = relay.requests
  t.equal(request?.url, '/api/invalidate_user_tokens')
  t.equal(request?.headers['x-api-key'], 'the-key-of-the-relay')
  t.same(JSON.parse(String(request?.body)), { user: 'ada', issued_before: 1700000000 })
  t.equal((await gateway.revoke({ session: 's' })).status, 200)
  t.equal(relay.requests.length, 1, 'not of a session')

  for (const [status, body] of [
    [200, json({ error: { code: 100, message: 'internal server error' } })],
    [401, ''],
    [200, 'no JSON']
  ] as const) {
    relay.respond = (_request, response) => response.writeHead(status).end(body)
    const response = await gateway.revoke({ user: 'bob' })
    t.equal(response.status, 503)
    t.equal(response.code, 'REVOCATION_INCOMPLETE')
    t.match(detailsOf(response), [{ path: '/relay' }])
    t.notOk(response.body.includes('the-key-of-the-relay'))
  }
  t.equal((await getWith(gateway, tokenFrom(5, { userId: 'bob' }))).status, 401, 'the gateway has revoked the user')
})
