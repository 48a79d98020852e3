import { randomBytes } from 'node:crypto'
import { orChangingPassword, passwordChangeRequired, requirePermission } from '../auth/permissions.js'
import type { Backend } from '../backend.js'
import { crud } from '../crud.js'
import { invalid, Refusal } from '../errors.js'
import { Records } from '../records.js'
import { users } from '../resources.js'
import { callerOf, type Handlers, handler, idOf, queryOn } from '../route.js'

const admin = requirePermission('admin', 'users')

const madeUpPassword = (): string => randomBytes(9).toString('base64url')

export const userRoutes = (backend: Backend): Handlers => {
  const { accounts, database } = backend
  const records = new Records(users, backend)

  return {
    ...crud('/api/users', users, backend, {
      access: () => admin,
      prepare: async (_statements, { password: _password, roleId, ...fields }, { request }) => ({
        ...(request.method === 'POST' && { isActive: true, role: 'viewer' }),
        ...fields,
        ...(roleId !== undefined && roleId !== null && { role: roleId })
      }),
      stored: async (statements, { id }, { password }) => {
        if (typeof password === 'string') await accounts.setPassword(String(id), password, statements)
      },
      removed: async (_statements, ids, call) => {
        if (ids.includes(callerOf(call).userId)) throw new Refusal(409, 'OWN_ACCOUNT', 'You cannot delete yourself.')
      }
    }),
    'POST /api/users/:id/reset-password': handler(orChangingPassword(admin), async (call) => {
      const id = idOf(call)
      const { userId, mustChangePassword: isChangingOwn } = callerOf(call)
      const { newPassword, mustChange = true } = call.body
      if (isChangingOwn) {
        if (id !== userId) throw passwordChangeRequired()
        if (typeof newPassword !== 'string') throw invalid('/newPassword', 'is required')
        await accounts.mustBeNew(id, newPassword)
      }
      const password = typeof newPassword === 'string' ? newPassword : madeUpPassword()
      await database.transaction(async (statements) => {
        await records.update(statements, id, { mustChangePassword: !isChangingOwn && mustChange })
        await accounts.setPassword(id, password, statements)
      })
      // Shown once, to the admin who asked for it; one that the admin chose needs no showing.
      return typeof newPassword === 'string' ? { reset: true } : { reset: true, temporaryPassword: password }
    }),
    'POST /api/users/:id/unlock': handler(admin, async (call) => {
      await accounts.unlock(idOf(call))
      return records.get(database, idOf(call))
    }),
    'GET /api/users/roles': queryOn(database)(admin, 'SELECT id, name, description, permissions FROM roles ORDER BY id')
  }
}
