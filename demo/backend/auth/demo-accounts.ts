import type { Database } from '../database/database.js'
import { Records, type World } from '../records.js'
import { users } from '../resources.js'
import type { Accounts } from './accounts.js'

/** One for each role. All three have the password that the start was given. */
export const DEMO_ACCOUNTS = [
  { email: 'admin@example.com', displayName: 'Alex Admin', role: 'admin' },
  { email: 'operator@example.com', displayName: 'Olive Operator', role: 'operator' },
  { email: 'viewer@example.com', displayName: 'Vic Viewer', role: 'viewer' }
] as const

/** Makes sure that they are there and that the password is theirs and may stay so, whatever a kept database says. */
export const ensureDemoAccounts = async (
  database: Database,
  accounts: Accounts,
  world: World,
  password: string
): Promise<void> => {
  const records = new Records(users, world)
  for (const account of DEMO_ACCOUNTS) {
    const [known] = await database.rows<{ id: string }>('SELECT id FROM users WHERE lower(email) = $1', [account.email])
    const id = known?.id ?? `demo-${account.role}`
    if (known === undefined) await records.create(database, { ...account, isActive: true }, id)
    else await records.change(database, [id], { mustChangePassword: false })
    await accounts.setPassword(id, password)
  }
}
