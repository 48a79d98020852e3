import type { AuditLog } from './audit.js'
import type { Accounts } from './auth/accounts.js'
import type { Tokens } from './auth/tokens.js'
import type { Parts } from './crud.js'
import type { BuildingLayout } from './site/layout.js'

/** All that routes work with. */
export interface Backend extends Parts {
  readonly accounts: Accounts
  readonly tokens: Tokens
  readonly audit: AuditLog
  readonly site: readonly BuildingLayout[]
  readonly relayUrl: string
}
