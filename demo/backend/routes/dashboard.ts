import { oneRow, rows, together } from '../queries.js'
import { type Handlers, handler, type Run } from '../route.js'
import type { Fields } from '../world.js'

// Who and what is heard of there, in queries that call positions p and transmitters t.
const PRESENT = `count(p.transmitter_id) FILTER (WHERE t.entity_type = 'employee')::int AS personnel,
    count(p.transmitter_id) FILTER (WHERE t.entity_type IN ('visitor', 'contractor'))::int AS guests,
    count(p.transmitter_id) FILTER (WHERE t.entity_type = 'asset')::int AS assets`

const HEARD = 'positions p JOIN transmitters t ON t.id = p.transmitter_id'

const SUMMARY = `SELECT
  (SELECT count(*)::int FROM buildings) AS buildings,
  (SELECT count(*)::int FROM floors) AS floors,
  (SELECT count(*)::int FROM zones) AS zones,
  (SELECT count(*)::int FROM personnel) AS personnel,
  (SELECT count(*)::int FROM personnel WHERE is_active IS NOT FALSE) AS "personnelActive",
  (SELECT count(*)::int FROM ${HEARD} WHERE t.entity_type = 'employee') AS "personnelOnSite",
  (SELECT count(*)::int FROM ${HEARD} WHERE t.entity_type IN ('visitor', 'contractor')) AS "guestsOnSite",
  (SELECT count(*)::int FROM assets) AS assets,
  (SELECT count(*)::int FROM transmitters) AS transmitters,
  (SELECT count(*)::int FROM transmitters WHERE entity_type IS NULL) AS "transmittersUnassigned",
  (SELECT count(*)::int FROM transmitters WHERE battery_level <= 20) AS "batteriesLow",
  (SELECT count(*)::int FROM receivers) AS receivers,
  (SELECT count(*)::int FROM receivers WHERE status = 'online') AS "receiversOnline",
  (SELECT count(*)::int FROM emergencies WHERE status = 'active') AS "emergenciesActive",
  (SELECT max(at) FROM positions) AS "lastPositionAt"`

const BUILDINGS = `SELECT b.id, b.name, b.code, count(DISTINCT f.id)::int AS floors, ${PRESENT},
    (SELECT count(*)::int FROM receivers r WHERE r.building_id = b.id) AS receivers,
    (SELECT count(*)::int FROM receivers r WHERE r.building_id = b.id AND r.status = 'online') AS "receiversOnline"
  FROM buildings b LEFT JOIN floors f ON f.building_id = b.id
  LEFT JOIN positions p ON p.floor_id = f.id LEFT JOIN transmitters t ON t.id = p.transmitter_id
  GROUP BY b.id ORDER BY b.display_order, b.id`

const FLOORS = `SELECT f.id, f.name, f.level, f.building_id AS "buildingId", b.name AS "buildingName", f.width, f.height,
    ${PRESENT},
    (SELECT count(*)::int FROM zones z WHERE z.floor_id = f.id) AS zones,
    (SELECT count(*)::int FROM receivers r WHERE r.floor_id = f.id) AS receivers
  FROM floors f JOIN buildings b ON b.id = f.building_id
  LEFT JOIN positions p ON p.floor_id = f.id LEFT JOIN transmitters t ON t.id = p.transmitter_id
  WHERE $1::text IS NULL OR f.id = $1
  GROUP BY f.id, b.id ORDER BY b.display_order, f.level, f.id`

const DEPARTMENTS = `SELECT d.id, d.name, d.code, d.color, count(DISTINCT e.id)::int AS personnel,
    count(DISTINCT p.transmitter_id)::int AS "onSite"
  FROM departments d LEFT JOIN personnel e ON e.department_id = d.id
  LEFT JOIN transmitters t ON t.entity_type = 'employee' AND t.entity_id = e.id
  LEFT JOIN positions p ON p.transmitter_id = t.id
  GROUP BY d.id ORDER BY d.name, d.id`

/** How many people were heard in each hour of the last day. */
const PRESENCE = `SELECT date_trunc('hour', h.at, 'UTC') AS at, count(DISTINCT h.transmitter_id)::int AS people
  FROM position_history h JOIN transmitters t ON t.id = h.transmitter_id AND t.entity_type = 'employee'
  WHERE h.at > $1::timestamptz - interval '1 day' GROUP BY 1 ORDER BY 1`

const ZONES_OF_FLOOR = `SELECT z.id, z.name, z.type, z.capacity, count(p.transmitter_id)::int AS occupancy
  FROM zones z LEFT JOIN positions p ON p.zone_id = z.id WHERE z.floor_id = $1 GROUP BY z.id ORDER BY occupancy DESC, z.id`

const PERSONNEL = `SELECT count(*)::int AS total, count(*) FILTER (WHERE is_active IS NOT FALSE)::int AS active,
    count(*) FILTER (WHERE is_first_aider)::int AS "firstAiders",
    count(*) FILTER (WHERE is_fire_warden)::int AS "fireWardens",
    (SELECT count(*)::int FROM ${HEARD} WHERE t.entity_type = 'employee') AS "onSite"
  FROM personnel`

/** Two answers in one: the row, and beside its fields a list of this name. */
const withList =
  (row: Run, name: string, list: Run): Run =>
  async (call) => ({ ...((await row(call)) as Fields), [name]: await list(call) })

const figures = {
  summary: oneRow(null, SUMMARY),
  buildings: rows(BUILDINGS),
  floors: rows(FLOORS, 'id'),
  departments: rows(DEPARTMENTS),
  personnel: withList(oneRow(null, PERSONNEL), 'presence', rows(PRESENCE, 'now'))
}

/** Figures, each set of them one query. */
export const dashboardRoutes: Handlers = {
  'GET /api/dashboard': handler('dashboard.read', together(figures)),
  ...Object.fromEntries(
    Object.entries(figures).map(([name, run]) => [`GET /api/dashboard/${name}`, handler('dashboard.read', run)])
  ),
  'GET /api/dashboard/floors/:id': handler(
    'dashboard.read',
    withList(oneRow('floor', FLOORS, 'id'), 'zones', rows(ZONES_OF_FLOOR, 'id'))
  )
}
