import type { AlertKind } from '../../alert-kinds.js'
import { isSettingOn, numberSetting } from '../settings.js'

/** A kind of alert and the condition that raises it. */
interface Condition {
  readonly kind: AlertKind
  /** The flag of the alert settings that switches it off. */
  readonly flag: string
  /** SQL of the rows `transmitter_id, receiver_id, zone_id, since`; the placeholder is the current time. */
  readonly rows: string
}

const minutes = (field: string): string => `${numberSetting('alerts', field)} * interval '1 minute'`

const IS_CARRIED = 't.entity_type IS NOT NULL AND t.is_active IS NOT FALSE'

/** The conditions that need attention. Thresholds come from the settings; a threshold that is not set raises no alert. */
const CONDITIONS: readonly Condition[] = [
  {
    kind: 'receiver-offline',
    flag: 'receiverOffline',
    rows: `SELECT NULL, r.id, NULL, coalesce(r.last_seen_at, r.updated_at) FROM receivers r
      WHERE r.status = 'offline' AND r.is_active IS NOT FALSE
        AND coalesce(r.last_seen_at, r.updated_at) <= $1::timestamptz - ${minutes('offlineAfterMinutes')}`
  },
  {
    kind: 'battery-low',
    flag: 'batteryLow',
    rows: `SELECT t.id, NULL, NULL, coalesce((SELECT min(b.at) FROM battery_readings b
        WHERE b.device_id = t.id AND b.level <= ${numberSetting('battery', 'low')}), $1::timestamptz)
      FROM transmitters t WHERE ${IS_CARRIED} AND t.battery_level <= ${numberSetting('battery', 'low')}`
  },
  {
    kind: 'restricted-zone',
    flag: 'zoneBreach',
    rows: `SELECT t.id, NULL, z.id, $1::timestamptz FROM positions p JOIN transmitters t ON t.id = p.transmitter_id
      JOIN zones z ON z.id = p.zone_id AND z.is_restricted AND z.is_active IS NOT FALSE
      LEFT JOIN personnel e ON t.entity_type = 'employee' AND e.id = t.entity_id
      WHERE ${IS_CARRIED} AND t.entity_type <> 'asset'
        AND NOT coalesce(z.allowed_department_ids ? e.department_id, false)`
  },
  {
    kind: 'over-capacity',
    flag: 'zoneOverCapacity',
    rows: `SELECT NULL, NULL, z.id, $1::timestamptz FROM zones_shown z
      WHERE z.is_active IS NOT FALSE AND z.occupancy > z.capacity`
  },
  {
    kind: 'tag-silent',
    flag: 'transmitterSilent',
    rows: `SELECT t.id, NULL, NULL, p.at FROM positions p JOIN transmitters t ON t.id = p.transmitter_id
      WHERE ${IS_CARRIED} AND p.at <= $1::timestamptz - ${minutes('silentAfterMinutes')}`
  }
]

export const ALERT_KINDS = CONDITIONS.map(({ kind }) => kind)

const FOUND = CONDITIONS.map(
  ({ kind, flag, rows }) => `SELECT '${kind}' AS kind, found.* FROM (${rows})
    AS found (transmitter_id, receiver_id, zone_id, since) WHERE ${isSettingOn('alerts', flag)}`
).join(' UNION ALL ')

/**
 * The status of receivers that report follows the settings: offline after the minutes without a report. Without that setting, and
 * for receivers that have never reported, the stored status stays.
 */
export const UPDATE_RECEIVERS = `UPDATE receivers r SET status = found.status
  FROM (SELECT id, CASE WHEN last_seen_at <= $1::timestamptz - ${minutes('offlineAfterMinutes')} THEN 'offline' ELSE 'online' END AS status
    FROM receivers WHERE last_seen_at IS NOT NULL AND ${numberSetting('alerts', 'offlineAfterMinutes')} IS NOT NULL) AS found
  WHERE found.id = r.id AND r.status IS DISTINCT FROM found.status`

/** Deletes ended alerts after the time within which the same condition continues the previous alert. */
export const DELETE_ENDED = `DELETE FROM alerts WHERE ended_at IS NOT NULL
  AND ended_at <= $1::timestamptz - coalesce(${minutes('cooldownMinutes')}, interval '0')`

/** Adds new alerts, continues recent ones with their acknowledgement, and ends those whose condition is over. */
export const UPDATE_ALERTS = `WITH found AS (
    SELECT concat_ws(':', kind, transmitter_id, receiver_id, zone_id) AS key, every_kind.*
    FROM (${FOUND}) AS every_kind WHERE ${isSettingOn('alerts', 'enabled')}),
  ended AS (
    UPDATE alerts SET ended_at = $1::timestamptz WHERE ended_at IS NULL AND key NOT IN (SELECT key FROM found))
  INSERT INTO alerts (id, key, kind, transmitter_id, receiver_id, zone_id, since, raised_at)
  SELECT gen_random_uuid()::text, key, kind, transmitter_id, receiver_id, zone_id, since, $1::timestamptz FROM found
  ON CONFLICT (key) DO UPDATE SET ended_at = NULL, since = excluded.since
    WHERE alerts.ended_at IS NOT NULL`
