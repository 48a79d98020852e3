import { randomUUID } from 'node:crypto'
import type { RequestListener } from 'node:http'
import t from 'tap'
import { newSigningKey } from '../../../demo/oidc/local-provider.js'
import type { Teardown } from '../../helper/child.js'
import { eventually } from '../../helper/eventually.js'
import type { TestGateway } from '../../helper/gateway.js'
import { redisUrl } from '../../helper/redis.js'
import {
  APP,
  APP_HOST,
  browserOf,
  CLIENT_ID,
  exchangesIn,
  type ProviderRow,
  signIn,
  startOidcGateway,
  startProvider,
  TestClock,
  type TestProvider
} from './fixture.js'
import { signed, startScriptedProvider } from './scripted-provider.js'

const loginPath = (id: string): string => `/auth/oidc/${id}/login`
const callbackPath = (id: string): string => (id === 'default' ? '/auth/oidc/callback' : `/auth/oidc/${id}/callback`)

interface RecordingProvider extends TestProvider {
  /** Paths of the requests that it received. */
  readonly requested: string[]
}

/** A real provider whose client has the callback address of this id. */
const startNamedProvider = async (t: Teardown, id: string): Promise<RecordingProvider> => {
  const redirect_uris = [`${APP}${callbackPath(id)}`]
  const provider = await startProvider(t, { key: newSigningKey(), client: { redirect_uris } })
  const requested: string[] = []
  const { listener } = provider
  provider.listener = (request, response) => {
    requested.push(new URL(request.url ?? '/', provider.url).pathname)
    listener(request, response)
  }
  return Object.assign(provider, { requested })
}

const exchangeProviders = ({ backend }: TestGateway): unknown[] =>
  exchangesIn(backend).map((exchange) => Reflect.get(exchange, 'provider'))

