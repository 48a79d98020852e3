import t from 'tap'
import {
  APP,
  APP_HOST,
  browserOf,
  exchangesIn,
  SESSION_SECRET,
  signIn,
  startOidcGateway,
  startProvider,
  TestClock
} from './fixture.js'
import type { TestBrowser } from './test-browser.js'

const SESSION = 'oidc_session'

const withoutAppSession = (browser: TestBrowser): TestBrowser => {
  for (const name of browser.names(APP_HOST)) if (name.startsWith('auth_')) browser.setCookie(APP_HOST, name, null)
  return browser
}

const HOUR = 3600

t.test('provider session cookie', async (t) => {
  const provider = await startProvider(t)
  const start = async (t: Parameters<typeof startProvider>[0], env: Record<string, string> = {}) => {
    const clock = new TestClock()
    const gateway = await startOidcGateway(t, { issuer: provider.url, clock, env })
    const browser = browserOf(gateway)
    await signIn(browser, 'ada')
    clock.advance(11)
    gateway.backend.requests.length = 0
    return { clock, gateway, browser, sealed: browser.cookie(APP_HOST, SESSION) ?? '' }
  }

  t.test('a modified, truncated or oversized session cookie is ignored', async (t) => {
    const { gateway, browser, sealed } = await start(t)
    const [header = '', key = '', iv = '', content = '', tag = ''] = sealed.split('.')
    const flipped = (text: string, at: number): string =>
      text.slice(0, at) + (text[at] === 'A' ? 'B' : 'A') + text.slice(at + 1)
    const headerOf = (content: object): string => Buffer.from(JSON.stringify(content)).toString('base64url')
    const { kid } = JSON.parse(Buffer.from(header, 'base64url').toString())
    const INVALID_COOKIES: Readonly<Record<string, string>> = {
      'a changed content': [header, key, iv, flipped(content, 10), tag].join('.'),
      'a changed tag': [header, key, iv, content, flipped(tag, 3)].join('.'),
      'a changed iv': [header, key, flipped(iv, 3), content, tag].join('.'),
      'a shorter tag': [header, key, iv, content, tag.slice(0, 8)].join('.'),
      'no tag': [header, key, iv, content, ''].join('.'),
      'a part missing': [header, key, iv, content].join('.'),
      'its second half': sealed.slice(sealed.length / 2),
      'its first half': sealed.slice(0, sealed.length / 2),
      'another algorithm': [headerOf({ alg: 'none', enc: 'A256GCM', kid }), key, iv, content, tag].join('.'),
      'another encryption': [headerOf({ alg: 'dir', enc: 'A128CBC-HS256', kid }), key, iv, content, tag].join('.'),
      'no name of a key': [headerOf({ alg: 'dir', enc: 'A256GCM' }), key, iv, content, tag].join('.'),
      'the name of an unknown key': [
        headerOf({ alg: 'dir', enc: 'A256GCM', kid: 'unknown1' }),
        key,
        iv,
        content,
        tag
      ].join('.'),
      'a key of its own': [header, 'AAAA', iv, content, tag].join('.'),
      'a signed token in its place': 'eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZGEifQ.',
      'five thousand characters': sealed + 'A'.repeat(5000),
      'something else': 'true',
      nothing: ''
    }
    for (const [title, value] of Object.entries(INVALID_COOKIES)) {
      withoutAppSession(browser)
      browser.setCookie(APP_HOST, SESSION, value)
      const { status } = await browser.request(`${APP}/api/zones`)
      t.equal(status, 200, `${title}: the request goes on`)
      t.same(exchangesIn(gateway.backend), [], `${title}: no user is signed in`)
    }
    t.equal(browser.cookie(APP_HOST, SESSION), undefined, 'the cookie is removed')
  })

  t.test('a session cookie is ignored if byte 0xA0 precedes its name', async (t) => {
    const { gateway, browser } = await start(t, { COOKIE_SECURE: 'true' })
    const name = `__Host-${SESSION}`
    const sealed = browser.cookie(APP_HOST, name) ?? ''

    await gateway.send('/api/zones', { headers: { cookie: `\u00a0${name}=${sealed}` } })
    t.same(exchangesIn(gateway.backend), [], 'a neighbouring host may have set it')
    await gateway.send('/api/zones', { headers: { cookie: `${name}=${sealed}` } })
    t.equal(exchangesIn(gateway.backend).length, 1, 'the real one counts')
  })

  t.test('two different session cookies are ignored', async (t) => {
    const { gateway, sealed } = await start(t)
    await gateway.send('/api/zones', { headers: { cookie: `${SESSION}=${sealed}; ${SESSION}=other` } })
    t.same(exchangesIn(gateway.backend), [])
  })

  t.test('session cookies and sign-in cookies are not interchangeable', async (t) => {
    const { gateway, browser } = await start(t)
    withoutAppSession(browser)
    await browser.request(`${APP}/auth/oidc/login`)
    const [login = ''] = browser.names(APP_HOST).filter((name) => name.startsWith('oidc_login'))
    browser.setCookie(APP_HOST, SESSION, browser.cookie(APP_HOST, login) ?? '')
    await browser.request(`${APP}/api/zones`)
    t.same(exchangesIn(gateway.backend), [])
  })

  t.test('a provider session expires after two hours without a request', async (t) => {
    const { clock, gateway, browser } = await start(t)
    t.match(browser.attributes(APP_HOST, SESSION), 'Max-Age=7200')
    clock.advance(2 * HOUR)
    withoutAppSession(browser)
    await browser.request(`${APP}/api/zones`)
    t.same(exchangesIn(gateway.backend), [])
    t.equal(browser.cookie(APP_HOST, SESSION), undefined)
  })

  t.test('requests extend a provider session, with or without an app session, for at most a day', async (t) => {
    const { clock, gateway, browser, sealed } = await start(t)
    await browser.request(`${APP}/api/zones`)
    t.equal(browser.cookie(APP_HOST, SESSION), sealed, 'the cookie is not renewed with each request')
    for (let hour = 1; hour < 24; hour += 1) {
      clock.advance(HOUR)
      await browser.request(`${APP}/api/zones`)
      t.not(browser.cookie(APP_HOST, SESSION), undefined, `after ${hour} hours`)
    }
    t.match(browser.attributes(APP_HOST, SESSION), /Max-Age=35\d\d/, 'the cookie does not outlive the day')
    clock.advance(HOUR)
    withoutAppSession(browser)
    await browser.request(`${APP}/api/zones`)
    t.same(exchangesIn(gateway.backend), [])
  })

  t.test('a session survives a secret rotation and is encrypted with the new secret', async (t) => {
    const { browser, sealed } = await start(t)
    const NEW = 'the-new-session-secret-0123456789-abc'
    const clock = new TestClock()
    const rotated = await startOidcGateway(t, {
      issuer: provider.url,
      clock,
      env: { SESSION_SECRET: `${NEW},${SESSION_SECRET}` }
    })
    browser.move(APP_HOST, rotated.url)
    clock.advance(HOUR)
    withoutAppSession(browser)
    await browser.request(`${APP}/api/zones`)
    t.equal(exchangesIn(rotated.backend).length, 1)
    const renewed = browser.cookie(APP_HOST, SESSION) ?? ''
    const kid = (text: string): string => JSON.parse(Buffer.from(text.split('.')[0] ?? '', 'base64url').toString()).kid
    t.not(kid(renewed), kid(sealed))

    const later = await startOidcGateway(t, { issuer: provider.url, clock, env: { SESSION_SECRET: NEW } })
    for (const [value, count] of [
      [sealed, 0],
      [renewed, 1]
    ] as const) {
      browser.move(APP_HOST, later.url)
      withoutAppSession(browser)
      browser.setCookie(APP_HOST, SESSION, value)
      await browser.request(`${APP}/api/zones`)
      t.equal(exchangesIn(later.backend).length, count, 'only the new one, once the old secret is gone')
    }
  })
})
