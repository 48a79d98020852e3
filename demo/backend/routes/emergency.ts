import { requirePermission } from '../auth/permissions.js'
import type { Backend } from '../backend.js'
import { crud } from '../crud.js'
import { oneRow, type Row, type Statements } from '../database/database.js'
import { pageOf, textOf } from '../paging.js'
import { type Fields, Records } from '../records.js'
import { emergencies, emergencyContacts } from '../resources.js'
import { type Call, callerOf, type Handlers, handler } from '../route.js'

/** An emergency is reported, or active from the start when it was triggered; then it is resolved. */
export const emergencyRoutes = (backend: Backend): Handlers => {
  const { database, now, newId } = backend
  const records = new Records(emergencies, backend)
  const may = (action: string) => requirePermission('emergency', action)

  const note = async (statements: Statements, emergency: Row, kind: string, call: Call): Promise<void> => {
    await statements.rows(
      `INSERT INTO emergency_events (id, emergency_id, kind, message, user_email, at) VALUES ($1, $2, $3, $4, $5, $6)`,
      [newId(), String(emergency.id), kind, emergency.message as string | null, callerOf(call).email, now()]
    )
  }

  const trigger = (call: Call): Promise<Row> =>
    database.transaction(async (statements) => {
      // An alarm must not fail on a form that was left empty.
      const defaults = { type: 'evacuation', severity: 'critical', title: 'Emergency', isDrill: false }
      const started = { status: 'active', startedAt: now().toISOString() }
      const emergency = await records.create(statements, { ...defaults, ...call.body, ...started })
      await note(statements, emergency, 'triggered', call)
      return emergency
    })

  return {
    ...crud('/api/emergency', emergencies, backend, {
      prepare: async (_statements, body, { request }) =>
        request.method === 'POST' ? { status: 'reported', ...body } : { ...body, ...resolutionOf(body, now()) },
      stored: (statements, row, body, call) => {
        const kind = call.request.method === 'POST' ? 'reported' : String(body.status ?? 'changed')
        return note(statements, row, kind, call)
      }
    }),
    'POST /api/emergency/trigger': handler(may('trigger'), trigger, { status: 201 }),
    'GET /api/emergency/active': handler(may('read'), () => activeEmergency(database, records)),
    'GET /api/emergency/events': handler(may('read'), ({ query }) => {
      const { limit, offset } = pageOf(query)
      return database.rows(
        `SELECT v.id, v.emergency_id AS "emergencyId", v.kind, v.message, v.user_email AS "userEmail", v.at, e.type, e.title
         FROM emergency_events v JOIN emergencies e ON e.id = v.emergency_id
         WHERE $1::text IS NULL OR v.emergency_id = $1 ORDER BY v.at DESC, v.id LIMIT $2 OFFSET $3`,
        [textOf(query, 'emergencyId'), limit, offset]
      )
    }),
    'GET /api/emergency/muster': handler(may('read'), async ({ query }) => {
      const emergency = await activeEmergency(database, records)
      const buildingId = textOf(query, 'buildingId') ?? (emergency?.buildingId as string | null | undefined) ?? null
      const people = await muster(database, buildingId)
      const count = (status: string): number => people.filter((person) => person.status === status).length
      const summary = {
        total: people.length,
        safe: count('safe'),
        missing: count('missing'),
        unknown: count('unknown')
      }
      return { emergency, buildingId, summary, people }
    }),
    ...crud('/api/emergency/contacts', emergencyContacts, backend, { onePath: '/api/emergency/contacts/:contactId' })
  }
}

/** The newest one that is going on, or null. */
const activeEmergency = async (statements: Statements, records: Records): Promise<Row | null> => {
  const active = await oneRow<{ id: string }>(
    statements,
    "SELECT id FROM emergencies WHERE status = 'active' ORDER BY created_at DESC, id LIMIT 1"
  )
  return active && records.get(statements, active.id)
}

const resolutionOf = ({ status, resolvedAt }: Fields, now: Date): Fields =>
  status === 'resolved' && resolvedAt === undefined ? { resolvedAt: now.toISOString() } : {}

/** Who is where, seen from a muster point: safe at one, missing elsewhere in the house, unknown when never heard. */
const muster = (statements: Statements, buildingId: string | null): Promise<Row[]> =>
  statements.rows(
    `SELECT e.id AS "personnelId", e.name, d.name AS department, t.id AS "transmitterId", p.floor_id AS "floorId",
       p.zone_id AS "zoneId", z.name AS "zoneName", p.at AS "lastSeenAt", e.is_first_aider AS "isFirstAider",
       e.is_fire_warden AS "isFireWarden",
       CASE WHEN p.at IS NULL THEN 'unknown' WHEN z.is_muster_point THEN 'safe' ELSE 'missing' END AS status
     FROM personnel e
     JOIN transmitters t ON t.entity_type = 'employee' AND t.entity_id = e.id
     LEFT JOIN positions p ON p.transmitter_id = t.id
     LEFT JOIN zones z ON z.id = p.zone_id
     LEFT JOIN floors f ON f.id = p.floor_id
     LEFT JOIN departments d ON d.id = e.department_id
     WHERE e.is_active IS NOT FALSE AND ($1::text IS NULL OR f.building_id = $1)
     ORDER BY e.name, e.id`,
    [buildingId]
  )
