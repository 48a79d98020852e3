import { audit } from '../audit.js'
import { csv } from '../export/csv.js'
import { exported, list, rows, together } from '../queries.js'
import { type Handlers, handler, perMinute, type Run } from '../route.js'

const AUDIT_FIELDS = ['at', 'action', 'result', 'userId', 'userName', 'account', 'ip', 'method', 'path']
/** `account` is the e-mail address of the user, or what was entered at a failed sign-in. */
const auditLog = {
  from: `(SELECT a.*, coalesce(a.user_email, a.details->>'login') AS account, coalesce(u.display_name, u.name) AS user_name
    FROM audit_log a LEFT JOIN users u ON u.id = a.user_id)`,
  fields: [...AUDIT_FIELDS, 'id'],
  search: ['account', 'userName', 'action', 'path'],
  order: 'at DESC, id'
}

const activity = {
  from: `(SELECT at, action AS kind, user_email, coalesce(details->>'title', path) AS subject FROM audit_log
    WHERE result = 'done')`,
  fields: ['at', 'kind', 'userEmail'],
  order: 'at DESC, kind, subject'
}

const countBy = (what: string, order: string): Run =>
  rows(`SELECT ${what}, count(*)::int AS count FROM audit_log GROUP BY 1 ORDER BY ${order}`)

const summary = together({
  byResult: countBy('result', '1'),
  byAction: countBy('action', '2 DESC, 1 LIMIT 100'),
  byAccount: countBy("coalesce(user_email, details->>'login') AS account", '2 DESC, 1 LIMIT 100'),
  byDay: countBy("date_trunc('day', at, 'UTC') AS day", '1')
})

/** Stores only the fields whose length the schema limits. */
const storeErrorReport: Run = async (call) => {
  const { message, name, stack, url, line, component } = call.body
  await audit(call, 'page.error', 'failed', { message, name, stack, url, line, component })
  return { noted: true }
}

/** The audit log, the activity list and error reports of pages. */
export const journalRoutes: Handlers = {
  'GET /api/audit/logs': handler('audit.read', list(auditLog)),
  'GET /api/audit/summary': handler('audit.read', summary),
  'GET /api/audit/export': handler(
    'audit.export',
    exported(auditLog, 'audit.csv', (entries) => csv(AUDIT_FIELDS, entries))
  ),
  'GET /api/activity': handler('dashboard.read', list(activity)),
  'POST /api/proxy/error-log': handler('authenticated', storeErrorReport, { status: 201, ...perMinute(60) })
}
