import { bulk, type CrudOptions, crud } from '../crud.js'
import { invalid, unknownReference } from '../errors.js'
import { list } from '../lists.js'
import { about, rows } from '../queries.js'
import { changeRecords, getRecord } from '../records.js'
import { assets, personnel, transmitters } from '../resources.js'
import { type Handlers, handler, type Run } from '../route.js'
import type { World } from '../world.js'

const tableOf = (kind: string | null): string | null =>
  kind === 'employee' ? personnel.table : kind === 'asset' ? assets.table : null

/**
 * Hands a transmitter to somebody or something: taken from whoever had it, and what the new carrier had until now goes
 * back to the shelf. Without a kind of carrier it goes there itself.
 */
const giveTransmitter = async (
  world: World,
  transmitterId: string,
  entityType: string | null,
  entityId: string | null
): Promise<void> => {
  const table = tableOf(entityType)
  if (entityType !== null && table !== null) {
    const [exists] = await world.database.rows(`SELECT id FROM ${table} WHERE id = $1`, [entityId])
    if (exists === undefined) throw unknownReference()
    await takeTransmitters(world, entityType, [entityId ?? ''])
  }
  const status = entityType === null ? 'available' : 'assigned'
  const assignedAt = entityType === null ? null : world.now().toISOString()
  const carrier = { entity_type: entityType, entityId, status, assignedAt }
  const [given] = await changeRecords(world, transmitters, [transmitterId], carrier)
  if (given === undefined) throw unknownReference()
}

const takeTransmitters = async ({ database }: World, entityType: string, entityIds: readonly string[]) => {
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

const HISTORY = `SELECT h.at, h.floor_id, h.zone_id, z.name AS zone_name, h.x, h.y
  FROM position_history h JOIN transmitters t ON t.id = h.transmitter_id LEFT JOIN zones z ON z.id = h.zone_id
  WHERE t.entity_type = 'asset' AND t.entity_id = $1 ORDER BY h.at DESC LIMIT 500`

const onTheShelf = {
  ...transmitters,
  from: '(SELECT * FROM transmitters_shown WHERE entity_type IS NULL AND is_active IS NOT FALSE)'
}

const assign: Run = async (call) => {
  const { transmitterId, entity_type, entityId, personnelId, assetId } = call.body
  if (transmitterId == null) throw invalid([{ path: '/transmitterId', message: 'is required' }])
  const kind = personnelId != null ? 'employee' : assetId != null ? 'asset' : entity_type
  const carrier = personnelId ?? assetId ?? entityId ?? null
  // A visitor's badge names a kind and nobody; without either it goes back to the shelf.
  if (typeof kind !== 'string' || entityId === null) await giveTransmitter(call, String(transmitterId), null, null)
  else await giveTransmitter(call, String(transmitterId), kind, carrier === null ? null : String(carrier))
  return getRecord(call, transmitters, String(transmitterId))
}

/** Assets, and the transmitters that people and assets carry. */
export const thingRoutes: Handlers = {
  ...crud(assets, carrying('asset')),
  'GET /api/assets/:id/history': handler('assets.read', about(assets, rows(HISTORY, 'id'))),
  ...crud(transmitters, { putReplaces: true }),
  'GET /api/transmitters/unassigned': handler('transmitters.read', list(onTheShelf)),
  'POST /api/transmitters/assign': handler('transmitters.update', assign),
  'POST /api/transmitters/bulk': handler('transmitters.update', bulk(transmitters))
}
