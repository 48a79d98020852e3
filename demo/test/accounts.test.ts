import t from 'tap'
import { startGateway } from '../../test/helper/gateway.js'
import { DEMO_ACCOUNTS, LOCKED_MS, MAX_FAILURES } from '../backend/auth/accounts.js'
import { PASSWORD, reply, startTestBackend } from './demo-backend.js'

const backend = await startTestBackend(t)
const admin = await backend.signIn('admin')

const login = (email: string, password: string, path = '/api/auth/login') =>
  backend.request('POST', path, null, { email, password })
const me = (token: string | null) => backend.request('GET', '/api/auth/backend-me', token)

t.test('a login', async (t) => {
  for (const { email, role, displayName } of DEMO_ACCOUNTS) {
    t.test(`a login as ${role} returns token, user and lifetime`, async (t) => {
      const { success, data } = (await login(email, PASSWORD)).json()
      t.equal(success, true)
      t.match(data, { user: { userId: `demo-${role}`, email, displayName, role }, expiresIn: 8 * 60 * 60 })
      t.ok(data.user.permissions.includes('floors.read'))
    })
  }

  t.test('a failed login does not reveal whether the account exists', async (t) => {
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
    t.test(`a login at ${path} returns ${name}, which all routes accept`, async (t) => {
      const token = await backend.signIn('operator', path)
      t.equal(token.split('.').length, parts)
      t.equal((await me(token)).json().data.email, 'operator@example.com')
    })

    t.test(`a login at ${path} through the gateway creates a session`, async (t) => {
      const gateway = await startGateway(t, { hasAllRoutes: true, env: { BACKEND_URL: backend.url } })
      const response = await gateway.send(path, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ email: 'operator@example.com', password: PASSWORD })
      })
      t.equal(response.status, 200)
      const cookies = (response.headers['set-cookie'] ?? []).map((cookie) => cookie.split(';')[0] ?? '')
      const permissions = cookies.find((cookie) => cookie.startsWith('auth_permissions=')) ?? ''
      t.match(decodeURIComponent(permissions), 'emergency.trigger')

      const whoAmI = reply(await gateway.send('/api/auth/backend-me', { headers: { cookie: cookies.join('; ') } }))
      t.equal(whoAmI.json().data.userId, 'demo-operator')
    })
  }
})

t.test('the session timeout setting', async (t) => {
  const set = (sessionTimeoutMinutes: number | null) =>
    backend.request('PATCH', '/api/mgmt/settings/general', admin, { sessionTimeoutMinutes })
  const credentials = { email: 'viewer@example.com', password: PASSWORD }
  const lifetime = async (more = {}): Promise<number> =>
    (await backend.request('POST', '/api/auth/login', null, { ...credentials, ...more })).json().data.expiresIn
  const shown = async (): Promise<number> =>
    (await backend.request('GET', '/api/mgmt/settings/general', admin)).json().data.sessionTimeoutMinutes
  t.teardown(() => set(null))

  t.test('the default of the timeout is shown until it is set', async (t) => t.equal(await shown(), 480))

  t.test('the timeout applies to all new sessions, including remembered ones', async (t) => {
    await set(30)
    t.same([await lifetime(), await lifetime({ rememberMe: true })], [1800, 1800])
    const token = await backend.signIn('viewer')
    t.equal((await me(admin)).status, 200)
    backend.advance(29 * 60_000)
    t.equal((await me(token)).status, 200)
    backend.advance(60_000)
    t.equal((await me(token)).status, 401)
    backend.advance(-30 * 60_000)
  })

  t.test('an empty timeout restores the default', async (t) => {
    await set(null)
    t.same([await lifetime(), await lifetime({ rememberMe: true })], [8 * 60 * 60, 7 * 24 * 60 * 60])
    t.equal(await shown(), 480)
  })
})

