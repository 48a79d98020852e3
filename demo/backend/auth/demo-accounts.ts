import { changeRecords, insertRecords } from '../records.js'
import { users } from '../resources.js'
import type { World } from '../world.js'
import { setPassword } from './accounts.js'

/** One for each role. All three have the password that the start was given. */
export const DEMO_ACCOUNTS = [
  { email: 'admin@example.com', displayName: 'Alex Admin', role: 'admin' },
  { email: 'operator@example.com', displayName: 'Olive Operator', role: 'operator' },
  { email: 'viewer@example.com', displayName: 'Vic Viewer', role: 'viewer' }
] as const

/** Makes sure that they are there and that the password is theirs and may stay so, whatever a kept database says. */
export const ensureDemoAccounts = async (world: World, password: string): Promise<void> => {
  for (const account of DEMO_ACCOUNTS) {
    const sql = 'SELECT id FROM users WHERE lower(email) = $1'
    const [known] = await world.database.rows<{ id: string }>(sql, [account.email])
    const id = known?.id ?? `demo-${account.role}`
    if (known === undefined) await insertRecords(world, users, [{ ...account, id, isActive: true }])
    else await changeRecords(world, users, [id], { mustChangePassword: false })
    await setPassword(world, id, password)
  }
}
