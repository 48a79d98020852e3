import t, { type Test } from 'tap'
import type { ApiCaller } from '../../src/client/api/caller.js'
import { type BuildingClientOptions, createBuildingClient } from '../../src/client/buildings/building-client.js'
import { createClient } from '../../src/client/client.js'
import { createAppToken } from '../../src/shared/app-token.js'
import { cookieJar } from '../helper/cookie-jar.js'
import { FakeClock } from '../helper/fake-clock.js'
import { apiKey, startGateway, tokenOf } from '../helper/gateway.js'

const HOUR_MS = 3_600_000
const CREDENTIALS = { email: 'ada@example.com', password: 'correct horse' }

/** A page in production mode, and a backend that accepts every login. */
const openClient = async (
  t: Test,
  options: BuildingClientOptions = {},
  permissions: readonly string[] = ['a.b'],
  env: Readonly<Record<string, string>> = {}
) => {
  const gateway = await startGateway(t, { hasAllRoutes: true, env })
  const { backend } = gateway
  const user = { userId: 7, email: 'ada@example.com', displayName: 'Ada', role: 'admin', permissions }
  backend.respond = ({ url }, response) => {
    response.setHeader('content-type', 'application/json')
    const data = url.endsWith('login') ? { token: tokenOf('admin'), user, expiresIn: 3600 } : { user }
    response.end(JSON.stringify({ success: true, data }))
  }
  const jar = cookieJar()
  const client = createBuildingClient({
    baseUrl: gateway.url,
    fetch: jar.fetch,
    cookies: () => jar.readable,
    ...options
  })
  t.teardown(() => client.close())
  return { ...gateway, jar, client }
}

t.test('a client', async (t) => {
  t.test('a client updates the session after a login and a logout', async (t) => {
    const { client } = await openClient(t)
    const seen: boolean[] = []
    client.session.onChange(({ isSignedIn }) => void seen.push(isSignedIn))
    await client.api.auth.login(CREDENTIALS)
    t.match(client.session.state, { isSignedIn: true, user: { userId: 7, role: 'admin' }, permissions: ['a.b'] })
    await client.api.zones.create({ name: 'Lobby' })
    await client.api.auth.logout()

    t.equal(client.session.state.isSignedIn, false)
    t.same(seen, [true, false])
  })

  t.test('a client calls paths that the API does not have, with the same session', async (t) => {
    const { client, jar, backend } = await openClient(t)
    await client.api.auth.login(CREDENTIALS)
    await client.call('GET', '/api/positions/tracks/f-1', { query: { from: 7 } })
    t.equal(backend.requests.at(-1)?.url, '/api/positions/tracks/f-1?from=7')
    jar.keep(['auth_token=; Max-Age=0'])
    await t.rejects(client.call('POST', '/api/carts'), { code: 'UNAUTHENTICATED' })

    t.equal(client.session.state.isSignedIn, false)
  })

  t.test('a client signs out of a password session even if the backend fails', async (t) => {
    const left: string[] = []
    const { client, backend } = await openClient(t, { leave: (url) => left.push(url) })
    for (const status of [200, 500]) {
      await client.api.auth.login(CREDENTIALS)
      const { respond } = backend
      backend.respond = (request, response) =>
        request.url.endsWith('logout') ? response.writeHead(status).end('{}') : respond(request, response)
      t.equal(await client.signOut(), false)
      t.equal(client.session.state.isSignedIn, false)
    }
    t.same(left, [], 'the page is not left')
  })

  t.test('a client navigates to the identity provider to sign out of its session', async (t) => {
    const left: string[] = []
    const env = {
      PUBLIC_URL: 'http://app.example.test',
      OIDC_ISSUER: 'http://127.0.0.1:9',
      OIDC_CLIENT_ID: 'gatehouse',
      OIDC_CLIENT_SECRET: 'secret',
      SESSION_SECRET: 'session-secret-for-tests-0123456789',
      EXCHANGE_SECRET: 'exchange-secret-for-tests-0123456789'
    }
    const { client, url, jar } = await openClient(t, { leave: (to) => left.push(to) }, [], env)
    t.same(await client.api.auth.providers(), { success: true, data: [{ name: 'oidc', loginAt: '/auth/oidc/login' }] })
    await client.api.auth.login(CREDENTIALS)
    jar.keep(['auth_via_oidc=true'])

    t.equal(await client.signOut(), true)
    t.same(left, [`${url}/auth/oidc/logout`])
    t.equal(client.session.state.isSignedIn, false)

    await client.api.auth.login(CREDENTIALS)
    t.equal(await client.signOut(), false, 'and not the next time, from a password')
    t.equal(left.length, 1)
  })

  t.test('a client ignores other redirect addresses in a logout response', async (t) => {
    const left: string[] = []
    for (const location of [
      'https://evil.test/',
      '//evil.test',
      '/auth/oidc/logout.evil',
      '/live',
      'javascript:alert(1)'
    ]) {
      const response = new Response('{"success":true,"csrfToken":"t"}', { headers: { 'x-logout-at': location } })
      const client = createClient({
        fetch: async () => response.clone(),
        leave: (to) => left.push(to),
        cookies: () => ''
      })
      t.teardown(() => client.close())
      t.equal(await client.signOut(), false, location)
    }
    t.same(left, [])
  })

  t.test('the token is not readable by scripts', async (t) => {
    const { client, jar } = await openClient(t)
    await client.api.auth.login(CREDENTIALS)

    t.match(jar.header, /auth_token=/)
    t.notMatch(jar.readable, /auth_token=/)
  })

  t.test('a client requests permissions that do not fit into a cookie', async (t) => {
    const many = Array.from({ length: 400 }, (_, index) => `resource-${index}.read`)
    const { client, backend } = await openClient(t, {}, many)
    await client.api.auth.login(CREDENTIALS)
    t.equal(client.session.state.permissions, null)

    t.same((await client.session.complete()).permissions, many)
    t.equal(backend.requests.at(-1)?.url, '/api/auth/backend-me')
    await client.session.complete()
    t.equal(backend.requests.length, 2)
  })

  t.test('a client reports the expiry before and when it happens', async (t) => {
    const clock = new FakeClock(Date.now())
    const calls: string[] = []
    const { client } = await openClient(t, {
      clock,
      warnBeforeMs: 60_000,
      onExpiring: () => void calls.push('expiring'),
      onExpired: () => void calls.push('expired')
    })
    await client.api.auth.login(CREDENTIALS)
    clock.advance(HOUR_MS / 2)
    t.same(calls, [])
    clock.advance(HOUR_MS / 2 - 30_000)
    t.same(calls, ['expiring'])
    clock.advance(60_000)
    t.same(calls, ['expiring', 'expired'])
    t.equal(client.session.state.isSignedIn, false)
  })

  t.test('a client ends the session if the gateway reports it as expired', async (t) => {
    let expired = 0
    const { client, jar } = await openClient(t, {
      onExpired: () => {
        expired += 1
      }
    })
    await client.api.auth.login(CREDENTIALS)
    const past = createAppToken({ userId: 7 }, apiKey, {
      format: 'jwt',
      lifetimeSeconds: 60,
      nowMs: Date.now() - 61_000
    })
    jar.keep([`auth_token=${past}; HttpOnly`])
    await t.rejects(client.api.zones.create({ name: 'Lobby' }), { code: 'TOKEN_EXPIRED', status: 401 })
    await t.rejects(client.api.zones.create({ name: 'Lobby' }), { code: 'TOKEN_EXPIRED', status: 401 })

    t.equal(expired, 1)
    t.equal(client.session.state.isSignedIn, false)
    await client.api.auth.login(CREDENTIALS)
    t.equal(client.session.state.isSignedIn, true)
  })

  t.test('a wrong password does not end the session', async (t) => {
    let expired = 0
    const { client, backend } = await openClient(t, {
      onExpired: () => {
        expired += 1
      }
    })
    await client.api.auth.login(CREDENTIALS)
    backend.respond = (_request, response) => response.writeHead(401).end('{"error":{"code":"WRONG_PASSWORD"}}')
    await t.rejects(client.api.auth.login(CREDENTIALS), { code: 'WRONG_PASSWORD', status: 401 })

    t.equal(expired, 0)
  })

  t.test('a client negotiates the realtime address through the gateway', async (t) => {
    const { client, backend } = await openClient(t, { clock: new FakeClock() })
    const requested = new Promise((resolve) =>
      client.realtime.on('state', (state) => state === 'offline' && resolve(state))
    )
    client.realtime.start()
    await requested

    t.match(backend.requests, [{ method: 'GET', url: '/api/negotiate' }])
  })

  t.test('a closed client sends and reports nothing', async (t) => {
    const clock = new FakeClock(Date.now())
    const { client } = await openClient(t, { clock })
    await client.api.auth.login(CREDENTIALS)
    t.ok(clock.pendingTimers > 0)
    client.close()

    t.equal(clock.pendingTimers, 0)
  })
})

