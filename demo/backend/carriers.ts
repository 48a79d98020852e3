import type { CrudOptions } from './crud.js'
import { unknownReference } from './errors.js'
import { changeRecords } from './records.js'
import { transmitters } from './resources.js'
import type { World } from './world.js'

const TABLES: ReadonlyMap<string, string> = new Map([
  ['employee', 'personnel'],
  ['asset', 'assets']
])

/**
 * Hands a transmitter to somebody or something: taken from whoever had it, and what the new carrier had until now goes
 * back to the shelf. Without a kind of carrier it goes there itself.
 */
export const giveTransmitter = async (
  world: World,
  transmitterId: string,
  entityType: string | null,
  entityId: string | null
): Promise<void> => {
  const table = TABLES.get(entityType ?? '')
  if (entityType !== null && table !== undefined) {
    const [exists] = await world.database.rows(`SELECT id FROM ${table} WHERE id = $1`, [entityId])
    if (exists === undefined) throw unknownReference()
    await takeTransmitters(world, entityType, [entityId ?? ''])
  }
  const state =
    entityType === null
      ? { status: 'available', assignedAt: null }
      : { status: 'assigned', assignedAt: world.now().toISOString() }
  const carrier = { entity_type: entityType, entityId, ...state }
  const [given] = await changeRecords(world, transmitters, [transmitterId], carrier)
  if (given === undefined) throw unknownReference()
}

const takeTransmitters = async (
  { database }: World,
  entityType: string,
  entityIds: readonly string[]
): Promise<void> => {
  await database.rows(
    `UPDATE transmitters SET entity_type = NULL, entity_id = NULL, status = 'available', assigned_at = NULL
     WHERE entity_type = $1 AND entity_id = ANY($2::text[])`,
    [entityType, entityIds]
  )
}

/** What a person and a thing have alike: `transmitterId` in a body hands them one, null takes it, and it is free when they go. */
export const carrying = (entityType: string): Required<Pick<CrudOptions, 'stored' | 'removed'>> => ({
  stored: async (call, id) => {
    const { transmitterId } = call.body
    if (transmitterId === null) await takeTransmitters(call, entityType, [id])
    else if (transmitterId !== undefined) await giveTransmitter(call, String(transmitterId), entityType, id)
  },
  removed: (call, ids) => takeTransmitters(call, entityType, ids)
})
