import t from 'tap'
import {
  ADA,
  APP,
  APP_HOST,
  BOB,
  backendWith,
  browserOf,
  exchangesIn,
  signIn,
  signInUpToCallback,
  startOidcGateway,
  startProvider
} from './fixture.js'
import { signed, startScriptedProvider } from './scripted-provider.js'

t.test('sign-in', async (t) => {
  const provider = await startProvider(t)
  const gateway = await startOidcGateway(t, { issuer: provider.url })
  t.beforeEach(() => {
    gateway.backend.requests.length = 0
    gateway.backend.respond = backendWith(['ada@example.com'])
  })

  t.test('a sign-in ends at the requested path with an app session', async (t) => {
    const browser = browserOf(gateway)

    const landed = await signIn(browser, 'ada')

    t.equal(landed.url.href, `${APP}/floors?level=2`)
    t.same(exchangesIn(gateway.backend), [
      { email: 'ada@example.com', name: 'Ada Lovelace', okta: true, groups: ['engineers', 'admins'] }
    ])
    t.same(browser.names(APP_HOST), [
      'auth_permissions',
      'auth_token',
      'auth_token_expiry',
      'auth_user',
      'auth_via_oidc',
      'oidc_session'
    ])
    t.equal(browser.cookie(APP_HOST, 'auth_via_oidc'), 'true')

    await browser.visit(`${APP}/api/zones`)
    const last = gateway.backend.requests.at(-1)
    t.equal(last?.headers.authorization, `Bearer ${browser.cookie(APP_HOST, 'auth_token')}`)
    t.equal(last?.headers.cookie, undefined)
  })

  t.test('the authorization request has PKCE, state, nonce and the configured scopes', async (t) => {
    const provider = await startScriptedProvider(t)
    const gateway = await startOidcGateway(t, { issuer: provider.url, env: { OIDC_SCOPES: 'openid email' } })

    const response = await browserOf(gateway).request(`${APP}/auth/oidc/login`)

    t.equal(response.status, 303)
    t.equal(response.headers['cache-control'], 'no-store')
    const { origin, searchParams } = new URL(response.headers.location ?? '')
    t.equal(origin, provider.url)
    t.match(Object.fromEntries(searchParams), {
      client_id: 'gatehouse',
      redirect_uri: `${APP}/auth/oidc/callback`,
      response_type: 'code',
      scope: 'openid email',
      code_challenge_method: 'S256',
      code_challenge: /^[\w-]{43}$/,
      state: /^[\w-]{43}$/,
      nonce: /^[\w-]{43}$/
    })
  })

  t.test('two tabs can sign in concurrently', async (t) => {
    const browser = browserOf(gateway)

    const one = await signInUpToCallback(browser, 'ada', '/one')
    const two = await signInUpToCallback(browser, 'ada', '/two')

    t.equal((await browser.visit(two)).url.href, `${APP}/two`)
    t.equal((await browser.visit(one)).url.href, `${APP}/one`)
    t.same(
      browser.names(APP_HOST).filter((name) => name.startsWith('oidc_login')),
      [],
      'nothing is left behind'
    )
  })

  t.test('the oldest sign-in is removed if many tabs sign in', async (t) => {
    const browser = browserOf(gateway)
    for (let tab = 0; tab < 9; tab += 1) await browser.request(`${APP}/auth/oidc/login`)
    t.equal(browser.names(APP_HOST).length, 5)
    t.equal((await signIn(browser, 'ada', '/last')).url.href, `${APP}/last`)
  })

  t.test('sign-in cookies with long return paths stay below their size limit', async (t) => {
    const browser = browserOf(gateway)
    const returnTo = `/search?q=${'x'.repeat(1000)}`
    for (let tab = 0; tab < 6; tab += 1) await browser.request(`${APP}/auth/oidc/login?returnTo=${returnTo}`)
    const { length } = browser.cookieHeader(new URL(`${APP}/auth/oidc/callback`))
    t.ok(length < 3300, `${length} characters`)
    t.equal((await signIn(browser, 'ada', returnTo)).url.href, `${APP}${returnTo}`)
  })

  t.test('session cookies are HttpOnly and SameSite=Lax', async (t) => {
    const gateway = await startOidcGateway(t, { issuer: provider.url, env: { COOKIE_SECURE: 'true' } })
    const browser = browserOf(gateway)

    await browser.request(`${APP}/auth/oidc/login`)
    const [login = ''] = browser.names(APP_HOST)
    t.match(login, /^__Host-oidc_login_/, 'another host cannot set the cookie')
    t.match(browser.attributes(APP_HOST, login), /Max-Age=600; Path=\/; HttpOnly; Secure; SameSite=Lax/)

    await signIn(browser, 'ada')
    t.match(browser.attributes(APP_HOST, '__Host-oidc_session'), /Path=\/; HttpOnly; Secure; SameSite=Lax/)
    t.match(browser.attributes(APP_HOST, 'auth_token'), /HttpOnly; Secure; SameSite=Lax/)
    t.notMatch(browser.attributes(APP_HOST, 'auth_via_oidc'), /HttpOnly/)
  })

  t.test('no provider token reaches the browser', async (t) => {
    const provider = await startProvider(t, { client: { grant_types: ['authorization_code', 'refresh_token'] } })
    const gateway = await startOidcGateway(t, { issuer: provider.url })
    const browser = browserOf(gateway)
    await signIn(browser, 'ada')
    const sealed = browser.cookie(APP_HOST, 'oidc_session') ?? ''
    const [header = '', ...parts] = sealed.split('.')
    t.match(JSON.parse(Buffer.from(header, 'base64url').toString()), { alg: 'dir', enc: 'A256GCM', kid: /^.{8}$/ })
    t.equal(parts.length, 4, 'encrypted')
    t.notMatch(parts.map((part) => Buffer.from(part, 'base64url').toString('latin1')).join(), /ada@example/)
    t.ok(sealed.length < 1000, `${sealed.length} characters`)
  })

  t.test('the session of a user in many groups fits into a cookie', async (t) => {
    const groups = Array.from({ length: 400 }, (_, index) => `a-group-with-quite-a-long-name-${index}`)
    const provider = await startProvider(t, { accounts: [{ ...ADA, claims: { ...ADA.claims, groups } }] })
    const gateway = await startOidcGateway(t, { issuer: provider.url })
    const browser = browserOf(gateway)
    await signIn(browser, 'ada')
    t.ok((browser.cookie(APP_HOST, 'oidc_session') ?? '').length < 4000)
    t.ok(browser.cookie(APP_HOST, 'auth_token'))

    t.ok(gateway.logs.some(({ msg }) => msg === 'groups exceed session cookie size'))
  })

  t.test('missing claims are fetched from the userinfo endpoint', async (t) => {
    const provider = await startProvider(t, { thinIdTokens: true })
    const gateway = await startOidcGateway(t, { issuer: provider.url })
    await signIn(browserOf(gateway), 'ada')
    t.match(exchangesIn(gateway.backend), [{ email: 'ada@example.com', groups: ['engineers', 'admins'] }])
  })

  t.test('groups are read at the configured path', async (t) => {
    const claims = { ...ADA.claims, realm_access: { roles: ['operators'] } }
    const provider = await startProvider(t, { accounts: [{ id: 'ada', claims }] })
    const gateway = await startOidcGateway(t, {
      issuer: provider.url,
      env: { OIDC_GROUPS_CLAIM: 'realm_access.roles' }
    })
    await signIn(browserOf(gateway), 'ada')
    t.match(exchangesIn(gateway.backend), [{ groups: ['operators'] }])
  })

  t.test('a sign-in as another user replaces the session', async (t) => {
    gateway.backend.respond = backendWith(['ada@example.com', 'bob@example.com'])
    const browser = browserOf(gateway)
    await signIn(browser, 'ada')
    browser.setCookie(new URL(provider.url).host, '_session', null)
    await signIn(browser, BOB.id)
    t.match(exchangesIn(gateway.backend), [{ email: 'ada@example.com' }, { email: 'bob@example.com' }])
  })
})

