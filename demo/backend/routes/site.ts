import { type Corner, centreOf, cornersOf, type FloorSize, polygonError } from '../../../schemas/polygon.js'
import { bulk, crud } from '../crud.js'
import { invalid } from '../errors.js'
import { list, nested, rows } from '../queries.js'
import { changeRecords, getRecords } from '../records.js'
import { buildings, floors, gateways, receivers, zones } from '../resources.js'
import { type Call, type Handlers, handler, idOf, type Run, rowsIn } from '../route.js'
import type { Fields } from '../world.js'

const GATEWAY_HEALTH = `SELECT b.id AS building_id, b.name, ${nested(`SELECT g.id AS "gatewayId", g.name, g.status,
      g.firmware_version AS "firmwareVersion", g.config_version AS "configVersion", g.last_sync_at AS "lastSyncAt",
      (SELECT count(*) FROM receivers WHERE gateway_id = g.id) AS receivers,
      (SELECT count(*) FROM receivers WHERE gateway_id = g.id AND status = 'online') AS "receiversOnline"
    FROM gateways g WHERE g.building_id = b.id ORDER BY g.id`)} AS gateways
  FROM buildings b ORDER BY b.display_order, b.id`

const emergencyZones = {
  ...zones,
  from: '(SELECT * FROM zones_shown WHERE is_emergency OR is_muster_point OR is_exit)'
}

/** Discovered receivers that are not configured yet. They are always the same ones. */
const heardReceivers = {
  from: `(SELECT mac_address, 'RX-200' AS model, -50 - 7 * n AS rssi, (1 + n % 3)::text AS building_id
    FROM generate_series(1, 4) AS n, concat('AC:23:42:00:00:0', n) AS mac_address
    WHERE mac_address NOT IN (SELECT coalesce(mac_address, '') FROM receivers))`,
  fields: ['buildingId', 'model', 'macAddress', 'rssi'],
  order: 'rssi DESC, mac_address'
}

/** Validates the area of a zone, also when it moves to another floor. Derives its centre unless the body has one. */
const validZone = async (call: Call): Promise<Fields> => {
  const { polygon, floorId, ...body } = call.body
  const [stored] = await getRecords(call, zones, [idOf(call)])
  const isMoved = floorId !== undefined && floorId !== null && String(floorId) !== String(stored?.floorId)
  const area = polygon ?? (isMoved ? stored?.polygon : null)
  if (!Array.isArray(area)) return call.body
  // The schema of the route declares the corners.
  const corners = cornersOf(area as readonly (Corner | readonly number[])[])
  const message = polygonError(corners, await floorSize(call, floorId ?? stored?.floorId))
  if (message !== null && polygon == null)
    throw invalid([{ path: '/floorId', message: 'does not fit the area of the zone' }])
  if (message !== null) throw invalid([{ path: '/polygon', message }])
  return { center: centreOf(corners), ...body, ...(floorId !== undefined && { floorId }), polygon: corners }
}

/** Null if the size of the floor is not known. */
const floorSize = async (call: Call, floorId: unknown): Promise<FloorSize | null> => {
  const [floor] = await getRecords(call, floors, [String(floorId)])
  const { width, height } = floor ?? {}
  return typeof width === 'number' && typeof height === 'number' ? { width, height } : null
}

const reorder: Run = async (call) => {
  const order = Array.isArray(call.body.order) ? call.body.order : []
  // Locks all rows in the same order, so that concurrent requests cannot deadlock.
  await call.database.rows('SELECT id FROM buildings ORDER BY id FOR UPDATE')
  for (const [index, entry] of order.entries()) {
    const { id, position } = typeof entry === 'object' ? entry : { id: entry, position: index }
    await changeRecords(call, buildings, [String(id)], { displayOrder: position })
  }
  return call.database.rows('SELECT id, name, display_order FROM buildings ORDER BY display_order, id')
}

/** Stores the state of one or several gateways. A body may contain several reports. */
const storeSyncStatus: Run = async (call) => {
  const { gateways: more } = call.body
  const updated: string[] = []
  for (const report of [call.body, ...rowsIn(more)]) {
    const { gatewayId, gatewayIds, gateways: _gateways, ...state } = report
    const ids = [gatewayId, ...(Array.isArray(gatewayIds) ? gatewayIds : [])].filter((id) => id != null).map(String)
    updated.push(...(await changeRecords(call, gateways, ids, { lastSyncAt: call.now().toISOString(), ...state })))
  }
  return { updated: [...new Set(updated)].sort() }
}

/** Buildings, zones, receivers and their gateways. */
export const siteRoutes: Handlers = {
  ...crud(buildings),
  'PUT /api/buildings/order': handler('buildings.update', reorder),
  'GET /api/buildings/gateway-health': handler('buildings.read', rows(GATEWAY_HEALTH)),
  'POST /api/gateways/sync-status': handler('gateways.update', storeSyncStatus),
  ...crud(zones, { prepare: validZone }),
  'GET /api/zones/emergency': handler('zones.read', list(emergencyZones)),
  ...crud(receivers),
  'POST /api/receivers/bulk': handler('receivers.update', bulk(receivers)),
  'GET /api/receivers/discover': handler('receivers.read', list(heardReceivers))
}
