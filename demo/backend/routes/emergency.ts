import { carrierOf, noteChanges } from '../audit/changes.js'
import type { CarrierRow } from '../audit/entry.js'
import { audit } from '../audit.js'
import { type CrudOptions, changedRecord, crud, labelOf } from '../crud.js'
import { activeEmergencies, activeEmergency, lockEmergencies } from '../emergencies/active.js'
import { alarmFields, buildingInstructions, changeInstructions } from '../emergencies/instructions.js'
import { report, reportFile } from '../emergencies/report.js'
import { readMuster, recordRollCall, textIn } from '../emergencies/roll-call.js'
import { checkedEmergency, mustNotDisturb } from '../emergencies/rules.js'
import { list, textOf } from '../queries.js'
import { changeRecords, createRecord, getRecord } from '../records.js'
import { emergencies, emergencyContacts } from '../resources.js'
import { type Call, callerOf, type Handlers, handler, perMinute, type Run } from '../route.js'

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
  const { people, changes } = call
  const emergency = await getRecord(call, emergencies, emergencyId)
  const { title, message } = emergency
  const subject = labelOf(emergencies, emergency)
  await audit(call, `emergency.${kind}`, 'done', {
    emergencyId,
    kind,
    title,
    message: text ?? message,
    subject,
    ...(kind === 'changed' && { changes }),
    ...(people.length > 0 && { people })
  })
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
      resolvedAt: call.now().toISOString(),
      resolution
    })
    await logEvent(call, id, 'resolved', resolution)
  }
}

const trigger: Run = async (call) => {
  const isDrill = call.body.isDrill === true
  await mustNotDisturb(call, isDrill)
  const fields = { severity: 'critical', ...call.body, isDrill, ...(await alarmFields(call, call.body)) }
  const started = { status: 'active', startedAt: call.now().toISOString() }
  const id = await createRecord(call, emergencies, { ...fields, ...started })
  if (!isDrill) await takeOver(call, id)
  await recordRollCall(call, await getRecord(call, emergencies, id))
  await logEvent(call, id, 'triggered')
  return changedRecord(call, emergencies, id)
}

/** With `emergencyId`, the muster of this emergency as long as it is active. */
const muster: Run = async (call) => {
  const active = await activeEmergencies(call)
  const emergency = active.find(({ id }) => id === textOf(call.query, 'emergencyId')) ?? active[0] ?? null
  const buildingId = textOf(call.query, 'buildingId') ?? textIn(emergency, 'buildingId')
  const [building] = await call.database.rows('SELECT name FROM buildings WHERE id = $1', [buildingId])
  return { emergency, buildingId, building, at: call.now(), ...(await readMuster(call, emergency, buildingId)) }
}

const textsIn = (value: unknown): string[] => (Array.isArray(value) ? value.map(String) : [])

/** `markSafe` and `unmarkSafe` in the body of an emergency are lists of transmitters whose carriers a warden has counted. */
const storeMarks = async (call: Call, emergencyId: string): Promise<void> => {
  const { database, body, now } = call
  const { displayName } = callerOf(call)
  const log = async (
    marks: readonly { readonly transmitterId: string }[],
    kind: string,
    what: string
  ): Promise<void> => {
    const sql = `SELECT transmitter_id, entity_type AS "entityType", entity_id,
        coalesce(name, badge, transmitter_id) AS name FROM carriers WHERE transmitter_id = ANY($1::text[]) ORDER BY 4`
    const carriers = await database.rows<CarrierRow>(sql, [marks.map(({ transmitterId }) => transmitterId)])
    const text = carriers.map(({ name }) => `${name} ${what}`).join(', ')
    const people = carriers.flatMap((carrier) => carrierOf(carrier) ?? [])
    if (carriers.length > 0) await logEvent({ ...call, people }, emergencyId, kind, text)
  }
  const marked = await database.rows<{ transmitterId: string }>(
    `INSERT INTO safe_marks (emergency_id, transmitter_id, user_name, at)
     SELECT $1, id, $3, $4 FROM transmitters WHERE id = ANY($2::text[])
     ON CONFLICT (emergency_id, transmitter_id) DO NOTHING RETURNING transmitter_id`,
    [emergencyId, textsIn(body.markSafe), displayName, now()]
  )
  const unmarked = await database.rows<{ transmitterId: string }>(
    'DELETE FROM safe_marks WHERE emergency_id = $1 AND transmitter_id = ANY($2::text[]) RETURNING transmitter_id',
    [emergencyId, textsIn(body.unmarkSafe)]
  )
  // Marks that existed already are not events: another warden may have been faster.
  await log(marked, 'marked', 'marked safe')
  await log(unmarked, 'unmarked', 'no longer marked safe')
}

const MARKS = ['markSafe', 'unmarkSafe']

const stored: CrudOptions['stored'] = async (call, id, _sent, before) => {
  const { body, request } = call
  const isMarking = MARKS.some((field) => body[field] !== undefined)
  if (isMarking) await storeMarks(call, id)
  if (isMarking && Object.keys(body).every((field) => MARKS.includes(field))) return
  if (body.status === 'resolved') await storeOutcome(call, id)
  const after = await getRecord(call, emergencies, id)
  if (body.status === 'active' && after.isDrill !== true) await takeOver(call, id)
  if (before !== undefined) await noteChanges(call, emergencies, before, after)
  const kind = request.method === 'POST' ? 'reported' : String(body.status ?? 'changed')
  await logEvent(call, id, kind, kind === 'resolved' ? String(body.resolution ?? '') : undefined)
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
    'POST /api/emergency/trigger': handler('emergency.trigger', trigger, { status: 201 })
  }),
  'GET /api/emergency/active': handler('emergency.read', activeEmergency),
  'GET /api/emergency/events': handler('emergency.read', list(events)),
  'GET /api/emergency/muster': handler('emergency.read', muster),
  'GET /api/emergency/instructions': handler('emergency.read', buildingInstructions),
  'PATCH /api/emergency/instructions/:id': handler('settings.update', changeInstructions),
  'GET /api/emergency/:id/report': handler('emergency.read', report),
  'GET /api/emergency/:id/report/csv': handler('emergency.read', reportFile, perMinute(60)),
  ...crud(emergencyContacts)
}
