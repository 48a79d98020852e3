import type { Publisher } from '../../../src/shared/publisher.js'
import { ALERT_TITLES, type AlertKind, SEVERITIES } from '../../alert-kinds.js'
import { list } from '../queries.js'
import { callerOf, type Handlers, handler, idsIn, type Run } from '../route.js'
import { isSettingOn, numberSetting } from '../settings.js'
import type { Database, Fields, World } from '../world.js'

const minutes = (field: string): string => `${numberSetting('alerts', field)} * interval '1 minute'`

const IS_CARRIED = 't.entity_type IS NOT NULL AND t.is_active IS NOT FALSE'

/**
 * The conditions that need attention: the flag of the alert settings that switches each off, and SQL of the rows
 * `transmitter_id, receiver_id, zone_id, since`, whose placeholder is the current time. A threshold that is not set raises no alert.
 */
const CONDITIONS: Readonly<Record<AlertKind, readonly [flag: string, rows: string]>> = {
  'restricted-zone': [
    'zoneBreach',
    `SELECT t.id, NULL, z.id, $1::timestamptz FROM positions p JOIN transmitters t ON t.id = p.transmitter_id
     JOIN zones z ON z.id = p.zone_id AND z.is_restricted AND z.is_active IS NOT FALSE
     WHERE ${IS_CARRIED} AND t.entity_type <> 'asset'`
  ],
  'over-capacity': [
    'zoneOverCapacity',
    `SELECT NULL, NULL, z.id, $1::timestamptz FROM zones_shown z
     WHERE z.is_active IS NOT FALSE AND z.occupancy > z.capacity`
  ],
  'receiver-offline': [
    'receiverOffline',
    `SELECT NULL, r.id, NULL, coalesce(r.last_seen_at, r.updated_at) FROM receivers r
     WHERE r.status = 'offline' AND r.is_active IS NOT FALSE
       AND coalesce(r.last_seen_at, r.updated_at) <= $1::timestamptz - ${minutes('offlineAfterMinutes')}`
  ],
  'tag-silent': [
    'transmitterSilent',
    `SELECT t.id, NULL, NULL, p.at FROM positions p JOIN transmitters t ON t.id = p.transmitter_id
     WHERE ${IS_CARRIED} AND p.at <= $1::timestamptz - ${minutes('silentAfterMinutes')}`
  ],
  'battery-low': [
    'batteryLow',
    `SELECT t.id, NULL, NULL, $1::timestamptz FROM transmitters t
     WHERE ${IS_CARRIED} AND t.battery_level <= ${numberSetting('battery', 'low')}`
  ]
}

const FOUND = Object.entries(CONDITIONS)
  .map(
    ([kind, [flag, rows]]) => `SELECT '${kind}' AS kind, found.* FROM (${rows})
      AS found (transmitter_id, receiver_id, zone_id, since) WHERE ${isSettingOn('alerts', flag)}`
  )
  .join(' UNION ALL ')

/**
 * The status of receivers that report follows the settings: offline after the minutes without a report. Without that setting, and
 * for receivers that have never reported, the stored status stays.
 */
const UPDATE_RECEIVERS = `UPDATE receivers r SET status = found.status
  FROM (SELECT id, CASE WHEN last_seen_at <= $1::timestamptz - ${minutes('offlineAfterMinutes')} THEN 'offline' ELSE 'online' END AS status
    FROM receivers WHERE last_seen_at IS NOT NULL AND ${numberSetting('alerts', 'offlineAfterMinutes')} IS NOT NULL) AS found
  WHERE found.id = r.id AND r.status IS DISTINCT FROM found.status`

/** Adds new alerts, and deletes those whose condition is over. */
const UPDATE_ALERTS = `WITH found AS (
    SELECT concat_ws(':', kind, transmitter_id, receiver_id, zone_id) AS id, every_kind.*
    FROM (${FOUND}) AS every_kind WHERE ${isSettingOn('alerts', 'enabled')}),
  ended AS (DELETE FROM alerts WHERE id NOT IN (SELECT id FROM found))
  INSERT INTO alerts (id, kind, transmitter_id, receiver_id, zone_id, since) SELECT * FROM found ON CONFLICT (id) DO NOTHING`

