import { requirePermission } from '../auth/permissions.js'
import type { Backend } from '../backend.js'
import { bulk } from '../bulk.js'
import { crud } from '../crud.js'
import { type Fields, Records } from '../records.js'
import { buildings, gateways, receivers, zones } from '../resources.js'
import { type Handlers, handler, queryOn } from '../route.js'

/** Buildings, zones, receivers and their gateways. */
export const siteRoutes = (backend: Backend): Handlers => {
  const { database, now } = backend
  const query = queryOn(database)
  const gatewayRecords = new Records(gateways, backend)

  return {
    ...crud('/api/buildings', buildings, backend),
    'PUT /api/buildings/order': handler(requirePermission('buildings', 'update'), async ({ body }) => {
      const order = Array.isArray(body.order) ? body.order : []
      await database.transaction(async (statements) => {
        for (const [index, entry] of order.entries()) {
          const { id, position } = typeof entry === 'object' ? entry : { id: entry, position: index }
          await statements.rows('UPDATE buildings SET display_order = $2, updated_at = $3 WHERE id = $1', [
            String(id),
            position,
            now()
          ])
        }
      })
      return database.rows('SELECT id, name, display_order AS "displayOrder" FROM buildings ORDER BY display_order, id')
    }),
    'GET /api/buildings/gateway-health': query(
      requirePermission('buildings', 'read'),
      `SELECT b.id AS "buildingId", b.name,
          coalesce(jsonb_agg(jsonb_build_object('gatewayId', g.id, 'name', g.name, 'status', g.status,
            'firmwareVersion', g.firmware_version, 'configVersion', g.config_version, 'lastSyncAt', g.last_sync_at,
            'receivers', (SELECT count(*) FROM receivers r WHERE r.gateway_id = g.id),
            'receiversOnline', (SELECT count(*) FROM receivers r WHERE r.gateway_id = g.id AND r.status = 'online'))
            ORDER BY g.id) FILTER (WHERE g.id IS NOT NULL), '[]') AS gateways
        FROM buildings b LEFT JOIN gateways g ON g.building_id = b.id GROUP BY b.id ORDER BY b.display_order, b.id`
    ),
    'POST /api/gateways/sync-status': handler(requirePermission('gateways', 'update'), async ({ body }) => {
      const reports = [body, ...(Array.isArray(body.gateways) ? (body.gateways as Fields[]) : [])]
      const updated: string[] = []
      for (const { gatewayId, gateways: _gateways, gatewayIds, ...state } of reports) {
        const ids = [gatewayId, ...(Array.isArray(gatewayIds) ? gatewayIds : [])].filter((id) => id != null).map(String)
        const stamped = { lastSyncAt: now().toISOString(), ...state }
        if (ids.length > 0) updated.push(...(await gatewayRecords.change(database, ids, stamped)))
      }
      return { updated: [...new Set(updated)].sort() }
    }),

    ...crud('/api/zones', zones, backend),
    'GET /api/zones/emergency': query(
      requirePermission('zones', 'read'),
      `SELECT id, name, type, floor_id AS "floorId", building_id AS "buildingId", polygon, center, capacity,
          is_muster_point AS "isMusterPoint", is_exit AS "isExit"
        FROM zones WHERE is_emergency OR is_muster_point OR is_exit ORDER BY id`
    ),

    ...crud('/api/receivers', receivers, backend),
    'POST /api/receivers/bulk': handler(requirePermission('receivers', 'update'), ({ body }) =>
      database.transaction((statements) => bulk(statements, new Records(receivers, backend), body, 'receivers'))
    ),
    'GET /api/receivers/discover': query(
      requirePermission('receivers', 'read'),
      `SELECT mac_address AS "macAddress", model, rssi, building_id AS "buildingId", first_heard_at AS "firstHeardAt"
        FROM discovered_receivers
        WHERE NOT EXISTS (SELECT 1 FROM receivers r WHERE r.mac_address = discovered_receivers.mac_address)
        ORDER BY rssi DESC`
    )
  }
}
