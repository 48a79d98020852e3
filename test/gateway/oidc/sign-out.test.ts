import t from 'tap'
import { APP, APP_HOST, browserOf, exchangesIn, signIn, startOidcGateway, startProvider, TestClock } from './fixture.js'
import { signed, startScriptedProvider } from './scripted-provider.js'

/** The confirmation form of the provider. */
const confirm = (body: string) => ({
  xsrf: /name="xsrf" value="([^"]+)"/.exec(body)?.[1] ?? '',
  logout: 'yes'
})

t.test('sign-out', async (t) => {
  const provider = await startProvider(t)
  const clock = new TestClock()
  const gateway = await startOidcGateway(t, { issuer: provider.url, clock })
  const signedIn = async () => {
    const browser = browserOf(gateway)
    await signIn(browser, 'ada')
    return browser
  }

  t.test('a logout ends the sessions at gateway and provider, also for copied cookies', async (t) => {
    const browser = await signedIn()
    const cookies = browser.cookieHeader(new URL(APP))

    const confirmation = await browser.visit(`${APP}/auth/oidc/logout`)

    t.same(browser.names(APP_HOST), [], 'all cookies of the app are removed')
    t.equal(confirmation.url.origin, provider.url)
    t.match(Object.fromEntries(confirmation.url.searchParams), {
      post_logout_redirect_uri: `${APP}/`,
      client_id: 'gatehouse',
      id_token_hint: /^ey/
    })
    const [, action = ''] = /action="([^"]+)"/.exec(confirmation.body) ?? []
    const back = await browser.submit(action, confirm(confirmation.body))
    t.equal(back.url.href, `${APP}/`, 'the provider redirects the browser back')

    const again = await browser.visit(`${APP}/auth/oidc/login`)
    t.equal(again.url.origin, provider.url, 'a new sign-in starts at the provider')

    const before = exchangesIn(gateway.backend).length
    const session = cookies.split('; ').find((pair) => pair.startsWith('oidc_session=')) ?? ''
    const response = await gateway.send('/api/zones', { headers: { cookie: session } })
    t.equal(exchangesIn(gateway.backend).length, before, 'a stored cookie does not sign in')
    t.match(response.headers['set-cookie']?.join(), /oidc_session=; Max-Age=0/)
    await gateway.send('/api/zones', { headers: { cookie: cookies } })
    t.equal(gateway.backend.requests.at(-1)?.headers.authorization, undefined, 'the app token is not forwarded either')
  })

  t.test('a write, strict or admin request of a revoked session is rejected and audited', async (t) => {
    const browser = await signedIn()
    const cookie = `${browser.cookieHeader(new URL(APP))}; csrf_token=t0ken`
    await browser.request(`${APP}/auth/oidc/logout`)
    gateway.backend.requests.length = 0
    const before = (await gateway.auditRecords()).length
    const requests = [
      ['POST', '/api/things'],
      ['DELETE', '/api/zones/1'],
      ['GET', '/api/admin/users'],
      ['GET', '/api/audit/logs']
    ] as const

    for (const [method, path] of requests) {
      const response = await gateway.send(path, { method, headers: { cookie, 'x-csrf-token': 't0ken' } })
      t.equal(response.code, 'UNAUTHENTICATED', `${method} ${path}`)
      t.match(response.headers['set-cookie']?.join(), /oidc_session=; Max-Age=0.*auth_token=; Max-Age=0/s)
      t.equal(response.headers['cache-control'], 'no-store')
    }

    t.same(gateway.backend.requests, [])
    t.match(
      (await gateway.auditRecords()).slice(before),
      requests.map(([method, resource]) => ({
        event: 'unauthorized_access',
        method,
        resource,
        status: 401,
        reason: 'token-revoked',
        user: { id: 'operator-1' }
      }))
    )
  })

  t.test('a revoked session is not extended', async (t) => {
    const browser = await signedIn()
    const cookie = browser.cookieHeader(new URL(APP))
    await browser.request(`${APP}/auth/oidc/logout`)
    clock.advance(600)
    const response = await gateway.send('/api/zones', { headers: { cookie } })
    t.notMatch(response.headers['set-cookie']?.join(), /oidc_session=[^;]/)
  })

  t.test('a logout link on another site asks for confirmation', async (t) => {
    const browser = await signedIn()
    for (const site of ['cross-site', 'same-site']) {
      const page = await browser.visit(`${APP}/auth/oidc/logout`, { headers: { 'sec-fetch-site': site } })
      t.equal(page.status, 200)
      t.match(page.body, /Sign out\?/)
      t.ok(browser.cookie(APP_HOST, 'oidc_session'), 'still signed in')
    }
    for (const site of ['none', 'same-origin']) {
      const response = await browser.request(`${APP}/auth/oidc/logout`, { headers: { 'sec-fetch-site': site } })
      t.equal(response.status, 303, site)
    }
  })

  t.test('a logout without a session redirects to the provider', async (t) => {
    const { status, headers } = await browserOf(gateway).request(`${APP}/auth/oidc/logout`)
    t.equal(status, 303)
    t.notMatch(headers.location, /id_token_hint/)
  })

  t.test('a logout shows a page if the provider has no end-session endpoint', async (t) => {
    const provider = await startScriptedProvider(t)
    const gateway = await startOidcGateway(t, { issuer: provider.url })
    const browser = browserOf(gateway)
    await signIn(browser, 'ada')
    const page = await browser.visit(`${APP}/auth/oidc/logout`)
    t.equal(page.status, 200)
    t.match(page.body, /may still be signed in at your identity provider/)
    t.same(browser.names(APP_HOST), [])
  })

  t.test('a logout omits an ID token hint that is too long', async (t) => {
    const scripted = await startScriptedProvider(t)
    scripted.metadata = { end_session_endpoint: `${scripted.url}/end` }
    scripted.idToken = (recipe) => signed({ ...recipe, claims: { ...recipe.claims, more: 'x'.repeat(6000) } })
    const browser = browserOf(await startOidcGateway(t, { issuer: scripted.url }))
    await signIn(browser, 'ada')
    const { status, headers } = await browser.request(`${APP}/auth/oidc/logout`)
    t.equal(status, 303)
    t.ok(String(headers.location).length < 1000, `${headers.location?.length} characters`)
  })

  t.test('a logout shows a page if the provider is unavailable', async (t) => {
    const provider = await startProvider(t)
    await provider.down()
    const gateway = await startOidcGateway(t, { issuer: provider.url, isDiscovered: false })
    const page = await browserOf(gateway).visit(`${APP}/auth/oidc/logout`)
    t.equal(page.status, 200)
    t.match(page.body, /cannot be reached/)
  })

  t.test('POST /api/auth/logout ends the provider session and returns the logout address', async (t) => {
    const browser = await signedIn()
    browser.setCookie(APP_HOST, 'csrf_token', 't0ken')
    const session = browser.cookie(APP_HOST, 'oidc_session')

    const response = await browser.request(`${APP}/api/auth/logout`, {
      method: 'POST',
      headers: { 'x-csrf-token': 't0ken', 'content-type': 'application/json' },
      body: '{}'
    })

    t.equal(response.status, 200)
    t.same(browser.names(APP_HOST), [])
    const next = String(response.headers['x-logout-at'])
    t.match(next, /^\/auth\/oidc\/logout\?ticket=/)
    const parts = next.split(/[.=]/).map((part) => Buffer.from(part, 'base64url').toString('latin1'))
    t.notMatch(parts.join(), /"sub"|"iss"|"alg":"RS256"/, 'the page can read no token in it')

    const confirmation = await browser.visit(`${APP}${next}`)
    t.equal(confirmation.url.origin, provider.url)
    t.match(confirmation.url.searchParams.get('id_token_hint'), /^ey/, 'the id token hint names the session')
    for (const ticket of ['nonsense', '', `${session}`, 'A'.repeat(7000)]) {
      const { status, headers } = await browser.request(`${APP}/auth/oidc/logout?ticket=${ticket}`)
      t.equal(status, 303)
      t.notMatch(headers.location, /id_token_hint/)
    }

    const before = exchangesIn(gateway.backend).length
    await gateway.send('/api/zones', { headers: { cookie: `oidc_session=${session}` } })
    t.equal(exchangesIn(gateway.backend).length, before)
  })

  t.test('POST /api/auth/logout returns the logout address if only the app session is left', async (t) => {
    const browser = await signedIn()
    browser.setCookie(APP_HOST, 'oidc_session', null)
    browser.setCookie(APP_HOST, 'csrf_token', 't0ken')
    const headers = { 'x-csrf-token': 't0ken', 'content-type': 'application/json' }
    const response = await browser.request(`${APP}/api/auth/logout`, { method: 'POST', headers, body: '{}' })
    t.equal(response.headers['x-logout-at'], '/auth/oidc/logout')
  })

  t.test('POST /api/auth/logout returns no logout address for a password session', async (t) => {
    const response = await gateway.send('/api/auth/logout', {
      method: 'POST',
      headers: { cookie: 'csrf_token=t0ken', 'x-csrf-token': 't0ken', 'content-type': 'application/json' },
      body: '{}'
    })
    t.equal(response.headers['x-logout-at'], undefined)
  })
})