t.test('two identity providers', async (t) => {
  const [one, two] = [await startNamedProvider(t, 'default'), await startNamedProvider(t, 'partner')]
  const clock = new TestClock()
  const gateway = await startOidcGateway(t, {
    issuer: one.url,
    clock,
    providers: [{ id: 'partner', issuer: two.url, label: 'Partner & <b>Söhne</b> "GmbH"' }]
  })
  t.beforeEach(() => {
    gateway.backend.requests.length = 0
    for (const provider of [one, two]) provider.requested.length = 0
  })

  t.test('/auth/oidc/login shows a page to choose a provider and keeps the return path', async (t) => {
    const page = await browserOf(gateway).visit(`${APP}/auth/oidc/login?returnTo=%2Ffloors%3Flevel%3D2`)

    t.equal(page.status, 200)
    t.match(page.headers, { 'content-type': /^text\/html/, 'cache-control': 'no-store', vary: /accept/i })
    const links = [...page.body.matchAll(/<li><a href="([^"]*)">([^<]*)<\/a><\/li>/g)].map(([, ...link]) => link)
    t.same(links, [
      ['/auth/oidc/default/login?returnTo=%2Ffloors%3Flevel%3D2', new URL(one.url).host],
      [
        '/auth/oidc/partner/login?returnTo=%2Ffloors%3Flevel%3D2',
        'Partner &amp; &lt;b&gt;Söhne&lt;/b&gt; &quot;GmbH&quot;'
      ]
    ])
    t.match(page.body, /<html lang="en">.*<main>\n<h1>Sign in<\/h1>/s)
    t.notMatch(page.body, /<script|<b>/)
  })

  t.test('/auth/oidc/login lists the providers as JSON for web applications', async (t) => {
    const list = (path: string, accept = 'application/json') =>
      browserOf(gateway).request(`${APP}${path}`, { headers: { accept } })
    const data = (suffix = '') => [
      { id: 'default', label: new URL(one.url).host, loginAt: `${loginPath('default')}${suffix}` },
      { id: 'partner', label: 'Partner & <b>Söhne</b> "GmbH"', loginAt: `${loginPath('partner')}${suffix}` }
    ]
    const response = await list('/auth/oidc/login?returnTo=/a')
    t.match(response.headers, { 'content-type': /^application\/json/, 'cache-control': 'no-store', vary: /accept/i })
    t.same(JSON.parse(response.body), { success: true, data: data('?returnTo=%2Fa') })
    t.same(JSON.parse((await list('/auth/oidc/login?returnTo=//evil.test')).body), { success: true, data: data() })
    t.match((await list('/auth/oidc/login', 'text/html,application/json')).headers['content-type'], /html/)

    const { body } = await list('/api/auth/providers')
    t.same(
      JSON.parse(body).data,
      data().map((entry) => ({ name: 'oidc', ...entry }))
    )
  })

  for (const [id, provider] of [
    ['default', undefined],
    ['partner', 'partner']
  ] as const) {
    t.test(
      `a sign-in at ${id} ends at the requested path, and the exchange names ${provider ?? 'no provider'}`,
      async (t) => {
        const browser = browserOf(gateway)
        t.equal((await signIn(browser, 'ada', '/floors', loginPath(id))).url.href, `${APP}/floors`)
        t.same(exchangeProviders(gateway), [provider])
        browser.setCookie(APP_HOST, 'auth_token', null)
        clock.advance(11)
        await browser.request(`${APP}/api/zones`)
        t.same(exchangeProviders(gateway), [provider, provider], 'a later exchange knows the provider')
        t.ok(gateway.backend.requests.at(-1)?.headers.authorization)
      }
    )

    t.test(`a logout of a session of ${id} continues at ${id} with its ID token`, async (t) => {
      const [own, other] = id === 'default' ? [one, two] : [two, one]
      const browser = browserOf(gateway)
      await signIn(browser, 'ada', '/', loginPath(id))

      const response = await browser.request(`${APP}/auth/oidc/logout`)

      const url = new URL(response.headers.location ?? '')
      t.equal(url.origin, own.url)
      t.match(url.searchParams.get('id_token_hint'), /^ey/)
      t.same(other.requested, [])
    })

    t.test(`a web application that signs out of ${id} receives an address that continues at ${id}`, async (t) => {
      const browser = browserOf(gateway)
      await signIn(browser, 'ada', '/', loginPath(id))
      browser.setCookie(APP_HOST, 'csrf_token', 't0ken')
      const logout = await browser.request(`${APP}/api/auth/logout`, {
        method: 'POST',
        headers: { 'x-csrf-token': 't0ken' }
      })
      const address = String(logout.headers['x-logout-at'])
      t.match(address, /^\/auth\/oidc\/logout\?ticket=/)
      const { origin, searchParams } = new URL((await browser.request(`${APP}${address}`)).headers.location ?? '')
      t.equal(origin, id === 'default' ? one.url : two.url)
      t.match(searchParams.get('id_token_hint'), /^ey/)

      const elsewhere = address.replace('/logout', id === 'default' ? '/partner/logout' : '/default/logout')
      const other = new URL((await browser.request(`${APP}${elsewhere}`)).headers.location ?? '')
      t.equal(other.origin, id === 'default' ? two.url : one.url)
      t.equal(other.searchParams.get('id_token_hint'), null, 'no provider receives the ID token of another one')
    })
  }

  t.test('a logout of a browser without a session asks no provider', async (t) => {
    const page = await browserOf(gateway).request(`${APP}/auth/oidc/logout`)
    t.equal(page.status, 200)
    t.match(page.body, /You are signed out here/)
  })

  t.test('a logout link of another site needs a confirmation, which leads to the same provider', async (t) => {
    const headers = { 'sec-fetch-site': 'cross-site' }
    const page = await browserOf(gateway).request(`${APP}/auth/oidc/partner/logout`, { headers })
    t.match(page.body, /<a href="\/auth\/oidc\/partner\/logout">Sign out<\/a>/)
  })

  t.test('a user without an account can sign in again at the same provider', async (t) => {
    const page = await signIn(browserOf(gateway), 'bob', '/', loginPath('partner'))
    t.equal(page.status, 403)
    t.match(page.body, /<a href="\/auth\/oidc\/partner\/logout">Sign in with another account<\/a>/)
  })

  t.test(
    'a mix-up attack fails: the response of one provider does not complete a sign-in at another one',
    async (t) => {
      const browser = browserOf(gateway)
      // The partner is malicious: it knows everything in the authorization request, and sends the user to the other provider.
      const state = await startedState(two, browser)
      const authorize = new URL(`${one.url}/auth`)
      authorize.search = new URLSearchParams({
        client_id: CLIENT_ID,
        response_type: 'code',
        scope: 'openid profile email',
        redirect_uri: `${APP}${callbackPath('default')}`,
        state
      }).toString()
      const atCallback = ({ host, pathname }: URL) => host === APP_HOST && pathname.endsWith('/callback')
      const choose = await browser.visit(authorize, {}, atCallback)
      const { url } = await browser.submit(choose.url, { account: 'ada' }, atCallback)
      t.match(Object.fromEntries(url.searchParams), { code: /./, state, iss: one.url })
      for (const provider of [one, two]) provider.requested.length = 0

      const page = await browser.visit(url)

      t.equal(page.status, 400)
      t.match(page.body, /was not started here/)
      t.match(
        gateway.logs.findLast(({ msg }) => msg === 'callback without a matching sign-in'),
        { reason: 'other-provider' }
      )
      t.same([...one.requested, ...two.requested], [], 'no provider received the code')
      t.same(browser.names(APP_HOST), [], 'the browser has no session')
    }
  )

  t.test('the iss parameter of another provider is rejected before the code is sent anywhere', async (t) => {
    for (const iss of [one.url, null, `${two.url}/`]) {
      const browser = browserOf(gateway)
      const state = await startedState(two, browser)
      two.requested.length = 0
      const url = new URL(`${APP}${callbackPath('partner')}`)
      url.search = new URLSearchParams({ code: 'stolen', state, ...(iss !== null && { iss }) }).toString()

      const page = await browser.visit(url)

      t.equal(page.status, 400)
      t.match(page.body, /failed verification/)
      t.same(two.requested, [])
    }
  })

  t.test('a session of one provider stays valid while the other provider is down', async (t) => {
    await two.down()
    t.teardown(() => two.up())
    const browser = browserOf(gateway)
    t.equal((await signIn(browser, 'ada', '/floors', loginPath('default'))).url.href, `${APP}/floors`)
  })

  t.test('another spelling of a provider path is rejected', async (t) => {
    for (const path of ['/auth/oidc/Partner/login', '/auth/oidc/partner/login/', '/auth/oidc/partner/%6Cogin'])
      t.equal((await gateway.send(path)).status, 400, path)
    for (const path of ['/auth/oidc/nobody/login', '/auth/oidc/default/callback', '/auth/oidc/partner'])
      t.equal((await gateway.send(path)).status, 404, path)
  })
})

