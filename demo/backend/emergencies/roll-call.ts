import { getRecord } from '../records.js'
import { emergencies } from '../resources.js'
import { type Backend, idOf, type Run } from '../route.js'
import type { Fields, World } from '../world.js'
import { activeEmergencies, lockEmergencies } from './rules.js'

// The status of each person: in the live muster, and recorded for the report of the emergency.

/**
 * Everybody with a transmitter who is or was in the building during the emergency. In an alarm that people gather for, those at
 * a muster point are safe; in every alarm those whom a user has marked. People without a position belong to the building of
 * their home floor, guests without a position to every building. Somebody on the roll stays in the muster, also after the transmitter was switched off or deleted.
 */
const MUSTER = `SELECT c.transmitter_id, c.entity_type AS kind, c.entity_id AS personnel_id,
    coalesce(c.name, c.badge, c.transmitter_id) AS name, e.is_first_aider IS TRUE AS is_first_aider,
    e.is_fire_warden IS TRUE AS is_fire_warden, c.company, c.department, c.building_id, b.name AS building_name, c.floor_id,
    f.name AS floor_name, c.zone_id, c.zone_name, c.at AS last_seen_at, m.user_name AS marked_by, m.at AS marked_at,
    CASE WHEN m.at IS NOT NULL OR ($3 AND c.is_muster_point) THEN 'safe' WHEN c.at IS NULL THEN 'unknown' ELSE 'missing' END AS status
  FROM carriers c LEFT JOIN personnel e ON c.entity_type = 'employee' AND e.id = c.entity_id
  LEFT JOIN floors f ON f.id = c.floor_id LEFT JOIN buildings b ON b.id = c.building_id
  LEFT JOIN floors home ON home.id = c.home_floor_id
  LEFT JOIN safe_marks m ON m.emergency_id = $2 AND m.transmitter_id = c.transmitter_id
  LEFT JOIN roll_calls r ON r.emergency_id = $2 AND r.transmitter_id = c.transmitter_id
  WHERE c.entity_type <> 'asset' AND (r.transmitter_id IS NOT NULL
    OR (c.is_active AND ($1::text IS NULL OR coalesce(c.building_id, home.building_id, $1) = $1)))
  UNION ALL SELECT r.transmitter_id, r.kind, NULL, r.name, false, false, r.company, r.department, NULL, NULL, NULL, NULL, NULL,
    r.place, r.last_seen_at, m.user_name, m.at,
    CASE WHEN m.at IS NOT NULL OR r.status = 'safe' THEN 'safe' ELSE 'unknown' END
  FROM roll_calls r LEFT JOIN safe_marks m ON m.emergency_id = $2 AND m.transmitter_id = r.transmitter_id
  WHERE r.emergency_id = $2 AND NOT EXISTS (SELECT 1 FROM carriers c
    WHERE c.transmitter_id = r.transmitter_id AND c.entity_type <> 'asset')
  ORDER BY name, transmitter_id`

const STATUSES = ['safe', 'missing', 'unknown']
const KINDS = ['employee', 'visitor', 'contractor']

export const textIn = (emergency: Fields | null, field: string): string | null => {
  const value = emergency?.[field]
  return typeof value === 'string' ? value : null
}

export const countsOf = (people: readonly Fields[]): Fields => ({
  total: people.length,
  ...Object.fromEntries(STATUSES.map((status) => [status, people.filter((one) => one.status === status).length]))
})

/** The parameters of `MUSTER`. Without an emergency, people at a muster point are safe. */
const musterOf = (emergency: Fields | null, buildingId: string | null) => [
  buildingId,
  textIn(emergency, 'id'),
  emergency?.gathers !== false
]

/** The people concerned by an emergency, and their number by status and kind. */
export const readMuster = async ({ database }: World, emergency: Fields | null, buildingId: string | null) => {
  const people = await database.rows(MUSTER, musterOf(emergency, buildingId))
  const kinds = [...new Set([...KINDS, ...people.map(({ kind }) => String(kind))])]
  const byKind = kinds.map((kind) => ({ kind, ...countsOf(people.filter((one) => one.kind === kind)) }))
  return { summary: countsOf(people), byKind, people }
}

