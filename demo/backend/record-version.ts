import { HttpError, invalid } from './errors.js'
import { textOf } from './queries.js'
import { getRecord } from './records.js'
import type { Resource } from './resources.js'
import { type Call, idOf, type Run } from './route.js'

/** The last user who changed the record through its own path; bulk changes and imports are not found. */
const CHANGED_BY = `SELECT coalesce(u.display_name, u.name, a.user_email) AS name FROM audit_log a
  LEFT JOIN users u ON u.id = a.user_id WHERE a.path = $1 AND a.method <> 'GET' AND a.result = 'done' ORDER BY a.at DESC LIMIT 1`

interface Versioned {
  readonly table: string
  /** The column of the key. */
  readonly key: string
  readonly id: string
  readonly message: string
  /** The record as its form shows it. */
  readonly current: () => Promise<unknown>
}

/**
 * Rejects a change with `?version=` of a row that somebody else has changed since. The error has the current record, so that
 * the user can compare. The row stays locked until the end of the transaction.
 */
const checkRow = async (call: Call, { table, key, id, message, current }: Versioned): Promise<void> => {
  const expected = textOf(call.query, 'version')
  if (expected === null) return
  if (!/^\d{1,9}$/.test(expected)) throw invalid([{ path: '/version', message: 'must be a whole number' }])
  const [stored] = await call.database.rows<{ version: number }>(
    `SELECT version FROM ${table} WHERE ${key} = $1 FOR UPDATE`,
    [id]
  )
  if (stored === undefined || stored.version === Number(expected)) return
  const [user] = await call.database.rows(CHANGED_BY, [call.request.url.split('?', 1)[0] ?? ''])
  const more = { current: await current(), changedBy: user?.name ?? null }
  throw new HttpError(409, 'RECORD_CHANGED', message, undefined, more)
}

export const checkVersion = (call: Call, resource: Resource): Promise<void> => {
  const id = idOf(call)
  const message = `The ${resource.noun} has been changed meanwhile.`
  return checkRow(call, {
    table: resource.table,
    key: 'id',
    id,
    message,
    current: () => getRecord(call, resource, id)
  })
}

/** `show` returns the group as the response of its route. */
export const checkSettingVersion = (call: Call, name: string, show: Run): Promise<void> =>
  checkRow(call, {
    table: 'settings',
    key: 'name',
    id: name,
    message: 'The settings have been changed meanwhile.',
    current: async () => show(call)
  })

export const checkInstructionsVersion = (call: Call, current: Versioned['current']): Promise<void> =>
  checkRow(call, {
    table: 'emergency_instructions',
    key: 'building_id',
    id: idOf(call),
    message: 'The instructions have been changed meanwhile.',
    current
  })
