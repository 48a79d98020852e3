import type { ServerResponse } from 'node:http'
import t from 'tap'
import { browserHeaders, type TestGateway, tokenOf } from '../../helper/gateway.js'
import { RecordingTracer } from '../../helper/recording-tracer.js'
import {
  APP,
  APP_HOST,
  backendWith,
  browserOf,
  EXCHANGE_SECRET,
  exchangesIn,
  isExchange,
  type RestartableServer,
  signIn,
  startOidcGateway,
  startProvider,
  TestClock
} from './fixture.js'
import type { TestBrowser } from './test-browser.js'

const APP_COOKIES = ['auth_token', 'auth_user', 'auth_permissions', 'auth_token_expiry', 'auth_via_oidc']

/** A browser with an expired app token and a valid provider session. */
const loseAppSession = (browser: TestBrowser): void => {
  for (const name of APP_COOKIES) browser.setCookie(APP_HOST, name, null)
}

const provider = await startProvider(t)
const clock = new TestClock()
const gateway = await startOidcGateway(t, { issuer: provider.url, clock })

t.beforeEach(() => {
  // Late requests of a page that signed in share its session.
  clock.advance(11)
  gateway.backend.requests.length = 0
  gateway.logs.length = 0
  gateway.backend.respond = backendWith(['ada@example.com'])
})

const signedIn = async (): Promise<TestBrowser> => {
  const browser = browserOf(gateway)
  await signIn(browser, 'ada')
  clock.advance(11)
  gateway.backend.requests.length = 0
  return browser
}

/** The metric of exchanges with this result. */
const exchangesWith = async (result: string, { send }: TestGateway = gateway): Promise<number> => {
  const { body } = await send('/metrics')
  return Number(new RegExp(`gateway_exchange_total\\{result="${result}"\\} (\\d+)`).exec(body)?.[1])
}

t.test('only the exchange carries EXCHANGE_SECRET, never a forwarded request', async (t) => {
  const gateway = await startOidcGateway(t, { issuer: provider.url })
  const browser = browserOf(gateway)
  await signIn(browser, 'ada')
  const headers = { 'x-exchange-secret': 'guessed' }
  await browser.request(`${APP}/api/zones`, { headers })
  const login = {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: '{"email":"ada@example.com","password":"x"}'
  }
  await browser.request(`${APP}/api/auth/login`, login)

  const [exchange, ...others] = gateway.backend.requests
  t.ok(exchange && isExchange(exchange))
  t.equal(exchange?.headers['x-exchange-secret'], EXCHANGE_SECRET)
  t.equal(others.length, 2)
  for (const { headers } of others) t.equal(headers['x-exchange-secret'], undefined)
  t.notMatch(JSON.stringify(gateway.logs), EXCHANGE_SECRET)
})

t.test('the exchange carries no secret if EXCHANGE_SECRET is unset', async (t) => {
  // Only outside production.
  const env = { NODE_ENV: 'development', EXCHANGE_SECRET: '' }
  const open = await startOidcGateway(t, { issuer: provider.url, env })
  await signIn(browserOf(open), 'ada')
  const [exchange] = open.backend.requests
  t.ok(exchange && isExchange(exchange))
  t.equal(exchange?.headers['x-exchange-secret'], undefined)
})

t.test('EXCHANGE_FIELD names the field that marks the exchange', async (t) => {
  const renamed = await startOidcGateway(t, { issuer: provider.url, env: { EXCHANGE_FIELD: 'viaProvider' } })
  await signIn(browserOf(renamed), 'ada')
  t.same(JSON.parse(renamed.backend.requests[0]?.body ?? ''), {
    email: 'ada@example.com',
    name: 'Ada Lovelace',
    viaProvider: true,
    groups: ['engineers', 'admins']
  })
})

