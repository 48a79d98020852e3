import { SEVERITIES } from '../../alert-kinds.js'
import { alertCounts } from '../alerts/monitor.js'
import { list } from '../queries.js'
import { callerOf, type Handlers, handler, idsIn, type Run } from '../route.js'
import { numberSetting } from '../settings.js'

/** SQL: people in danger and empty batteries are critical; the rest is a warning. */
const SEVERITY_RANK = `CASE WHEN a.kind IN ('restricted-zone', 'over-capacity')
  OR (a.kind = 'battery-low' AND t.battery_level <= ${numberSetting('battery', 'critical')}) THEN 3 ELSE 2 END`

/** The alerts that have not ended, with the name and the location of the person, asset, receiver or zone that they are about. */
const CURRENT = `SELECT a.id, a.kind, a.since, a.raised_at, a.acknowledged_by, a.acknowledged_at,
    CASE WHEN a.acknowledged_at IS NULL THEN 'open' ELSE 'acknowledged' END AS state, ${SEVERITY_RANK} AS severity_rank,
    coalesce(c.name, t.name, a.transmitter_id, r.name, a.receiver_id, z.name) AS name, c.entity_type AS carrier,
    c.department, c.company, a.transmitter_id, a.receiver_id, a.zone_id, z.name AS zone_name, z.occupancy, z.capacity,
    t.battery_level, f.id AS floor_id, f.name AS floor_name, b.id AS building_id, b.name AS building_name
  FROM alerts a LEFT JOIN receivers r ON r.id = a.receiver_id LEFT JOIN transmitters t ON t.id = a.transmitter_id
  LEFT JOIN carriers c ON c.transmitter_id = a.transmitter_id
  LEFT JOIN zones_shown z ON z.id = coalesce(a.zone_id, r.zone_id, c.zone_id)
  LEFT JOIN floors f ON f.id = coalesce(z.floor_id, r.floor_id, c.floor_id)
  LEFT JOIN buildings b ON b.id = f.building_id
  WHERE a.ended_at IS NULL`

const alerts = {
  from: `(SELECT current.*, (ARRAY[${SEVERITIES.map((each) => `'${each}'`).join(', ')}])[severity_rank] AS severity
    FROM (${CURRENT}) AS current)`,
  fields: ['kind', 'state', 'severity', 'severityRank', 'name', 'since', 'floorId', 'buildingId', 'acknowledgedAt'],
  search: ['name', 'zoneName', 'floorName', 'buildingName'],
  order: 'acknowledged_at IS NOT NULL, severity_rank DESC, since DESC, id'
}

const ACKNOWLEDGE = `UPDATE alerts a SET acknowledged_by = $2, acknowledged_at = $3
  FROM ${alerts.from} AS shown
  WHERE shown.id = a.id AND a.id = ANY($1::text[]) AND a.acknowledged_at IS NULL RETURNING a.id, shown.kind, shown.name`

const acknowledge: Run = async (call) => {
  const { body, database, now, subjects } = call
  const done = await database.rows(ACKNOWLEDGE, [idsIn(body), callerOf(call).displayName, now()])
  subjects.push(...done.map(({ kind, name }) => `${kind} ${name}`))
  return { affected: done.length }
}

/** Items that need attention. The monitor adds and removes them. */
export const alertRoutes: Handlers = {
  'GET /api/alerts': handler('alerts.read', list(alerts)),
  'GET /api/alerts/summary': handler('alerts.read', alertCounts),
  'POST /api/alerts/acknowledge': handler('alerts.update', acknowledge)
}