t.test('an account that must change its password', async (t) => {
  const email = 'fresh@example.com'
  const user = { email, role: 'admin', password: 'made-by-an-admin', mustChangePassword: true }
  const { id } = (await backend.request('POST', '/api/users', admin, user)).json().data
  const signIn = async (password: string) => (await login(email, password)).json().data
  const change = (token: string, body: unknown, userId = id) =>
    backend.request('POST', `/api/users/${userId}/reset-password`, token, body)
  const { token, user: signedIn } = await signIn('made-by-an-admin')

  t.test('an account that must change its password has one permission', async (t) => {
    t.same(signedIn.permissions, ['password.change'])
    t.match((await me(token)).json().data, { email, mustChangePassword: true })
  })

  t.test('an account that must change its password can call no other route but the one to sign out', async (t) => {
    for (const path of ['/api/zones', '/api/negotiate', '/api/users'])
      t.match((await backend.request('GET', path, token)).json().error.code, 'PASSWORD_CHANGE_REQUIRED', path)
    t.match((await change(token, { newPassword: 'another-password' }, 'demo-viewer')).status, 403)
    t.equal((await backend.request('POST', '/api/auth/logout', token)).status, 200)
  })

  t.test('a password change requires a new password of sufficient length', async (t) => {
    t.equal((await change(token, {})).status, 400)
    t.equal((await change(token, { newPassword: 'short' })).status, 400)
    t.match((await change(token, { newPassword: 'made-by-an-admin' })).json(), {
      error: { code: 'PASSWORD_UNCHANGED' }
    })
    t.equal((await me(token)).status, 200)
  })

  t.test('a sign-in through the identity provider requires no password change', async (t) => {
    const body = { email, name: 'Fresh', okta: true, groups: [] }
    const { data } = (await backend.request('POST', '/api/auth/login', null, body)).json()
    t.equal((await backend.request('GET', '/api/zones', data.token)).status, 200)
  })

  t.test('a password change gives the account its usual permissions', async (t) => {
    // `mustChange` is ignored when users change their own password.
    t.equal((await change(token, { newPassword: 'my-own-password', mustChange: true })).status, 200)
    t.equal((await me(token)).status, 401)
    t.equal((await login(email, 'made-by-an-admin')).status, 401)
    const { token: own } = await signIn('my-own-password')
    t.equal((await backend.request('GET', '/api/users', own)).status, 200)
    t.equal((await me(own)).json().data.mustChangePassword, false)
  })

  t.test('a reset requires another password change unless the admin disables it', async (t) => {
    for (const [mustChange, status] of [
      [undefined, 403],
      [false, 200]
    ] as const) {
      await change(admin, { newPassword: 'reset-by-an-admin', mustChange })
      const { token } = await signIn('reset-by-an-admin')
      t.equal((await backend.request('GET', '/api/zones', token)).status, status)
    }
  })
})

