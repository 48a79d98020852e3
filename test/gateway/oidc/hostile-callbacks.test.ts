import { createHash, createPublicKey, generateKeyPairSync } from 'node:crypto'
import t, { type Test } from 'tap'
import {
  APP,
  APP_HOST,
  browserOf,
  CLIENT_SECRET,
  signIn,
  signInUpToCallback,
  startOidcGateway,
  startProvider,
  TestClock
} from './fixture.js'
import {
  type ScriptedProvider,
  signed,
  signedWithText,
  startScriptedProvider,
  type TokenRecipe,
  unsigned
} from './scripted-provider.js'
import type { TestBrowser, Visit } from './test-browser.js'

/** An error page, without a session and without a redirect. */
const rejectedOn = (
  t: Test,
  browser: TestBrowser,
  page: Visit | Awaited<ReturnType<TestBrowser['request']>>,
  status: number
): void => {
  t.equal(page.status, status)
  t.match(page.headers['content-type'], /^text\/html/)
  t.match(page.body, /<h1>/)
  t.match(page.body, 'href="/auth/oidc/login')
  t.notMatch(page.body, /<script|http-equiv/i)
  t.equal(page.headers['cache-control'], 'no-store')
  t.ok(page.headers['content-security-policy'])
  for (const name of ['oidc_session', 'auth_token']) t.equal(browser.cookie(APP_HOST, name), undefined, name)
}

