import { createHmac } from 'node:crypto'
import t from 'tap'
import { API_SECRET, startGateway, tokenOf } from '../../helper/gateway.js'
import type { Message } from '../../helper/http.js'
import { startRedis } from '../../helper/redis.js'
import { gatewaySettingsErrors } from '../../helper/settings-errors.js'
import { APP, APP_HOST, browserOf, exchangesIn, signIn, startOidcGateway } from '../oidc/fixture.js'
import { startScriptedProvider } from '../oidc/scripted-provider.js'
import { REVOCATION_ENV, startRevocable, tokenFrom, withInternalApi } from '../revocation/fixture.js'

const ENABLED = { GATEWAY_FORWARD_AUTH: 'true', TRUST_PROXY: 'loopback' }
const IDENTITY = ['x-auth-user', 'x-auth-email', 'x-auth-role', 'x-auth-permissions'] as const

const as = (token: string, headers: Message['headers'] = {}): Message => ({
  headers: { cookie: `auth_token=${token}`, ...headers }
})

t.test('/auth/verify', async (t) => {
  const gateway = await startGateway(t, { env: ENABLED })
  const { send } = gateway

  t.test('a signed-in user passes, and the response names the user', async (t) => {
    const token = tokenOf('operator', { permissions: ['zones.read', 'a,b'] })
    const response = await send('/auth/verify', as(token))
    t.equal(response.status, 200)
    t.equal(response.body, '')
    t.match(response.headers, {
      'cache-control': 'no-store',
      'x-auth-user': 'operator-1',
      'x-auth-email': 'operator@example.com',
      'x-auth-role': 'operator',
      'x-auth-permissions': 'zones.read,a%2Cb'
    })
    t.same(gateway.backend.requests, [], 'the backend is not asked')
  })

  const expired = (): string => {
    const encoded = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
    const content = `${encoded({ alg: 'HS256', typ: 'JWT' })}.${encoded({ userId: 'u', exp: 1 })}`
    return `${content}.${createHmac('sha256', API_SECRET).update(content).digest('base64url')}`
  }
  const REJECTED: readonly (readonly [title: string, message: Message, code: string, reason: string])[] = [
    ['without a token', {}, 'UNAUTHENTICATED', 'token-absent'],
    ['with a forged token', as(`${tokenOf('admin').slice(0, -4)}AAAA`), 'UNAUTHENTICATED', 'token-bad-signature'],
    ['with an expired token', as(expired()), 'TOKEN_EXPIRED', 'token-expired'],
    [
      'with a token in a header only',
      { headers: { authorization: `Bearer ${tokenOf('admin')}` } },
      'UNAUTHENTICATED',
      'token-absent'
    ],
    [
      'with two different tokens',
      { headers: { cookie: `auth_token=${tokenOf('a')}; auth_token=${tokenOf('b')}` } },
      'UNAUTHENTICATED',
      'token-unusable'
    ],
    [
      'with identity headers',
      { headers: { 'x-auth-user': 'admin', 'x-auth-role': 'admin' } },
      'UNAUTHENTICATED',
      'token-absent'
    ]
  ]
  for (const [title, message, code, reason] of REJECTED) {
    t.test(`a request ${title} is 401 and audited`, async (t) => {
      const before = (await gateway.auditRecords()).length
      const response = await send('/auth/verify?redirect=1', message)
      t.equal(response.status, 401)
      t.equal(response.code, code)
      t.match(response.headers, { 'cache-control': 'no-store', 'www-authenticate': /Bearer/ })
      for (const name of IDENTITY) t.equal(response.headers[name], undefined, name)
      t.match((await gateway.auditRecords()).slice(before), [
        { event: 'unauthorized_access', resource: '/auth/verify', reason, status: 401 }
      ])
    })
  }

  const RIGHTS: readonly (readonly [query: string, status: number])[] = [
    ['role=operator', 200],
    ['role=admin&role=operator', 200],
    ['role=admin', 403],
    ['role=Operator', 403],
    ['role=admin%2Coperator', 403],
    ['permission=a', 200],
    ['permission=a&permission=b', 200],
    ['permission=a&permission=c', 403],
    ['role=operator&permission=c', 403],
    ['role=admin&permission=a', 403],
    ['roles=admin', 400],
    ['role=', 400],
    ['role', 400],
    ['permission=a&permission=', 400],
    ['redirect=0', 400],
    ['Role=admin', 400],
    ['role[]=admin', 400],
    ['x=1', 400]
  ]
  for (const [query, status] of RIGHTS) {
    t.test(`a user with one role and two permissions gets ${status} for ?${query}`, async (t) => {
      const before = (await gateway.auditRecords()).length
      const response = await send(`/auth/verify?${query}`, as(tokenOf('operator', { permissions: ['a', 'b'] })))
      t.equal(response.status, status)
      t.equal(response.headers['cache-control'], 'no-store')
      t.equal(response.headers['x-auth-user'], status === 200 ? 'operator-1' : undefined)
      const records = (await gateway.auditRecords()).slice(before)
      if (status === 403)
        t.match(records, [{ event: 'forbidden_access', user: { id: 'operator-1' }, reason: /^missing-/ }])
      else t.same(records, [])
    })
  }

  t.test('claims of other types give no rights', async (t) => {
    for (const claims of [
      { role: ['admin'] },
      { role: { admin: true } },
      { permissions: 'p' },
      { permissions: { p: true } }
    ]) {
      const token = tokenOf('x', claims)
      t.equal((await send('/auth/verify?role=admin', as(token))).status, 403)
      t.equal((await send('/auth/verify?permission=p', as(token))).status, 403)
    }
  })

  t.test('the gateway without an identity provider has no sign-in to redirect to', async (t) => {
    const response = await send('/auth/verify?redirect=1', { headers: { accept: 'text/html' } })
    t.equal(response.status, 401)
    t.equal(response.headers['x-sign-in-at'], undefined)
  })

  t.test('another method or spelling of the path is not served', async (t) => {
    for (const method of ['POST', 'HEAD', 'OPTIONS'])
      t.equal((await send('/auth/verify', { method })).status, 404, method)
    for (const path of ['/auth/Verify', '/auth/verify/', '/auth/%76erify'])
      t.equal((await send(path)).status, 400, path)
  })
})

