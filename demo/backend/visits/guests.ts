import { VISIT_KINDS } from '../../visit-schema.js'
import { insertRecords } from '../records.js'
import { visits } from '../resources.js'
import type { Fields, World } from '../world.js'

interface Guest extends Fields {
  readonly transmitterId: string
}

/** Points in time of transmitters are JSON: text or milliseconds. */
const momentSql = (column: string): string => `CASE jsonb_typeof(${column})
  WHEN 'number' THEN to_timestamp((${column} #>> '{}')::float / 1000) WHEN 'string' THEN (${column} #>> '{}')::timestamptz END`

const WITHOUT_VISIT = `SELECT t.id AS transmitter_id, t.entity_type AS kind, t.company,
    coalesce(nullif(concat_ws(' ', t.first_name, t.last_name), ''), t.name, t.id) AS name,
    ${momentSql('t.assigned_at')} AS checked_in_at, ${momentSql('t.expires_at')} AS expected_to
  FROM transmitters t WHERE t.entity_type = ANY($1::text[])
    AND NOT EXISTS (SELECT 1 FROM visits v WHERE v.id = t.entity_id) ORDER BY t.id`

/**
 * Adds a visit for each transmitter that a visitor or contractor carries without one: of a database that is older than
 * visits, or assigned through the routes of transmitters. Without an expected end, the visit is never overdue.
 */
export const recordGuests = async (world: World): Promise<void> => {
  const { database, now, newId } = world
  const guests = await database.rows<Guest>(WITHOUT_VISIT, [VISIT_KINDS])
  const rows = guests.map((guest) => {
    const checkedInAt = guest.checkedInAt ?? now()
    return { ...guest, id: newId(), checkedInAt, expectedFrom: checkedInAt }
  })
  await insertRecords(
    world,
    visits,
    rows.map(({ transmitterId: _transmitterId, ...visit }) => visit)
  )
  for (const { id, transmitterId } of rows)
    await database.rows('UPDATE transmitters SET entity_id = $2 WHERE id = $1', [transmitterId, id])
}
