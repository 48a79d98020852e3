import t from 'tap'
import { APP, APP_HOST, browserOf, exchangesIn, signIn, startOidcGateway, startProvider } from '../oidc/fixture.js'
import { REVOCATION_ENV, withInternalApi } from './fixture.js'

t.test('provider sessions of a revoked user', async (t) => {
  const provider = await startProvider(t)
  const start = async () => withInternalApi(await startOidcGateway(t, { issuer: provider.url, env: REVOCATION_ENV }))
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
})