t.test('the exchange', async (t) => {
  const exchange = (email: string) =>
    backend.request('POST', '/api/auth/login', null, { email, name: 'Somebody', okta: true, groups: ['staff'] })

  t.test('the exchange opens a session for an existing account without a password', async (t) => {
    t.match((await exchange('VIEWER@example.com')).json(), { success: true, data: { user: { role: 'viewer' } } })
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

  t.test('the exchange opens a session for a request with the secret', async (t) => {
    const response = await exchange({ 'x-exchange-secret': EXCHANGE_SECRET })
    t.match(response.json(), { success: true, data: { user: { role: 'viewer' } } })
  })

  const REJECTED: readonly (readonly [title: string, headers: Record<string, string>])[] = [
    ['no secret', {}],
    ['an empty secret', { 'x-exchange-secret': '' }],
    ['another secret of the same length', { 'x-exchange-secret': EXCHANGE_SECRET.replace('9', '8') }],
    ['the secret twice', { 'x-exchange-secret': `${EXCHANGE_SECRET}, ${EXCHANGE_SECRET}` }]
  ]
  for (const [title, headers] of REJECTED) {
    t.test(`the exchange rejects ${title}, even from this machine`, async (t) => {
      const response = await exchange(headers)
      t.equal(response.status, 403)
      t.match(response.json(), { success: false, error: { code: 'FORBIDDEN' } })
    })
  }

  t.test('password logins do not need the exchange secret', async (t) => {
    t.type(await guarded.signIn('viewer'), 'string')
  })
})

t.test('a missing, forged, unsupported or expired token is rejected', async (t) => {
  const token = await backend.signIn('viewer')
  const [header, payload] = token.split('.')
  for (const bad of [null, `${header}.${payload}.AAAA`, 'null', 'a.b']) t.equal((await me(bad)).status, 401)
  backend.advance(8 * 60 * 60_000)
  t.equal((await me(token)).status, 401)
  backend.advance(-8 * 60 * 60_000)
  t.equal((await me(token)).status, 200)
})

t.test('an account', async (t) => {
  const email = 'lock@example.com'
  const created = await backend.request('POST', '/api/users', admin, {
    email,
    role: 'viewer',
    password: 'first-password'
  })
  const { id } = created.json().data
  const lockOut = async () => {
    for (let attempt = 0; attempt < MAX_FAILURES; attempt += 1) await login(email, 'wrong')
  }

  t.test('an account is returned without its password', async (t) => {
    const { body } = await backend.request('GET', '/api/users', admin)
    t.notMatch(created.body + body, /password_?hash|\$2[aby]\$|first-password/i)
  })

  t.test('an account is locked for a while after wrong passwords', async (t) => {
    await lockOut()
    t.match((await login(email, 'first-password')).json().error, {
      code: 'ACCOUNT_LOCKED',
      message: /Try again in 15 minutes/
    })
    backend.advance(LOCKED_MS - 60_000)
    t.match((await login(email, 'first-password')).json().error, { message: /Try again in a minute/ })
    backend.advance(60_001)
    t.equal((await login(email, 'first-password')).status, 200)
  })

  t.test('concurrent wrong passwords lock an account', async (t) => {
    const guesses = await Promise.all(Array.from({ length: MAX_FAILURES + 1 }, () => login(email, 'wrong')))
    t.same(guesses.map(({ status }) => status).sort(), [...Array(MAX_FAILURES).fill(401), 423])
    t.equal((await login(email, 'first-password')).status, 423)
    backend.advance(LOCKED_MS + 1)
  })

  t.test('an admin can unlock an account', async (t) => {
    await lockOut()
    t.equal((await login(email, 'first-password')).status, 423)
    t.equal((await backend.request('POST', `/api/users/${id}/unlock`, admin)).json().data.failedLogins, 0)
    t.equal((await login(email, 'first-password')).status, 200)
  })

  t.test('a user changes the own password with the current one', async (t) => {
    const { token } = (await login(email, 'first-password')).json().data
    const change = (body: object, of = id) => backend.request('POST', `/api/users/${of}/reset-password`, token, body)

    t.match((await change({ newPassword: 'second-password' })).json().error.details, [{ path: '/currentPassword' }])
    t.equal((await change({ newPassword: 'second-password', currentPassword: 'wrong' })).status, 400)
    t.equal(
      (await change({ newPassword: 'second-password', currentPassword: 'first-password' }, 'demo-admin')).status,
      403
    )
    t.match((await change({ newPassword: 'first-password', currentPassword: 'first-password' })).json().error, {
      code: 'PASSWORD_UNCHANGED'
    })
    t.equal((await change({ newPassword: 'second-password', currentPassword: 'first-password' })).status, 200)
    const changed = (await login(email, 'second-password')).json().data
    t.equal(changed.user.mustChangePassword ?? false, false)
    await backend.request('POST', `/api/users/${id}/reset-password`, changed.token, {
      newPassword: 'first-password',
      currentPassword: 'second-password'
    })
  })

  t.test('an initial password follows the rule for new passwords', async (t) => {
    const response = await backend.request('POST', '/api/users', admin, {
      email: 'short@example.com',
      password: 'short'
    })
    t.equal(response.status, 400)
    t.match(response.json().error.details, [{ path: '/password', message: 'must have at least 8 characters' }])
  })

  t.test('a password reset invalidates the old password and all sessions', async (t) => {
    const { token } = (await login(email, 'first-password')).json().data
    const reset = await backend.request('POST', `/api/users/${id}/reset-password`, admin, {})
    const { temporaryPassword } = reset.json().data

    t.equal((await login(email, 'first-password')).status, 401)
    t.equal((await me(token)).status, 401)
    t.equal((await login(email, temporaryPassword)).status, 200)
  })

  t.test('admins cannot remove their own rights', async (t) => {
    for (const change of [{ role: 'viewer' }, { roleId: 'viewer' }, { isActive: false }])
      t.match((await backend.request('PUT', '/api/users/demo-admin', admin, change)).json().error, {
        code: 'OWN_ACCOUNT'
      })
    const same = { role: 'admin', isActive: true }
    t.equal((await backend.request('PUT', '/api/users/demo-admin', admin, same)).status, 200)
  })

  t.test('deactivating an account ends its sessions', async (t) => {
    await backend.request('POST', `/api/users/${id}/reset-password`, admin, { newPassword: 'third-password' })
    const { token } = (await login(email, 'third-password')).json().data
    await backend.request('PUT', `/api/users/${id}`, admin, { isActive: false })

    t.equal((await me(token)).status, 401)
    t.equal((await login(email, 'third-password')).json().error.code, 'ACCOUNT_INACTIVE')
  })

  t.test('e-mail addresses are unique regardless of case', async (t) => {
    const response = await backend.request('POST', '/api/users', admin, { email: 'LOCK@example.com' })
    t.match([response.status, response.json()], [409, { error: { code: 'ALREADY_EXISTS' } }])
  })
})

t.test('roles', async (t) => {
  const tokens = {
    admin,
    operator: await backend.signIn('operator'),
    viewer: await backend.signIn('viewer'),
    nobody: null
  }
  // [method and path, status for admin, operator, viewer and without a token]
  const TABLE: readonly (readonly [string, number, number, number, number])[] = [
    ['GET /api/zones', 200, 200, 200, 401],
    ['GET /api/context/floor/f-1', 200, 200, 200, 401],
    ['GET /api/dashboard', 200, 200, 200, 401],
    ['GET /api/negotiate', 200, 200, 200, 401],
    ['POST /api/zones', 201, 201, 403, 401],
    ['POST /api/personnel', 201, 201, 403, 401],
    ['GET /api/personnel/export/csv', 200, 200, 403, 401],
    ['POST /api/emergency/trigger', 201, 200, 403, 401],
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
    t.test(`the role decides who may call ${route}`, async (t) => {
      const [method = '', path = ''] = route.split(' ')
      const body =
        method === 'GET' ? undefined : path.endsWith('thresholds') ? { low: 25 } : { name: 'Test', type: 'fire' }
      const statuses: number[] = []
      for (const token of Object.values(tokens))
        statuses.push((await backend.request(method, path, token, body)).status)
      t.same(statuses, expected)
    })
  }

  t.test('denied and successful actions are audited', async (t) => {
    const logs = async (query: string) => (await backend.request('GET', `/api/audit/logs?${query}`, admin)).json()
    const denied = await logs('action=buildings.create&result=denied&userId=demo-viewer')
    t.match(denied.data, [{ userEmail: 'viewer@example.com', method: 'POST', path: '/api/buildings' }])
    t.equal((await logs('action=buildings.create&result=done')).meta.total, 1)
    t.ok((await logs('action=auth.login&result=failed')).meta.total > 0)
  })

  t.test('the audit log has the account of a failed sign-in, and no bodies', async (t) => {
    const { id } = (await backend.request('POST', '/api/personnel', admin, { name: 'Ada Example' })).json().data
    await backend.request('PUT', `/api/personnel/${id}`, admin, { jobTitle: 'a-secret-word' })
    await backend.request('POST', '/api/auth/login', null, { email: 'unknown@example.com', password: 'wrong' })
    const [entry] = (await backend.request('GET', '/api/audit/logs?search=unknown', admin)).json().data
    t.match(entry, { action: 'auth.login', result: 'failed', account: 'unknown@example.com' })
    const { data } = (await backend.request('GET', '/api/audit/summary', admin)).json()
    t.ok(data.byAccount.some(({ account }: { account: string }) => account === 'unknown@example.com'))
    const { body } = await backend.request('GET', '/api/audit/export', admin)
    t.match(body, `personnel.update,done,demo-admin,Alex Admin,admin@example.com`)
    t.match(body, `/api/personnel/${id}`)
    t.notMatch(body, 'a-secret-word')
  })

  t.test('a phone enrolls with a single-use token, which is audited', async (t) => {
    const path = '/api/phone-beacon/onboarding-token'
    const { token } = (await backend.request('POST', path, admin, { personnelId: '30' })).json().data
    const enroll = () =>
      backend.request('POST', '/api/phone-beacon/complete-enrollment', null, { token, irk: 'a'.repeat(32) })
    t.same((await Promise.all([enroll(), enroll()])).map(({ status }) => status).toSorted(), [200, 404])
    const { data } = (await backend.request('GET', '/api/audit/logs?action=phone-beacon.enroll', admin)).json()
    t.match(data, [{ details: { personnelId: '30' } }])
    const { body } = await backend.request('GET', '/api/phone-beacon/irk-records', admin)
    t.notMatch(body, 'aaaaa', 'only the end of its key is shown')
  })
})
