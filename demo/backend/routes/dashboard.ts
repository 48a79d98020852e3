import { oneRow, rows, together } from '../queries.js'
import { type Call, type Handlers, handler, type Run } from '../route.js'
import type { Fields } from '../world.js'

/** SQL: row counts by name. */
const counts = (of: Readonly<Record<string, string>>): string =>
  Object.entries(of)
    .map(([name, from]) => `(SELECT count(*)::int FROM ${from}) AS ${name}`)
    .join(', ')

/** The carriers that match a condition, by type. */
const presentWhere = (condition: string) => ({
  personnel: `carriers WHERE entity_type = 'employee' AND ${condition}`,
  guests: `carriers WHERE entity_type IN ('visitor', 'contractor') AND ${condition}`,
  assets: `carriers WHERE entity_type = 'asset' AND ${condition}`
})
const ON_SITE = presentWhere('at IS NOT NULL')

const TABLES = ['buildings', 'floors', 'zones', 'personnel', 'assets', 'transmitters', 'receivers']

const SUMMARY = `SELECT ${counts({
  ...Object.fromEntries(TABLES.map((table) => [table, table])),
  personnel_active: 'personnel WHERE is_active IS NOT FALSE',
  personnel_on_site: ON_SITE.personnel,
  guests_on_site: ON_SITE.guests,
  transmitters_unassigned: 'transmitters WHERE entity_type IS NULL',
  batteries_low: 'transmitters WHERE battery_level <= 20',
  receivers_online: "receivers WHERE status = 'online'",
  emergencies_active: "emergencies WHERE status = 'active'"
})}, (SELECT max(at) FROM positions) AS last_position_at`

const BUILDINGS = `SELECT b.id, b.name, b.code, ${counts({
  floors: 'floors WHERE building_id = b.id',
  ...presentWhere('building_id = b.id'),
  receivers: 'receivers WHERE building_id = b.id',
  receivers_online: "receivers WHERE building_id = b.id AND status = 'online'"
})} FROM buildings b ORDER BY b.display_order, b.id`

const FLOORS = `SELECT f.id, f.name, f.level, f.building_id, b.name AS building_name, f.width, f.height, ${counts({
  ...presentWhere('floor_id = f.id'),
  zones: 'zones WHERE floor_id = f.id',
  receivers: 'receivers WHERE floor_id = f.id'
})} FROM floors f JOIN buildings b ON b.id = f.building_id
  WHERE $1::text IS NULL OR f.id = $1 ORDER BY b.display_order, f.level, f.id`

const DEPARTMENTS = `SELECT d.id, d.name, d.code, d.color, ${counts({
  personnel: 'personnel WHERE department_id = d.id',
  on_site: 'personnel_shown WHERE department_id = d.id AND current_floor_id IS NOT NULL'
})} FROM departments d ORDER BY d.name, d.id`

const PERSONNEL = `SELECT ${counts({
  total: 'personnel',
  active: 'personnel WHERE is_active IS NOT FALSE',
  first_aiders: 'personnel WHERE is_first_aider',
  fire_wardens: 'personnel WHERE is_fire_warden',
  on_site: ON_SITE.personnel
})}`

/** The greatest number of employees on site in each hour of the last day. */
const PRESENCE = `SELECT date_trunc('hour', at, 'UTC') AS at, max(people)::int AS people
  FROM (SELECT at, sum(carriers) AS people FROM occupancy_history
    WHERE entity_type = 'employee' AND at > $1::timestamptz - interval '1 day' GROUP BY at) AS counts
  GROUP BY 1 ORDER BY 1`

const ZONES_OF_FLOOR = `SELECT id, name, type, capacity, occupancy FROM zones_shown WHERE floor_id = $1
  ORDER BY occupancy DESC, id`

/** Adds a list to the fields of a row. */
const withList =
  (row: (call: Call) => Promise<Fields | null>, name: string, list: Run): Run =>
  async (call) => ({ ...(await row(call)), [name]: await list(call) })

const figures = {
  summary: oneRow(null, SUMMARY),
  buildings: rows(BUILDINGS),
  floors: rows(FLOORS, 'id'),
  departments: rows(DEPARTMENTS),
  personnel: withList(oneRow(null, PERSONNEL), 'presence', rows(PRESENCE, 'now'))
}
const oneFloor = withList(oneRow('floor', FLOORS, 'id'), 'zones', rows(ZONES_OF_FLOOR, 'id'))

/** Dashboard figures, one query per group. */
export const dashboardRoutes: Handlers = {
  'GET /api/dashboard': handler('dashboard.read', together(figures)),
  ...Object.fromEntries(
    Object.entries(figures).map(([name, run]) => [`GET /api/dashboard/${name}`, handler('dashboard.read', run)])
  ),
  'GET /api/dashboard/floors/:id': handler('dashboard.read', oneFloor)
}
