import type { Row, Statements } from './database/database.js'
import { invalid } from './errors.js'
import type { Fields, Records } from './records.js'
import { idsIn } from './route.js'

const FIXED_CHANGES: Readonly<Record<string, Fields>> = {
  activate: { isActive: true },
  deactivate: { isActive: false }
}

/** A list of rows to create or to change; or ids, and what is to be done to all of them. */
export const bulk = async (statements: Statements, records: Records, body: Fields, listName: string) => {
  const rows = Array.isArray(body[listName]) ? (body[listName] as Fields[]) : []
  const stored: Row[] = []
  for (const { id, ...fields } of rows) {
    const known = id === undefined || id === null ? [] : await records.change(statements, [String(id)], fields)
    stored.push(
      known[0] === undefined ? await records.create(statements, fields) : await records.get(statements, known[0])
    )
  }
  return { rows: stored, ...(await changeMany(statements, records, body)) }
}

/** `{ ids, action, changes }`: says how many there were, and which there are not. */
export const changeMany = async (statements: Statements, records: Records, body: Fields) => {
  const ids = idsIn(body)
  if (ids.length === 0) return { affected: 0, missing: [] }
  const action = typeof body.action === 'string' ? body.action : 'update'
  if (!['update', 'delete', ...Object.keys(FIXED_CHANGES)].includes(action)) throw invalid('/action', 'is not known')
  const changes = { ...(body.changes as Fields | null | undefined), ...FIXED_CHANGES[action] }
  const done =
    action === 'delete' ? await records.remove(statements, ids) : await records.change(statements, ids, changes)
  const found = new Set(done)
  return { affected: done.length, missing: ids.filter((id) => !found.has(id)) }
}