/** The state of a sign-in at this provider, as its authorization endpoint receives it. */
const startedState = async (provider: TestProvider, browser: ReturnType<typeof browserOf>): Promise<string> => {
  const { listener } = provider
  const body = new Promise<string>((resolve) => {
    provider.listener = (request, response) => {
      if (request.method !== 'POST') return listener(request, response)
      let text = ''
      // The listener reads the body too.
      request.on('data', (chunk) => {
        text += chunk
      })
      request.on('end', () => resolve(text))
      listener(request, response)
    }
  })
  try {
    await browser.request(`${APP}${loginPath('partner')}`)
    return new URLSearchParams(await body).get('state') ?? ''
  } finally {
    provider.listener = listener
  }
}

t.test('the only entry of OIDC_PROVIDERS is used without a choice', async (t) => {
  const provider = await startNamedProvider(t, 'partner')
  const gateway = await startOidcGateway(t, { providers: [{ id: 'partner', issuer: provider.url }] })
  const browser = browserOf(gateway)
  t.equal((await signIn(browser, 'ada', '/floors')).url.href, `${APP}/floors`)
  t.same(exchangeProviders(gateway), ['partner'])
  const { headers } = await browser.request(`${APP}/auth/oidc/logout`)
  t.equal(new URL(headers.location ?? '').origin, provider.url)
})

t.test('a session ends when its provider is removed from the file', async (t) => {
  const [one, two] = [await startScriptedProvider(t), await startScriptedProvider(t)]
  const rows: ProviderRow[] = [
    { id: 'one', issuer: one.url },
    { id: 'two', issuer: two.url }
  ]
  const gateway = await startOidcGateway(t, { providers: rows })
  const browser = browserOf(gateway)
  await signIn(browser, 'ada', '/', loginPath('two'))
  browser.setCookie(APP_HOST, 'auth_token', null)

  const later = await startOidcGateway(t, { providers: rows.slice(0, 1) })
  browser.move(APP_HOST, later.url)
  await browser.request(`${APP}/api/zones`)

  t.same(exchangesIn(later.backend), [])
  t.equal(browser.cookie(APP_HOST, 'oidc_session'), undefined)
})

t.test('claims of a provider can have other names', async (t) => {
  const provider = await startScriptedProvider(t)
  const claims = { email: 'upn', name: 'profile.title', groups: 'realm.roles' }
  const gateway = await startOidcGateway(t, { providers: [{ id: 'corp', issuer: provider.url, claims }] })
  provider.idToken = ({ claims, ...recipe }) =>
    signed({
      ...recipe,
      claims: {
        ...claims,
        upn: 'ada@example.com',
        email: 'x@example.com',
        profile: { title: 'Dr. Ada' },
        realm: { roles: ['a'] }
      }
    })
  await signIn(browserOf(gateway), 'ada')
  t.match(exchangesIn(gateway.backend), [{ email: 'ada@example.com', name: 'Dr. Ada', groups: ['a'] }])

  provider.idToken = signed
  const page = await signIn(browserOf(gateway), 'ada')
  t.match(page.body, /did not send your email address/, 'the standard claim is no replacement')
})

