import type { Caller } from './auth/permissions.js'
import type { Statements } from './database/database.js'
import type { Fields, World } from './records.js'

export interface AuditEntry {
  readonly action: string
  readonly result: 'done' | 'denied' | 'failed'
  readonly caller: Caller | null
  readonly ip: string
  readonly method: string
  readonly path: string
  readonly details?: Fields
}

/** The backend's own record of who did what, in the table `audit_log`. */
export class AuditLog {
  readonly #statements: Statements
  readonly #world: World

  constructor(statements: Statements, world: World) {
    this.#statements = statements
    this.#world = world
  }

  async add({ action, result, caller, ip, method, path, details = {} }: AuditEntry): Promise<void> {
    await this.#statements.rows(
      `INSERT INTO audit_log (id, at, action, result, user_id, user_email, ip, method, path, details)
       VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
      [
        this.#world.newId(),
        this.#world.now(),
        action,
        result,
        caller?.userId ?? null,
        caller?.email ?? null,
        ip,
        method,
        path,
        JSON.stringify(details)
      ]
    )
  }
}
