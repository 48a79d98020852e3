import { csv } from '../export/csv.js'
import { pageOf } from '../paging.js'
import { rows, together, valuesOf } from '../queries.js'
import { putRow } from '../records.js'
import { fileAnswer, type Handlers, handler, partOfList, type Run } from '../route.js'

const AUDIT_FIELDS = ['at', 'action', 'result', 'userId', 'userEmail', 'ip', 'method', 'path']
const MAX_EXPORTED = 10_000

const FILTERS = ['action', 'result', 'userId']
const MATCHING = `FROM audit_log WHERE ($1::text IS NULL OR action = $1) AND ($2::text IS NULL OR result = $2)
  AND ($3::text IS NULL OR user_id = $3)`
const AUDIT = `SELECT id, at, action, result, user_id AS "userId", user_email AS "userEmail", ip, method, path, details
  ${MATCHING} ORDER BY at DESC, id LIMIT $4 OFFSET $5`

const ACTIVITY = `SELECT * FROM (
    SELECT at, action AS kind, user_email AS "userEmail", path AS subject FROM audit_log WHERE result = 'done'
    UNION ALL
    SELECT v.at, 'emergency.' || v.kind, v.user_email, coalesce(e.title, e.type)
    FROM emergency_events v JOIN emergencies e ON e.id = v.emergency_id) AS happened
  ORDER BY at DESC, kind, subject LIMIT $1 OFFSET $2`

const logs: Run = async (call) => {
  const { limit, offset } = pageOf(call.query)
  const filters = valuesOf(call, FILTERS)
  const [counted] = await call.database.rows<{ total: number }>(`SELECT count(*)::int AS total ${MATCHING}`, filters)
  const page = await call.database.rows(AUDIT, [...filters, limit, offset])
  return partOfList(page, { total: counted?.total ?? 0, limit, offset })
}

const countBy = (what: string, order: string): Run =>
  rows(`SELECT ${what}, count(*)::int AS count FROM audit_log GROUP BY 1 ORDER BY ${order}`)

const summary = together({
  byResult: countBy('result', '1'),
  byAction: countBy('action', '2 DESC, 1 LIMIT 20'),
  byDay: countBy("date_trunc('day', at, 'UTC') AS day", '1')
})

const exported: Run = async (call) => {
  const all = await call.database.rows(AUDIT, [...valuesOf(call, FILTERS), MAX_EXPORTED, 0])
  return fileAnswer('text/csv; charset=utf-8', csv(AUDIT_FIELDS, all), 'audit.csv')
}

const noteError: Run = async (call) => {
  const { body, caller, newId, now } = call
  const id = newId()
  const report = { message: String(body.message), report: JSON.stringify(body) }
  await putRow(call, 'page_errors', { id, at: now(), userId: caller?.userId ?? null, ...report })
  return { id }
}

/** What happened: the audit log, the activity list, errors that pages report. */
export const journalRoutes: Handlers = {
  'GET /api/audit/logs': handler('audit.read', logs),
  'GET /api/audit/summary': handler('audit.read', summary),
  'GET /api/audit/export': handler('audit.export', exported),
  'GET /api/activity': handler('dashboard.read', rows(ACTIVITY, 'limit', 'offset')),
  'POST /api/proxy/error-log': handler('authenticated', noteError, { status: 201, perMinute: 60 })
}