t.test('session exchange', async (t) => {
  t.test('the first request with a provider session is forwarded with the new app token', async (t) => {
    const browser = await signedIn()
    loseAppSession(browser)

    const response = await browser.request(`${APP}/api/zones`)

    t.equal(response.status, 200)
    t.same(browser.names(APP_HOST), [...APP_COOKIES, 'oidc_session'].sort())
    t.equal(response.headers['cache-control'], 'no-store')
    const [exchange, zones] = gateway.backend.requests
    t.same(JSON.parse(exchange?.body ?? ''), {
      email: 'ada@example.com',
      name: 'Ada Lovelace',
      okta: true,
      groups: ['engineers', 'admins']
    })
    t.equal(exchange?.headers.authorization, undefined)
    t.equal(exchange?.headers.cookie, undefined)
    t.equal(zones?.headers.authorization, `Bearer ${browser.cookie(APP_HOST, 'auth_token')}`)
  })

  t.test('a page request with a provider session starts an app session', async (t) => {
    const browser = await signedIn()
    loseAppSession(browser)
    await browser.request(`${APP}/floors`)
    t.ok(browser.cookie(APP_HOST, 'auth_token'))
    t.equal(exchangesIn(gateway.backend).length, 1)
  })

  t.test('a write request without an app session is rejected before the exchange', async (t) => {
    const browser = await signedIn()
    loseAppSession(browser)
    const { cookie, ...headers } = browserHeaders(null)
    browser.setCookie(APP_HOST, 'csrf_token', 't0ken')
    const response = await browser.request(`${APP}/api/zones`, { method: 'POST', headers })
    t.equal(response.code, 'UNAUTHENTICATED')
    t.same(gateway.backend.requests, [])
  })

  t.test('fifty concurrent requests share one exchange', async (t) => {
    const browser = await signedIn()
    loseAppSession(browser)
    const cookie = browser.cookieHeader(new URL(APP))
    const before = await exchangesWith('success')

    const responses = await Promise.all(
      Array.from({ length: 50 }, (_, index) => gateway.send(`/api/things/${index}`, { headers: { cookie } }))
    )

    t.equal(exchangesIn(gateway.backend).length, 1)
    t.ok(responses.every(({ headers }) => headers['set-cookie']?.some((line) => line.startsWith('auth_token=ey'))))
    const forwarded = gateway.backend.requests.filter((request) => !isExchange(request))
    t.equal(forwarded.length, 50)
    t.equal(new Set(forwarded.map(({ headers }) => headers.authorization)).size, 1, 'all requests have the same token')
    t.match(forwarded[0]?.headers.authorization, /^Bearer ey/)

    await gateway.send('/api/late', { headers: { cookie } })
    t.equal(exchangesIn(gateway.backend).length, 1, 'a request just after makes no further exchange')
    t.equal(await exchangesWith('success'), before + 1)
  })

  t.test('a request with an app session makes no exchange', async (t) => {
    const browser = await signedIn()
    await browser.request(`${APP}/api/zones`)
    t.same(exchangesIn(gateway.backend), [])
  })
})

