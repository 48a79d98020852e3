import { audit } from '../audit.js'
import { type CrudOptions, crud } from '../crud.js'
import { alarmFields, buildingInstructions, changeInstructions } from '../emergencies/instructions.js'
import { readMuster, recordRollCall, report, textIn } from '../emergencies/roll-call.js'
import {
  activeEmergencies,
  checkedEmergency,
  identicalTo,
  lockEmergencies,
  mustNotDisturb
} from '../emergencies/rules.js'
import { invalid } from '../errors.js'
import { list, textOf } from '../queries.js'
import { changeRecords, createRecord, getRecord, putRow } from '../records.js'
import { emergencies, emergencyContacts } from '../resources.js'
import { type Call, type CustomReply, callerOf, type Handlers, handler, type Run } from '../route.js'

/** The audit log entries of emergencies. The action is checked, because error reports of pages may contain any details. */
const events = {
  from: `(SELECT a.id, a.at, a.user_email, a.details->>'kind' AS kind, a.details->>'message' AS message,
      e.id AS emergency_id, e.type, e.title
    FROM audit_log a JOIN emergencies e ON e.id = a.details->>'emergencyId' WHERE a.action LIKE 'emergency.%')`,
  fields: ['emergencyId', 'kind', 'at'],
  order: 'at DESC, id'
}

/** Writes an audit log entry with what happened, by default the message of the emergency. */
const logEvent = async (call: Call, emergencyId: string, kind: string, text?: string): Promise<void> => {
  const { title, message } = await getRecord(call, emergencies, emergencyId)
  await audit(call, `emergency.${kind}`, 'done', { emergencyId, kind, title, message: text ?? message })
}

/** The people and their status at the end are kept: in the list of past emergencies the counts, in the report everybody. */
const storeOutcome = async (call: Call, id: string): Promise<void> => {
  const emergency = await getRecord(call, emergencies, id)
  await recordRollCall(call, emergency)
  const { summary } = await readMuster(call, emergency, textIn(emergency, 'buildingId'))
  await changeRecords(call, emergencies, [id], { muster: summary })
}

/** Ends all drills, so that nobody takes the alarm for a drill. */
const takeOver = async (call: Call, alarmId: string): Promise<void> => {
  const { title, buildingName } = await getRecord(call, emergencies, alarmId)
  const resolution = `Ended by the alarm: ${title} in ${buildingName ?? 'the entire site'}.`
  for (const drill of (await activeEmergencies(call)).filter(({ isDrill }) => isDrill === true)) {
    const id = String(drill.id)
    await storeOutcome(call, id)
    await changeRecords(call, emergencies, [id], {
      status: 'resolved',
      outcome: 'ended',
      resolvedAt: call.now().toISOString(),
      resolution
    })
    await logEvent(call, id, 'resolved', resolution)
  }
}

/** The `Idempotency-Key` header; null without one. */
const requestKey = ({ request: { headers } }: Call): string | null => {
  const { 'idempotency-key': key } = headers
  if (key === undefined) return null
  if (typeof key === 'string' && /^[!-~]{8,128}$/.test(key)) return key
  throw invalid([{ path: '/Idempotency-Key', message: 'must be a header of 8 to 128 visible ASCII characters' }])
}

interface Raised {
  readonly emergencyId: string
  /** Whether the same alarm was active already. */
  readonly joined: boolean
}

/** A repeated request raises nothing: the answer to the first one may have been lost. */
const trigger: Run = async (call) => {
  const key = requestKey(call)
  const { userId } = callerOf(call)
  const sql = 'SELECT emergency_id, joined FROM alarm_requests WHERE user_id = $1 AND key = $2'
  const [known] = key === null ? [] : await call.database.rows<Raised>(sql, [userId, key])
  const raised = known ?? (await raise(call))
  if (key !== null && known === undefined)
    await putRow(call, 'alarm_requests', { userId, key, ...raised, at: call.now() })
  const data = await getRecord(call, emergencies, raised.emergencyId)
  const isNew = known === undefined && !raised.joined
  const reply: CustomReply = (to) =>
    to.code(isNew ? 201 : 200).send({ success: true, data: { ...data, ...(raised.joined && { joined: true }) } })
  return reply
}

/** Joins an identical alarm: two alarms about one fire would have two musters. */
const raise = async (call: Call): Promise<Raised> => {
  const isDrill = call.body.isDrill === true
  const fields = { severity: 'critical', ...call.body, isDrill, ...(await alarmFields(call, call.body)) }
  const same = await identicalTo(call, fields)
  if (same !== null) {
    await logEvent(call, String(same.id), 'joined', 'Raised once more while it was active.')
    return { emergencyId: String(same.id), joined: true }
  }
  await mustNotDisturb(call, isDrill)
  const started = { status: 'active', startedAt: call.now().toISOString() }
  const emergencyId = await createRecord(call, emergencies, { ...fields, ...started })
  if (!isDrill) await takeOver(call, emergencyId)
  await recordRollCall(call, await getRecord(call, emergencies, emergencyId))
  await logEvent(call, emergencyId, 'triggered')
  return { emergencyId, joined: false }
}

