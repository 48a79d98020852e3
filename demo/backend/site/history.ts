import type { World } from '../world.js'

// Generated history before the start. The placeholder is the start time.

const POSITIONS = `INSERT INTO position_history (transmitter_id, floor_id, zone_id, x, y, at)
  SELECT t.id, z.floor_id, z.id, (z.center->>'x')::float, (z.center->>'y')::float, $1::timestamptz - hour * interval '1 hour'
  FROM transmitters t CROSS JOIN generate_series(1, 23) AS hour
  JOIN zones z ON z.id = (1 + (t.minor * 7 + hour * 11) % (SELECT count(*) FROM zones))::text
  -- presence follows a daily cycle: all now and a day ago, one in six half a day ago
  WHERE t.entity_type IS NOT NULL AND (t.entity_type = 'asset' OR t.minor % 12 < 7 + 5 * cos(hour * pi() / 12))`

const BATTERIES = `INSERT INTO battery_readings (device_id, level, at)
  SELECT id, least(100, battery_level + day), $1::timestamptz - day * interval '1 day'
  FROM transmitters CROSS JOIN generate_series(0, 6) AS day`

const UNKNOWN_RECEIVERS = `INSERT INTO discovered_receivers (mac_address, model, rssi, building_id, first_heard_at)
  SELECT 'AC:23:42:00:00:0' || n, 'RX-200', -50 - 7 * n, (1 + n % 3)::text, $1::timestamptz - n * interval '3 hours'
  FROM generate_series(1, 4) AS n`

/** The start and the end of the drill. */
const DRILL = `INSERT INTO audit_log (id, at, action, result, user_email, details)
  SELECT kind, (moment #>> '{}')::timestamptz, 'emergency.' || kind, 'done', 'admin@example.com',
    jsonb_build_object('emergencyId', e.id, 'kind', kind, 'title', e.title, 'message', event.message)
  FROM emergencies e CROSS JOIN LATERAL (VALUES ('triggered', e.started_at, e.message),
    ('resolved', e.resolved_at, e.resolution)) AS event (kind, moment, message)`

/** A day of positions, a week of battery readings, discovered receivers, and a drill. */
export const seedHistory = async ({ database, now }: World): Promise<void> => {
  for (const sql of [POSITIONS, BATTERIES, UNKNOWN_RECEIVERS]) await database.rows(sql, [now()])
  await database.rows(DRILL)
}