t.test('rejected callback', async (t) => {
  const provider = await startProvider(t)
  const gateway = await startOidcGateway(t, { issuer: provider.url })

  t.test('a callback with an unknown state is rejected', async (t) => {
    const browser = browserOf(gateway)
    const callback = await signInUpToCallback(browser, 'ada')
    for (const state of ['', 'wrong', 'a'.repeat(43)]) {
      callback.searchParams.set('state', state)
      rejectedOn(t, browser, await browser.request(callback), 400)
    }
    callback.searchParams.delete('state')
    rejectedOn(t, browser, await browser.request(callback), 400)
  })

  t.test('a callback with two states is rejected', async (t) => {
    const browser = browserOf(gateway)
    const callback = await signInUpToCallback(browser, 'ada')
    callback.searchParams.append('state', callback.searchParams.get('state') ?? '')
    rejectedOn(t, browser, await browser.request(callback), 400)
  })

  t.test('a callback in another browser is rejected', async (t) => {
    const callback = await signInUpToCallback(browserOf(gateway), 'ada')
    const victim = browserOf(gateway)
    const page = await victim.request(callback)
    rejectedOn(t, victim, page, 400)
    t.match(page.body, /not started here/)
    t.same(gateway.backend.requests, [])
  })

  t.test('a callback with the code of another sign-in is rejected', async (t) => {
    const [mallory, victim] = [browserOf(gateway), browserOf(gateway)]
    const stolen = await signInUpToCallback(mallory, 'bob')
    const callback = await signInUpToCallback(victim, 'ada')
    callback.searchParams.set('code', stolen.searchParams.get('code') ?? '')
    rejectedOn(t, victim, await victim.request(callback), 400)
  })

  t.test('a callback replayed in the same browser is rejected', async (t) => {
    const browser = browserOf(gateway)
    const callback = await signInUpToCallback(browser, 'ada')
    await browser.request(callback)
    const page = await browser.request(callback)
    t.equal(page.status, 400)
    t.match(page.body, /not started here/)
  })

  t.test('a callback replayed with its original cookies is rejected by the provider', async (t) => {
    const browser = browserOf(gateway)
    const callback = await signInUpToCallback(browser, 'ada')
    const cookie = browser.cookieHeader(callback)
    await browser.request(callback)
    const thief = browserOf(gateway)
    const page = await thief.request(callback, { headers: { cookie } })
    rejectedOn(t, thief, page, 400)
    t.match(page.body, /already been used/)
  })

  t.test('a callback with two cookies for its state is rejected', async (t) => {
    const browser = browserOf(gateway)
    const callback = await signInUpToCallback(browser, 'ada')
    const cookie = browser.cookieHeader(callback)
    const [name = ''] = cookie.split('=')
    const page = await browser.request(callback, { headers: { cookie: `${cookie}; ${name}=planted` } })
    rejectedOn(t, browser, page, 400)
  })

  t.test('a callback is rejected if byte 0xA0 precedes the name of its cookie', async (t) => {
    const gateway = await startOidcGateway(t, { issuer: provider.url, env: { COOKIE_SECURE: 'true' } })
    const browser = browserOf(gateway)
    const callback = await signInUpToCallback(browser, 'ada')
    const cookie = browser.cookieHeader(callback)
    t.match(cookie, /^__Host-/)
    const page = await browser.request(callback, { headers: { cookie: `\u00a0${cookie}` } })
    rejectedOn(t, browser, page, 400)
    t.match(page.body, /not started here/)
  })

  t.test('CSP_INLINE=refuse allows the style of the error page', async (t) => {
    const gateway = await startOidcGateway(t, { issuer: provider.url, env: { CSP_INLINE: 'refuse' } })
    const page = await browserOf(gateway).request(`${APP}/auth/oidc/callback?code=x&state=y`)
    const [, style = ''] = /<style>(.*?)<\/style>/s.exec(page.body) ?? []
    const hash = createHash('sha256').update(style).digest('base64')
    t.match(page.headers['content-security-policy'], `'sha256-${hash}'`)
    t.notMatch(page.headers['content-security-policy'], 'unsafe-inline')
    t.notMatch(page.body, / style="|<script/)
  })

  t.test('a callback after ten minutes is rejected', async (t) => {
    const clock = new TestClock()
    const gateway = await startOidcGateway(t, { issuer: provider.url, clock })
    const browser = browserOf(gateway)
    const callback = await signInUpToCallback(browser, 'ada')
    clock.advance(601)
    rejectedOn(t, browser, await browser.request(callback), 400)
  })

  t.test('a callback of a declined sign-in shows a page with a retry link', async (t) => {
    const browser = browserOf(gateway)
    const page = await signIn(browser, '', '/floors')
    rejectedOn(t, browser, page, 403)
    t.match(page.body, /not granted/)
    t.match(page.body, 'href="/auth/oidc/login?returnTo=%2Ffloors"')
    t.equal(
      page.visited.filter((url) => url.includes('/auth/oidc/login')).length,
      0,
      'the browser is not redirected to login again'
    )
  })
})

t.test('rejected provider response', async (t) => {
  const provider = await startScriptedProvider(t)
  const gateway = await startOidcGateway(t, { issuer: provider.url })
  const other = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey
  const now = (): number => Math.floor(Date.now() / 1000)
  const claiming =
    (claims: object) =>
    (recipe: TokenRecipe): Promise<string> =>
      signed({ ...recipe, claims: { ...recipe.claims, ...claims } })

  const TOKENS: readonly (readonly [title: string, idToken: ScriptedProvider['idToken']])[] = [
    ['without a signature', unsigned],
    [
      'with alg none in another spelling',
      (recipe) => unsigned(recipe).replace(/^[^.]+/, Buffer.from('{"alg":"nOnE"}').toString('base64url'))
    ],
    ['signed with the client secret', (recipe) => signedWithText(recipe, CLIENT_SECRET)],
    [
      'signed with the public key as if it were a secret',
      (recipe) => signedWithText(recipe, createPublicKey(recipe.key).export({ format: 'pem', type: 'spki' }))
    ],
    ['signed with another key under a known name', (recipe) => signed({ ...recipe, key: other })],
    ['signed with an unknown key', (recipe) => signed({ ...recipe, key: other, header: { alg: 'RS256', kid: 'k2' } })],
    [
      'with a key in its header',
      (recipe) =>
        signed({
          ...recipe,
          key: other,
          header: { alg: 'RS256', jwk: createPublicKey(other).export({ format: 'jwk' }) }
        })
    ],
    ['with its signature cut off', async (recipe) => (await signed(recipe)).replace(/[^.]+$/, '')],
    [
      'with changed claims',
      async (recipe) => {
        const [header, , signature] = (await signed(recipe)).split('.')
        const claims = Buffer.from(JSON.stringify({ ...recipe.claims, sub: 'bob' })).toString('base64url')
        return `${header}.${claims}.${signature}`
      }
    ],
    [
      'with an algorithm that was not announced',
      (recipe) => signed({ ...recipe, header: { alg: 'RS512', kid: 'k1' } })
    ],
    ['with another nonce', claiming({ nonce: 'wrong' })],
    ['without a nonce', claiming({ nonce: undefined })],
    ['from a foreign issuer', claiming({ iss: 'https://evil.test' })],
    ['for another client', claiming({ aud: 'another-client' })],
    ['for us and others, given to others', claiming({ aud: ['gatehouse', 'another'], azp: 'another' })],
    ['that has expired', claiming({ exp: now() - 120 })],
    ['that is not valid yet', claiming({ iat: now() + 3600, nbf: now() + 3600 })],
    ['that was issued in the future', claiming({ iat: now() + 4000, exp: now() + 4300 })],
    ['without an end', claiming({ exp: undefined })],
    ['without a subject', claiming({ sub: undefined })],
    ['that is no token', () => 'nonsense'],
    ['that is empty', () => '']
  ]
  for (const [title, idToken] of TOKENS) {
    t.test(`an ID token ${title} is rejected`, async (t) => {
      gateway.logs.length = 0
      provider.idToken = idToken
      const browser = browserOf(gateway)
      rejectedOn(t, browser, await signIn(browser, 'ada'), 400)
      t.same(gateway.backend.requests, [], 'the backend receives no request')
      t.match(
        gateway.logs.find(({ msg }) => msg === 'sign-in failed'),
        { level: 40, kind: 'unverified' }
      )
    })
  }

  t.test('a callback with the iss of another issuer is rejected', async (t) => {
    const provider = await startScriptedProvider(t)
    provider.metadata = { authorization_response_iss_parameter_supported: true }
    const gateway = await startOidcGateway(t, { issuer: provider.url })
    for (const iss of ['https://evil.test', null]) {
      provider.callback = (query) => (iss === null ? query.delete('iss') : query.set('iss', iss))
      const browser = browserOf(gateway)
      rejectedOn(t, browser, await signIn(browser, 'ada'), 400)
    }
    provider.callback = (query) => query.set('iss', provider.url)
    t.equal((await signIn(browserOf(gateway), 'ada')).url.href, `${APP}/floors?level=2`)
  })

  t.test('a valid ID token is accepted with a clock difference of up to a minute', async (t) => {
    for (const claims of [{}, { iat: now() + 50 }, { exp: now() - 50, iat: now() - 400 }]) {
      provider.idToken = claiming(claims)
      t.equal((await signIn(browserOf(gateway), 'ada')).url.href, `${APP}/floors?level=2`)
    }
  })

  t.test('the log contains no token, code or state', async (t) => {
    const provider = await startScriptedProvider(t)
    const gateway = await startOidcGateway(t, { issuer: provider.url, env: { LOG_LEVEL: 'trace' } })
    let token = ''
    provider.idToken = async (recipe) => {
      token = await signed({ ...recipe, key: other })
      return token
    }
    const browser = browserOf(gateway)
    const { visited } = await signIn(browser, 'ada')
    const { searchParams } = new URL(visited.at(-1) ?? '')
    const log = JSON.stringify(gateway.logs)
    for (const secret of [
      token,
      token.split('.')[2],
      searchParams.get('code'),
      searchParams.get('state'),
      CLIENT_SECRET
    ]) {
      t.notOk(log.includes(secret ?? 'missing'))
    }
  })
})

t.test('provider error', async (t) => {
  const provider = await startScriptedProvider(t)
  const gateway = await startOidcGateway(t, { issuer: provider.url })
  const ERRORS: readonly (readonly [error: string, kind: string, status: number, text: RegExp])[] = [
    ['access_denied', 'declined', 403, /not granted/],
    ['login_required', 'declined', 403, /not granted/],
    ['server_error', 'unavailable', 503, /cannot be reached/],
    ['temporarily_unavailable', 'unavailable', 503, /cannot be reached/],
    ['invalid_scope', 'rejected', 502, /configuration error/],
    ['<script>alert(1)</script>', 'rejected', 502, /configuration error/]
  ]
  for (const [error, kind, status, text] of ERRORS) {
    t.test(`the provider error ${error} is shown on a page and logged as ${kind}`, async (t) => {
      gateway.logs.length = 0
      provider.callback = (query) => {
        query.delete('code')
        query.set('error', error)
        query.set('error_description', '<b>nonsense</b>')
      }
      const browser = browserOf(gateway)
      const page = await signIn(browser, 'ada')
      rejectedOn(t, browser, page, status)
      t.match(page.body, text)
      t.notMatch(page.body, /nonsense|alert/)
      t.match(
        gateway.logs.find(({ msg }) => msg === 'sign-in failed'),
        { level: 40, kind }
      )
    })
  }

  t.test('an error of the token endpoint is shown on a page', async (t) => {
    provider.callback = () => undefined
    const responses: readonly (readonly [status: number, body: string, shown: number])[] = [
      [401, '{"error":"invalid_client"}', 502],
      [400, '{"error":"invalid_grant"}', 400],
      [500, '{"error":"server_error"}', 503],
      [502, '<html>bad gateway</html>', 503],
      [200, 'nonsense', 503]
    ]
    for (const [status, body, shown] of responses) {
      provider.token = (_request, response) => {
        response
          .writeHead(status, { 'content-type': body.startsWith('{') ? 'application/json' : 'text/html' })
          .end(body)
      }
      const browser = browserOf(gateway)
      rejectedOn(t, browser, await signIn(browser, 'ada'), shown)
    }
  })
})