t.test('/auth/verify responds to trusted proxies only, whatever headers a client sends', async (t) => {
  const gateway = await startGateway(t, { env: { GATEWAY_FORWARD_AUTH: 'true', TRUST_PROXY: '192.0.2.1' } })
  const headers = { 'x-forwarded-for': '192.0.2.1', forwarded: 'for=192.0.2.1', 'x-real-ip': '192.0.2.1' }
  t.equal((await gateway.send('/auth/verify', as(tokenOf('admin'), headers))).code, 'NOT_FOUND')
})

t.test('/auth/verify does not exist by default', async (t) => {
  const gateway = await startGateway(t, { env: { TRUST_PROXY: 'loopback' } })
  t.equal((await gateway.send('/auth/verify', as(tokenOf('admin')))).code, 'NOT_FOUND')
})

t.test('a proxy that asks a gateway without forward authentication never gets a page as permission', async (t) => {
  const WEB_ROOT = t.testdir({ 'index.html': 'the app' })
  const { send } = await startGateway(t, { env: { TRUST_PROXY: 'loopback', WEB_ROOT } })
  for (const header of ['x-forwarded-uri', 'x-forwarded-method', 'x-original-url']) {
    const headers = { accept: 'text/html', 'sec-fetch-mode': 'navigate', [header]: '/reports/' }
    t.equal((await send('/auth/verify?redirect=1', { headers })).status, 404, header)
  }
  const page = await send('/auth/verify?token=of-an-email', { headers: { accept: 'text/html' } })
  t.equal(page.body, 'the app', 'a browser can still open a page of the app with this path')
})

t.test('GATEWAY_FORWARD_AUTH requires TRUST_PROXY', async (t) => {
  t.same(gatewaySettingsErrors({ GATEWAY_FORWARD_AUTH: 'true', GATEWAY_ALLOW_DEVELOPMENT: 'true' }), [
    'TRUST_PROXY is required with GATEWAY_FORWARD_AUTH'
  ])
})

