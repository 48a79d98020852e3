import t from 'tap'
import { DEMO_ACCOUNTS, LOCKED_MS, MAX_FAILURES } from '../../demo/backend/auth/accounts.js'
import { sessionLifetimeSeconds } from '../../demo/backend/auth/tokens.js'
import { startGateway } from '../helper/gateway.js'
import { PASSWORD, reply, startTestBackend } from './demo-backend.js'

const backend = await startTestBackend(t)
const admin = await backend.signIn('admin')

const login = (email: string, password: string, path = '/api/auth/login') =>
  backend.ask('POST', path, null, { email, password })
const me = (token: string | null) => backend.ask('GET', '/api/auth/backend-me', token)

t.test('a login', async (t) => {
  for (const { email, role, displayName } of DEMO_ACCOUNTS) {
    t.test(`answers with token, user and lifetime: ${role}`, async (t) => {
      const { success, data } = (await login(email, PASSWORD)).json()
      t.equal(success, true)
      t.match(data, { user: { userId: `demo-${role}`, email, displayName, role }, expiresIn: 8 * 60 * 60 })
      t.ok(data.user.permissions.includes('floors.read'))
    })
  }

  t.test('is for who knows the password, and tells nobody who exists', async (t) => {
    const [wrong, unknown] = [await login('admin@example.com', 'wrong'), await login('nobody@example.com', 'wrong')]
    t.same([wrong.status, unknown.status], [401, 401])
    t.equal(wrong.body, unknown.body)
    await login('admin@example.com', PASSWORD)
  })

  const FORMATS = [
    ['/api/auth/login', 3, 'a standard JWT'],
    ['/api/auth/backend-login', 2, "the backend's own format"]
  ] as const
  for (const [path, parts, name] of FORMATS) {
    t.test(`at ${path} gives ${name}, which is good everywhere`, async (t) => {
      const token = await backend.signIn('operator', path)
      t.equal(token.split('.').length, parts)
      t.equal((await me(token)).json().data.email, 'operator@example.com')
    })

    t.test(`at ${path} through the gateway becomes a session`, async (t) => {
      const gateway = await startGateway(t, { env: { BACKEND_URL: backend.url } })
      const answer = await gateway.send(path, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ email: 'operator@example.com', password: PASSWORD })
      })
      t.equal(answer.status, 200)
      const cookies = (answer.headers['set-cookie'] ?? []).map((cookie) => cookie.split(';')[0] ?? '')
      const permissions = cookies.find((cookie) => cookie.startsWith('auth_permissions=')) ?? ''
      t.match(decodeURIComponent(permissions), 'emergency.trigger')

      const whoAmI = reply(await gateway.send('/api/auth/backend-me', { headers: { cookie: cookies.join('; ') } }))
      t.equal(whoAmI.json().data.userId, 'demo-operator')
    })
  }

  t.test('of an admin has permissions that fit into a cookie', async (t) => {
    const { permissions } = (await me(admin)).json().data
    t.ok(encodeURIComponent(JSON.stringify(permissions)).length < 3800)
  })
})

t.test('the setting for how long a session lasts', async (t) => {
  const set = (sessionTimeoutMinutes: number | null) =>
    backend.ask('PATCH', '/api/mgmt/settings/general', admin, { sessionTimeoutMinutes })
  const credentials = { email: 'viewer@example.com', password: PASSWORD }
  const lifetime = async (more = {}): Promise<number> =>
    (await backend.ask('POST', '/api/auth/login', null, { ...credentials, ...more })).json().data.expiresIn
  t.teardown(() => set(null))

  t.test('decides about every session from then on, one that is remembered included', async (t) => {
    await set(30)
    t.same([await lifetime(), await lifetime({ rememberMe: true })], [1800, 1800])
    const token = await backend.signIn('viewer')
    t.equal((await me(admin)).status, 200)
    backend.pass(29 * 60_000)
    t.equal((await me(token)).status, 200)
    backend.pass(60_000)
    t.equal((await me(token)).status, 401)
    backend.pass(-30 * 60_000)
  })

  t.test("is the cookies' lifetime, and what the page is told of the end", async (t) => {
    await set(30)
    const gateway = await startGateway(t, { env: { BACKEND_URL: backend.url } })
    const { headers } = await gateway.send('/api/auth/login', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(credentials)
    })
    const cookies = new Map((headers['set-cookie'] ?? []).map((cookie) => [cookie.split('=')[0], cookie]))
    for (const name of ['auth_token', 'auth_user', 'auth_permissions', 'auth_token_expiry']) {
      const [, seconds] = /Max-Age=(\d+)/.exec(cookies.get(name) ?? '') ?? []
      t.ok(Number(seconds) > 0 && Number(seconds) <= 1800, name)
    }
    const [, expiresAtMs] = /=(\d+)/.exec(cookies.get('auth_token_expiry') ?? '') ?? []
    t.ok(Number(expiresAtMs) > Date.now() && Number(expiresAtMs) <= Date.now() + 1_800_000)
  })

  t.test('has limits, so that nobody is locked out, and nobody stays for ever', async (t) => {
    for (const minutes of [0, 4, 43_201]) t.equal((await set(minutes)).status, 400)
  })

  t.test('counts for nothing where a kept database has one beyond the limits', async (t) => {
    const kept = { rows: async <T>() => [{ value: { sessionTimeoutMinutes: 0 } } as T] }
    t.equal(await sessionLifetimeSeconds({ database: kept }, false), 8 * 60 * 60)
  })

  t.test('leaves everything as usual when it is emptied', async (t) => {
    await set(null)
    t.same([await lifetime(), await lifetime({ rememberMe: true })], [8 * 60 * 60, 7 * 24 * 60 * 60])
  })
})

