import { authenticated, requirePermission } from '../auth/permissions.js'
import { RELAY_LIFETIME_SECONDS } from '../auth/tokens.js'
import type { Backend } from '../backend.js'
import { oneRow } from '../database/database.js'
import { invalid } from '../errors.js'
import { pageOf, type Query, textOf } from '../paging.js'
import { Records } from '../records.js'
import { floors } from '../resources.js'
import { callerOf, type Handlers, handler, idOf } from '../route.js'
import { distance, type Point } from '../site/geometry.js'

const BUILDINGS = `SELECT b.id, b.name, b.code, coalesce(jsonb_agg(jsonb_build_object('id', f.id, 'name', f.name,
    'level', f.level, 'width', f.width, 'height', f.height, 'channel', 'floor:' || f.id) ORDER BY f.level, f.id)
    FILTER (WHERE f.id IS NOT NULL), '[]') AS floors
  FROM buildings b LEFT JOIN floors f ON f.building_id = b.id GROUP BY b.id ORDER BY b.display_order, b.id`

const ZONES = `SELECT id, name, type, color, polygon, center, capacity, is_restricted AS "isRestricted",
    is_emergency AS "isEmergency", is_muster_point AS "isMusterPoint", is_exit AS "isExit"
  FROM zones WHERE floor_id = $1 AND is_active IS NOT FALSE ORDER BY id`

const RECEIVERS = `SELECT id, name, position, status, zone_id AS "zoneId", gateway_id AS "gatewayId"
  FROM receivers WHERE floor_id = $1 ORDER BY id`

/** As they are published, with what a page has to know to draw them. */
const POSITIONS = `SELECT p.transmitter_id AS "transmitterId", jsonb_build_object('x', p.x, 'y', p.y) AS position,
    p.floor_id AS "floorId", p.zone_id AS "zoneId", p.accuracy, p.at AS "timestamp", t.entity_type AS "entityType",
    t.entity_id AS "entityId", coalesce(e.name, a.name, nullif(concat_ws(' ', t.first_name, t.last_name), ''), t.name) AS name,
    d.name AS department, d.color
  FROM positions p JOIN transmitters t ON t.id = p.transmitter_id
  LEFT JOIN personnel e ON t.entity_type = 'employee' AND e.id = t.entity_id
  LEFT JOIN assets a ON t.entity_type = 'asset' AND a.id = t.entity_id
  LEFT JOIN departments d ON d.id = coalesce(e.department_id, a.department_id, t.department_id)
  WHERE p.floor_id = $1 ORDER BY p.transmitter_id`

/** What a page needs before it can follow what is published, and the way there. */
export const contextRoutes = (backend: Backend): Handlers => {
  const { database, tokens, relayUrl } = backend
  const floorRecords = new Records(floors, backend)

  const negotiate = handler(authenticated, async (call) => ({
    url: relayUrl,
    token: tokens.relayToken(callerOf(call)),
    expiresIn: RELAY_LIFETIME_SECONDS
  }))

  return {
    'GET /api/negotiate': negotiate,
    'POST /api/negotiate': negotiate,
    'GET /api/context': handler(requirePermission('floors', 'read'), async () => ({
      buildings: await database.rows(BUILDINGS),
      channels: { everywhere: 'global:all' },
      activeEmergency: await oneRow(
        database,
        `SELECT id, type, title, message, building_id AS "buildingId", started_at AS "startedAt", is_drill AS "isDrill"
         FROM emergencies WHERE status = 'active' ORDER BY created_at DESC, id LIMIT 1`
      )
    })),
    'GET /api/context/floor/:floorId': handler(requirePermission('floors', 'read'), async (call) => {
      const { walls, doors, ...floor } = await floorRecords.get(database, idOf(call))
      const building = await oneRow(database, 'SELECT id, name, code FROM buildings WHERE id = $1', [
        (floor.buildingId as string | null) ?? null
      ])
      return {
        floor,
        building,
        channel: `floor:${idOf(call)}`,
        walls: walls ?? [],
        doors: doors ?? [],
        zones: await database.rows(ZONES, [idOf(call)]),
        receivers: await database.rows(RECEIVERS, [idOf(call)]),
        positions: await database.rows(POSITIONS, [idOf(call)])
      }
    }),
    'GET /api/positions/history': handler(requirePermission('positions', 'read'), ({ query }) => {
      const { limit, offset } = pageOf(query)
      return database.rows(
        `SELECT transmitter_id AS "transmitterId", floor_id AS "floorId", zone_id AS "zoneId", x, y, at
         FROM position_history
         WHERE ($1::text IS NULL OR transmitter_id = $1) AND ($2::timestamptz IS NULL OR at >= $2)
           AND ($3::timestamptz IS NULL OR at <= $3)
         ORDER BY at DESC, transmitter_id LIMIT $4 OFFSET $5`,
        [textOf(query, 'transmitterId'), momentOf(query, 'from'), momentOf(query, 'to'), limit, offset]
      )
    }),
    'GET /api/diagnostics/signal-monitor': handler(requirePermission('diagnostics', 'read'), async ({ query }) =>
      signals(
        await database.rows<Receiver>(
          `SELECT id, name, position, coalesce(tx_power, -59) AS "txPower", coalesce(path_loss_exponent, 2.4) AS "fading"
           FROM receivers WHERE floor_id = $1 AND status = 'online' AND position IS NOT NULL ORDER BY id`,
          [textOf(query, 'floorId') ?? 'f-1']
        ),
        await database.rows<Heard>(
          'SELECT transmitter_id AS "transmitterId", x, y, at FROM positions WHERE floor_id = $1 ORDER BY transmitter_id',
          [textOf(query, 'floorId') ?? 'f-1']
        )
      )
    )
  }
}

const momentOf = (query: Query, name: string): Date | null => {
  const text = textOf(query, name)
  if (text === null) return null
  const moment = new Date(/^\d+$/.test(text) ? Number(text) : text)
  if (Number.isNaN(moment.getTime())) throw invalid(`/${name}`, 'must be a point in time')
  return moment
}

interface Receiver {
  readonly id: string
  readonly name: string
  readonly position: Point
  readonly txPower: number
  readonly fading: number
}

interface Heard extends Point {
  readonly transmitterId: string
  readonly at: Date
}

const LOUDEST = 5

/** What each receiver hears best: signals fade with the logarithm of the distance. */
const signals = (receivers: readonly Receiver[], heard: readonly Heard[]) =>
  receivers.map(({ id, name, position, txPower, fading }) => ({
    receiverId: id,
    name,
    signals: heard
      .map(({ transmitterId, at, ...place }) => {
        const metres = Math.max(distance(position, place), 0.5)
        return { transmitterId, rssi: Math.round(txPower - 10 * fading * Math.log10(metres)), at }
      })
      .sort((one, other) => other.rssi - one.rssi)
      .slice(0, LOUDEST)
  }))