/** Keeps the time at which a person became safe, as long as the person stays safe. Nobody leaves the roll of an emergency. */
const RECORD = `INSERT INTO roll_calls AS roll (emergency_id, transmitter_id, name, kind, company, department, place,
     last_seen_at, status, marked_by, safe_at)
  SELECT $2::text, transmitter_id, name, kind, company, department,
    nullif(concat_ws(', ', zone_name, floor_name, building_name), ''), last_seen_at, status, marked_by,
    CASE WHEN status = 'safe' THEN coalesce(marked_at, $4::timestamptz) END
  FROM (${MUSTER}) AS muster
  ON CONFLICT (emergency_id, transmitter_id) DO UPDATE SET name = excluded.name, kind = excluded.kind,
    company = excluded.company, department = excluded.department, place = excluded.place,
    last_seen_at = excluded.last_seen_at, status = excluded.status, marked_by = excluded.marked_by,
    safe_at = CASE WHEN excluded.status = 'safe' THEN coalesce(roll.safe_at, excluded.safe_at) END`

/** Records who is safe now. */
export const recordRollCall = async ({ database, now }: Pick<World, 'database' | 'now'>, emergency: Fields) => {
  await database.rows(RECORD, [...musterOf(emergency, textIn(emergency, 'buildingId')), now()])
}

/** Records who becomes safe during emergencies and drills, also while no page is open. */
export const checkRollCall = async ({ database, now }: Pick<Backend, 'database' | 'now'>): Promise<void> => {
  if ((await activeEmergencies({ database })).length === 0) return
  await database.transaction(async (statements) => {
    // An emergency that ends at the same time must not change afterwards.
    await lockEmergencies({ database: statements })
    for (const emergency of await activeEmergencies({ database: statements }))
      await recordRollCall({ database: statements, now }, emergency)
  })
}

// The report of an emergency or a drill: its events, and when each person was safe.

interface Person extends Fields {
  readonly status: string
  /** From the start of the emergency. */
  readonly secondsToSafe: number | null
}

const EVENTS = `SELECT a.at, a.details->>'kind' AS kind, a.details->>'message' AS text,
    coalesce(u.display_name, u.name, a.user_email) AS user_name
  FROM audit_log a LEFT JOIN users u ON u.id = a.user_id
  WHERE a.details->>'emergencyId' = $1 AND a.action LIKE 'emergency.%' AND a.result = 'done' ORDER BY a.at, a.id`

const ROLL = `SELECT r.transmitter_id, r.name, r.kind, r.company, r.department, r.status, r.place,
    r.last_seen_at, r.marked_by, r.safe_at,
    round(extract(epoch FROM r.safe_at - (e.started_at #>> '{}')::timestamptz))::int AS seconds_to_safe
  FROM roll_calls r JOIN emergencies e ON e.id = r.emergency_id WHERE r.emergency_id = $1
  ORDER BY r.status = 'safe', r.safe_at, r.name, r.transmitter_id`

/** Null if nobody was safe. */
const timesOf = (people: readonly Person[]): Fields | null => {
  const sorted = people.flatMap(({ secondsToSafe }) => secondsToSafe ?? []).sort((a, b) => a - b)
  if (sorted.length === 0) return null
  return { first: sorted[0], median: sorted[Math.floor((sorted.length - 1) / 2)], last: sorted.at(-1) }
}

export const report: Run = async (call) => {
  const emergency = await getRecord(call, emergencies, idOf(call))
  const people = await call.database.rows<Person>(ROLL, [idOf(call)])
  const timeline = await call.database.rows(EVENTS, [idOf(call)])
  return { emergency, summary: countsOf(people), times: timesOf(people), timeline, people }
}
