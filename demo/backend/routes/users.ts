import { randomBytes } from 'node:crypto'
import { mustBeNew, setPassword, unlock } from '../auth/accounts.js'
import { orChangingPassword, passwordChangeRequired, requirePermission } from '../auth/permissions.js'
import { crud } from '../crud.js'
import { invalid, Refusal } from '../errors.js'
import { rows } from '../queries.js'
import { getRecord, updateRecord } from '../records.js'
import { users } from '../resources.js'
import { callerOf, type Handlers, handler, idOf, type Run } from '../route.js'

const admin = requirePermission('admin', 'users')

const resetPassword: Run = async (call) => {
  const id = idOf(call)
  const { userId, mustChangePassword: isChangingOwn } = callerOf(call)
  const { newPassword, mustChange = true } = call.body
  if (isChangingOwn) {
    if (id !== userId) throw passwordChangeRequired()
    if (typeof newPassword !== 'string') throw invalid('/newPassword', 'is required')
    await mustBeNew(call, id, newPassword)
  }
  await updateRecord(call, users, id, { mustChangePassword: !isChangingOwn && mustChange })
  const password = typeof newPassword === 'string' ? newPassword : randomBytes(9).toString('base64url')
  await setPassword(call, id, password)
  // Shown once, to the admin who asked for it; one that the admin chose needs no showing.
  return { reset: true, ...(password !== newPassword && { temporaryPassword: password }) }
}

export const userRoutes: Handlers = {
  ...crud(users, {
    prepare: ({ body: { password: _password, roleId, ...fields }, request }) => ({
      ...(request.method === 'POST' && { isActive: true, role: 'viewer' }),
      ...fields,
      ...(roleId != null && { role: roleId })
    }),
    stored: async (call, id) => {
      const { password } = call.body
      if (typeof password === 'string') await setPassword(call, id, password)
    },
    removed: async (call, ids) => {
      if (ids.includes(callerOf(call).userId)) throw new Refusal(409, 'OWN_ACCOUNT', 'You cannot delete yourself.')
    }
  }),
  'POST /api/users/:id/reset-password': handler(orChangingPassword(admin), resetPassword),
  'POST /api/users/:id/unlock': handler(admin, async (call) => {
    await unlock(call, idOf(call))
    return getRecord(call, users, idOf(call))
  }),
  'GET /api/users/roles': handler(admin, rows('SELECT id, name, description, permissions FROM roles ORDER BY id'))
}
