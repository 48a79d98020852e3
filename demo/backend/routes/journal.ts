import { authenticated, requirePermission } from '../auth/permissions.js'
import type { Backend } from '../backend.js'
import type { Row, Value } from '../database/database.js'
import { csv } from '../export/csv.js'
import { type Page, pageOf, type Query, textOf } from '../paging.js'
import { FileAnswer, type Handlers, handler, PartOfList } from '../route.js'

const AUDIT_FIELDS = ['at', 'action', 'result', 'userId', 'userEmail', 'ip', 'method', 'path'] as const
const MAX_EXPORTED = 10_000

const AUDIT = `SELECT id, at, action, result, user_id AS "userId", user_email AS "userEmail", ip, method, path, details
  FROM audit_log`
const AUDIT_MATCH = `WHERE ($1::text IS NULL OR action = $1) AND ($2::text IS NULL OR result = $2)
  AND ($3::text IS NULL OR user_id = $3)`

/** What happened: the audit log, the activity list, errors that pages report. */
export const journalRoutes = ({ database, now, newId }: Backend): Handlers => {
  const filters = (query: Query): Value[] => ['action', 'result', 'userId'].map((name) => textOf(query, name))
  const audit = (query: Query, { limit, offset }: Pick<Page, 'limit' | 'offset'>): Promise<Row[]> =>
    database.rows(`${AUDIT} ${AUDIT_MATCH} ORDER BY at DESC, id LIMIT $4 OFFSET $5`, [...filters(query), limit, offset])

  return {
    'GET /api/audit/logs': handler(requirePermission('audit', 'read'), async ({ query }) => {
      const page = pageOf(query)
      const [counted] = await database.rows<{ total: number }>(
        `SELECT count(*)::int AS total FROM audit_log ${AUDIT_MATCH}`,
        filters(query)
      )
      const { limit, offset } = page
      return new PartOfList(await audit(query, page), { total: counted?.total ?? 0, limit, offset })
    }),
    'GET /api/audit/summary': handler(requirePermission('audit', 'read'), async () => ({
      byResult: await database.rows('SELECT result, count(*)::int AS count FROM audit_log GROUP BY 1 ORDER BY 1'),
      byAction: await database.rows(
        'SELECT action, count(*)::int AS count FROM audit_log GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 20'
      ),
      byDay: await database.rows(
        "SELECT date_trunc('day', at, 'UTC') AS day, count(*)::int AS count FROM audit_log GROUP BY 1 ORDER BY 1"
      )
    })),
    'GET /api/audit/export': handler(requirePermission('audit', 'export'), async ({ query }) => {
      const rows = await audit(query, { limit: MAX_EXPORTED, offset: 0 })
      return new FileAnswer('text/csv; charset=utf-8', csv(AUDIT_FIELDS, rows), 'audit.csv')
    }),
    'GET /api/activity': handler(requirePermission('dashboard', 'read'), ({ query }) =>
      database.rows(
        `SELECT * FROM (
           SELECT at, action AS kind, user_email AS "userEmail", path AS subject FROM audit_log WHERE result = 'done'
           UNION ALL
           SELECT v.at, 'emergency.' || v.kind, v.user_email, coalesce(e.title, e.type)
           FROM emergency_events v JOIN emergencies e ON e.id = v.emergency_id) AS happened
         ORDER BY at DESC, kind, subject LIMIT $1 OFFSET $2`,
        [pageOf(query).limit, pageOf(query).offset]
      )
    ),
    'POST /api/proxy/error-log': handler(
      authenticated,
      async ({ body, caller }) => {
        const id = newId()
        await database.rows('INSERT INTO page_errors (id, at, user_id, message, report) VALUES ($1, $2, $3, $4, $5)', [
          id,
          now(),
          caller?.userId ?? null,
          String(body.message),
          JSON.stringify(body)
        ])
        return { id }
      },
      { status: 201, perMinute: 60 }
    )
  }
}