t.test('an account whose password somebody else chose', async (t) => {
  const email = 'fresh@example.com'
  const user = { email, role: 'admin', password: 'made-by-an-admin', mustChangePassword: true }
  const { id } = (await backend.ask('POST', '/api/users', admin, user)).json().data
  const signIn = async (password: string) => (await login(email, password)).json().data
  const change = (token: string, body: unknown, userId = id) =>
    backend.ask('POST', `/api/users/${userId}/reset-password`, token, body)
  const { token, user: signedIn } = await signIn('made-by-an-admin')

  t.test('is told so by its one permission', async (t) => {
    t.same(signedIn.permissions, ['password.change'])
    t.match((await me(token)).json().data, { email, mustChangePassword: true })
  })

  for (const route of [
    'GET /api/zones',
    'GET /api/negotiate',
    'GET /api/users',
    'POST /api/zones',
    'POST /api/users/demo-viewer/unlock',
    'POST /api/users/demo-viewer/reset-password'
  ]) {
    t.test(`is refused ${route}`, async (t) => {
      const [method = '', path = ''] = route.split(' ')
      const answer = await backend.ask(method, path, token, method === 'POST' ? { name: 'Test' } : undefined)
      t.match([answer.status, answer.json()], [403, { error: { code: 'PASSWORD_CHANGE_REQUIRED' } }])
    })
  }

  t.test('may sign out', async (t) => {
    t.equal((await backend.ask('POST', '/api/auth/logout', token)).status, 200)
  })

  t.test('keeps it until there is another one that is long enough', async (t) => {
    t.equal((await change(token, {})).status, 400)
    t.equal((await change(token, { newPassword: 'short' })).status, 400)
    t.match((await change(token, { newPassword: 'made-by-an-admin' })).json(), {
      error: { code: 'PASSWORD_UNCHANGED' }
    })
    t.equal((await me(token)).status, 200)
  })

  t.test('is not asked for one where the identity provider vouches for the person', async (t) => {
    const body = { email, name: 'Fresh', okta: true, groups: [] }
    const { data } = (await backend.ask('POST', '/api/auth/login', null, body)).json()
    t.equal((await backend.ask('GET', '/api/zones', data.token)).status, 200)
  })

  t.test('is as any other once the person has chosen one', async (t) => {
    // Nobody asks for the next change by themselves.
    t.equal((await change(token, { newPassword: 'my-own-password', mustChange: true })).status, 200)
    t.equal((await me(token)).status, 401)
    t.equal((await login(email, 'made-by-an-admin')).status, 401)
    const { token: own } = await signIn('my-own-password')
    t.equal((await backend.ask('GET', '/api/users', own)).status, 200)
    t.equal((await me(own)).json().data.mustChangePassword, false)
  })

  t.test('is asked again after the next reset, unless the admin says otherwise', async (t) => {
    for (const [mustChange, status] of [
      [undefined, 403],
      [false, 200]
    ] as const) {
      await change(admin, { newPassword: 'reset-by-an-admin', mustChange })
      const { token } = await signIn('reset-by-an-admin')
      t.equal((await backend.ask('GET', '/api/zones', token)).status, status)
    }
  })
})

t.test('the exchange', async (t) => {
  const exchange = (email: string) =>
    backend.ask('POST', '/api/auth/login', null, { email, name: 'Somebody', okta: true, groups: ['staff'] })

  t.test('needs no password where there is an account', async (t) => {
    t.match((await exchange('VIEWER@example.com')).json(), { success: true, data: { user: { role: 'viewer' } } })
  })

  t.test('makes no account where there is none', async (t) => {
    const answer = await exchange('stranger@example.com')
    t.match(answer.json(), { success: false, error: { code: 'NO_ACCOUNT' } })
  })
})

