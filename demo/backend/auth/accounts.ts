import { randomUUID } from 'node:crypto'
import { compare, hash } from 'bcryptjs'
import { oneRow, type Statements } from '../database/database.js'
import { Refusal } from '../errors.js'
import type { Fields, World } from '../records.js'
import { type Caller, CHANGE_PASSWORD } from './permissions.js'

/** One below the gateway's limit for an address, so that both can be met. */
export const MAX_FAILURES = 4
export const LOCKED_MS = 15 * 60_000

interface AccountRow {
  readonly id: string
  readonly email: string
  readonly displayName: string | null
  readonly role: string | null
  readonly isActive: boolean | null
  readonly mustChangePassword: boolean | null
  readonly permissions: readonly string[] | null
  readonly rolePermissions: readonly string[] | null
  readonly passwordHash: string | null
  readonly lockedUntil: Date | null
  readonly generation: number | null
}

const ACCOUNT = `SELECT u.id, u.email, coalesce(u.display_name, u.name) AS "displayName", u.role, u.is_active AS "isActive",
    u.must_change_password AS "mustChangePassword", u.permissions, r.permissions AS "rolePermissions", c.password_hash AS "passwordHash", c.locked_until AS "lockedUntil",
    c.generation
  FROM users u LEFT JOIN roles r ON r.id = u.role LEFT JOIN credentials c ON c.user_id = u.id`

export interface Account extends Caller {
  /** Goes up when a password is reset: tokens from before are then no longer good. */
  readonly generation: number
}

export class Accounts {
  readonly #statements: Statements
  readonly #world: World
  readonly #rounds: number
  #nobodys: Promise<string> | undefined

  /** `rounds`: the cost of bcrypt. */
  constructor(statements: Statements, world: World, rounds: number) {
    this.#statements = statements
    this.#world = world
    this.#rounds = rounds
  }

  /** Throws the same refusal for an unknown account as for a wrong password. */
  async signIn(login: string, password: string): Promise<Account> {
    const row = await this.#find('lower(u.email) = lower($1) OR lower(u.username) = lower($1)', login)
    if (row?.lockedUntil && row.lockedUntil > this.#world.now()) {
      throw new Refusal(
        423,
        'ACCOUNT_LOCKED',
        'This account is locked after too many wrong passwords. Try again later.'
      )
    }
    const matches = await compare(password, row?.passwordHash ?? (await this.#nobodysHash()))
    if (row === null || row.passwordHash === null) throw wrongCredentials()
    if (!matches) {
      await this.#countFailure(row.id)
      throw wrongCredentials()
    }
    await this.unlock(row.id)
    return this.#signedIn(row, row.mustChangePassword === true)
  }

  /** For somebody whom the identity provider has vouched for. */
  async exchange(email: string): Promise<Account> {
    const row = await this.#find('lower(u.email) = lower($1)', email)
    if (row === null) throw new Refusal(404, 'NO_ACCOUNT', 'There is no account for this person.')
    // No password was used, so none has to be changed.
    return this.#signedIn(row, false)
  }

  /** As the database has the account now; null where a token with these claims is no longer good. */
  async byToken(userId: string, { generation, mustChangePassword }: Fields): Promise<Caller | null> {
    const row = await this.#find('u.id = $1', userId)
    if (row === null || row.isActive === false || (row.generation ?? 0) !== generation) return null
    return accountOf(row, mustChangePassword === true)
  }

  /** Throws a `Refusal` where it is the one that the account has. */
  async mustBeNew(userId: string, password: string): Promise<void> {
    const row = await this.#find('u.id = $1', userId)
    if (row?.passwordHash && (await compare(password, row.passwordHash)))
      throw new Refusal(400, 'PASSWORD_UNCHANGED', 'Choose another password than the one that you have.')
  }

  async setPassword(userId: string, password: string, statements: Statements = this.#statements): Promise<void> {
    const passwordHash = await hash(password, this.#rounds)
    await statements.rows(
      `INSERT INTO credentials (user_id, password_hash) VALUES ($1, $2) ON CONFLICT (user_id) DO UPDATE
       SET password_hash = excluded.password_hash, failures = 0, locked_until = NULL,
           generation = credentials.generation + 1`,
      [userId, passwordHash]
    )
  }

  async unlock(userId: string): Promise<void> {
    await this.#statements.rows('UPDATE credentials SET failures = 0, locked_until = NULL WHERE user_id = $1', [userId])
  }

  /** Compared with where there is no such account, so that the time taken does not tell. */
  #nobodysHash(): Promise<string> {
    this.#nobodys ??= hash(randomUUID(), this.#rounds)
    return this.#nobodys
  }

  #find(condition: string, value: string): Promise<AccountRow | null> {
    return oneRow<AccountRow>(this.#statements, `${ACCOUNT} WHERE ${condition}`, [value])
  }

  async #signedIn(row: AccountRow, mustChangePassword: boolean): Promise<Account> {
    if (row.isActive === false) throw new Refusal(403, 'ACCOUNT_INACTIVE', 'This account is not in use.')
    await this.#statements.rows('UPDATE users SET last_login_at = $2 WHERE id = $1', [row.id, this.#world.now()])
    return { ...accountOf(row, mustChangePassword), generation: row.generation ?? 0 }
  }

  /** Counting and locking are one statement: of guesses that come together, each counts. */
  async #countFailure(userId: string): Promise<void> {
    const now = this.#world.now()
    await this.#statements.rows(
      `UPDATE credentials SET
         failures = CASE WHEN locked_until IS NULL THEN failures + 1 ELSE 1 END,
         locked_until = CASE WHEN locked_until IS NULL AND failures + 1 >= $2 THEN $3::timestamptz END
       WHERE user_id = $1`,
      [userId, MAX_FAILURES, new Date(now.getTime() + LOCKED_MS)]
    )
  }
}

const wrongCredentials = (): Refusal =>
  new Refusal(401, 'INVALID_CREDENTIALS', 'The e-mail address or the password is wrong.')

const accountOf = (row: AccountRow, mustChangePassword: boolean): Caller => ({
  userId: row.id,
  email: row.email,
  displayName: row.displayName ?? row.email,
  role: row.role,
  permissions: new Set(
    mustChangePassword ? [CHANGE_PASSWORD] : [...(row.rolePermissions ?? []), ...(row.permissions ?? [])]
  ),
  mustChangePassword
})
