import { sqlName } from './database/columns.js'
import { getRecord } from './records.js'
import { type Resource, resources } from './resources.js'
import type { World } from './world.js'

const PLURALS: Readonly<Record<string, string>> = { person: 'people', emergency: 'emergencies' }
const counted = (count: number, noun: string): string =>
  `${count} ${count === 1 ? noun : (PLURALS[noun] ?? `${noun}s`)}`
const listed = (parts: readonly string[]): string =>
  parts.length > 1 ? `${parts.slice(0, -1).join(', ')} and ${parts.at(-1)}` : (parts[0] ?? '')

/** The rows of other resources that reference this one, by the effect of the foreign key. */
const dependents = async ({ database }: World, { table }: Resource, id: string, effect: 'CASCADE' | 'SET NULL') => {
  const parts: string[] = []
  for (const other of resources) {
    const fields = Object.entries(other.references)
      .filter(([, sql]) => sql === `REFERENCES ${table} ON DELETE ${effect}`)
      .map(([field]) => `${sqlName(field)} = $1`)
    if (fields.length === 0) continue
    const sql = `SELECT count(*)::int AS count FROM ${other.table} WHERE ${fields.join(' OR ')}`
    const [row] = await database.rows<{ count: number }>(sql, [id])
    if (row && row.count > 0) parts.push(counted(row.count, other.noun))
  }
  return listed(parts)
}

const BUILDING = `SELECT b.name FROM buildings b WHERE b.id = $1
  OR b.id = (SELECT f.building_id FROM floors f WHERE f.id = $2) LIMIT 1`

/** The consequences of deleting this record: its building, and sentences about what is deleted or changed with it. */
export const deletionOf = async (world: World, resource: Resource, id: string) => {
  const row = await getRecord(world, resource, id)
  const ids = [row.buildingId, row.floorId].map((value) => (value == null ? null : String(value)))
  const [building] = await world.database.rows<{ name: string }>(BUILDING, ids)
  const deleted = await dependents(world, resource, id, 'CASCADE')
  const unlinked = await dependents(world, resource, id, 'SET NULL')
  const [carried] = await world.database.rows<{ count: number }>(
    'SELECT count(*)::int AS count FROM transmitters WHERE entity_type = ANY($1::text[]) AND entity_id = $2',
    [resource.entityTypes, id]
  )
  const [file] = await world.database.rows('SELECT 1 FROM files WHERE owner = $1', [`${resource.table}/${id}`])
  const places: Readonly<Record<string, string>> = { buildings: 'building_id', floors: 'floor_id', zones: 'zone_id' }
  const place = places[resource.table]
  const [present] = place
    ? await world.database.rows<{ count: number }>(
        `SELECT count(*)::int AS count FROM carriers WHERE ${place} = $1 AND entity_type <> 'asset'`,
        [id]
      )
    : []
  return {
    building: building?.name ?? null,
    consequences: [
      deleted && `${deleted} will be deleted too.`,
      unlinked && `${unlinked} will no longer be linked to it.`,
      file && `Its ${resource.table === 'floors' ? 'plan image' : 'photo'} will be deleted too.`,
      carried?.count && `${counted(carried.count, 'transmitter')} will become available.`,
      present?.count && `${counted(present.count, 'person')} ${present.count === 1 ? 'is' : 'are'} there now.`
    ].filter(Boolean)
  }
}
