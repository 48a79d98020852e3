import { audit } from '../audit.js'
import { changedRecord, crud, labelOf, nounOf } from '../crud.js'
import { HttpError } from '../errors.js'
import { list, textOf } from '../queries.js'
import { changeRecords, createRecord, getRecord, getRecords } from '../records.js'
import { emergencies, emergencyContacts } from '../resources.js'
import { type Call, callerOf, type Handlers, handler, idOf, type Run } from '../route.js'
import type { Fields, World } from '../world.js'

/** The audit log entries of emergencies. The action is checked, because error reports of pages may contain any details. */
const events = {
  from: `(SELECT a.id, a.at, a.user_email, a.details->>'kind' AS kind, a.details->>'message' AS message,
      e.id AS emergency_id, e.type, e.title
    FROM audit_log a JOIN emergencies e ON e.id = a.details->>'emergencyId' WHERE a.action LIKE 'emergency.%')`,
  fields: ['emergencyId', 'kind', 'at'],
  order: 'at DESC, id'
}

/**
 * Everybody with a transmitter: safe at a muster point or if marked safe, missing elsewhere, unknown without a position. People
 * without a position belong to the building of their home floor, guests without a position to every building.
 */
const MUSTER = `SELECT c.transmitter_id, c.entity_type AS kind, c.entity_id AS personnel_id,
    coalesce(c.name, c.badge, c.transmitter_id) AS name, e.is_first_aider IS TRUE AS is_first_aider,
    e.is_fire_warden IS TRUE AS is_fire_warden, c.department, c.building_id, b.name AS building_name, c.floor_id,
    f.name AS floor_name, c.zone_id, c.zone_name, c.at AS last_seen_at, m.user_name AS marked_by, m.at AS marked_at,
    CASE WHEN m.at IS NOT NULL OR c.is_muster_point THEN 'safe' WHEN c.at IS NULL THEN 'unknown' ELSE 'missing' END AS status
  FROM carriers c LEFT JOIN personnel e ON c.entity_type = 'employee' AND e.id = c.entity_id
  LEFT JOIN floors f ON f.id = c.floor_id LEFT JOIN buildings b ON b.id = c.building_id
  LEFT JOIN floors home ON home.id = c.home_floor_id
  LEFT JOIN safe_marks m ON m.emergency_id = $2 AND m.transmitter_id = c.transmitter_id
  WHERE c.entity_type <> 'asset' AND c.is_active
    AND ($1::text IS NULL OR coalesce(c.building_id, home.building_id, $1) = $1)
  ORDER BY name, c.transmitter_id`

const STATUSES = ['safe', 'missing', 'unknown']
const KINDS = ['employee', 'visitor', 'contractor']

/** Writes an audit log entry. Returns the current emergency. */
const logEvent = async (call: Call, emergencyId: string, kind: string): Promise<Fields> => {
  const emergency = await getRecord(call, emergencies, emergencyId)
  const { title, message } = emergency
  const subject = labelOf(emergencies, emergency)
  await audit(call, `emergency.${kind}`, 'done', { emergencyId, kind, title, message, subject })
  return emergency
}

const trigger: Run = async (call) => {
  // An alarm must not fail because of missing fields.
  const defaults = { type: 'evacuation', severity: 'critical', isDrill: false }
  const type = String(call.body.type || defaults.type)
  const title = call.body.title || `${type[0]?.toUpperCase()}${type.slice(1)}`
  const started = { status: 'active', startedAt: call.now().toISOString() }
  const id = await createRecord(call, emergencies, { ...defaults, ...call.body, title, ...started })
  await logEvent(call, id, 'triggered')
  return changedRecord(call, emergencies, id)
}

/** The newest active emergency, or null. */
export const activeEmergency = async (world: World): Promise<Fields | null> => {
  const [newest] = await world.database.rows<{ id: string }>(
    "SELECT id FROM emergencies WHERE status = 'active' ORDER BY created_at DESC, id LIMIT 1"
  )
  return newest === undefined ? null : getRecord(world, emergencies, newest.id)
}

const textIn = (emergency: Fields | null, field: string): string | null => {
  const value = emergency?.[field]
  return typeof value === 'string' ? value : null
}

const countsOf = (people: readonly Fields[]): Fields => ({
  total: people.length,
  ...Object.fromEntries(STATUSES.map((status) => [status, people.filter((one) => one.status === status).length]))
})

