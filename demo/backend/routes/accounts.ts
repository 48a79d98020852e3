import { randomBytes } from 'node:crypto'
import { Check } from '@sinclair/typebox/value'
import { PasswordResetSchema } from '../../../schemas/users.js'
import { sameSecret } from '../../../src/shared/same-secret.js'
import { audit } from '../audit.js'
import { type Account, exchange, isCurrentPassword, setPassword, signIn, unlock } from '../auth/accounts.js'
import { sessionLifetimeSeconds } from '../auth/tokens.js'
import { crud } from '../crud.js'
import { HttpError, invalid } from '../errors.js'
import { rows } from '../queries.js'
import { getRecord, updateRecord } from '../records.js'
import { users } from '../resources.js'
import { type Call, callerOf, type Handlers, handler, idOf, perMinute, type Run } from '../route.js'

/** The rule for new passwords is the same in every form. */
const { minLength: MIN_PASSWORD } = PasswordResetSchema.properties.newPassword

const LOGINS = perMinute(60)

const LOOPBACK = /^(?:::ffff:)?127\.|^::1$/

/** The exchange creates a session without a password, so only the gateway may call it: with the secret, or from this machine. */
const isFromGateway = ({ exchangeSecret, request: { headers, socket } }: Call): boolean => {
  // The address of the peer, not a forwarded one.
  if (exchangeSecret === null) return LOOPBACK.test(socket.remoteAddress ?? '')
  const sent = headers['x-exchange-secret']
  return typeof sent === 'string' && sameSecret(sent, exchangeSecret)
}

const accountOf = async (call: Call): Promise<Account> => {
  const { email, username, password, okta } = call.body
  if (okta === true) {
    if (!isFromGateway(call)) throw new HttpError(403, 'FORBIDDEN', 'Only the gateway may send this field.')
    return exchange(call, String(email))
  }
  const login = email ?? username
  if (typeof login !== 'string') throw invalid([{ path: '/email', message: 'is required' }])
  return signIn(call, login, String(password))
}

const login =
  (format: 'jwt' | 'legacy'): Run =>
  async (call) => {
    const { email, username, rememberMe } = call.body
    const details = { login: String(email ?? username ?? '').slice(0, 254) }
    try {
      const account = await accountOf(call)
      await audit({ ...call, caller: account }, 'auth.login', 'done', details)
      return call.tokens.session(account, format, await sessionLifetimeSeconds(call, rememberMe === true))
    } catch (error) {
      await audit({ ...call, caller: null }, 'auth.login', 'failed', details)
      throw error
    }
  }

const resetPassword: Run = async (call) => {
  const id = idOf(call)
  const { userId, mustChangePassword } = callerOf(call)
  const { newPassword, currentPassword, mustChange = true } = call.body
  const isChangingOwn = id === userId
  if (isChangingOwn) {
    if (typeof newPassword !== 'string') throw invalid([{ path: '/newPassword', message: 'is required' }])
    // A session left open must not be enough to take over the account. A temporary password was entered just before.
    if (!mustChangePassword && !(await isCurrentPassword(call, id, String(currentPassword ?? ''))))
      throw invalid([{ path: '/currentPassword', message: 'is wrong' }])
    if (await isCurrentPassword(call, id, newPassword))
      throw new HttpError(400, 'PASSWORD_UNCHANGED', 'The new password must differ from the current one.')
  }
  await updateRecord(call, users, id, { mustChangePassword: !isChangingOwn && mustChange })
  const password = typeof newPassword === 'string' ? newPassword : randomBytes(9).toString('base64url')
  await setPassword(call, id, password)
  // Only a generated password is returned, once.
  return { reset: true, ...(password !== newPassword && { temporaryPassword: password }) }
}

/** Login, logout and user accounts. */
export const accountRoutes: Handlers = {
  'POST /api/auth/login': handler('public', login('jwt'), LOGINS),
  // Older clients use this route and the legacy token format.
  'POST /api/auth/backend-login': handler('public', login('legacy'), LOGINS),
  'GET /api/auth/backend-me': handler('authenticated', callerOf, { orChangingPassword: true }),
  // The session is the token, which the gateway has deleted, so there is nothing to do.
  'POST /api/auth/logout': handler('public', () => null),

  ...crud(users, {
    prepare: ({ body: { password: _password, roleId, ...fields }, request }) => ({
      ...(request.method === 'POST' && { isActive: true, role: 'viewer' }),
      ...fields,
      ...(roleId != null && { role: roleId })
    }),
    stored: async (call, id) => {
      const { password } = call.body
      const { role, isActive } = await getRecord(call, users, id)
      if (id === callerOf(call).userId && (role !== callerOf(call).role || isActive === false))
        throw new HttpError(409, 'OWN_ACCOUNT', 'You cannot remove your own permissions.')
      if (typeof password !== 'string') return
      if (!Check(PasswordResetSchema.properties.newPassword, password))
        throw invalid([{ path: '/password', message: `must have at least ${MIN_PASSWORD} characters` }])
      await setPassword(call, id, password)
    },
    removed: async (call, ids) => {
      if (ids.includes(callerOf(call).userId))
        throw new HttpError(409, 'OWN_ACCOUNT', 'You cannot delete your own account.')
    }
  }),
  'POST /api/users/:id/reset-password': handler('admin.users', resetPassword, {
    orOwnAccount: true,
    ...LOGINS
  }),
  'POST /api/users/:id/unlock': handler('admin.users', async (call) => {
    await unlock(call, idOf(call))
    return getRecord(call, users, idOf(call))
  }),
  'GET /api/users/roles': handler(
    'admin.users',
    rows('SELECT id, name, description, permissions FROM roles ORDER BY id')
  )
}
