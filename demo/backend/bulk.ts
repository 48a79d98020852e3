import type { Fields } from './database/database.js'
import { invalid } from './errors.js'
import { changeRecords, createRecord, getRecord, removeRecords } from './records.js'
import type { Resource } from './resources.js'
import { idsIn, type Run } from './route.js'
import type { World } from './world.js'

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
    const outcome = await changeMany(call, resource, idsIn(call.body), action, changes as Fields | null | undefined)
    return { rows, ...outcome }
  }

/** Says how many there were, and which there are not. */
export const changeMany = async (
  world: World,
  resource: Resource,
  ids: readonly string[],
  action: unknown,
  changes: Fields | null = {}
): Promise<{ readonly affected: number; readonly missing: readonly string[] }> => {
  if (ids.length === 0) return { affected: 0, missing: [] }
  const name = typeof action === 'string' ? action : 'update'
  if (!Object.hasOwn(FIXED_CHANGES, name)) throw invalid('/action', 'is not known')
  const done =
    name === 'delete'
      ? await removeRecords(world, resource, ids)
      : await changeRecords(world, resource, ids, { ...changes, ...FIXED_CHANGES[name] })
  return { affected: done.length, missing: ids.filter((id) => !done.includes(id)) }
}