t.test('/auth/verify with an identity provider', async (t) => {
  const provider = await startScriptedProvider(t)
  const gateway = await startOidcGateway(t, { issuer: provider.url, env: ENABLED })
  const DOCUMENT = { accept: 'text/html,*/*', host: APP_HOST, 'x-forwarded-uri': '/reports/?a=1&b=2' }
  const SIGN_IN = '/auth/oidc/login?returnTo=%2Freports%2F%3Fa%3D1%26b%3D2'

  const CASES: readonly (readonly [title: string, headers: Record<string, string>, location: string | null])[] = [
    ['a page', {}, SIGN_IN],
    ['a page with Sec-Fetch-Dest', { 'sec-fetch-dest': 'document', accept: '*/*' }, SIGN_IN],
    ['a HEAD request', { 'x-forwarded-method': 'HEAD' }, SIGN_IN],
    ['a form', { 'x-forwarded-method': 'POST' }, null],
    ['an image', { 'sec-fetch-dest': 'image' }, null],
    ['a frame', { 'sec-fetch-dest': 'iframe' }, null],
    ['a call of a script', { accept: 'application/json' }, null],
    ['a forged address of another site', { 'x-forwarded-uri': '//evil.test/x' }, '/auth/oidc/login'],
    ['a forged absolute address', { 'x-forwarded-uri': 'https://evil.test/' }, '/auth/oidc/login'],
    ['a forged address with a backslash', { 'x-forwarded-uri': '/\\evil.test' }, '/auth/oidc/login'],
    ['two addresses', { 'x-forwarded-uri': '/a, /b' }, '/auth/oidc/login'],
    ['the address of the sign-in itself', { 'x-forwarded-uri': '/auth/oidc/login' }, '/auth/oidc/login'],
    ['the address of the check itself', { 'x-forwarded-uri': '/auth/verify' }, '/auth/oidc/login'],
    ['no address', { 'x-forwarded-uri': '' }, '/auth/oidc/login'],
    ['another host', { 'x-forwarded-host': 'evil.test' }, `${APP}/auth/oidc/login`]
  ]
  for (const [title, headers, location] of CASES) {
    t.test(`a rejected request for ${title} ${location === null ? 'is 401' : `leads to ${location}`}`, async (t) => {
      const message = { headers: { ...DOCUMENT, ...headers } }
      const redirected = await gateway.send('/auth/verify?redirect=1', message)
      t.equal(redirected.status, location === null ? 401 : 302)
      t.equal(redirected.headers.location, location ?? undefined)
      t.equal(redirected.headers['cache-control'], 'no-store')
      const named = await gateway.send('/auth/verify', message)
      t.equal(named.status, 401)
      t.equal(named.headers['x-sign-in-at'], location ?? undefined)
    })
  }

  t.test('a missing right is never a redirect, because another sign-in would not change it', async (t) => {
    const message = { headers: { ...DOCUMENT, cookie: `auth_token=${tokenOf('operator')}` } }
    t.equal((await gateway.send('/auth/verify?redirect=1&role=admin', message)).status, 403)
  })

  t.test('a provider session is exchanged, and ends at once with its logout', async (t) => {
    const browser = browserOf(gateway)
    await signIn(browser, 'ada')
    browser.setCookie(APP_HOST, 'auth_token', null)
    const verify = () => browser.request(`${APP}/auth/verify?redirect=1`, { headers: { accept: 'text/html' } })
    gateway.backend.requests.length = 0

    const passed = await verify()

    t.equal(passed.status, 200)
    t.equal(passed.headers['x-auth-user'], 'operator-1')
    t.ok(exchangesIn(gateway.backend).length <= 1)
    const cookie = browser.cookieHeader(new URL(APP))
    await browser.request(`${APP}/auth/oidc/logout`)
    const later = await gateway.send('/auth/verify', { headers: { cookie } })
    t.equal(later.status, 401, 'a copied cookie does not pass')
    t.match((await gateway.auditRecords()).at(-1), { reason: 'token-revoked' })
  })
})

t.test('/auth/verify rejects a revoked user, and all users while the revocations are unknown', async (t) => {
  const gateway = await startRevocable(t, { env: ENABLED })
  const token = tokenFrom(5, { userId: 'ada' })
  t.equal((await gateway.send('/auth/verify', as(token))).status, 200)
  await gateway.revoke({ user: 'ada' })
  const response = await gateway.send('/auth/verify', as(token))
  t.equal(response.status, 401)
  for (const name of IDENTITY) t.equal(response.headers[name], undefined, name)
  t.match(await gateway.auditRecords(), [{ resource: '/auth/verify', reason: 'token-revoked', user: { id: 'ada' } }])
  t.equal((await gateway.send('/auth/verify', as(tokenFrom(5, { userId: 'bob' })))).status, 200)

  const redis = await startRedis(t)
  await redis.kill()
  const redisTimeouts = { connect: 200, ready: 300, command: 50 }
  const unsure = await startRevocable(t, { env: { ...ENABLED, REDIS_URL: redis.url }, redisTimeouts })
  const unknown = await unsure.send('/auth/verify?redirect=1', as(token, { accept: 'text/html' }))
  t.equal(unknown.status, 503)
  t.equal(unknown.code, 'REVOCATIONS_UNKNOWN')
  t.match(unknown.headers, { 'retry-after': '1', 'cache-control': 'no-store' })
  t.equal((await unsure.send('/auth/verify')).code, 'REVOCATIONS_UNKNOWN', 'without a token')
})

t.test('/auth/verify with a session of a second provider', async (t) => {
  const [one, two] = [await startScriptedProvider(t), await startScriptedProvider(t)]
  const gateway = await withInternalApi(
    await startOidcGateway(t, {
      issuer: one.url,
      providers: [{ id: 'partner', issuer: two.url }],
      env: { ...ENABLED, ...REVOCATION_ENV }
    })
  )
  const browser = browserOf(gateway)
  const verify = () => browser.request(`${APP}/auth/verify?redirect=1`, { headers: { accept: 'text/html' } })
  t.equal((await verify()).headers.location, '/auth/oidc/login')
  await signIn(browser, 'ada', '/', '/auth/oidc/partner/login')
  browser.setCookie(APP_HOST, 'auth_token', null)
  const response = await verify()
  t.equal(response.status, 200)
  t.equal(response.headers['x-auth-user'], 'operator-1')
  t.match(exchangesIn(gateway.backend).at(-1), { provider: 'partner' })

  await gateway.revoke({ user: 'operator-1' })
  t.equal((await verify()).status, 302, 'with the app token')
  browser.setCookie(APP_HOST, 'auth_token', null)
  t.equal((await verify()).status, 302, 'with the provider session')
})
