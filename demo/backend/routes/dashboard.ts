import { oneRow, rows, together } from '../queries.js'
import { type Handlers, handler, type Run } from '../route.js'

/** SQL: row counts by name. */
const counts = (of: Readonly<Record<string, string>>): string =>
  Object.entries(of)
    .map(([name, from]) => `(SELECT count(*)::int FROM ${from}) AS ${name}`)
    .join(', ')

const KINDS = { personnel: 'employee', visitors: 'visitor', contractors: 'contractor', assets: 'asset' }

/** SQL: the number of carriers that match a condition, by kind. */
const presentWhere = (condition: string, suffix = ''): string =>
  counts(
    Object.fromEntries(
      Object.entries(KINDS).map(([name, kind]) => [
        `${name}${suffix}`,
        `carriers WHERE entity_type = '${kind}' AND ${condition}`
      ])
    )
  )

const TABLES = ['buildings', 'floors', 'zones', 'personnel', 'assets', 'transmitters', 'receivers']

const SUMMARY = `SELECT ${counts({
  ...Object.fromEntries(TABLES.map((table) => [table, table])),
  receivers_online: "receivers WHERE status = 'online'",
  batteries_low: "transmitters_shown WHERE battery_state IN ('critical', 'low')",
  emergencies_active: "emergencies WHERE status = 'active'"
})}, ${presentWhere('at IS NOT NULL', '_on_site')}`

const BUILDINGS = `SELECT b.id, b.name, b.code, ${presentWhere('building_id = b.id')}
  FROM buildings b ORDER BY b.display_order, b.id`

const FLOORS = `SELECT f.id, f.name, f.level, f.building_id, b.name AS building_name, ${presentWhere('floor_id = f.id')}
  FROM floors f JOIN buildings b ON b.id = f.building_id
  WHERE $1::text IS NULL OR f.id = $1 ORDER BY b.display_order, f.level, f.id`

const DEPARTMENTS = `SELECT d.id, d.name, d.color, ${counts({
  personnel: 'personnel WHERE department_id = d.id',
  on_site: 'personnel_shown WHERE department_id = d.id AND current_floor_id IS NOT NULL'
})} FROM departments d ORDER BY d.name, d.id`

const PERSONNEL = `SELECT ${counts({
  total: 'personnel',
  first_aiders: 'personnel WHERE is_first_aider',
  fire_wardens: 'personnel WHERE is_fire_warden'
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
