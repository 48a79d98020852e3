import { join } from 'node:path'
import t, { type Test } from 'tap'
import { newSigningKey } from '../../../demo/oidc/local-provider.js'
import { startBackend } from '../../helper/recording-backend.js'
import {
  APP,
  APP_HOST,
  backendWith,
  browserOf,
  signIn,
  startOidcGateway,
  startProvider,
  TestClock
} from '../oidc/fixture.js'
import { folderOf } from './upstreams-fixture.js'

const TOKEN_SECONDS = 600

const start = async (test: Test) => {
  const provider = await startProvider(test, {
    client: { grant_types: ['authorization_code', 'refresh_token'] },
    tokenSeconds: TOKEN_SECONDS
  })
  const clock = new TestClock()
  const backend = await startBackend(test)
  const rows = [
    { name: 'reports', url: backend.url, paths: ['/reports'], token: 'provider' },
    { name: 'bare', url: backend.url, paths: ['/bare'], token: 'none' }
  ]
  const env = {
    GATEWAY_UPSTREAMS: join(folderOf(test, { 'rows.json': JSON.stringify(rows) }), 'rows.json'),
    OIDC_SCOPES: 'openid profile email offline_access'
  }
  const gateway = await startOidcGateway(test, { issuer: provider.url, env, clock })
  const browser = browserOf(gateway)
  const authorization = async (path: string): Promise<string | undefined> => {
    backend.requests.length = 0
    await browser.request(`${APP}${path}`)
    return backend.requests[0]?.headers.authorization
  }
  /** The user that the provider knows for an access token. */
  const subjectOf = async (header: string | undefined): Promise<unknown> => {
    const response = await fetch(`${provider.url}/me`, { headers: { authorization: header ?? '' } })
    // The userinfo response of a provider is an object.
    return response.ok ? ((await response.json()) as { sub: unknown }).sub : response.status
  }
  return { provider, backend, clock, gateway, browser, authorization, subjectOf }
}

t.test(
  'a row with token: provider receives the access token of the provider, refreshed when it has expired',
  async (t) => {
    const { clock, gateway, browser, authorization, subjectOf } = await start(t)
    t.equal(await authorization('/reports/x'), undefined, 'no session, no token')
    await signIn(browser, 'ada')
    const first = await authorization('/reports/x')
    t.equal(await subjectOf(first), 'ada')
    t.equal(await authorization('/reports/y'), first)
    t.equal(await authorization('/bare/x'), undefined)
    clock.advance(TOKEN_SECONDS + 1)
    const tokens = await Promise.all(Array.from({ length: 5 }, () => authorization('/reports/z')))
    const second = await authorization('/reports/z')
    t.not(second, first)
    t.equal(await subjectOf(second), 'ada')
    t.ok(tokens.every((token) => token === undefined || token === second))
    t.notMatch(JSON.stringify([...gateway.logs, browser.cookie(APP_HOST, 'oidc_session')]), String(second).slice(7))
  }
)

t.test('the access token of a user without an account, or after the logout, is not sent', async (t) => {
  const { gateway, browser, authorization } = await start(t)
  gateway.backend.respond = backendWith([])
  await signIn(browser, 'ada')
  t.equal(await authorization('/reports/x'), undefined)
  gateway.backend.respond = backendWith(['bob@example.com'])
  const other = browserOf(gateway)
  await signIn(other, 'bob')
  await other.request(`${APP}/api/auth/csrf-token`)
  const csrf = other.cookie(APP_HOST, 'csrf_token') ?? ''
  await other.request(`${APP}/api/auth/logout`, { method: 'POST', headers: { 'x-csrf-token': csrf } })
  t.notOk(other.cookie(APP_HOST, 'auth_token'))
})

t.test('the access token of a session that ends during its refresh is not sent', async (t) => {
  const { provider, backend, clock, browser, authorization } = await start(t)
  await signIn(browser, 'ada')
  await browser.request(`${APP}/api/auth/csrf-token`)
  const csrf = browser.cookie(APP_HOST, 'csrf_token') ?? ''
  clock.advance(TOKEN_SECONDS + 1)
  const { listener } = provider
  const logouts: Promise<number>[] = []
  provider.listener = async (request, response) => {
    if (request.method === 'POST' && request.url === '/token') {
      const headers = { 'x-csrf-token': csrf }
      const logout = browser.request(`${APP}/api/auth/logout`, { method: 'POST', headers }).then(({ status }) => status)
      logouts.push(logout)
      await Promise.allSettled([logout])
    }
    listener(request, response)
  }
  t.equal(await authorization('/reports/x'), undefined)
  t.equal(backend.requests.length, 1, 'the backend has received the request')
  t.same(await Promise.all(logouts), [200], 'the session has ended during the only refresh')
})

t.test('a row with token: provider receives the token of the provider at which the user has signed in', async (t) => {
  const one = await startProvider(t, { key: newSigningKey() })
  const redirect_uris = [`${APP}/auth/oidc/partner/callback`]
  const two = await startProvider(t, { key: newSigningKey(), client: { redirect_uris } })
  const backend = await startBackend(t)
  const rows = [{ name: 'reports', url: backend.url, paths: ['/reports'], token: 'provider' }]
  const gateway = await startOidcGateway(t, {
    issuer: one.url,
    providers: [{ id: 'partner', issuer: two.url }],
    env: { GATEWAY_UPSTREAMS: join(folderOf(t, { 'rows.json': JSON.stringify(rows) }), 'rows.json') }
  })
  for (const [id, own, other] of [
    ['default', one, two],
    ['partner', two, one]
  ] as const) {
    const browser = browserOf(gateway)
    await signIn(browser, 'ada', '/', `/auth/oidc/${id}/login`)
    await browser.request(`${APP}/reports/x`)
    const authorization = backend.requests.at(-1)?.headers.authorization ?? ''
    const isAccepted = async (provider: typeof one): Promise<boolean> =>
      (await fetch(`${provider.url}/me`, { headers: { authorization } })).ok
    t.ok(await isAccepted(own), id)
    t.notOk(await isAccepted(other), id)
  }
})