t.test('email address and its confirmation', async (t) => {
  const provider = await startScriptedProvider(t)
  provider.metadata = { userinfo_endpoint: `${provider.url}/userinfo` }
  const gateway = await startOidcGateway(t, { issuer: provider.url })
  const ADA_EMAIL = 'ada@example.com'
  const OTHER_EMAIL = 'other@example.com'

  const CASES: readonly (readonly [idToken: object, userInfo: Record<string, unknown>, email: string | null])[] = [
    [{}, { email: ADA_EMAIL, email_verified: true }, ADA_EMAIL],
    [{}, { email: ADA_EMAIL }, ADA_EMAIL],
    [{ email_verified: true }, { email: ADA_EMAIL, email_verified: false }, null],
    [{ email_verified: false }, { email: ADA_EMAIL, email_verified: true }, ADA_EMAIL],
    [{ email_verified: false }, { email: ADA_EMAIL }, null],
    [{ email: ADA_EMAIL, email_verified: false }, { email: ADA_EMAIL, email_verified: true }, null],
    [{ email: ADA_EMAIL, email_verified: false }, { email: OTHER_EMAIL, email_verified: true }, null],
    [{ email: ADA_EMAIL, email_verified: true }, { email: OTHER_EMAIL, email_verified: false }, ADA_EMAIL],
    [{ email: ADA_EMAIL }, { email: OTHER_EMAIL, email_verified: false }, ADA_EMAIL],
    [{ email: ADA_EMAIL }, { email: 'Ada@Example.com', email_verified: false }, null],
    [{ email: ADA_EMAIL }, { email_verified: false }, null]
  ]
  for (const [idToken, userInfo, email] of CASES) {
    const given = `${JSON.stringify(idToken)} in the ID token and ${JSON.stringify(userInfo)} in userinfo`
    t.test(`${given} ${email === null ? 'are rejected' : `sign in ${email}`}`, async (t) => {
      gateway.backend.requests.length = 0
      provider.userInfo = { name: 'Ada', groups: [], ...userInfo }
      provider.idToken = ({ claims: { email: _email, name: _name, ...claims }, ...recipe }) =>
        signed({ ...recipe, claims: { ...claims, ...idToken } })
      const page = await signIn(browserOf(gateway), 'ada')
      if (email === null) t.match(page.body, /not confirmed/)
      const emails = exchangesIn(gateway.backend).map((exchange) => Reflect.get(exchange, 'email'))
      t.same(emails, email === null ? [] : [email])
    })
  }
})

t.test('user without a usable email address', async (t) => {
  const CASES: readonly (readonly [claims: object, text: RegExp])[] = [
    [{ name: 'Nemo' }, /did not send your email address/],
    [{ name: 'Mallory', email: 'ada@example.com', email_verified: false }, /not confirmed/]
  ]
  for (const [claims, text] of CASES) {
    t.test(`a user without a usable email address sees the reason: ${text.source}`, async (t) => {
      const provider = await startProvider(t, { accounts: [{ id: 'x', claims: { ...claims } }] })
      const gateway = await startOidcGateway(t, { issuer: provider.url })
      const browser = browserOf(gateway)

      const page = await signIn(browser, 'x')

      t.equal(page.status, 403)
      t.match(page.headers['content-type'], /^text\/html/)
      t.match(page.body, text)
      t.notMatch(page.body, /<script/)
      t.same(browser.names(APP_HOST), [], 'the browser has no session')
      t.same(gateway.backend.requests, [])
    })
  }
})
