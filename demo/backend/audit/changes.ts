import { wordsOf } from '../field-words.js'
import type { Resource } from '../resources.js'
import type { Call } from '../route.js'
import type { Fields, World } from '../world.js'
import type { CarrierRow, Concerned, FieldChange } from './entry.js'

/** The values of these fields are never written to the audit log. */
const SECRET = /password|secret|token|irk|apikey|credential|authorization/i
const MAX_TEXT = 200

/** The fields that differ. */
export const fieldChanges = (fields: Iterable<string>, before: Fields, after: Fields, prefix = ''): FieldChange[] =>
  [...new Set(fields)].flatMap((field) => {
    const [old = null, current = null] = [before[field], after[field]]
    if (JSON.stringify(old) === JSON.stringify(current)) return []
    const isShown = !SECRET.test(field) && isReadable(old) && isReadable(current)
    const values = isShown ? { before: shortened(old), after: shortened(current) } : {}
    return [{ field: `${prefix}${field}`, ...values }]
  })

const isReadable = (value: unknown): boolean =>
  typeof value !== 'object' ||
  value === null ||
  value instanceof Date ||
  (Array.isArray(value) && value.every((part) => typeof part === 'string'))

const shortened = (value: unknown): unknown => {
  const text = Array.isArray(value) ? value.join(', ') : value
  return typeof text === 'string' && text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)} …` : text
}

/** Follow from other fields of the same record. */
const DERIVED: readonly (readonly [string, string])[] = [
  ['firstName', 'name'],
  ['lastName', 'name'],
  ['center', 'polygon'],
  ['department', 'departmentId'],
  ['assignedAt', 'entityId'],
  ['assignedAt', 'entity_type']
]

/** Adds the changed fields of a record to the audit entry of the request. Records are called by their names. */
export const noteChanges = async (call: Call, resource: Resource, before: Fields, after: Fields): Promise<void> => {
  const sent = Object.keys(call.body).filter((field) => field in after)
  const changes = fieldChanges([...Object.keys(resource.columns), ...sent], before, after)
  const isDerived = ({ field }: FieldChange): boolean =>
    DERIVED.some(([derived, source]) => derived === field && changes.some((other) => other.field === source))
  for (const change of changes.filter((one) => !isDerived(one))) call.changes.push(await named(call, resource, change))
}

/** The names of referenced records, as they are now: they may be renamed or deleted later. */
const named = async ({ database }: World, { references }: Resource, change: FieldChange): Promise<FieldChange> => {
  const [, table] = /REFERENCES (\w+)/.exec(references[change.field] ?? '') ?? []
  if (table === undefined) return change
  const nameOf = async (id: unknown): Promise<unknown> => {
    const [row] = await database.rows<{ name: string }>(`SELECT name FROM ${table} WHERE id = $1`, [String(id ?? '')])
    return row?.name ?? id
  }
  return { ...change, before: await nameOf(change.before), after: await nameOf(change.after) }
}

/** The person whom a row is about; null for a row about something else. */
export const concernedBy = ({ table }: Resource, row: Fields): Concerned | null => {
  const { id, displayName, name, email, entity_type: kind, entityId, carriedBy } = row
  if (table === 'personnel' || table === 'visits') return { id: `${table}/${id}`, name: String(name ?? id) }
  if (table === 'users') return { id: `users/${id}`, name: String(displayName || name || email || id) }
  if (table !== 'transmitters' || typeof kind !== 'string' || kind === 'asset') return null
  return carrierOf({ transmitterId: String(id), entityType: kind, entityId, name: carriedBy ?? name })
}

/** The person who carries a transmitter; null for an asset. */
export const carrierOf = ({ transmitterId, entityType, entityId, name }: CarrierRow): Concerned | null => {
  if (entityType === 'asset') return null
  const table = entityType === 'employee' ? 'personnel' : 'visits'
  const id = entityId == null ? `transmitters/${transmitterId}` : `${table}/${entityId}`
  return { id, name: String(name ?? transmitterId) }
}

const MAX_SUBJECTS = 5
const MAX_CHANGES = 30
const MAX_PEOPLE = 200

/** The details of the audit entry of a request. Bulk requests name the first rows. */
export const entryDetails = ({ subjects, changes, people }: Call): Fields => {
  const others = subjects.length - MAX_SUBJECTS
  const names = subjects.slice(0, MAX_SUBJECTS).join(', ')
  const labels = new Set<string>()
  const distinct = changes.filter(({ field }) => !labels.has(wordsOf(field)) && labels.add(wordsOf(field)))
  return {
    ...(subjects.length > 0 && { subject: others > 0 ? `${names} and ${others} more` : names }),
    ...(changes.length > 0 && { changes: distinct.slice(0, MAX_CHANGES) }),
    ...(people.length > 0 && { people: people.slice(0, MAX_PEOPLE) })
  }
}
