import { HttpError, invalid } from './errors.js'
import { textOf } from './queries.js'
import { getRecord } from './records.js'
import type { Resource } from './resources.js'
import { type Call, idOf } from './route.js'

/** The last user who changed the record through its own path; bulk changes and imports are not found. */
const CHANGED_BY = `SELECT coalesce(u.display_name, u.name, a.user_email) AS name FROM audit_log a
  LEFT JOIN users u ON u.id = a.user_id WHERE a.path = $1 AND a.method <> 'GET' AND a.result = 'done' ORDER BY a.at DESC LIMIT 1`

/**
 * Rejects a change with `?version=` of a record that somebody else has changed since. The error has the current record, so that
 * the user can compare. The row stays locked until the end of the transaction.
 */
export const checkVersion = async (call: Call, resource: Resource): Promise<void> => {
  const expected = textOf(call.query, 'version')
  if (expected === null) return
  if (!/^\d{1,9}$/.test(expected)) throw invalid([{ path: '/version', message: 'must be a whole number' }])
  const [stored] = await call.database.rows<{ version: number }>(
    `SELECT version FROM ${resource.table} WHERE id = $1 FOR UPDATE`,
    [idOf(call)]
  )
  if (stored === undefined || stored.version === Number(expected)) return
  const [user] = await call.database.rows(CHANGED_BY, [call.request.url.split('?', 1)[0] ?? ''])
  const more = { current: await getRecord(call, resource, idOf(call)), changedBy: user?.name ?? null }
  throw new HttpError(409, 'RECORD_CHANGED', `The ${resource.noun} has been changed meanwhile.`, undefined, more)
}
