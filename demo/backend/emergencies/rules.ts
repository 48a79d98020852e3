import { parseIsoTime } from '../../../schemas/iso-time.js'
import { nounOf } from '../crud.js'
import { HttpError, invalid } from '../errors.js'
import { getRecords } from '../records.js'
import { emergencies } from '../resources.js'
import { type Call, idOf } from '../route.js'
import type { Fields } from '../world.js'
import { activeEmergencies, identicalTo } from './active.js'
import { alarmFields, checkedType } from './instructions.js'

// Rules for changes: an alarm must not become a drill or disappear without an end, and a report must not change.

const STATUSES: readonly unknown[] = ['reported', 'active', 'resolved']
const OUTCOMES: readonly unknown[] = ['ended', 'mistake']
/** After the end, these may be sent only as they are. */
const FINAL = ['type', 'isDrill', 'buildingId', 'startedAt', 'resolvedAt', 'outcome']

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
    throw new HttpError(409, 'EMERGENCY_ENDED', `The ${nounOf(emergencies, stored)} has already ended.`)
}

const mustStayActive = ({ body }: Call, stored: Fields): void => {
  if (stored.status !== 'active') return
  if (body.status === 'reported') throw invalid([{ path: '/status', message: 'must be “resolved” to end it' }])
  if (body.isDrill !== undefined && (body.isDrill === true) !== (stored.isDrill === true))
    throw invalid([{ path: '/isDrill', message: 'cannot change while it is active' }])
}

/** Times are stored as ISO 8601 text; clients may send milliseconds. A time cannot be removed. */
const timesIn = (body: Fields, stored: Fields): Fields =>
  Object.fromEntries(
    ['startedAt', 'resolvedAt'].flatMap((field) => {
      const { [field]: sent } = body
      if (sent === undefined) return []
      if (sent === null) return [[field, stored[field] ?? null]]
      const time = new Date(typeof sent === 'number' ? sent : parseIsoTime(String(sent)))
      if (Number.isNaN(time.getTime()) || time.getUTCFullYear() > 9999)
        throw invalid([{ path: `/${field}`, message: 'must be a point in time' }])
      return [[field, time.toISOString()]]
    })
  )

const checkOutcome = ({ outcome }: Fields, stored: Fields, status: unknown): void => {
  if (outcome === undefined) return
  if (!OUTCOMES.includes(outcome))
    throw invalid([{ path: '/outcome', message: `must be one of ${OUTCOMES.join(', ')}` }])
  if (status !== 'resolved' && stored.status !== 'resolved')
    throw invalid([{ path: '/outcome', message: 'needs the status “resolved”' }])
}

/** Checks a new or changed emergency. Returns the fields to store; `gathers` and `muster` are calculated. */
export const checkedEmergency = async (call: Call): Promise<Fields> => {
  const { body, request, now } = call
  const [stored = {}] = await getRecords(call, emergencies, [idOf(call)])
  mustBeOpen(call, stored)
  mustStayActive(call, stored)
  const { markSafe: _markSafe, unmarkSafe: _unmarkSafe, gathers: _gathers, muster: _muster, ...sent } = body
  const status = sent.status ?? stored.status ?? (request.method === 'POST' ? 'reported' : null)
  if (status !== null && !STATUSES.includes(status))
    throw invalid([{ path: '/status', message: `must be one of ${STATUSES.join(', ')}` }])
  if (sent.type !== undefined) checkedType(sent.type)
  checkOutcome(body, stored, status)
  const fields = { ...sent, ...timesIn(body, stored), status }
  if (status === 'resolved')
    return stored.status === status ? fields : { resolvedAt: now().toISOString(), outcome: 'ended', ...fields }
  if (status !== 'active') return fields
  const whole: Fields = { ...stored, ...fields }
  if (stored.status !== 'active') {
    await mustNotDisturb(call, whole.isDrill === true)
    if ((await identicalTo(call, whole)) !== null)
      throw new HttpError(409, 'ALREADY_ACTIVE', 'An emergency of this type is active there already.')
  }
  return { ...fields, ...(await alarmFields(call, whole)), startedAt: whole.startedAt ?? now().toISOString() }
}
