import { requirePermission } from '../auth/permissions.js'
import type { Backend } from '../backend.js'
import { bulk } from '../bulk.js'
import { carrying, giveTransmitter } from '../carriers.js'
import { crud } from '../crud.js'
import { invalid } from '../errors.js'
import { Records } from '../records.js'
import { assets, transmitters } from '../resources.js'
import { type Handlers, handler, idOf, queryOn } from '../route.js'

/** Assets, and the transmitters that people and assets carry. */
export const thingRoutes = (backend: Backend): Handlers => {
  const { database } = backend
  const query = queryOn(database)
  const assetRecords = new Records(assets, backend)
  const transmitterRecords = new Records(transmitters, backend)

  return {
    ...crud('/api/assets', assets, backend, carrying('asset', backend)),
    'GET /api/assets/:id/history': handler(requirePermission('assets', 'read'), async (call) => {
      await assetRecords.get(database, idOf(call))
      return database.rows(
        `SELECT h.at, h.floor_id AS "floorId", h.zone_id AS "zoneId", z.name AS "zoneName", h.x, h.y
         FROM position_history h JOIN transmitters t ON t.id = h.transmitter_id LEFT JOIN zones z ON z.id = h.zone_id
         WHERE t.entity_type = 'asset' AND t.entity_id = $1 ORDER BY h.at DESC LIMIT 500`,
        [idOf(call)]
      )
    }),

    ...crud('/api/transmitters', transmitters, backend, { putReplaces: true }),
    'GET /api/transmitters/unassigned': query(
      requirePermission('transmitters', 'read'),
      `SELECT id, name, mac_address AS "macAddress", model, battery_level AS "batteryLevel", status
       FROM transmitters WHERE entity_type IS NULL AND is_active IS NOT FALSE ORDER BY id`
    ),
    'POST /api/transmitters/assign': handler(requirePermission('transmitters', 'update'), async ({ body }) => {
      const { transmitterId, entity_type, entityId, personnelId, assetId } = body
      if (transmitterId === undefined || transmitterId === null) throw invalid('/transmitterId', 'is required')
      const kind = personnelId != null ? 'employee' : assetId != null ? 'asset' : entity_type
      const carrier = personnelId ?? assetId ?? entityId ?? null
      return database.transaction(async (statements) => {
        // A visitor's badge names a kind and nobody; without either it goes back to the shelf.
        const given = typeof kind === 'string' && entityId !== null
        await giveTransmitter(
          statements,
          backend,
          String(transmitterId),
          given ? { entityType: kind, entityId: carrier === null ? null : String(carrier) } : null
        )
        return transmitterRecords.get(statements, String(transmitterId))
      })
    }),
    'POST /api/transmitters/bulk': handler(requirePermission('transmitters', 'update'), ({ body }) =>
      database.transaction((statements) => bulk(statements, transmitterRecords, body, 'transmitters'))
    )
  }
}