t.test('the exchange in metrics and traces', async (t) => {
  const tracer = new RecordingTracer()
  const browser = await signedIn()
  const start = async (env: Readonly<Record<string, string>> = {}) => {
    const { backend, send } = await startOidcGateway(t, { issuer: provider.url, clock, tracer, env })
    const zones = (): Promise<unknown> =>
      send('/api/zones', { headers: { cookie: browser.cookieHeader(new URL(APP)) } })
    const metric = async (series: string): Promise<number> => {
      const { body } = await send('/metrics')
      return Number(
        body
          .split('\n')
          .find((line) => line.startsWith(`${series} `))
          ?.split(' ')[1]
      )
    }
    return { backend, zones, metric }
  }
  const { backend, zones, metric } = await start()
  // With a time in which a backend that works might not respond on a busy machine.
  const impatient = await start({ BACKEND_TIMEOUT_MS: '300' })
  t.beforeEach(() => {
    loseAppSession(browser)
    tracer.spans.length = 0
    backend.requests.length = 0
  })

  t.test('the duration of the account login has the route of the login', async (t) => {
    const series = 'gateway_backend_duration_seconds_count{route="/api/auth/login"}'
    await zones()

    t.equal(await metric(series), 1)
    t.equal(await metric('gateway_backend_duration_seconds_count{route="/api/zones"}'), 1)
  })

  t.test(
    'the span of the account login is a child of that of the request, and the backend continues its trace',
    async (t) => {
      await zones()

      const [request, login, forwarded] = tracer.spans
      t.match(request, { name: 'GET /api/zones', kind: 'server' })
      t.match(
        [login, forwarded],
        [
          { name: 'POST', kind: 'client', isEnded: true, error: undefined },
          { name: 'GET', kind: 'client', isEnded: true }
        ]
      )
      t.equal(login?.parent, request)
      t.equal(login?.attributes['http.response.status_code'], 200)
      t.equal(backend.requests.find(isExchange)?.headers.traceparent, login?.traceparent)
    }
  )

  const FAILURES: readonly (readonly [title: string, respond: (response: ServerResponse) => unknown, code: string])[] =
    [
      ['closes the connection', (response) => response.destroy(), 'UND_ERR_SOCKET'],
      ['does not respond', () => undefined, 'UND_ERR_HEADERS_TIMEOUT'],
      [
        'stops in the middle of its response',
        (response) => response.writeHead(200).write('{'),
        'UND_ERR_HEADERS_TIMEOUT'
      ]
    ]
  for (const [title, respond, code] of FAILURES) {
    t.test(`an account login is counted and traced as failed if the backend ${title}`, async (t) => {
      const series = `gateway_backend_errors_total{code="${code}"}`
      const before = await impatient.metric(series)
      impatient.backend.respond = (request, response) => (isExchange(request) ? respond(response) : response.end('{}'))
      await impatient.zones()

      t.equal((await impatient.metric(series)) - before, 1)
      t.match(tracer.spans[1], { name: 'POST', isEnded: true, error: code })
    })
  }
})

t.test('user without an account', async (t) => {
  const browser = await signedIn()

  t.test('a user without an account sees a page and is not redirected in a loop', async (t) => {
    const browser = browserOf(gateway)
    const before = await exchangesWith('no_account')

    const page = await signIn(browser, 'bob')

    t.equal(page.status, 403)
    t.match(page.body, /You do not have an account here/)
    t.match(page.body, /bob@example\.com/)
    t.match(browser.attributes(APP_HOST, 'oidc_exchange_failed'), /Max-Age=300; Path=\/; HttpOnly; SameSite=Lax/)
    t.same(browser.names(APP_HOST), ['oidc_exchange_failed', 'oidc_session'])
    t.equal(exchangesIn(gateway.backend).length, 1)

    const again = await signIn(browser, 'bob')
    t.equal(again.status, 403, 'a second sign-in ends on the same page')
    t.equal((await browser.request(`${APP}/api/zones`)).status, 200, 'requests go on without a session')
    t.equal(gateway.backend.requests.at(-1)?.headers.authorization, undefined)
    t.equal(exchangesIn(gateway.backend).length, 1, 'the backend receives no second exchange')
    t.equal(await exchangesWith('no_account'), before + 1)
  })

  t.test('the exchange is repeated after the failure marker has expired', async (t) => {
    const browser = browserOf(gateway)
    await signIn(browser, 'bob')
    gateway.backend.respond = backendWith(['bob@example.com'])

    await browser.request(`${APP}/api/zones`)
    t.equal(browser.cookie(APP_HOST, 'auth_token'), undefined)

    clock.advance(301)
    browser.setCookie(APP_HOST, 'oidc_exchange_failed', null)
    await browser.request(`${APP}/api/zones`)
    t.ok(browser.cookie(APP_HOST, 'auth_token'))
  })

  t.test('the failure marker does not affect another user in the same browser', async (t) => {
    const browser = browserOf(gateway)
    await signIn(browser, 'bob')
    browser.setCookie(new URL(provider.url).host, '_session', null)
    t.equal((await signIn(browser, 'ada', '/floors')).url.href, `${APP}/floors`)
    t.equal(browser.cookie(APP_HOST, 'oidc_exchange_failed'), undefined, 'the failure marker is removed')
  })

  t.test('a forged failure marker is ignored', async (t) => {
    const browser = await signedIn()
    loseAppSession(browser)
    browser.setCookie(APP_HOST, 'oidc_exchange_failed', 'true')
    await browser.request(`${APP}/api/zones`)
    t.equal(exchangesIn(gateway.backend).length, 1)
  })

  const REJECTIONS: readonly (readonly [status: number, body: string])[] = [
    [200, '{"success":false}'],
    [400, '{"success":false}'],
    [401, ''],
    [403, '{"error":"no"}'],
    [404, 'not found']
  ]
  for (const [status, body] of REJECTIONS) {
    t.test(`the backend response ${status} ${body} means that there is no account`, async (t) => {
      clock.advance(11)
      browser.setCookie(APP_HOST, 'oidc_exchange_failed', null)
      loseAppSession(browser)
      gateway.backend.respond = (request, response) =>
        isExchange(request) ? response.writeHead(status).end(body) : response.end('{}')
      t.equal((await browser.request(`${APP}/api/zones`)).status, 200, 'the request goes on')
      t.ok(browser.cookie(APP_HOST, 'oidc_exchange_failed'))
    })
  }
})

