import t from 'tap'
import { APP, APP_HOST, exchangesIn, signIn, startOidcGateway, startProvider, visitorOf } from './fixture.js'

t.test('signing in', async (t) => {
  t.test('ends where one wanted to go, signed in at the backend', async (t) => {
    const provider = await startProvider(t)
    const gateway = await startOidcGateway(t, { issuer: provider.url })
    const visitor = visitorOf(gateway)

    const landed = await signIn(visitor, 'ada')

    t.equal(landed.url.href, `${APP}/floors?level=2`)
    t.same(exchangesIn(gateway.backend), [
      { email: 'ada@example.com', name: 'Ada Lovelace', okta: true, groups: ['engineers', 'admins'] }
    ])
    t.same(visitor.names(APP_HOST), [
      'auth_permissions',
      'auth_token',
      'auth_token_expiry',
      'auth_user',
      'auth_via_oidc',
      'oidc_session'
    ])
    t.equal(visitor.cookie(APP_HOST, 'auth_via_oidc'), 'true')

    await visitor.visit(`${APP}/api/zones`)
    const last = gateway.backend.requests.at(-1)
    t.equal(last?.headers.authorization, `Bearer ${visitor.cookie(APP_HOST, 'auth_token')}`)
    t.equal(last?.headers.cookie, undefined)
  })
})