/** With `emergencyId`, the muster of this emergency as long as it is active; otherwise of the first one that people gather for. */
const muster: Run = async (call) => {
  const active = await activeEmergencies(call)
  const wanted = active.find(({ id }) => id === textOf(call.query, 'emergencyId'))
  const emergency = wanted ?? active.find((one) => one.gathers !== false) ?? active[0] ?? null
  const buildingId = textOf(call.query, 'buildingId') ?? textIn(emergency, 'buildingId')
  const [building] = await call.database.rows('SELECT name FROM buildings WHERE id = $1', [buildingId])
  return { emergency, buildingId, building, at: call.now(), ...(await readMuster(call, emergency, buildingId)) }
}

const textsIn = (value: unknown): string[] => (Array.isArray(value) ? value.map(String) : [])

/** `markSafe` and `unmarkSafe` in the body of an emergency are lists of transmitters whose carriers a warden has counted. */
const storeMarks = async (call: Call, emergencyId: string): Promise<void> => {
  const { database, body, now } = call
  // Everybody who is on the site now or was on it since the start can be marked.
  const known = 'SELECT id FROM transmitters UNION SELECT transmitter_id FROM roll_calls WHERE emergency_id = $1'
  const mark = `INSERT INTO safe_marks (emergency_id, transmitter_id, user_name, at)
    SELECT $1, id, $3, $4 FROM (${known}) AS known WHERE id = ANY($2::text[])
    ON CONFLICT (emergency_id, transmitter_id) DO NOTHING RETURNING transmitter_id`
  const unmark =
    'DELETE FROM safe_marks WHERE emergency_id = $1 AND transmitter_id = ANY($2::text[]) RETURNING transmitter_id'
  const by = [callerOf(call).displayName, now()]
  // Marks that existed already are not events: another warden may have been faster.
  for (const { sql, ids, more, kind, text } of [
    { sql: mark, ids: body.markSafe, more: by, kind: 'marked', text: 'marked safe' },
    { sql: unmark, ids: body.unmarkSafe, more: [], kind: 'unmarked', text: 'no longer marked safe' }
  ]) {
    const done = await database.rows(sql, [emergencyId, textsIn(ids), ...more])
    const transmitters = done.map(({ transmitterId }) => String(transmitterId))
    const names = await database.rows(NAMES, [emergencyId, transmitters])
    if (done.length > 0) await logEvent(call, emergencyId, kind, names.map(({ name }) => `${name} ${text}`).join(', '))
  }
}

const NAMES = `SELECT coalesce(c.name, c.badge, r.name, t.id) AS name FROM unnest($2::text[]) AS t (id)
  LEFT JOIN carriers c ON c.transmitter_id = t.id
  LEFT JOIN roll_calls r ON r.emergency_id = $1 AND r.transmitter_id = t.id ORDER BY 1`

const MARKS = ['markSafe', 'unmarkSafe']

const stored: CrudOptions['stored'] = async (call, id) => {
  const { body, request } = call
  const isMarking = MARKS.some((field) => body[field] !== undefined)
  if (isMarking) await storeMarks(call, id)
  if (isMarking && Object.keys(body).every((field) => MARKS.includes(field))) return
  if (body.status === 'resolved') await storeOutcome(call, id)
  const kind = request.method === 'POST' ? 'reported' : String(body.status ?? 'changed')
  const how = body.outcome === 'mistake' ? ['Raised by mistake.', body.resolution] : [body.resolution]
  await logEvent(call, id, kind, kind === 'resolved' ? how.filter(Boolean).join(' ') : undefined)
}

/** Two requests at the same time must not both decide about the same state. */
const oneAtATime = (handlers: Handlers): Handlers =>
  Object.fromEntries(
    Object.entries(handlers).map(([key, each]) => {
      const run: Run = async (call) => {
        await lockEmergencies(call)
        return each.run(call)
      }
      return [key, key.startsWith('GET ') ? each : { ...each, run }]
    })
  )

/** The status is `reported`, or `active` if triggered, and later `resolved`. */
export const emergencyRoutes: Handlers = {
  ...oneAtATime({
    ...crud(emergencies, { prepare: checkedEmergency, stored }),
    'POST /api/emergency/trigger': handler('emergency.trigger', trigger)
  }),
  'GET /api/emergency/active': handler('emergency.read', activeEmergencies),
  'GET /api/emergency/events': handler('emergency.read', list(events)),
  'GET /api/emergency/muster': handler('emergency.read', muster),
  'GET /api/emergency/instructions': handler('emergency.read', buildingInstructions),
  'PATCH /api/emergency/instructions/:id': handler('settings.update', changeInstructions),
  'GET /api/emergency/:id/report': handler('emergency.read', report),
  ...crud(emergencyContacts)
}
