import type { LocalAccount } from './local-provider.js'

const account = (id: string, name: string, groups: readonly string[]): LocalAccount => ({
  id,
  claims: { name, email: `${id}@example.com`, email_verified: true, groups }
})

/** The demo backend has accounts for the first three. The fourth shows a user without an account. */
export const demoAccounts: readonly LocalAccount[] = [
  account('admin', 'Alex Admin', ['gatehouse-admins']),
  account('operator', 'Olive Operator', ['gatehouse-operators']),
  account('viewer', 'Vic Viewer', ['gatehouse-viewers']),
  account('nobody', 'Nora Nobody', [])
]
