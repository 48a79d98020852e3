import type { World } from '../world.js'

// Generated history before the start. The placeholder is the start time.

const BATTERIES = `INSERT INTO battery_readings (device_id, level, at)
  SELECT id, least(100, battery_level + day), $1::timestamptz - day * interval '1 day'
  FROM transmitters CROSS JOIN generate_series(0, 6) AS day`

const UNKNOWN_RECEIVERS = `INSERT INTO discovered_receivers (mac_address, model, rssi, building_id, first_heard_at)
  SELECT 'AC:23:42:00:00:0' || n, 'RX-200', -50 - 7 * n, (1 + n % 3)::text, $1::timestamptz - n * interval '3 hours'
  FROM generate_series(1, 4) AS n`

/** The start and the end of the drill. */
const DRILL = `INSERT INTO audit_log (id, at, action, result, user_id, user_email, details)
  SELECT kind, (moment #>> '{}')::timestamptz, 'emergency.' || kind, 'done', 'demo-admin', 'admin@example.com',
    jsonb_build_object('emergencyId', e.id, 'kind', kind, 'title', e.title, 'message', event.message)
  FROM emergencies e CROSS JOIN LATERAL (VALUES ('triggered', e.started_at, e.message),
    ('resolved', e.resolved_at, e.resolution)) AS event (kind, moment, message)`

/** The roll call of the drill: the whole building is safe within nine minutes, and a warden marked one visitor. */
const ROLL_CALL = `INSERT INTO roll_calls (emergency_id, transmitter_id, name, kind, company, department, place, last_seen_at,
    status, marked_by, safe_at)
  SELECT e.id, c.transmitter_id, coalesce(c.name, c.badge), c.entity_type, c.company, c.department, 'Assembly area',
    safe.at, 'safe', CASE WHEN c.entity_type = 'visitor' AND right(c.transmitter_id, 1) = '7' THEN 'Alex Admin' END, safe.at
  FROM emergencies e JOIN floors f ON f.building_id = e.building_id
  JOIN carriers c ON c.home_floor_id = f.id OR (c.entity_type IN ('visitor', 'contractor') AND f.level = 0)
  CROSS JOIN LATERAL (SELECT (e.started_at #>> '{}')::timestamptz
    + (70 + abs(hashtext(c.transmitter_id)) % 440) * interval '1 second') AS safe (at)
  WHERE c.entity_type <> 'asset' AND (c.entity_type = 'employee' OR abs(hashtext(c.transmitter_id)) % 3 = 0)`

const OUTCOME = `UPDATE emergencies e SET extra = e.extra || jsonb_build_object('muster', (SELECT jsonb_build_object('total', count(*),
    'safe', count(*), 'missing', 0, 'unknown', 0) FROM roll_calls r WHERE r.emergency_id = e.id))`

/** A week of battery readings, discovered receivers, and a drill. */
export const seedHistory = async ({ database, now }: World): Promise<void> => {
  for (const sql of [BATTERIES, UNKNOWN_RECEIVERS]) await database.rows(sql, [now()])
  for (const sql of [DRILL, ROLL_CALL, OUTCOME]) await database.rows(sql)
}
