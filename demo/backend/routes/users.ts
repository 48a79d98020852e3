import { randomBytes } from 'node:crypto'
import { requirePermission } from '../auth/permissions.js'
import type { Backend } from '../backend.js'
import { crud } from '../crud.js'
import { Refusal } from '../errors.js'
import { type Fields, Records } from '../records.js'
import { users } from '../resources.js'
import { callerOf, type Handlers, handler, idOf } from '../route.js'

const admin = requirePermission('admin', 'users')

const madeUpPassword = (): string => randomBytes(9).toString('base64url')

export const userRoutes = (backend: Backend): Handlers => {
  const { accounts, database } = backend
  const records = new Records(users, backend)
  const generic = crud('/api/users', users, backend, {
    access: () => admin,
    prepare: async (_statements, { password: _password, roleId, ...fields }) =>
      roleId === undefined || roleId === null ? fields : { ...fields, role: roleId }
  })
  const create = generic['POST /api/users']
  const change = generic['PUT /api/users/:id']
  const remove = generic['DELETE /api/users/:id']
  if (!create || !change || !remove) throw new Error('users lack a route')

  const storePassword = async (id: unknown, { password }: Fields): Promise<void> => {
    if (typeof password === 'string') await accounts.setPassword(String(id), password)
  }

  return {
    ...generic,
    'POST /api/users': {
      ...create,
      run: async (call) => {
        const user = (await create.run({ ...call, body: { isActive: true, role: 'viewer', ...call.body } })) as Fields
        await storePassword(user.id, call.body)
        return user
      }
    },
    'PUT /api/users/:id': {
      ...change,
      run: async (call) => {
        const user = (await change.run(call)) as Fields
        await storePassword(user.id, call.body)
        return user
      }
    },
    'DELETE /api/users/:id': {
      ...remove,
      run: async (call) => {
        if (idOf(call) === callerOf(call).userId) throw new Refusal(409, 'OWN_ACCOUNT', 'You cannot delete yourself.')
        return remove.run(call)
      }
    },
    'POST /api/users/:id/reset-password': handler(admin, async (call) => {
      const id = idOf(call)
      await accounts.mustExist(id)
      const { newPassword, mustChange = true } = call.body
      const password = typeof newPassword === 'string' ? newPassword : madeUpPassword()
      await accounts.setPassword(id, password)
      await records.change(database, [id], { mustChangePassword: mustChange })
      // Shown once, to the admin who asked for it; one that the admin chose needs no showing.
      return typeof newPassword === 'string' ? { reset: true } : { reset: true, temporaryPassword: password }
    }),
    'POST /api/users/:id/unlock': handler(admin, async (call) => {
      await accounts.mustExist(idOf(call))
      await accounts.unlock(idOf(call))
      return records.get(database, idOf(call))
    }),
    'GET /api/users/roles': handler(admin, () =>
      database.rows('SELECT id, name, description, permissions FROM roles ORDER BY id')
    )
  }
}
