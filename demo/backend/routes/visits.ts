import { assignTransmitter, mustBeFree } from '../assignment.js'
import { concernedBy } from '../audit/changes.js'
import { auditSearch } from '../audit/lookups.js'
import { crud, labelOf } from '../crud.js'
import { HttpError, invalid } from '../errors.js'
import { list } from '../queries.js'
import { changeRecords, freeTransmitters, getRecord, getRecords } from '../records.js'
import { visits } from '../resources.js'
import { type Call, type Handlers, handler, idOf, type Run } from '../route.js'
import { endError, followKind, timeOf } from '../visits/visit.js'
import type { Fields } from '../world.js'

/** Checks the times of a new or changed visit. */
const prepare = async (call: Call): Promise<Fields> => {
  const { body, params } = call
  const [stored = null] = params.id === undefined ? [] : await getRecords(call, visits, [params.id])
  for (const field of ['expectedFrom', 'expectedTo'])
    if (body[field] !== undefined && Number.isNaN(timeOf(body[field])))
      throw invalid([{ path: `/${field}`, message: 'must be a point in time' }])
  const { expectedFrom, expectedTo } = { ...stored, ...body }
  const message = endError(expectedFrom, expectedTo)
  if (message !== null) throw invalid([{ path: '/expectedTo', message }])
  return stored === null ? { kind: 'visitor', ...body } : body
}

const stored = async (call: Call, id: string): Promise<void> => {
  if (typeof call.body.kind === 'string') await followKind(call, id, call.body.kind)
}

/** The visit, locked until the end of the transaction, so that two requests cannot change its state at once. */
const lockedVisit = async (call: Call): Promise<Fields> => {
  await call.database.rows('SELECT id FROM visits WHERE id = $1 FOR UPDATE', [idOf(call)])
  return getRecord(call, visits, idOf(call))
}

const conflict = (code: string, message: string): HttpError => new HttpError(409, code, message)

/** For the audit log. */
const note = ({ subjects, people }: Call, visit: Fields, what: string): void => {
  subjects.push(`${labelOf(visits, visit)} ${what}`)
  people.push(...[concernedBy(visits, visit) ?? []].flat())
}

const checkIn: Run = async (call) => {
  const id = idOf(call)
  const transmitterId = String(call.body.transmitterId)
  const visit = await lockedVisit(call)
  const { name, kind, isOnSite, checkedOutAt, expectedTo } = visit
  if (isOnSite && visit.transmitterId !== null)
    throw conflict('ALREADY_CHECKED_IN', `${name} is on site already, with ${visit.transmitterName}.`)
  if (checkedOutAt !== null)
    throw conflict('VISIT_ENDED', `${name} has left, and the visit is over. Add another visit.`)
  if (!isOnSite && timeOf(expectedTo) <= call.now().getTime())
    throw conflict('VISIT_EXPIRED', `The visit of ${name} was expected to end before now. Change its end first.`)
  await mustBeFree(call, transmitterId, visits, id)
  // On site without a transmitter if it was assigned to somebody else.
  await changeRecords(call, visits, [id], { checkedInAt: visit.checkedInAt ?? call.now().toISOString() })
  await assignTransmitter(call, transmitterId, String(kind), id)
  const changed = await getRecord(call, visits, id)
  note(call, changed, `checked in with ${changed.transmitterName}`)
  return changed
}

/** Otherwise the alert would continue, with its acknowledgement, for the next visitor with the transmitter. */
const END_ALERT = "DELETE FROM alerts WHERE kind = 'visit-overdue' AND transmitter_id = $1"

const checkOut: Run = async (call) => {
  const id = idOf(call)
  const visit = await lockedVisit(call)
  const { name, isOnSite, checkedOutAt, transmitterName } = visit
  if (checkedOutAt !== null) throw conflict('VISIT_ENDED', `${name} has been checked out already.`)
  if (!isOnSite) throw conflict('NOT_CHECKED_IN', `${name} has not been checked in.`)
  await changeRecords(call, visits, [id], { checkedOutAt: call.now().toISOString() })
  await freeTransmitters(call, visits, [id])
  await call.database.rows(END_ALERT, [String(visit.transmitterId)])
  note(call, visit, `checked out, ${transmitterName ?? 'no transmitter'} returned`)
  return getRecord(call, visits, id)
}

const { 'DELETE /api/visits/:id': removal, ...others } = crud(visits, { prepare, stored })

/** A person on site must stay in the muster, and has a transmitter to return. */
const remove: Run = async (call) => {
  const { name, isOnSite } = await lockedVisit(call)
  if (isOnSite) throw conflict('VISIT_ACTIVE', `${name} is on site. Check the visitor out first.`)
  return removal?.run(call)
}

/** Overdue visitors are on site too. */
const listVisits: Run = (call) => {
  const { status, ...query } = call.query
  return list(
    visits,
    auditSearch(visits)
  )(status === 'on-site' ? { ...call, query: { ...query, isOnSite: 'true' } } : call)
}

/** Visits of visitors and contractors. Between check-in and check-out they carry a transmitter. */
export const visitRoutes: Handlers = {
  ...others,
  'GET /api/visits': handler('visits.read', listVisits),
  'DELETE /api/visits/:id': handler('visits.delete', remove),
  'POST /api/visits/:id/check-in': handler('visits.update', checkIn),
  'POST /api/visits/:id/check-out': handler('visits.update', checkOut)
}
