import { escalationField, SEVERITIES } from '../../alert-kinds.js'
import { numberSetting } from '../settings.js'

/** SQL: the rank of a severity, from 1 for the lowest. */
export const rankOf = (severity: string): string =>
  `array_position(ARRAY[${SEVERITIES.map((each) => `'${each}'`).join(', ')}], ${severity})`

/** SQL: a severity of the settings by the name of its field. */
const severitySetting = (field: string): string => `(SELECT value->>(${field}) FROM settings WHERE name = 'severities')`

/** SQL: the rank that the settings give to an alert `a` about a transmitter `t`. A kind without a severity is a warning. */
const CONFIGURED_RANK = `coalesce(${rankOf(
  severitySetting(`CASE WHEN a.kind = 'battery-low' AND t.battery_level <= ${numberSetting('battery', 'critical')}
    THEN 'battery-critical' ELSE a.kind END`)
)}, 2)`

/** The alerts that have not ended, with the name and the location of the person, asset, receiver or zone that they are about. */
const CURRENT = `SELECT a.id, a.kind, a.since, a.raised_at, a.acknowledged_by, a.acknowledged_at, a.escalated_at,
    a.escalated_from, a.notified_rank, a.assigned_to, a.assigned_at, coalesce(a.assigned_to, 'nobody') AS assignee,
    coalesce(u.display_name, u.name, u.email) AS assigned_name,
    CASE WHEN a.acknowledged_at IS NULL THEN 'open' ELSE 'acknowledged' END AS state,
    least(${SEVERITIES.length}, greatest(${CONFIGURED_RANK}, a.escalated_from + 1)) AS severity_rank,
    coalesce(c.name, t.name, a.transmitter_id, r.name, a.receiver_id, z.name) AS name, c.entity_type AS carrier,
    c.department, c.company, c.host, a.transmitter_id, a.receiver_id, a.zone_id, z.name AS zone_name, z.occupancy, z.capacity,
    t.battery_level, f.id AS floor_id, f.name AS floor_name, b.id AS building_id, b.name AS building_name
  FROM alerts a LEFT JOIN receivers r ON r.id = a.receiver_id LEFT JOIN transmitters t ON t.id = a.transmitter_id
  LEFT JOIN carriers c ON c.transmitter_id = a.transmitter_id
  LEFT JOIN zones_shown z ON z.id = coalesce(a.zone_id, r.zone_id, c.zone_id)
  LEFT JOIN floors f ON f.id = coalesce(z.floor_id, r.floor_id, c.floor_id)
  LEFT JOIN buildings b ON b.id = f.building_id LEFT JOIN users u ON u.id = a.assigned_to
  WHERE a.ended_at IS NULL`

/** SQL: a query in brackets, to list and to change alerts. */
export const SHOWN_ALERTS = `(SELECT current.*,
    (ARRAY[${SEVERITIES.map((each) => `'${each}'`).join(', ')}])[severity_rank] AS severity FROM (${CURRENT}) AS current)`

const ESCALATES_AFTER = `make_interval(mins => CASE shown.severity ${SEVERITIES.map(
  (severity) => `WHEN '${severity}' THEN ${numberSetting('severities', escalationField(severity))}::int`
).join(' ')} END)`

/**
 * Escalates alerts that nobody has acknowledged within the minutes of their severity: once from each severity to the next one, and
 * once as a critical alert. The placeholder is the current time.
 */
export const ESCALATE = `UPDATE alerts a SET escalated_from = shown.severity_rank, escalated_at = $1::timestamptz
  FROM ${SHOWN_ALERTS} AS shown
  WHERE shown.id = a.id AND a.acknowledged_at IS NULL AND shown.severity_rank > coalesce(a.escalated_from, 0)
    AND coalesce(a.escalated_at, a.raised_at, a.since) <= $1::timestamptz - ${ESCALATES_AFTER}
  RETURNING a.id`
