import type { CrudOptions } from './crud.js'
import type { Statements } from './database/database.js'
import { unknownReference } from './errors.js'
import type { World } from './records.js'

const TABLES: ReadonlyMap<string, string> = new Map([
  ['employee', 'personnel'],
  ['asset', 'assets']
])

/**
 * Hands a transmitter to somebody or something: taken from whoever had it, and what the new carrier had until now goes
 * back to the shelf. Without a carrier it goes there itself.
 */
export const giveTransmitter = async (
  statements: Statements,
  { now }: World,
  transmitterId: string,
  carrier: { readonly entityType: string; readonly entityId: string | null } | null
): Promise<void> => {
  const table = carrier === null ? undefined : TABLES.get(carrier.entityType)
  if (carrier !== null && table !== undefined) {
    const [exists] = await statements.rows(`SELECT id FROM ${table} WHERE id = $1`, [carrier.entityId])
    if (exists === undefined) throw unknownReference()
    await takeTransmitters(statements, carrier.entityType, [carrier.entityId ?? ''])
  }
  const given = await statements.rows(
    `UPDATE transmitters SET entity_type = $2, entity_id = $3, status = $4, assigned_at = $5, updated_at = $6
     WHERE id = $1 RETURNING id`,
    [
      transmitterId,
      carrier?.entityType ?? null,
      carrier?.entityId ?? null,
      carrier === null ? 'available' : 'assigned',
      carrier === null ? null : JSON.stringify(now().toISOString()),
      now()
    ]
  )
  if (given.length === 0) throw unknownReference()
}

const takeTransmitters = async (
  statements: Statements,
  entityType: string,
  entityIds: readonly string[]
): Promise<void> => {
  await statements.rows(
    `UPDATE transmitters SET entity_type = NULL, entity_id = NULL, status = 'available', assigned_at = NULL
     WHERE entity_type = $1 AND entity_id IN (SELECT jsonb_array_elements_text($2::jsonb))`,
    [entityType, JSON.stringify(entityIds)]
  )
}

/** What a person and a thing have alike: `transmitterId` in a body hands them one, null takes it, and it is free when they go. */
export const carrying = (entityType: string, world: World): Required<Pick<CrudOptions, 'stored' | 'removed'>> => ({
  stored: async (statements, { id }, { transmitterId }) => {
    const entityId = String(id)
    if (transmitterId === null) await takeTransmitters(statements, entityType, [entityId])
    else if (transmitterId !== undefined)
      await giveTransmitter(statements, world, String(transmitterId), { entityType, entityId })
  },
  removed: (statements, ids) => takeTransmitters(statements, entityType, ids)
})