t.test('a client with routes of its own shares session, expiry and sign-out with calls of any path', async (t) => {
  const gateway = await startGateway(t, { hasAllRoutes: true })
  const user = { userId: 7, email: 'ada@example.com', permissions: ['carts.write'] }
  gateway.backend.respond = ({ url }, response) => {
    response.setHeader('content-type', 'application/json')
    const data = url.endsWith('login') ? { token: tokenOf('admin'), user, expiresIn: 3600 } : { user }
    response.end(JSON.stringify({ success: true, data }))
  }
  const jar = cookieJar()
  let expired = 0
  const createApi = (call: ApiCaller) => ({
    login: (body: object) => call('POST', '/api/auth/login', { body }),
    addCart: (name: string) => call('POST', '/api/carts?copy=1', { body: { name } })
  })
  const { api, session, realtime, signOut, close } = createClient({
    routes: createApi,
    baseUrl: gateway.url,
    fetch: jar.fetch,
    cookies: () => jar.readable,
    clock: new FakeClock(Date.now()),
    onExpired: () => {
      expired += 1
    }
  })
  t.teardown(close)

  await api.login(CREDENTIALS)
  t.match(session.state, { isSignedIn: true, user: { userId: 7 }, permissions: ['carts.write'] })
  await api.addCart('Linen')
  t.equal(await signOut(), false)
  t.equal(session.state.isSignedIn, false)

  await api.login(CREDENTIALS)
  jar.keep(['auth_token=; Max-Age=0'])
  await t.rejects(api.addCart('Meals'), { code: 'UNAUTHENTICATED' })
  t.equal(session.state.isSignedIn, false)
  t.equal(expired, 1)

  const isOffline = new Promise((resolve) => realtime.on('state', (state) => state === 'offline' && resolve(state)))
  realtime.start()
  await isOffline
  t.same(
    gateway.backend.requests.map(({ method, url }) => `${method} ${url}`),
    [
      'POST /api/auth/login',
      'POST /api/carts?copy=1',
      'POST /api/auth/logout',
      'POST /api/auth/login',
      'GET /api/negotiate'
    ]
  )
})