t.test('backend without a usable login response', async (t) => {
  type ExchangeResponse = Parameters<typeof isExchange>[0]
  const ABSENCES: readonly (readonly [title: string, respond: (response: ServerResponse) => unknown])[] = [
    ['500', (response) => response.writeHead(500).end()],
    ['503', (response) => response.writeHead(503).end('{"success":false}')],
    ['429', (response) => response.writeHead(429).end('{"success":false}')],
    ['a reset', (response) => response.destroy()],
    ['200 with nonsense', (response) => response.end('<html>')],
    ['200 without a token', (response) => response.end('{"success":true,"data":{}}')],
    ['a page', (response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<!doctype html>')],
    ['200 with a token that has ended', (response) => response.end(JSON.stringify(endedLogin()))],
    [
      'a truncated response',
      (response) => response.writeHead(200, { 'content-length': '100' }).write('{', () => response.destroy())
    ],
    ['a response that is too large', (response) => response.writeHead(200).end(Buffer.alloc(2 ** 21, ' '))],
    ['a redirect', (response) => response.writeHead(302, { location: '/login' }).end()]
  ]
  const browser = await signedIn()
  for (const [title, respond] of ABSENCES) {
    t.test(`a failed account login is not treated as a missing account: ${title}`, async (t) => {
      clock.advance(11)
      gateway.backend.requests.length = 0
      gateway.logs.length = 0
      loseAppSession(browser)
      gateway.backend.respond = (request: ExchangeResponse, response) =>
        isExchange(request) ? respond(response) : response.end('{}')

      t.equal((await browser.request(`${APP}/api/zones`)).status, 200, 'the request goes on')
      t.equal((await browser.request(`${APP}/api/zones`)).status, 200)

      t.equal(browser.cookie(APP_HOST, 'oidc_exchange_failed'), undefined, 'there is no failure marker')
      t.ok(browser.cookie(APP_HOST, 'oidc_session'), 'the provider session stays')
      t.equal(exchangesIn(gateway.backend).length, 1, 'the exchange is not repeated at once')
      t.match(
        gateway.logs.find(({ msg }) => msg === 'account login for provider session failed'),
        { level: 50, reason: /./, subject: 'ada' }
      )

      gateway.backend.respond = backendWith(['ada@example.com'])
      clock.advance(11)
      await browser.request(`${APP}/api/zones`)
      t.ok(browser.cookie(APP_HOST, 'auth_token'), 'the exchange is repeated')
    })
  }

  t.test('a slow backend delays a request only until the exchange timeout', async (t) => {
    const hasty = await startOidcGateway(t, { issuer: provider.url, clock, env: { BACKEND_TIMEOUT_MS: '300' } })
    hasty.backend.respond = (request, response) => (isExchange(request) ? undefined : response.end('{}'))
    loseAppSession(browser)
    const cookie = browser.cookieHeader(new URL(APP))
    const { headers } = await hasty.send('/api/zones', { headers: { cookie } })
    t.notMatch(headers['set-cookie']?.join(), /oidc_exchange_failed=[^;]|auth_token=[^;]/)
    t.ok(
      hasty.backend.requests.some((request) => !isExchange(request)),
      'the request goes on'
    )
  })

  t.test('a sign-in while the backend is unavailable ends on a page with a retry link', async (t) => {
    gateway.backend.respond = (_request, response) => response.destroy()
    const browser = browserOf(gateway)
    const page = await signIn(browser, 'ada', '/floors')
    t.equal(page.status, 503)
    t.match(page.body, 'href="/floors"')
    t.same(browser.names(APP_HOST), ['oidc_session'])
  })
})

t.test('token refresh', async (t) => {
  const start = async (t: Parameters<typeof startProvider>[0], { thinIdTokens = false } = {}) => {
    const clock = new TestClock()
    const client = { grant_types: ['authorization_code', 'refresh_token'] }
    const claims = { name: 'Ada', email: 'ada@example.com', email_verified: true, groups: ['engineers'] }
    const accounts = [{ id: 'ada', claims }]
    const provider = await startProvider(t, { client, tokenSeconds: 600, accounts, thinIdTokens })
    const gateway = await startOidcGateway(t, { issuer: provider.url, clock })
    const browser = browserOf(gateway)
    await signIn(browser, 'ada')
    loseAppSession(browser)
    gateway.backend.requests.length = 0
    return { clock, provider, gateway, browser, claims }
  }

  t.test('expired tokens are refreshed and the claims are updated', async (t) => {
    const { clock, gateway, browser, claims } = await start(t)
    claims.groups.push('admins')

    clock.advance(60)
    await browser.request(`${APP}/api/zones`)
    t.match(
      exchangesIn(gateway.backend),
      [{ groups: ['engineers'] }],
      'the claims are not updated before the tokens expire'
    )

    for (const [seconds, expected] of [
      [600, ['engineers', 'admins']],
      [700, ['engineers', 'admins', 'owners']]
    ] as const) {
      if (expected.length === 3) claims.groups.push('owners')
      loseAppSession(browser)
      clock.advance(seconds)
      await browser.request(`${APP}/api/zones`)
      t.match(exchangesIn(gateway.backend).at(-1), { groups: expected })
    }

    claims.email_verified = false
    loseAppSession(browser)
    clock.advance(700)
    await browser.request(`${APP}/api/zones`)
    t.same(browser.names(APP_HOST), [], 'an address that is no longer confirmed ends the session')
  })

  t.test('concurrent requests refresh once, and each refresh token is used once', async (t) => {
    const { clock, provider, gateway, browser } = await start(t)
    const tokenRequests = countTokenRequests(provider)
    clock.advance(700)
    const headers = { cookie: browser.cookieHeader(new URL(APP)) }
    await Promise.all(Array.from({ length: 10 }, () => gateway.send('/api/zones', { headers })))
    t.equal(tokenRequests.count, 1)
    t.equal(exchangesIn(gateway.backend).length, 1)
  })

  t.test('refreshed tokens are used until they expire', async (t) => {
    const { clock, provider, browser } = await start(t)
    const requests = countTokenRequests(provider)
    clock.advance(700)
    await browser.request(`${APP}/api/zones`)
    t.equal(requests.count, 1)

    loseAppSession(browser)
    clock.advance(300)
    await browser.request(`${APP}/api/zones`)
    t.ok(browser.cookie(APP_HOST, 'auth_token'))
    t.equal(requests.count, 1)
  })

  t.test('refreshed tokens are stored even if the claims cannot be fetched', async (t) => {
    const { clock, provider, gateway, browser } = await start(t, { thinIdTokens: true })
    const { listener } = provider
    provider.listener = (request, response) =>
      request.url === '/me' ? response.writeHead(500).end() : listener(request, response)
    clock.advance(700)
    await browser.request(`${APP}/api/zones`)
    t.match(exchangesIn(gateway.backend), [{ groups: ['engineers'] }], 'the claims of the first sign-in are used')

    provider.listener = listener
    loseAppSession(browser)
    clock.advance(700)
    await browser.request(`${APP}/api/zones`)
    t.ok(browser.cookie(APP_HOST, 'auth_token'), 'the refresh token of the first time would have been refused')
    t.equal(exchangesIn(gateway.backend).length, 2)
  })

  t.test('a rejected refresh token ends the session', async (t) => {
    const { clock, provider, gateway, browser } = await start(t)
    // All providers of this process share their grants; a provider without this client has none.
    provider.listener = rejecting(provider.listener)
    clock.advance(700)
    t.equal((await browser.request(`${APP}/api/zones`)).status, 200)
    t.same(browser.names(APP_HOST), [])
    t.same(exchangesIn(gateway.backend), [])
    t.equal(await exchangesWith('provider_ended', gateway), 1)
  })

  t.test('a session continues unchanged while the provider is unavailable', async (t) => {
    const { clock, provider, gateway, browser } = await start(t)
    await provider.down()
    clock.advance(700)
    await browser.request(`${APP}/api/zones`)
    t.ok(browser.cookie(APP_HOST, 'auth_token'))
    t.match(exchangesIn(gateway.backend), [{ groups: ['engineers'] }])
  })
})

t.test('password login with a provider session', async (t) => {
  const credentials = { email: 'operator@example.com', password: 'secret' }
  const login = (browser: TestBrowser) =>
    browser.request(`${APP}/api/auth/login`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(credentials)
    })

  t.test('a password login replaces the provider session permanently', async (t) => {
    const browser = await signedIn()
    const session = browser.cookie(APP_HOST, 'oidc_session')
    loseAppSession(browser)
    const user = { id: 2, email: credentials.email, role: 'operator' }
    gateway.backend.respond = (_request, response) =>
      response.end(JSON.stringify({ success: true, data: { token: tokenOf('operator'), user, expiresIn: 3600 } }))

    t.equal((await login(browser)).status, 200)

    t.same(exchangesIn(gateway.backend), [], 'no exchange takes place')
    t.equal(browser.cookie(APP_HOST, 'auth_via_oidc'), undefined)
    t.equal(browser.cookie(APP_HOST, 'oidc_session'), undefined)
    await gateway.send('/api/zones', { headers: { cookie: `oidc_session=${session}` } })
    t.same(exchangesIn(gateway.backend), [], 'the OIDC user is not signed in again when the password session ends')
  })

  t.test('a failed password login makes no exchange', async (t) => {
    const browser = await signedIn()
    loseAppSession(browser)
    gateway.backend.respond = (request, response) =>
      isExchange(request)
        ? backendWith(['ada@example.com'])(request, response)
        : response.writeHead(401).end('{"success":false}')
    t.equal((await login(browser)).status, 401)
    t.equal(browser.cookie(APP_HOST, 'auth_token'), undefined)
    t.ok(browser.cookie(APP_HOST, 'oidc_session'))
  })
})

const endedLogin = () => ({ success: true, data: { token: 'opaque', user: {}, expiresIn: -1 } })

const rejecting =
  (listener: import('node:http').RequestListener): import('node:http').RequestListener =>
  (request, response) => {
    if (request.url !== '/token') return listener(request, response)
    response.writeHead(400, { 'content-type': 'application/json' }).end('{"error":"invalid_grant"}')
  }

const countTokenRequests = (provider: RestartableServer): { count: number } => {
  const tokenRequests = { count: 0 }
  const { listener } = provider
  provider.listener = (request, response) => {
    if (request.url === '/token') tokenRequests.count += 1
    listener(request, response)
  }
  return tokenRequests
}
