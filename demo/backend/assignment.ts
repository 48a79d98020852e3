import { HttpError, unknownReference } from './errors.js'
import { changeRecords, freeTransmitters, getRecords } from './records.js'
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
  const kind = [personnel, assets].find(({ entityTypes }) => entityType && entityTypes.includes(entityType))
  if (kind !== undefined) {
    const [carrier] = await getRecords(world, kind, [entityId ?? ''])
    if (carrier === undefined) throw unknownReference()
    await freeTransmitters(world, kind, [entityId ?? ''])
  }
  const isFree = entityType === null
  const state = isFree
    ? { status: 'available', assignedAt: null, expiresAt: null, firstName: null, lastName: null, company: null }
    : { status: 'assigned', assignedAt: world.now().toISOString() }
  const [given] = await changeRecords(world, transmitters, [id], { entity_type: entityType, entityId, ...state })
  if (given === undefined) throw unknownReference()
}

const LOCKED =
  'SELECT entity_type, entity_id, is_active IS FALSE AS is_unused FROM transmitters WHERE id = $1 FOR UPDATE'

/** Throws if somebody or something else carries the transmitter, for example since the form was opened, or if it is not in use. */
export const mustBeFree = async (
  world: World,
  id: string,
  { entityTypes }: Resource,
  entityId: string
): Promise<void> => {
  // Locked, so that two concurrent requests cannot both find it free.
  const [found] = await world.database.rows<{
    entity_type: string | null
    entityId: string | null
    isUnused: boolean
  }>(LOCKED, [id])
  const fail = (code: string, message: string, detail: string): never => {
    throw new HttpError(409, code, message, [{ path: '/transmitterId', message: detail }])
  }
  if (found === undefined) return fail('UNKNOWN_REFERENCE', 'The transmitter does not exist.', 'does not exist')
  const isOwn = found.entity_type !== null && entityTypes.includes(found.entity_type) && found.entityId === entityId
  if (isOwn) return
  if (found.entity_type)
    fail(
      'TRANSMITTER_TAKEN',
      'The transmitter has been assigned meanwhile. Choose another one.',
      'is carried by someone or something else'
    )
  if (found.isUnused)
    fail('TRANSMITTER_NOT_IN_USE', 'The transmitter is not in use. Choose another one.', 'is not in use')
}
