import { bulk } from '../bulk.js'
import { carrying, giveTransmitter } from '../carriers.js'
import { crud } from '../crud.js'
import { invalid } from '../errors.js'
import { about, rows } from '../queries.js'
import { getRecord } from '../records.js'
import { assets, transmitters } from '../resources.js'
import { type Handlers, handler, type Run } from '../route.js'

const HISTORY = `SELECT h.at, h.floor_id AS "floorId", h.zone_id AS "zoneId", z.name AS "zoneName", h.x, h.y
  FROM position_history h JOIN transmitters t ON t.id = h.transmitter_id LEFT JOIN zones z ON z.id = h.zone_id
  WHERE t.entity_type = 'asset' AND t.entity_id = $1 ORDER BY h.at DESC LIMIT 500`

const UNASSIGNED = `SELECT id, name, mac_address AS "macAddress", model, battery_level AS "batteryLevel", status
  FROM transmitters WHERE entity_type IS NULL AND is_active IS NOT FALSE ORDER BY id`

const assign: Run = async (call) => {
  const { transmitterId, entity_type, entityId, personnelId, assetId } = call.body
  if (transmitterId == null) throw invalid('/transmitterId', 'is required')
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
  'GET /api/transmitters/unassigned': handler('transmitters.read', rows(UNASSIGNED)),
  'POST /api/transmitters/assign': handler('transmitters.update', assign),
  'POST /api/transmitters/bulk': handler('transmitters.update', bulk(transmitters, 'transmitters'))
}
