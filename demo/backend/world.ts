import type { Statements } from './database/database.js'

/** What all work is done with. A test hands in its own. */
export interface World {
  /** Or one transaction of it. */
  readonly database: Statements
  readonly now: () => Date
  readonly newId: () => string
  /** The cost of bcrypt. */
  readonly bcryptRounds: number
}
