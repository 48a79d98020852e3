import { audit } from '../audit.js'
import { crud } from '../crud.js'
import { list, textOf } from '../queries.js'
import { createRecord, getRecord } from '../records.js'
import { emergencies, emergencyContacts } from '../resources.js'
import { type Call, type Handlers, handler, type Run } from '../route.js'
import type { Fields, World } from '../world.js'

/** The audit log entries of emergencies. The action is checked, because error reports of pages may contain any details. */
const events = {
  from: `(SELECT a.id, a.at, a.user_email, a.details->>'kind' AS kind, a.details->>'message' AS message,
      e.id AS emergency_id, e.type, e.title
    FROM audit_log a JOIN emergencies e ON e.id = a.details->>'emergencyId' WHERE a.action LIKE 'emergency.%')`,
  fields: ['emergencyId', 'kind', 'at'],
  order: 'at DESC, id'
}

/** The muster list: safe at a muster point, missing elsewhere, unknown without a position. */
const MUSTER = `SELECT e.id AS personnel_id, e.name, e.is_first_aider, e.is_fire_warden, c.department, c.transmitter_id,
    c.floor_id, c.zone_id, c.zone_name, c.at AS last_seen_at,
    CASE WHEN c.at IS NULL THEN 'unknown' WHEN c.is_muster_point THEN 'safe' ELSE 'missing' END AS status
  FROM personnel e JOIN carriers c ON c.entity_type = 'employee' AND c.entity_id = e.id
  WHERE e.is_active IS NOT FALSE AND ($1::text IS NULL OR c.building_id = $1) ORDER BY e.name, e.id`

/** Writes an audit log entry. Returns the current emergency. */
const logEvent = async (call: Call, emergencyId: string, kind: string): Promise<Fields> => {
  const emergency = await getRecord(call, emergencies, emergencyId)
  const { title, message } = emergency
  await audit(call, `emergency.${kind}`, 'done', { emergencyId, kind, title, message })
  return emergency
}

const trigger: Run = async (call) => {
  // An alarm must not fail because of missing fields.
  const defaults = { type: 'evacuation', severity: 'critical', title: 'Emergency', isDrill: false }
  const started = { status: 'active', startedAt: call.now().toISOString() }
  return logEvent(call, await createRecord(call, emergencies, { ...defaults, ...call.body, ...started }), 'triggered')
}

/** The newest active emergency, or null. */
export const activeEmergency = async (world: World): Promise<Fields | null> => {
  const [newest] = await world.database.rows<{ id: string }>(
    "SELECT id FROM emergencies WHERE status = 'active' ORDER BY created_at DESC, id LIMIT 1"
  )
  return newest === undefined ? null : getRecord(world, emergencies, newest.id)
}

const muster: Run = async (call) => {
  const emergency = await activeEmergency(call)
  const emergencyBuilding = typeof emergency?.buildingId === 'string' ? emergency.buildingId : null
  const buildingId = textOf(call.query, 'buildingId') ?? emergencyBuilding
  const people = await call.database.rows(MUSTER, [buildingId])
  const count = (status: string): number => people.filter((person) => person.status === status).length
  const summary = { total: people.length, safe: count('safe'), missing: count('missing'), unknown: count('unknown') }
  return { emergency, buildingId, summary, people }
}

/** The status is `reported`, or `active` if triggered, and later `resolved`. */
export const emergencyRoutes: Handlers = {
  ...crud(emergencies, {
    prepare: ({ body, request, now }) => {
      if (request.method === 'POST') return { status: 'reported', ...body }
      return body.status === 'resolved' ? { resolvedAt: now().toISOString(), ...body } : body
    },
    stored: async (call, id) => {
      const { body, request } = call
      await logEvent(call, id, request.method === 'POST' ? 'reported' : String(body.status ?? 'changed'))
    }
  }),
  'POST /api/emergency/trigger': handler('emergency.trigger', trigger, { status: 201 }),
  'GET /api/emergency/active': handler('emergency.read', activeEmergency),
  'GET /api/emergency/events': handler('emergency.read', list(events)),
  'GET /api/emergency/muster': handler('emergency.read', muster),
  ...crud(emergencyContacts)
}