t.test('the exchange with EXCHANGE_SECRET', async (t) => {
  const EXCHANGE_SECRET = 'exchange-secret-for-tests-0123456789'
  const guarded = await startTestBackend(t, { env: { EXCHANGE_SECRET } })
  const exchange = (headers: Record<string, string>, fields = {}) =>
    guarded.send('/api/auth/login', {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ email: 'viewer@example.com', name: 'Somebody', okta: true, groups: [], ...fields })
    })

  t.test('opens a session where the request carries the secret', async (t) => {
    const answer = await exchange({ 'x-exchange-secret': EXCHANGE_SECRET })
    t.match(answer.json(), { success: true, data: { user: { role: 'viewer' } } })
  })

  const REFUSED: readonly (readonly [what: string, headers: Record<string, string>])[] = [
    ['no secret', {}],
    ['an empty secret', { 'x-exchange-secret': '' }],
    ['another secret of the same length', { 'x-exchange-secret': EXCHANGE_SECRET.replace('9', '8') }],
    ['the secret and more', { 'x-exchange-secret': `${EXCHANGE_SECRET}, ${EXCHANGE_SECRET}` }]
  ]
  for (const [what, headers] of REFUSED) {
    t.test(`is refused with ${what}, from this machine too`, async (t) => {
      const answer = await exchange(headers)
      t.equal(answer.status, 403)
      t.match(answer.json(), { success: false, error: { code: 'FORBIDDEN' } })
    })
  }

  t.test('leaves logins with a password alone', async (t) => {
    t.type(await guarded.signIn('viewer'), 'string')
  })
})

t.test('a token that is missing, forged, of the wrong kind or expired is nobody', async (t) => {
  const token = await backend.signIn('viewer')
  const [header, payload] = token.split('.')
  for (const bad of [null, `${header}.${payload}.AAAA`, 'null', 'a.b']) t.equal((await me(bad)).status, 401)
  backend.pass(8 * 60 * 60_000)
  t.equal((await me(token)).status, 401)
  backend.pass(-8 * 60 * 60_000)
  t.equal((await me(token)).status, 200)
})

t.test('an account', async (t) => {
  const email = 'lock@example.com'
  const created = await backend.ask('POST', '/api/users', admin, { email, role: 'viewer', password: 'first-password' })
  const { id } = created.json().data
  const lockOut = async () => {
    for (let attempt = 0; attempt < MAX_FAILURES; attempt += 1) await login(email, 'wrong')
  }

  t.test('is never shown with its password', async (t) => {
    const { body } = await backend.ask('GET', '/api/users', admin)
    t.notMatch(created.body + body, /password_?hash|\$2[aby]\$|first-password/i)
  })

  t.test('is locked after wrong passwords, even for the right one, until time has passed', async (t) => {
    await lockOut()
    t.match((await login(email, 'first-password')).json(), { error: { code: 'ACCOUNT_LOCKED' } })
    backend.pass(LOCKED_MS + 1)
    t.equal((await login(email, 'first-password')).status, 200)
  })

  t.test('is locked by guesses that come together, however many', async (t) => {
    const guesses = await Promise.all(Array.from({ length: MAX_FAILURES + 1 }, () => login(email, 'wrong')))
    t.same(guesses.map(({ status }) => status).sort(), [...Array(MAX_FAILURES).fill(401), 423])
    t.equal((await login(email, 'first-password')).status, 423)
    backend.pass(LOCKED_MS + 1)
  })

  t.test('is unlocked by an admin', async (t) => {
    await lockOut()
    t.equal((await login(email, 'first-password')).status, 423)
    t.equal((await backend.ask('POST', `/api/users/${id}/unlock`, admin)).json().data.failedLogins, 0)
    t.equal((await login(email, 'first-password')).status, 200)
  })

  t.test('with a reset password: the old one and all sessions are over', async (t) => {
    const { token } = (await login(email, 'first-password')).json().data
    const reset = await backend.ask('POST', `/api/users/${id}/reset-password`, admin, {})
    const { temporaryPassword } = reset.json().data

    t.equal((await login(email, 'first-password')).status, 401)
    t.equal((await me(token)).status, 401)
    t.equal((await login(email, temporaryPassword)).status, 200)
  })

  t.test('of an admin keeps its rights, whatever the admin does to it', async (t) => {
    for (const change of [{ role: 'viewer' }, { roleId: 'viewer' }, { isActive: false }])
      t.match((await backend.ask('PUT', '/api/users/demo-admin', admin, change)).json().error, { code: 'OWN_ACCOUNT' })
    const same = { role: 'admin', isActive: true }
    t.equal((await backend.ask('PUT', '/api/users/demo-admin', admin, same)).status, 200)
  })

  t.test('that does not exist is neither reset nor unlocked', async (t) => {
    for (const action of ['reset-password', 'unlock'])
      t.equal((await backend.ask('POST', `/api/users/nobody/${action}`, admin, {})).status, 404)
  })

  t.test('that is deactivated is out at once', async (t) => {
    await backend.ask('POST', `/api/users/${id}/reset-password`, admin, { newPassword: 'third-password' })
    const { token } = (await login(email, 'third-password')).json().data
    await backend.ask('PUT', `/api/users/${id}`, admin, { isActive: false })

    t.equal((await me(token)).status, 401)
    t.equal((await login(email, 'third-password')).json().error.code, 'ACCOUNT_INACTIVE')
  })

  t.test('has an address that no other has, whatever its case', async (t) => {
    const answer = await backend.ask('POST', '/api/users', admin, { email: 'LOCK@example.com' })
    t.match([answer.status, answer.json()], [409, { error: { code: 'ALREADY_EXISTS' } }])
  })
})

