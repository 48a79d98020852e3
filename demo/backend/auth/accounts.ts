import { compare, hash } from 'bcryptjs'
import { HttpError } from '../errors.js'
import { changeRecords, insertRecords } from '../records.js'
import { users } from '../resources.js'
import type { Fields, World } from '../world.js'
import { type Caller, CHANGE_PASSWORD } from './permissions.js'

/** One below the gateway's limit per address, so that both can be demonstrated. */
export const MAX_FAILURES = 4
export const LOCKED_MS = 15 * 60_000

export interface Account extends Caller {
  /** Incremented by a password reset, which invalidates earlier tokens. */
  readonly generation: number
}

interface AccountRow extends Account {
  readonly isActive: boolean
  readonly passwordHash: string | null
  readonly lockedUntil: Date | null
}

const ACCOUNT = `SELECT u.id AS user_id, u.email, coalesce(u.display_name, u.name, u.email) AS display_name, u.role,
    u.is_active IS NOT FALSE AS is_active, u.must_change_password IS TRUE AS must_change_password,
    coalesce(r.permissions, '[]') || coalesce(u.permissions, '[]') AS permissions,
    c.password_hash, c.locked_until, coalesce(c.generation, 0) AS generation
  FROM users u LEFT JOIN roles r ON r.id = u.role LEFT JOIN credentials c ON c.user_id = u.id`

const find = async ({ database }: World, condition: string, value: string): Promise<AccountRow | undefined> =>
  (await database.rows<AccountRow>(`${ACCOUNT} WHERE ${condition}`, [value]))[0]

/** Throws the same error for an unknown account as for a wrong password. */
export const signIn = async (world: World, login: string, password: string): Promise<Account> => {
  const row = await find(world, 'lower(u.email) = lower($1) OR lower(u.username) = lower($1)', login)
  if (row?.lockedUntil && row.lockedUntil > world.now()) throw accountLocked(world, row.lockedUntil)
  // Takes equally long for unknown accounts, so that the time does not reveal them.
  const matches = row?.passwordHash
    ? await compare(password, row.passwordHash)
    : await hash(password, world.bcryptRounds).then(() => false)
  if (row?.passwordHash && !(await count(world, row.userId, matches)))
    throw accountLocked(world, new Date(world.now().getTime() + LOCKED_MS))
  if (row === undefined || !matches)
    throw new HttpError(401, 'INVALID_CREDENTIALS', 'The e-mail address or the password is wrong.')
  return signedIn(world, row, row.mustChangePassword)
}

const accountLocked = ({ now }: World, until: Date): HttpError => {
  const minutes = Math.ceil((until.getTime() - now().getTime()) / 60_000)
  const wait = minutes === 1 ? 'a minute' : `${minutes} minutes`
  const message = `This account is locked after too many wrong passwords. Try again in ${wait}, or ask an administrator.`
  return new HttpError(423, 'ACCOUNT_LOCKED', message)
}

/** For users authenticated by the identity provider. */
export const exchange = async (world: World, email: string): Promise<Account> => {
  const row = await find(world, 'lower(u.email) = lower($1)', email)
  if (row === undefined) throw new HttpError(404, 'NO_ACCOUNT', 'There is no account for this person.')
  // No password was used, so it need not be changed.
  return signedIn(world, row, false)
}

/** The current account; null if the token's claims are not valid or no longer valid. */
export const callerBy = async (world: World, claims: Fields): Promise<Caller | null> => {
  const { userId, generation, mustChangePassword } = claims
  const row = typeof userId === 'string' ? await find(world, 'u.id = $1', userId) : undefined
  return row?.isActive && row.generation === generation ? callerOf(row, mustChangePassword === true) : null
}

/** The account of a relay connection; null if it does not exist or is inactive. */
export const accountById = async (world: World, userId: string): Promise<Account | null> => {
  const row = await find(world, 'u.id = $1', userId)
  return row?.isActive ? { ...callerOf(row, false), generation: row.generation } : null
}

