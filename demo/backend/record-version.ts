import { HttpError, invalid } from './errors.js'
import { textOf } from './queries.js'
import { type Call, idOf } from './route.js'

interface Versioned {
  readonly table: string
  /** The column of the key, and its value; by default the id in the path. */
  readonly key?: string
  readonly id?: string
  /** What the message says has been changed. */
  readonly what: string
}

/**
 * Rejects a change with `?version=` of a row that somebody else has changed since. The row stays locked until the end of the
 * transaction.
 */
export const checkVersion = async (
  call: Call,
  { table, key = 'id', id = idOf(call), what }: Versioned
): Promise<void> => {
  const expected = textOf(call.query, 'version')
  if (expected === null) return
  if (!/^\d{1,9}$/.test(expected)) throw invalid([{ path: '/version', message: 'must be a whole number' }])
  const sql = `SELECT version FROM ${table} WHERE ${key} = $1 FOR UPDATE`
  const [stored] = await call.database.rows<{ version: number }>(sql, [id])
  if (stored === undefined || stored.version === Number(expected)) return
  throw new HttpError(409, 'RECORD_CHANGED', `Another user has changed ${what} meanwhile. Reload it and try again.`)
}

/** For the changes of a group of settings. */
export const checkSettingVersion = (call: Call, name: string): Promise<void> =>
  checkVersion(call, { table: 'settings', key: 'name', id: name, what: 'the settings' })
