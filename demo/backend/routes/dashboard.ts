import { oneRow, rows, together } from '../queries.js'
import { type Handlers, handler, type Run } from '../route.js'

/** SQL: row counts by name. */
const counts = (of: Readonly<Record<string, string>>): string =>
  Object.entries(of)
    .map(([name, from]) => `(SELECT count(*)::int FROM ${from}) AS ${name}`)
    .join(', ')

/** The carriers that match a condition, by type. */
const presentWhere = (condition: string) => ({
  personnel: `carriers WHERE entity_type = 'employee' AND ${condition}`,
  guests: `carriers WHERE entity_type IN ('visitor', 'contractor') AND ${condition}`,
  visitors: `carriers WHERE entity_type = 'visitor' AND ${condition}`,
  contractors: `carriers WHERE entity_type = 'contractor' AND ${condition}`,
  assets: `carriers WHERE entity_type = 'asset' AND ${condition}`
})
const ON_SITE = presentWhere('at IS NOT NULL')

const TABLES = ['buildings', 'floors', 'zones', 'personnel', 'assets', 'transmitters', 'receivers']

const SUMMARY = `SELECT ${counts({
  ...Object.fromEntries(TABLES.map((table) => [table, table])),
  personnel_active: 'personnel WHERE is_active IS NOT FALSE',
  personnel_on_site: ON_SITE.personnel,
  guests_on_site: ON_SITE.guests,
  visitors_on_site: ON_SITE.visitors,
  contractors_on_site: ON_SITE.contractors,
  assets_on_site: ON_SITE.assets,
  transmitters_unassigned: 'transmitters WHERE entity_type IS NULL',
  batteries_low: "transmitters_shown WHERE battery_state IN ('critical', 'low')",
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

const ZONES_OF_FLOOR = `SELECT id, name, type, capacity, occupancy FROM zones_shown WHERE floor_id = $1
  ORDER BY occupancy DESC, id`

const figures = {
  summary: oneRow(null, SUMMARY),
  buildings: rows(BUILDINGS),
  floors: rows(FLOORS, 'id'),
  departments: rows(DEPARTMENTS),
  personnel: oneRow(null, PERSONNEL)
}
const floorRow = oneRow('floor', FLOORS, 'id')
const zonesOfFloor = rows(ZONES_OF_FLOOR, 'id')
const oneFloor: Run = async (call) => ({ ...(await floorRow(call)), zones: await zonesOfFloor(call) })

/** Dashboard figures, one query per group. */
export const dashboardRoutes: Handlers = {
  'GET /api/dashboard': handler('dashboard.read', together(figures)),
  ...Object.fromEntries(
    Object.entries(figures).map(([name, run]) => [`GET /api/dashboard/${name}`, handler('dashboard.read', run)])
  ),
  'GET /api/dashboard/floors/:id': handler('dashboard.read', oneFloor)
}