/** Whether it is the current password. */
export const isCurrentPassword = async (world: World, userId: string, password: string): Promise<boolean> => {
  const row = await find(world, 'u.id = $1', userId)
  return Boolean(row?.passwordHash && (await compare(password, row.passwordHash)))
}

export const setPassword = async (world: World, userId: string, password: string): Promise<void> =>
  storePassword(world, userId, await hash(password, world.bcryptRounds))

const storePassword = async ({ database }: World, userId: string, passwordHash: string): Promise<void> => {
  await database.rows(
    `INSERT INTO credentials (user_id, password_hash) VALUES ($1, $2) ON CONFLICT (user_id) DO UPDATE
     SET password_hash = excluded.password_hash, failures = 0, locked_until = NULL,
         generation = credentials.generation + 1`,
    [userId, passwordHash]
  )
}

export const unlock = async ({ database }: World, userId: string): Promise<void> => {
  await database.rows('UPDATE credentials SET failures = 0, locked_until = NULL WHERE user_id = $1', [userId])
}

/**
 * Counts and locks in one statement, so that concurrent guesses are all counted. False if the account has been locked
 * meanwhile: then even the right password is rejected, so that responses do not reveal it.
 */
const count = async ({ database, now }: World, userId: string, matches: boolean): Promise<boolean> => {
  const counted = await database.rows(
    `UPDATE credentials SET
       failures = CASE WHEN $2 THEN 0 WHEN locked_until IS NULL THEN failures + 1 ELSE 1 END,
       locked_until = CASE WHEN NOT $2 AND locked_until IS NULL AND failures + 1 >= $3 THEN $4::timestamptz END
     WHERE user_id = $1 AND (locked_until IS NULL OR locked_until <= $5) RETURNING user_id`,
    [userId, matches, MAX_FAILURES, new Date(now().getTime() + LOCKED_MS), now()]
  )
  return counted.length > 0
}

const signedIn = async ({ database, now }: World, row: AccountRow, mustChangePassword: boolean): Promise<Account> => {
  if (!row.isActive) throw new HttpError(403, 'ACCOUNT_INACTIVE', 'This account is inactive.')
  await database.rows('UPDATE users SET last_login_at = $2 WHERE id = $1', [row.userId, now()])
  return { ...callerOf(row, mustChangePassword), generation: row.generation }
}

const callerOf = (row: AccountRow, mustChangePassword: boolean): Caller => {
  const { userId, email, displayName, role } = row
  const permissions = mustChangePassword ? [CHANGE_PASSWORD] : [...new Set(row.permissions)]
  return { userId, email, displayName, role, permissions, mustChangePassword }
}

/** One account per role, all with the password given at the start. */
export const DEMO_ACCOUNTS = [
  { email: 'admin@example.com', displayName: 'Alex Admin', role: 'admin' },
  { email: 'operator@example.com', displayName: 'Olive Operator', role: 'operator' },
  { email: 'viewer@example.com', displayName: 'Vic Viewer', role: 'viewer' }
] as const

/** Creates the accounts or resets their passwords in an existing database. An unchanged password keeps its sessions. */
export const ensureDemoAccounts = async (world: World, password: string): Promise<void> => {
  // One hash for the three accounts, because each takes a tenth of a second of the start.
  const passwordHash = hash(password, world.bcryptRounds)
  for (const account of DEMO_ACCOUNTS) {
    const known = await find(world, 'lower(u.email) = $1', account.email)
    const id = known?.userId ?? `demo-${account.role}`
    if (known === undefined) await insertRecords(world, users, [{ ...account, id, isActive: true }])
    else await changeRecords(world, users, [id], { mustChangePassword: false })
    if (known?.passwordHash && (await compare(password, known.passwordHash))) await unlock(world, id)
    else await storePassword(world, id, await passwordHash)
  }
}
