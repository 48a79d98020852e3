import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { join } from 'node:path'
import t from 'tap'
import { WebSocket } from 'ws'
import { tokenOf } from '../../helper/gateway.js'
import { redisUrl } from '../../helper/redis.js'
import { PATIENT_TIMEOUTS } from '../../helper/redis-time.js'
import {
  APP,
  APP_HOST,
  browserOf,
  CLIENT_ID,
  exchangesIn,
  signIn,
  startOidcGateway,
  startProvider,
  TestClock
} from '../oidc/fixture.js'
import { signed, startScriptedProvider } from '../oidc/scripted-provider.js'
import { folderOf } from '../upstreams/upstreams-fixture.js'
import { startWebSocketBackend } from '../websockets/websocket-backend.js'
import { REVOCATION_ENV, STRICT_PATH, withInternalApi } from './fixture.js'

t.test('provider sessions of a revoked user', async (t) => {
  const provider = await startProvider(t)
  const start = async (clock = new TestClock()) =>
    withInternalApi(await startOidcGateway(t, { issuer: provider.url, env: REVOCATION_ENV, clock }))
  /** The user in the tokens of the fixture's backend. */
  const USER = 'operator-1'

  t.test('a provider session of a revoked user gets no new app token', async (t) => {
    const gateway = await start()
    const browser = browserOf(gateway)
    await signIn(browser, 'ada')
    t.equal((await gateway.revoke({ user: USER })).status, 200)

    await browser.request(`${APP}/api/zones`)
    t.equal(gateway.backend.requests.at(-1)?.headers.authorization, undefined)
    // The app session has ended. The next request exchanges the provider session, and the user turns out to be revoked.
    await browser.request(`${APP}/api/zones`)
    t.equal(gateway.backend.requests.at(-1)?.headers.authorization, undefined)
    t.same(browser.names(APP_HOST), [], 'all cookies are cleared')
    const { length } = exchangesIn(gateway.backend)
    await browser.request(`${APP}/api/zones`)
    t.equal(exchangesIn(gateway.backend).length, length)
  })

  t.test(
    'a provider session of a revoked user ends although its start is in the future by the clock of the gateway',
    async (t) => {
      const clock = new TestClock()
      clock.advance(10)
      const gateway = await start(clock)
      const browser = browserOf(gateway)
      await signIn(browser, 'ada')
      t.equal((await gateway.revoke({ user: USER })).status, 200)
      // As at another gateway, whose clock is behind.
      clock.advance(-5)
      await browser.request(`${APP}/api/zones`)
      await browser.request(`${APP}/api/zones`)
      t.equal(gateway.backend.requests.at(-1)?.headers.authorization, undefined)
      t.same(browser.names(APP_HOST), [], 'all cookies are cleared')
    }
  )

  t.test('a user who signs in at the provider after the revocation has a session again', async (t) => {
    const gateway = await start()
    const browser = browserOf(gateway)
    await signIn(browser, 'ada')
    await gateway.revoke({ user: USER })
    await browser.request(`${APP}/api/zones`)
    await signIn(browser, 'ada')
    await browser.request(`${APP}/api/zones`)
    t.match(gateway.backend.requests.at(-1)?.headers.authorization, /^Bearer ./)
  })

  t.test('the app token of a logout at the identity provider is rejected', async (t) => {
    const gateway = await start()
    const browser = browserOf(gateway)
    await signIn(browser, 'ada')
    const cookie = browser.cookieHeader(new URL(APP))
    const status = async () => (await gateway.send(STRICT_PATH, { headers: { cookie, host: APP_HOST } })).status
    t.equal(await status(), 200)
    await gateway.send('/auth/oidc/logout', { headers: { cookie, host: APP_HOST, 'sec-fetch-site': 'cross-site' } })
    t.equal(await status(), 200, 'a foreign page signs nobody out')
    await gateway.send('/auth/oidc/logout', { headers: { cookie, host: APP_HOST } })
    t.equal(await status(), 401)
    const [appToken = ''] = /auth_token=[^;]+/.exec(cookie) ?? []
    t.equal((await gateway.send(STRICT_PATH, { headers: { cookie: appToken, host: APP_HOST } })).status, 401)
  })
})

t.test('a back-channel logout closes the WebSockets of its session with 4401', async (t) => {
  const provider = await startScriptedProvider(t)
  const backend = await startWebSocketBackend(t)
  const rows = [{ name: 'live', url: backend.url, paths: ['/live'], websocket: true }]
  const gateway = await startOidcGateway(t, {
    issuer: provider.url,
    env: {
      GATEWAY_UPSTREAMS: join(folderOf(t, { 'rows.json': JSON.stringify(rows) }), 'rows.json'),
      REDIS_URL: await redisUrl(t)
    },
    redisTimeouts: PATIENT_TIMEOUTS
  })
  const browser = browserOf(gateway)
  await signIn(browser, 'ada')
  const headers = { cookie: browser.cookieHeader(new URL(`${APP}/live/x`)), host: APP_HOST }
  const connect = async (headers: Record<string, string>): Promise<WebSocket> => {
    const ws = new WebSocket(`${gateway.url.replace('http', 'ws')}/live/x`, { headers })
    await once(ws, 'open')
    return ws
  }
  const other = await connect({ cookie: `auth_token=${tokenOf('operator')}`, host: APP_HOST })
  const closed = once(await connect(headers), 'close')

  const now = Math.floor(Date.now() / 1000)
  const events = { 'http://schemas.openid.net/event/backchannel-logout': {} }
  const claims = { iss: provider.url, aud: CLIENT_ID, iat: now, exp: now + 120, jti: randomUUID(), sub: 'ada', events }
  const token = await signed({ header: { alg: 'RS256', kid: 'k1', typ: 'logout+jwt' }, claims, key: provider.key })
  const response = await gateway.send('/auth/oidc/backchannel-logout', {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: `logout_token=${token}`
  })

  t.equal(response.status, 200)
  t.same((await closed).map(String), ['4401', 'session ended'])
  t.equal(other.readyState, WebSocket.OPEN, 'a password session of the same user')
})
