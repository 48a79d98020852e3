import { crud } from '../crud.js'
import { textOf } from '../paging.js'
import { rows } from '../queries.js'
import { createRecord, getRecord, putRow } from '../records.js'
import { emergencies, emergencyContacts } from '../resources.js'
import { type Call, callerOf, type Handlers, handler, type Run } from '../route.js'
import type { Fields, World } from '../world.js'

const EVENTS = `SELECT v.id, v.emergency_id AS "emergencyId", v.kind, v.message, v.user_email AS "userEmail", v.at, e.type,
    e.title
  FROM emergency_events v JOIN emergencies e ON e.id = v.emergency_id
  WHERE $1::text IS NULL OR v.emergency_id = $1 ORDER BY v.at DESC, v.id LIMIT $2 OFFSET $3`

/** Who is where, seen from a muster point: safe at one, missing elsewhere in the house, unknown when never heard. */
const MUSTER = `SELECT e.id AS "personnelId", e.name, d.name AS department, t.id AS "transmitterId",
    p.floor_id AS "floorId", p.zone_id AS "zoneId", z.name AS "zoneName", p.at AS "lastSeenAt",
    e.is_first_aider AS "isFirstAider", e.is_fire_warden AS "isFireWarden",
    CASE WHEN p.at IS NULL THEN 'unknown' WHEN z.is_muster_point THEN 'safe' ELSE 'missing' END AS status
  FROM personnel e JOIN transmitters t ON t.entity_type = 'employee' AND t.entity_id = e.id
  LEFT JOIN positions p ON p.transmitter_id = t.id LEFT JOIN zones z ON z.id = p.zone_id
  LEFT JOIN floors f ON f.id = p.floor_id LEFT JOIN departments d ON d.id = e.department_id
  WHERE e.is_active IS NOT FALSE AND ($1::text IS NULL OR f.building_id = $1) ORDER BY e.name, e.id`

/** A line in the story of an emergency; answers with how it stands then. */
const note = async (call: Call, emergencyId: string, kind: string): Promise<Fields> => {
  const { newId, now } = call
  const emergency = await getRecord(call, emergencies, emergencyId)
  const message = emergency.message as string | null
  const userEmail = callerOf(call).email
  await putRow(call, 'emergency_events', { id: newId(), emergencyId, kind, message, userEmail, at: now() })
  return emergency
}

const trigger: Run = async (call) => {
  // An alarm must not fail on a form that was left empty.
  const defaults = { type: 'evacuation', severity: 'critical', title: 'Emergency', isDrill: false }
  const started = { status: 'active', startedAt: call.now().toISOString() }
  return note(call, await createRecord(call, emergencies, { ...defaults, ...call.body, ...started }), 'triggered')
}

/** The newest one that is going on, or null. */
const active = async (world: World): Promise<Fields | null> => {
  const [newest] = await world.database.rows<{ id: string }>(
    "SELECT id FROM emergencies WHERE status = 'active' ORDER BY created_at DESC, id LIMIT 1"
  )
  return newest === undefined ? null : getRecord(world, emergencies, newest.id)
}

const muster: Run = async (call) => {
  const emergency = await active(call)
  const buildingId = textOf(call.query, 'buildingId') ?? (emergency?.buildingId as string | undefined) ?? null
  const people = await call.database.rows(MUSTER, [buildingId])
  const count = (status: string): number => people.filter((person) => person.status === status).length
  const summary = { total: people.length, safe: count('safe'), missing: count('missing'), unknown: count('unknown') }
  return { emergency, buildingId, summary, people }
}

/** An emergency is reported, or active from the start when it was triggered; then it is resolved. */
export const emergencyRoutes: Handlers = {
  ...crud(emergencies, {
    prepare: ({ body, request, now }) => {
      if (request.method === 'POST') return { status: 'reported', ...body }
      return body.status === 'resolved' ? { resolvedAt: now().toISOString(), ...body } : body
    },
    stored: async (call, id) => {
      const { body, request } = call
      await note(call, id, request.method === 'POST' ? 'reported' : String(body.status ?? 'changed'))
    }
  }),
  'POST /api/emergency/trigger': handler('emergency.trigger', trigger, { status: 201 }),
  'GET /api/emergency/active': handler('emergency.read', active),
  'GET /api/emergency/events': handler('emergency.read', rows(EVENTS, 'emergencyId', 'limit', 'offset')),
  'GET /api/emergency/muster': handler('emergency.read', muster),
  ...crud(emergencyContacts)
}