t.test('back-channel logout of one provider', async (t) => {
  const [one, two] = [await startScriptedProvider(t), await startScriptedProvider(t)]
  const gateway = await startOidcGateway(t, {
    issuer: one.url,
    providers: [{ id: 'two', issuer: two.url }],
    env: { REDIS_URL: await redisUrl(t) }
  })
  const logoutTokenOf = (issuer: string): Promise<string> => {
    const now = Math.floor(Date.now() / 1000)
    const events = { 'http://schemas.openid.net/event/backchannel-logout': {} }
    const claims = { iss: issuer, aud: CLIENT_ID, iat: now, exp: now + 120, jti: randomUUID(), sub: 'ada', events }
    return signed({ header: { alg: 'RS256', kid: 'k1', typ: 'logout+jwt' }, claims, key: one.key })
  }
  const post = async (path: string, issuer: string) =>
    gateway.send(path, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: `logout_token=${await logoutTokenOf(issuer)}`
    })
  const browsers = { one: browserOf(gateway), two: browserOf(gateway) }
  await signIn(browsers.one, 'ada', '/', loginPath('default'))
  await signIn(browsers.two, 'ada', '/', loginPath('two'))
  const isSignedIn = async (browser: keyof typeof browsers): Promise<boolean> => {
    await browsers[browser].request(`${APP}/api/zones`)
    return gateway.backend.requests.at(-1)?.headers.authorization !== undefined
  }

  t.test('a logout token of another provider is rejected', async (t) => {
    t.equal((await post('/auth/oidc/backchannel-logout', two.url)).status, 400)
    t.equal((await post('/auth/oidc/two/backchannel-logout', one.url)).status, 400)
    t.ok(await isSignedIn('one'))
    t.ok(await isSignedIn('two'))
  })

  t.test('a logout token ends the sessions of its provider only, also with the same subject', async (t) => {
    t.equal((await post('/auth/oidc/two/backchannel-logout', two.url)).status, 200)
    t.notOk(await isSignedIn('two'))
    t.ok(await isSignedIn('one'))
  })
})

t.test('pushed authorization requests', async (t) => {
  const provider = await startNamedProvider(t, 'default')
  const gateway = await startOidcGateway(t, { issuer: provider.url })
  const { listener } = provider
  const onPush = (push: RequestListener): void => {
    provider.listener = (request, response) => (request.url === '/request' ? push : listener)(request, response)
  }
  const authorizationQuery = async (): Promise<Record<string, string>> => {
    const response = await browserOf(gateway).request(`${APP}/auth/oidc/login`)
    t.equal(response.status, 303)
    return Object.fromEntries(new URL(response.headers.location ?? '').searchParams)
  }

  t.test('the authorization URL names only the pushed request where the provider offers this', async (t) => {
    provider.listener = listener
    t.same(Object.keys(await authorizationQuery()).sort(), ['client_id', 'request_uri'])
  })

  t.test('the request is in the URL if pushing it fails', async (t) => {
    onPush((_request, response) => response.writeHead(400, { 'content-type': 'application/json' }).end('{"error":"x"}'))
    t.match(await authorizationQuery(), { state: /./, code_challenge_method: 'S256' })
    t.ok(gateway.logs.some(({ msg }) => msg === 'pushed authorization request failed'))
  })

  t.test('many sign-ins at once do not push more than 20 requests at once', async (t) => {
    let [open, most] = [0, 0]
    const held: (() => void)[] = []
    onPush((request, response) => {
      open += 1
      most = Math.max(most, open)
      held.push(() => {
        open -= 1
        listener(request, response)
      })
    })
    let finished = 0
    const started = Array.from({ length: 40 }, async () => {
      const query = await authorizationQuery()
      finished += 1
      return query
    })
    // Those that are not pushed do not wait for the others.
    await eventually(() => finished === 20 && held.length === 20)
    for (const release of held) release()
    const all = await Promise.all(started)
    t.equal(most, 20)
    t.equal(all.filter((query) => query.request_uri !== undefined).length, 20)
  })

  t.test('a sign-in at a provider that requires pushed requests shows an error page if pushing fails', async (t) => {
    const provider = await startScriptedProvider(t)
    provider.metadata = {
      pushed_authorization_request_endpoint: `${provider.url}/missing`,
      require_pushed_authorization_requests: true
    }
    const gateway = await startOidcGateway(t, { issuer: provider.url })
    const page = await browserOf(gateway).request(`${APP}/auth/oidc/login`)
    t.ok([502, 503].includes(page.status), String(page.status))
    t.match(page.body, /Sign in again/)
    t.ok(gateway.logs.some(({ msg }) => msg === 'sign-in failed'))
  })
})
