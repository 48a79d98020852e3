import type { EmergencyType } from '../../emergency-types.js'
import { HttpError, invalid } from '../errors.js'
import { flattened, getRecords } from '../records.js'
import { emergencies } from '../resources.js'
import { type Call, idOf } from '../route.js'
import type { Fields, World } from '../world.js'
import { alarmFields, checkedType } from './instructions.js'

/** The most dangerous type first. */
const BY_DANGER: readonly EmergencyType[] = ['intruder', 'fire', 'chemical', 'medical', 'other']

const ACTIVE = `SELECT * FROM emergencies_shown WHERE status = 'active'
  ORDER BY is_drill IS TRUE, array_position($1::text[], type), created_at DESC, id`

/**
 * Waits for other transactions that raise, change or end emergencies, so that each of them decides about the current state: one
 * alarm and one drill that start at the same time must not both be active.
 */
export const lockEmergencies = async ({ database }: Pick<World, 'database'>): Promise<void> => {
  await database.rows('LOCK TABLE emergencies IN SHARE ROW EXCLUSIVE MODE')
}

/** The active emergencies and drills in the order of danger: real ones first, then by type, then the newest. */
export const activeEmergencies = async ({ database }: Pick<World, 'database'>): Promise<Fields[]> =>
  (await database.rows(ACTIVE, [BY_DANGER])).map(flattened)

/** An active alarm or drill of the same type and building; null if there is none. */
export const identicalTo = async (world: Pick<World, 'database'>, { type, buildingId, isDrill }: Fields) => {
  const same = (one: Fields): boolean =>
    one.type === type &&
    String(one.buildingId ?? '') === String(buildingId ?? '') &&
    (one.isDrill === true) === (isDrill === true)
  return (await activeEmergencies(world)).find(same) ?? null
}

// Rules for changes: an alarm must not become a drill or disappear without an end, and a report must not change.

const STATUSES: readonly unknown[] = ['reported', 'active', 'resolved']
const OUTCOMES: readonly unknown[] = ['ended', 'mistake']
/** After the end, these may be sent only as they are. */
const FINAL = ['type', 'isDrill', 'buildingId', 'outcome']
/** Calculated by the backend, whatever a body contains. */
const CALCULATED = ['startedAt', 'resolvedAt', 'markSafe', 'unmarkSafe', 'gathers', 'muster']

/** An alarm takes over from drills. A drill must not distract from an alarm. */
export const mustNotDisturb = async (call: Call, isDrill: boolean): Promise<void> => {
  if (!isDrill) return
  if ((await activeEmergencies(call)).some((alarm) => alarm.isDrill !== true))
    throw new HttpError(409, 'ALARM_ACTIVE', 'A drill cannot start during an alarm.')
}

const differs = (body: Fields, stored: Fields, field: string): boolean =>
  body[field] !== undefined && String(body[field] ?? '') !== String(stored[field] ?? '')

/** Another user may have ended the emergency meanwhile. Its outcome must not change afterwards. */
const mustBeOpen = ({ body }: Call, stored: Fields): void => {
  if (stored.status !== 'resolved') return
  const { status, markSafe, unmarkSafe } = body
  if (status !== undefined || markSafe || unmarkSafe || FINAL.some((field) => differs(body, stored, field)))
    throw new HttpError(409, 'EMERGENCY_ENDED', `The ${stored.isDrill ? 'drill' : 'emergency'} has already ended.`)
}

/** An alarm starts by being triggered, because it can join another one and end drills. */
const mustStayActive = ({ body }: Call, stored: Fields): void => {
  if (body.status === 'active' && stored.status !== 'active')
    throw invalid([{ path: '/status', message: 'becomes “active” only by triggering the emergency' }])
  if (stored.status !== 'active') return
  if (body.status === 'reported') throw invalid([{ path: '/status', message: 'must be “resolved” to end it' }])
  if (body.isDrill !== undefined && (body.isDrill === true) !== (stored.isDrill === true))
    throw invalid([{ path: '/isDrill', message: 'cannot change while it is active' }])
}

const mustBeOneOf = (known: readonly unknown[], body: Fields, field: string): void => {
  if (body[field] != null && !known.includes(body[field]))
    throw invalid([{ path: `/${field}`, message: `must be one of ${known.join(', ')}` }])
}

/** Checks a new or changed emergency. Returns the fields to store. */
export const checkedEmergency = async (call: Call): Promise<Fields> => {
  const { body, request, now } = call
  const [stored = {}] = await getRecords(call, emergencies, [idOf(call)])
  mustBeOpen(call, stored)
  mustStayActive(call, stored)
  mustBeOneOf(STATUSES, body, 'status')
  mustBeOneOf(OUTCOMES, body, 'outcome')
  if (body.type !== undefined) checkedType(body.type)
  const status = body.status ?? stored.status ?? (request.method === 'POST' ? 'reported' : null)
  if (body.outcome != null && status !== 'resolved')
    throw invalid([{ path: '/outcome', message: 'needs the status “resolved”' }])
  const sent = Object.fromEntries(Object.entries(body).filter(([field]) => !CALCULATED.includes(field)))
  const fields = { ...sent, status }
  if (status === 'resolved')
    return stored.status === status ? fields : { outcome: 'ended', ...fields, resolvedAt: now().toISOString() }
  return status === 'active' ? { ...fields, ...(await alarmFields(call, { ...stored, ...fields })) } : fields
}
