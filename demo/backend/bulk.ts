import { invalid } from './errors.js'
import { changeRecords, createRecord, getRecord, removeRecords } from './records.js'
import type { Resource } from './resources.js'
import { type Call, idsIn, type Run } from './route.js'
import type { Fields } from './world.js'

const FIXED_CHANGES: Readonly<Record<string, Fields>> = {
  update: {},
  delete: {},
  activate: { isActive: true },
  deactivate: { isActive: false }
}

/** A list of rows to create or to change; or ids, and what is to be done to all of them. */
export const bulk =
  (resource: Resource, listName: string): Run =>
  async (call) => {
    const { [listName]: sent, action, changes } = call.body
    const rows: Fields[] = []
    for (const { id, ...fields } of Array.isArray(sent) ? (sent as Fields[]) : []) {
      const [known] = id == null ? [] : await changeRecords(call, resource, [String(id)], fields)
      rows.push(await getRecord(call, resource, known ?? (await createRecord(call, resource, fields))))
    }
    return { rows, ...(await changeMany(call, resource, String(action ?? 'update'), changes as Fields | null)) }
  }

/** Does it to those that the body names by `ids`. Says how many there were, and which there are not. */
export const changeMany = async (call: Call, resource: Resource, action: string, changes: Fields | null = {}) => {
  const ids = idsIn(call.body)
  if (!Object.hasOwn(FIXED_CHANGES, action)) throw invalid([{ path: '/action', message: 'is not known' }])
  const done =
    action === 'delete'
      ? await removeRecords(call, resource, ids)
      : await changeRecords(call, resource, ids, { ...changes, ...FIXED_CHANGES[action] })
  return { affected: done.length, missing: ids.filter((id) => !done.includes(id)) }
}
