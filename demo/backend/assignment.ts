import { HttpError, unknownReference } from './errors.js'
import { changeRecords, freeTransmitters } from './records.js'
import { assets, personnel, type Resource, transmitters } from './resources.js'
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

/** Throws if somebody or something else carries the transmitter, for example since the form was opened. */
export const mustBeFree = async (
  world: World,
  id: string,
  { entityType }: Resource,
  entityId: string
): Promise<void> => {
  // Locked, so that two concurrent requests cannot both find it free.
  const sql = 'SELECT entity_type, entity_id FROM transmitters WHERE id = $1 FOR UPDATE'
  const [carried] = await world.database.rows<{ entity_type: string | null; entityId: string | null }>(sql, [id])
  if (!carried?.entity_type || (carried.entity_type === entityType && carried.entityId === entityId)) return
  const details = [{ path: '/transmitterId', message: 'is carried by someone or something else' }]
  throw new HttpError(
    409,
    'TRANSMITTER_TAKEN',
    'The transmitter has been assigned meanwhile. Choose another one.',
    details
  )
}