t.test('roles', async (t) => {
  const tokens = {
    admin,
    operator: await backend.signIn('operator'),
    viewer: await backend.signIn('viewer'),
    nobody: null
  }
  // [method and path, admin, operator, viewer, nobody]
  const TABLE: readonly (readonly [string, number, number, number, number])[] = [
    ['GET /api/zones', 200, 200, 200, 401],
    ['GET /api/context/floor/f-1', 200, 200, 200, 401],
    ['GET /api/dashboard', 200, 200, 200, 401],
    ['GET /api/negotiate', 200, 200, 200, 401],
    ['POST /api/zones', 201, 201, 403, 401],
    ['POST /api/personnel', 201, 201, 403, 401],
    ['GET /api/personnel/export/csv', 200, 200, 403, 401],
    ['POST /api/emergency/trigger', 201, 201, 403, 401],
    ['POST /api/buildings', 201, 403, 403, 401],
    ['POST /api/receivers', 201, 403, 403, 401],
    ['PUT /api/battery/thresholds', 200, 403, 403, 401],
    ['GET /api/users', 200, 403, 403, 401],
    ['GET /api/users/roles', 200, 403, 403, 401],
    ['POST /api/users/demo-viewer/unlock', 200, 403, 403, 401],
    ['GET /api/audit/logs', 200, 403, 403, 401],
    ['GET /api/mgmt/settings', 200, 403, 403, 401],
    ['GET /api/phone-beacon/irk-records', 200, 200, 403, 401]
  ]
  for (const [route, ...expected] of TABLE) {
    t.test(`decide on ${route}`, async (t) => {
      const [method = '', path = ''] = route.split(' ')
      const body = method === 'GET' ? undefined : path.endsWith('thresholds') ? { low: 25 } : { name: 'Test' }
      const statuses: number[] = []
      for (const token of Object.values(tokens)) statuses.push((await backend.ask(method, path, token, body)).status)
      t.same(statuses, expected)
    })
  }

  t.test('are audited where they say no, and where something was done', async (t) => {
    const logs = async (query: string) => (await backend.ask('GET', `/api/audit/logs?${query}`, admin)).json()
    const denied = await logs('action=buildings.create&result=denied&userId=demo-viewer')
    t.match(denied.data, [{ userEmail: 'viewer@example.com', method: 'POST', path: '/api/buildings' }])
    t.equal((await logs('action=buildings.create&result=done')).meta.total, 1)
    t.ok((await logs('action=auth.login&result=failed')).meta.total > 0)
  })

  t.test('are not asked of a telephone: it has a token, which is good once, and audited', async (t) => {
    const path = '/api/phone-beacon/onboarding-token'
    const { token } = (await backend.ask('POST', path, admin, { personnelId: '30' })).json().data
    const enroll = () =>
      backend.ask('POST', '/api/phone-beacon/complete-enrollment', null, { token, irk: 'a'.repeat(32) })
    t.same((await Promise.all([enroll(), enroll()])).map(({ status }) => status).toSorted(), [200, 404])
    const { data } = (await backend.ask('GET', '/api/audit/logs?action=phone-beacon.enroll', admin)).json()
    t.match(data, [{ details: { personnelId: '30' } }])
    const { body } = await backend.ask('GET', '/api/phone-beacon/irk-records', admin)
    t.notMatch(body, 'aaaaa', 'only the end of its key is shown')
  })
})