/** The people concerned by an emergency, and their number by status and kind. */
const musterOf = async ({ database }: World, emergency: Fields | null, buildingId: string | null) => {
  const people = await database.rows(MUSTER, [buildingId, textIn(emergency, 'id')])
  const kinds = [...new Set([...KINDS, ...people.map(({ kind }) => String(kind))])]
  const byKind = kinds.map((kind) => ({ kind, ...countsOf(people.filter((one) => one.kind === kind)) }))
  return { summary: countsOf(people), byKind, people }
}

const muster: Run = async (call) => {
  const emergency = await activeEmergency(call)
  const buildingId = textOf(call.query, 'buildingId') ?? textIn(emergency, 'buildingId')
  const [building] = await call.database.rows('SELECT name FROM buildings WHERE id = $1', [buildingId])
  return { emergency, buildingId, building, ...(await musterOf(call, emergency, buildingId)) }
}

/** `markSafe` and `unmarkSafe` in the body of an emergency are lists of transmitters whose carriers a warden has counted. */
const storeMarks = async (call: Call, emergencyId: string): Promise<void> => {
  const { database, body, now } = call
  const { displayName } = callerOf(call)
  const nameAs = async (ids: readonly string[], what: string): Promise<void> => {
    const sql = 'SELECT coalesce(name, badge) AS name FROM carriers WHERE transmitter_id = ANY($1::text[])'
    const people = await database.rows(sql, [ids])
    call.subjects.push(...people.map(({ name }) => `${name} ${what}`))
  }
  await nameAs(textsIn(body.markSafe), 'marked safe')
  await nameAs(textsIn(body.unmarkSafe), 'no longer marked safe')
  await database.rows(
    `INSERT INTO safe_marks (emergency_id, transmitter_id, user_name, at)
     SELECT $1, id, $3, $4 FROM transmitters WHERE id = ANY($2::text[])
     ON CONFLICT (emergency_id, transmitter_id) DO NOTHING`,
    [emergencyId, textsIn(body.markSafe), displayName, now()]
  )
  await database.rows('DELETE FROM safe_marks WHERE emergency_id = $1 AND transmitter_id = ANY($2::text[])', [
    emergencyId,
    textsIn(body.unmarkSafe)
  ])
}

const textsIn = (value: unknown): string[] => (Array.isArray(value) ? value.map(String) : [])

/** The muster counts at the end of an emergency, for the list of past ones. */
const storeOutcome = async (call: Call, id: string): Promise<void> => {
  const emergency = await getRecord(call, emergencies, id)
  const { summary } = await musterOf(call, emergency, textIn(emergency, 'buildingId'))
  await changeRecords(call, emergencies, [id], { muster: summary })
}

/** Another user may have ended the emergency meanwhile. Its outcome must not change afterwards. */
const mustBeOpen = async (call: Call): Promise<void> => {
  const { status, markSafe, unmarkSafe } = call.body
  const [stored] = await getRecords(call, emergencies, [idOf(call)])
  if (stored?.status !== 'resolved' || (status !== 'resolved' && !markSafe && !unmarkSafe)) return
  throw new HttpError(409, 'EMERGENCY_ENDED', `The ${nounOf(emergencies, stored)} has already ended.`)
}

/** The status is `reported`, or `active` if triggered, and later `resolved`. */
export const emergencyRoutes: Handlers = {
  ...crud(emergencies, {
    prepare: async (call) => {
      const { body, request, now } = call
      await mustBeOpen(call)
      const { markSafe: _markSafe, unmarkSafe: _unmarkSafe, ...fields } = body
      if (request.method === 'POST') return { status: 'reported', ...fields }
      return fields.status === 'resolved' ? { resolvedAt: now().toISOString(), ...fields } : fields
    },
    stored: async (call, id) => {
      const { body, request } = call
      if (body.markSafe !== undefined || body.unmarkSafe !== undefined) return storeMarks(call, id)
      if (body.status === 'resolved') await storeOutcome(call, id)
      await logEvent(call, id, request.method === 'POST' ? 'reported' : String(body.status ?? 'changed'))
    }
  }),
  'POST /api/emergency/trigger': handler('emergency.trigger', trigger, { status: 201 }),
  'GET /api/emergency/active': handler('emergency.read', activeEmergency),
  'GET /api/emergency/events': handler('emergency.read', list(events)),
  'GET /api/emergency/muster': handler('emergency.read', muster),
  ...crud(emergencyContacts)
}
