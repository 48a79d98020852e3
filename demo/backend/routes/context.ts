import { RELAY_LIFETIME_SECONDS } from '../auth/tokens.js'
import { oneRow, rows, together } from '../queries.js'
import { getRecord } from '../records.js'
import { floors } from '../resources.js'
import { callerOf, type Handlers, handler, idOf, type Run } from '../route.js'

const BUILDINGS = `SELECT b.id, b.name, b.code, coalesce(jsonb_agg(jsonb_build_object('id', f.id, 'name', f.name,
    'level', f.level, 'width', f.width, 'height', f.height, 'channel', 'floor:' || f.id) ORDER BY f.level, f.id)
    FILTER (WHERE f.id IS NOT NULL), '[]') AS floors
  FROM buildings b LEFT JOIN floors f ON f.building_id = b.id GROUP BY b.id ORDER BY b.display_order, b.id`

const ACTIVE_EMERGENCY = `SELECT id, type, title, message, building_id AS "buildingId", started_at AS "startedAt",
    is_drill AS "isDrill"
  FROM emergencies WHERE status = 'active' ORDER BY created_at DESC, id LIMIT 1`

const BUILDING = 'SELECT b.id, b.name, b.code FROM buildings b JOIN floors f ON f.building_id = b.id WHERE f.id = $1'

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

const HISTORY = `SELECT transmitter_id AS "transmitterId", floor_id AS "floorId", zone_id AS "zoneId", x, y, at
  FROM position_history
  WHERE ($1::text IS NULL OR transmitter_id = $1) AND ($2::timestamptz IS NULL OR at >= $2)
    AND ($3::timestamptz IS NULL OR at <= $3)
  ORDER BY at DESC, transmitter_id LIMIT $4 OFFSET $5`

/** The five that each receiver hears best: signals fade with the logarithm of the distance. */
const SIGNALS = `SELECT r.id AS "receiverId", r.name, coalesce(jsonb_agg(jsonb_build_object('transmitterId', h.id,
    'rssi', h.rssi, 'at', h.at) ORDER BY h.rssi DESC, h.id) FILTER (WHERE h.id IS NOT NULL), '[]') AS signals
  FROM receivers r LEFT JOIN LATERAL (
    SELECT p.transmitter_id AS id, to_char(p.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS at,
      round(coalesce(r.tx_power, -59) - 10 * coalesce(r.path_loss_exponent, 2.4) * log(greatest(0.5,
        sqrt(((r.position->>'x')::float - p.x) ^ 2 + ((r.position->>'y')::float - p.y) ^ 2)))) AS rssi
    FROM positions p WHERE p.floor_id = r.floor_id ORDER BY rssi DESC, p.transmitter_id LIMIT 5) h ON true
  WHERE r.floor_id = coalesce($1, 'f-1') AND r.status = 'online' AND jsonb_typeof(r.position->'x') = 'number'
    AND jsonb_typeof(r.position->'y') = 'number' GROUP BY r.id ORDER BY r.id`

const negotiate: Run = (call) => ({
  url: call.relayUrl,
  token: call.tokens.relayToken(callerOf(call).userId),
  expiresIn: RELAY_LIFETIME_SECONDS
})

const surroundings = together({
  building: oneRow(null, BUILDING, 'floorId'),
  channel: (call) => `floor:${idOf(call)}`,
  zones: rows(ZONES, 'floorId'),
  receivers: rows(RECEIVERS, 'floorId'),
  positions: rows(POSITIONS, 'floorId')
})

const wholeFloor: Run = async (call) => {
  const { walls, doors, ...floor } = await getRecord(call, floors, idOf(call))
  return { floor, walls: walls ?? [], doors: doors ?? [], ...(await surroundings(call)) }
}

/** What a page needs before it can follow what is published, and the way there. */
export const contextRoutes: Handlers = {
  'GET /api/negotiate': handler('authenticated', negotiate),
  'POST /api/negotiate': handler('authenticated', negotiate),
  'GET /api/context': handler(
    'floors.read',
    together({
      buildings: rows(BUILDINGS),
      channels: () => ({ everywhere: 'global:all' }),
      activeEmergency: oneRow(null, ACTIVE_EMERGENCY)
    })
  ),
  'GET /api/context/floor/:floorId': handler('floors.read', wholeFloor),
  'GET /api/positions/history': handler(
    'positions.read',
    rows(HISTORY, 'transmitterId', 'from', 'to', 'limit', 'offset')
  ),
  'GET /api/diagnostics/signal-monitor': handler('diagnostics.read', rows(SIGNALS, 'floorId'))
}
