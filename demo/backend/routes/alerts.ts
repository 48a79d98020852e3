import { alertCounts } from '../alerts/monitor.js'
import { SHOWN_ALERTS } from '../alerts/shown.js'
import { fieldChanges } from '../audit/changes.js'
import { HttpError, invalid } from '../errors.js'
import { list, rows } from '../queries.js'
import { checkSettingVersion } from '../record-version.js'
import { callerOf, type Handlers, handler, idsIn, type Run } from '../route.js'
import { changeSetting, readSetting, readVersionedSetting } from '../settings.js'
import type { Fields } from '../world.js'

const alerts = {
  from: SHOWN_ALERTS,
  fields: [
    ...['kind', 'state', 'severity', 'severityRank', 'name', 'since', 'floorId', 'buildingId', 'acknowledgedAt'],
    ...['assignee', 'assignedName', 'escalatedAt']
  ],
  search: ['name', 'zoneName', 'floorName', 'buildingName', 'assignedName'],
  order: 'acknowledged_at IS NOT NULL, severity_rank DESC, since DESC, id'
}

const labelOf = ({ kind, name }: Fields): string => `${kind} ${name}`

const ACKNOWLEDGE = `UPDATE alerts a SET acknowledged_by = $2, acknowledged_at = $3
  FROM ${alerts.from} AS shown
  WHERE shown.id = a.id AND a.id = ANY($1::text[]) AND a.acknowledged_at IS NULL RETURNING a.id, shown.kind, shown.name`

const acknowledge: Run = async (call) => {
  const { body, database, now, subjects } = call
  const done = await database.rows(ACKNOWLEDGE, [idsIn(body), callerOf(call).displayName, now()])
  subjects.push(...done.map(labelOf))
  return { affected: done.length }
}

/** Active users who may acknowledge alerts. */
const ASSIGNEES = `SELECT u.id, coalesce(u.display_name, u.name, u.email) AS name FROM users u LEFT JOIN roles r ON r.id = u.role
  WHERE u.is_active IS NOT FALSE AND coalesce(r.permissions, '[]') || coalesce(u.permissions, '[]') ? 'alerts.update'
  ORDER BY name, u.id`

const ASSIGN = `UPDATE alerts a SET assigned_to = $2, assigned_at = CASE WHEN $2::text IS NOT NULL THEN $3::timestamptz END
  FROM ${alerts.from} AS shown WHERE shown.id = a.id AND a.id = ANY($1::text[]) RETURNING a.id, shown.kind, shown.name`

const idOrNull = (value: unknown): string | null => (value == null ? null : String(value))

/** Two users who take the same alert at the same time must not both believe that it is theirs. */
const checkExpected: Run = async ({ body, database }) => {
  if (body.expected === undefined) return
  const current = await database.rows<{ assignedTo: string | null; name: string | null }>(
    `SELECT a.assigned_to, coalesce(u.display_name, u.name, u.email) AS name FROM alerts a LEFT JOIN users u ON u.id = a.assigned_to
     WHERE a.id = ANY($1::text[]) ORDER BY a.id FOR UPDATE OF a`,
    [idsIn(body)]
  )
  const changed = current.find(({ assignedTo }) => assignedTo !== idOrNull(body.expected))
  if (changed === undefined) return
  const who = changed.name === null ? 'The assignment has been removed' : `${changed.name} has been assigned`
  throw new HttpError(409, 'ASSIGNMENT_CHANGED', `${who} meanwhile. Close this dialog to see the current state.`)
}

const assign: Run = async (call) => {
  const { body, database, now, subjects } = call
  const userId = idOrNull(body.userId)
  const assignee = userId === null ? null : (await rows(ASSIGNEES)(call)).find(({ id }) => id === userId)
  if (assignee === undefined)
    throw invalid([{ path: '/userId', message: 'must be an active user with the permission alerts.update' }])
  await checkExpected(call)
  const done = await database.rows(ASSIGN, [idsIn(body), userId, now()])
  subjects.push(...done.map((alert) => `${labelOf(alert)} to ${assignee?.name ?? 'nobody'}`))
  return { affected: done.length }
}

const severities: Run = (call) => readVersionedSetting(call, 'severities')

const changeSeverities: Run = async (call) => {
  await checkSettingVersion(call, 'severities', severities)
  const { body, changes, subjects } = call
  subjects.push('alert severities')
  changes.push(...fieldChanges(Object.keys(body), await readSetting(call, 'severities'), body, 'severities.'))
  return changeSetting(call, 'severities', body)
}

/** Items that need attention. The monitor adds and removes them. */
export const alertRoutes: Handlers = {
  'GET /api/alerts': handler('alerts.read', list(alerts)),
  'GET /api/alerts/summary': handler('alerts.read', alertCounts),
  'GET /api/alerts/assignees': handler('alerts.read', rows(ASSIGNEES)),
  'GET /api/alerts/severities': handler('settings.read', severities),
  'PATCH /api/alerts/severities': handler('settings.update', changeSeverities),
  'POST /api/alerts/acknowledge': handler('alerts.update', acknowledge),
  'POST /api/alerts/assign': handler('alerts.update', assign)
}
