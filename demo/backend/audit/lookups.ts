import { audit } from '../audit.js'
import { textOf } from '../queries.js'
import type { Resource } from '../resources.js'
import { type Call, callerOf } from '../route.js'
import type { Fields } from '../world.js'
import { concernedBy } from './changes.js'
import type { Concerned } from './entry.js'

export type LookupKind = 'card' | 'history' | 'search'

/** Writes who looked up whom: an entry about those people whom the user has not looked up in the last minutes. */
export const auditLookup = async (
  call: Call,
  kind: LookupKind,
  people: readonly Concerned[],
  more: Fields = {}
): Promise<void> => {
  const found = people.filter(({ id }) => isNew(call, kind, id))
  if (found.length > 0)
    await written(
      call,
      kind,
      found.map(({ id }) => id),
      { ...more, people: found }
    )
}

/** Writes that a user looked at the movements of everyone on a floor or in a zone. */
export const auditPlace = async (call: Call, kind: 'floor' | 'zone', place: Fields): Promise<void> => {
  const id = String(place.id)
  if (!isNew(call, kind, id)) return
  const sql = 'SELECT name FROM buildings WHERE id = $1'
  const [building] = await call.database.rows<{ name: string }>(sql, [String(place.buildingId ?? '')])
  const subject = `the ${kind} ${[building?.name, place.name ?? id].filter(Boolean).join(' – ')}`
  await written(call, kind, [id], { subject })
}

/** For lists that were searched and show where people are. */
export const auditSearch =
  (resource: Resource) =>
  async (call: Call, found: readonly Fields[]): Promise<void> => {
    const search = textOf(call.query, 'search')
    const located = found.filter(({ currentFloorId }) => currentFloorId != null)
    const people = located.flatMap((row) => concernedBy(resource, row) ?? [])
    if (search !== null) await auditLookup(call, 'search', people, { search: search.slice(0, 100) })
  }

const keyOf = (call: Call, kind: string, id: string): string => `${callerOf(call).userId} ${kind} ${id}`

const isNew = (call: Call, kind: string, id: string): boolean =>
  call.lookups.isNew(keyOf(call, kind, id), call.now().getTime())

/** A lookup that could not be written counts as new the next time. */
const written = async (call: Call, kind: string, ids: readonly string[], details: Fields): Promise<void> => {
  try {
    await audit(call, `lookup.${kind}`, 'done', details)
  } catch (error) {
    for (const id of ids) call.lookups.forget(keyOf(call, kind, id))
    throw error
  }
}