/** The state of all alerts as one text, which changes with every alert and acknowledgement. */
const STATE = `SELECT coalesce(md5(string_agg(concat_ws('/', id, acknowledged_at), ',' ORDER BY id)), '') AS state FROM alerts`

const COUNTS = `SELECT kind, count(*) FILTER (WHERE a.id IS NOT NULL AND acknowledged_at IS NULL)::int AS open,
    count(*) FILTER (WHERE acknowledged_at IS NOT NULL)::int AS acknowledged
  FROM unnest($1::text[]) WITH ORDINALITY AS kinds (kind, number) LEFT JOIN alerts AS a USING (kind)
  GROUP BY kind, number ORDER BY number`

/** The number of alerts of every kind. */
const alertCounts = ({ database }: Pick<World, 'database'>): Promise<Fields[]> =>
  database.rows(COUNTS, [Object.keys(ALERT_TITLES)])

/** Returns a function that compares the site with the conditions, and publishes the counts when the alerts have changed. */
export const alertCheck = (database: Database, publisher: Pick<Publisher, 'publish'>, now: World['now']) => {
  let published = ''
  return async (): Promise<void> => {
    const { state, counts } = await database.transaction(async (statements) => {
      for (const sql of [UPDATE_RECEIVERS, UPDATE_ALERTS]) await statements.rows(sql, [now()])
      const [row] = await statements.rows<{ state: string }>(STATE)
      return { state: row?.state ?? '', counts: await alertCounts({ database: statements }) }
    })
    if (state === published) return
    published = state
    // Only numbers: every signed-in user receives this channel, and names need a permission.
    void publisher.publish('global:all', { type: 'alerts', data: counts })
  }
}

/** SQL: people in danger and empty batteries are critical; the rest is a warning. */
const SEVERITY_RANK = `CASE WHEN a.kind IN ('restricted-zone', 'over-capacity')
  OR (a.kind = 'battery-low' AND t.battery_level <= ${numberSetting('battery', 'critical')}) THEN 3 ELSE 2 END`

/** The alerts with the name and the location of the person, asset, receiver or zone that they are about. */
const CURRENT = `SELECT a.*, CASE WHEN a.acknowledged_at IS NULL THEN 'open' ELSE 'acknowledged' END AS state,
    ${SEVERITY_RANK} AS severity_rank, coalesce(c.name, t.name, a.transmitter_id, r.name, a.receiver_id, z.name) AS name,
    z.name AS zone_name, z.occupancy, z.capacity, t.battery_level, f.id AS floor_id, f.name AS floor_name,
    b.id AS building_id, b.name AS building_name
  FROM alerts a LEFT JOIN receivers r ON r.id = a.receiver_id LEFT JOIN transmitters t ON t.id = a.transmitter_id
  LEFT JOIN carriers c ON c.transmitter_id = a.transmitter_id
  LEFT JOIN zones_shown z ON z.id = coalesce(a.zone_id, r.zone_id, c.zone_id)
  LEFT JOIN floors f ON f.id = coalesce(z.floor_id, r.floor_id, c.floor_id)
  LEFT JOIN buildings b ON b.id = f.building_id`

const alerts = {
  from: `(SELECT current.*, (ARRAY[${SEVERITIES.map((each) => `'${each}'`).join(', ')}])[severity_rank] AS severity
    FROM (${CURRENT}) AS current)`,
  fields: ['kind', 'state', 'severity', 'severityRank', 'name', 'since', 'floorId', 'buildingId', 'acknowledgedAt'],
  search: ['name', 'zoneName', 'floorName', 'buildingName'],
  order: 'acknowledged_at IS NOT NULL, severity_rank DESC, since DESC, id'
}

const ACKNOWLEDGE = `UPDATE alerts SET acknowledged_by = $2, acknowledged_at = $3
  WHERE id = ANY($1::text[]) AND acknowledged_at IS NULL RETURNING id`

const acknowledge: Run = async (call) => {
  const { body, database, now } = call
  const done = await database.rows(ACKNOWLEDGE, [idsIn(body), callerOf(call).displayName, now()])
  return { affected: done.length }
}

/** Items that need attention. The check adds and removes them. */
export const alertRoutes: Handlers = {
  'GET /api/alerts': handler('alerts.read', list(alerts)),
  'GET /api/alerts/summary': handler('alerts.read', alertCounts),
  'POST /api/alerts/acknowledge': handler('alerts.update', acknowledge)
}
