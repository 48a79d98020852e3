import { RELAY_LIFETIME_SECONDS } from '../auth/tokens.js'
import { activeEmergencies } from '../emergencies/rules.js'
import { nested, rows, together } from '../queries.js'
import { getRecord } from '../records.js'
import { usersOn } from '../relay.js'
import { floors, peopleWhere } from '../resources.js'
import { callerOf, type Handlers, handler, idOf, type Run } from '../route.js'

const BUILDINGS = `SELECT b.id, b.name, b.code, ${nested(`SELECT id, name, level, width, height, 'floor:' || id AS channel,
      ${peopleWhere('p.floor_id = floors.id')} AS people
    FROM floors WHERE building_id = b.id ORDER BY level, id`)} AS floors
  FROM buildings b ORDER BY b.display_order, b.id`

const ZONES = `SELECT id, name, type, color, polygon, center, capacity, is_restricted, is_emergency, is_muster_point, is_exit
  FROM zones WHERE floor_id = $1 AND is_active IS NOT FALSE ORDER BY id`

const RECEIVERS = `SELECT id, name, position, status, zone_id, gateway_id
  FROM receivers WHERE floor_id = $1 ORDER BY id`

/** Positions as in publications, with the name and colour of the carrier. */
const POSITIONS = `SELECT transmitter_id, jsonb_build_object('x', x, 'y', y) AS position, floor_id, zone_id, accuracy,
    at AS timestamp, entity_type AS "entityType", entity_id, coalesce(name, badge) AS name, department, color
  FROM carriers WHERE floor_id = $1 ORDER BY transmitter_id`

/** The names of everyone and everything on the site, for markers that come from another floor. */
const CARRIERS = `SELECT transmitter_id, coalesce(name, badge, transmitter_id) AS name, entity_type AS "entityType",
    is_first_aider, company
  FROM carriers WHERE is_active ORDER BY transmitter_id`

/** Log-distance path loss model. */
const RSSI = `round(coalesce(r.tx_power, -59) - 10 * coalesce(r.path_loss_exponent, 2.4) * log(greatest(0.5,
  sqrt(((r.position->>'x')::float - p.x) ^ 2 + ((r.position->>'y')::float - p.y) ^ 2))))`

/** The five strongest signals of each receiver. */
const SIGNALS = `SELECT r.id AS receiver_id, r.name, ${nested(`SELECT p.transmitter_id AS "transmitterId", ${RSSI} AS rssi
    FROM positions p WHERE p.floor_id = r.floor_id ORDER BY rssi DESC, p.transmitter_id LIMIT 5`)} AS signals
  FROM receivers r WHERE r.floor_id = coalesce($1, 'f-1') AND r.status = 'online'
    AND jsonb_typeof(r.position->'x') = 'number' AND jsonb_typeof(r.position->'y') = 'number' ORDER BY r.id`

const negotiate: Run = (call) => ({
  url: call.relayUrl,
  token: call.tokens.relayToken(callerOf(call).userId),
  expiresIn: RELAY_LIFETIME_SECONDS
})

const floorDetails = together({
  channel: (call) => `floor:${idOf(call)}`,
  zones: rows(ZONES, 'floorId'),
  receivers: rows(RECEIVERS, 'floorId'),
  positions: rows(POSITIONS, 'floorId'),
  carriers: rows(CARRIERS)
})

const wholeFloor: Run = async (call) => {
  const { walls, doors, ...floor } = await getRecord(call, floors, idOf(call))
  return { floor, walls: walls ?? [], doors: doors ?? [], ...(await floorDetails(call)) }
}

const NAMES = `SELECT coalesce(display_name, name, email) AS name FROM users WHERE id = ANY($1::text[]) ORDER BY 1`

/** The names of the users who watch a floor; null if the relay does not respond. */
const floorWatchers: Run = async (call) => {
  await getRecord(call, floors, idOf(call))
  const users = await usersOn(call, `floor:${idOf(call)}`)
  return users === null ? null : (await call.database.rows(NAMES, [users])).map(({ name }) => name)
}

const wholeSite = together({
  buildings: rows(BUILDINGS),
  channels: () => ({ everywhere: 'global:all' }),
  emergencies: activeEmergencies
})

/** For every page: the active emergencies, and how old the positions are by the clock of the backend. */
const siteStatus: Run = async (call) => {
  const [newest] = await call.database.rows('SELECT max(at) AS at FROM positions')
  return { now: call.now(), lastPositionAt: newest?.at, emergencies: await activeEmergencies(call) }
}

/** The initial state for live pages, and the relay address and token. */
export const contextRoutes: Handlers = {
  'GET /api/negotiate': handler('authenticated', negotiate),
  'POST /api/negotiate': handler('authenticated', negotiate),
  'GET /api/context': handler('floors.read', wholeSite),
  'GET /api/context/status': handler('emergency.read', siteStatus),
  'GET /api/context/floor/:floorId': handler('floors.read', wholeFloor),
  'GET /api/floors/:floorId/watchers': handler('floors.read', floorWatchers),
  'GET /api/diagnostics/signal-monitor': handler('diagnostics.read', rows(SIGNALS, 'floorId'))
}
