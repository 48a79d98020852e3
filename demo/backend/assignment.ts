import { unknownReference } from './errors.js'
import { changeRecords, freeTransmitters } from './records.js'
import { assets, personnel, transmitters } from './resources.js'
import type { World } from './world.js'

/**
 * Assigns a transmitter to a carrier and unassigns the carrier's previous one. Without an entity type, the transmitter
 * becomes available.
 */
export const assignTransmitter = async (
  world: World,
  id: string,
  entityType: string | null,
  entityId: string | null
): Promise<void> => {
  const kind = [personnel, assets].find((resource) => resource.entityType === entityType)
  if (kind !== undefined) {
    const [exists] = await world.database.rows(`SELECT id FROM ${kind.table} WHERE id = $1`, [entityId])
    if (exists === undefined) throw unknownReference()
    await freeTransmitters(world, kind, [entityId ?? ''])
  }
  const isFree = entityType === null
  const state = { status: isFree ? 'available' : 'assigned', assignedAt: isFree ? null : world.now().toISOString() }
  const [given] = await changeRecords(world, transmitters, [id], { entity_type: entityType, entityId, ...state })
  if (given === undefined) throw unknownReference()
}
