import { routeTables } from '../../src/gateway/routes/index.js'
import { type Access, requirePermission } from './auth/permissions.js'
import type { Database, Row, Statements } from './database/database.js'
import { notFound } from './errors.js'
import { pageOf } from './paging.js'
import { type Fields, Records, type World } from './records.js'
import type { Resource } from './resources.js'
import { type Call, type Handler, type Handlers, handler, idOf, PartOfList, type RouteKey } from './route.js'

export interface Parts extends World {
  readonly database: Database
}

export interface CrudOptions {
  /** The path of one of them, where it is not the list's with an id. */
  readonly onePath?: `/api/${string}`
  readonly access?: (action: string) => Access
  /** Works on a body before it is stored, within the same transaction. */
  readonly prepare?: (statements: Statements, body: Fields, call: Call) => Promise<Fields>
  /** What else has to happen when one was created or changed. */
  readonly stored?: (statements: Statements, row: Row, body: Fields, call: Call) => Promise<void>
  /** What else has to go when these were deleted. */
  readonly removed?: (statements: Statements, ids: readonly string[], call: Call) => Promise<void>
  /** A PUT empties what it does not name. */
  readonly putReplaces?: boolean
}

const declared = new Set(routeTables.flatMap(({ rows }) => rows.map(({ method, path }) => `${method} ${path}`)))

/** List, read, create, change and delete, for every resource alike; of mutations, those that are declared. */
export const crud = (
  path: `/api/${string}`,
  resource: Resource,
  parts: Parts,
  {
    onePath = `${path}/:id`,
    access = (action) => requirePermission(resource.permission, action),
    prepare = async (_statements, body) => body,
    stored = async () => undefined,
    removed = async () => undefined,
    putReplaces = false
  }: CrudOptions = {}
): Handlers => {
  const { database } = parts
  const records = new Records(resource, parts)

  const list = async ({ query }: Call): Promise<PartOfList> => {
    const page = pageOf(query)
    const { rows, total } = await records.list(database, page, query)
    return new PartOfList(rows, { total, limit: page.limit, offset: page.offset })
  }

  const create = (call: Call): Promise<Row> =>
    database.transaction(async (statements) => {
      const row = await records.create(statements, await prepare(statements, call.body, call))
      await stored(statements, row, call.body, call)
      return records.get(statements, String(row.id))
    })

  const change = (replace: boolean) => (call: Call) =>
    database.transaction(async (statements) => {
      const body = await prepare(statements, call.body, call)
      const row = await records.update(statements, idOf(call), body, replace)
      await stored(statements, row, call.body, call)
      return records.get(statements, String(row.id))
    })

  const remove = (call: Call): Promise<null> =>
    database.transaction(async (statements) => {
      const gone = await records.remove(statements, [idOf(call)])
      if (gone.length === 0) throw notFound(resource.noun)
      await removed(statements, gone, call)
      return null
    })

  const all: readonly (readonly [RouteKey, Handler])[] = [
    [`GET ${path}`, handler(access('read'), list)],
    [`POST ${path}`, handler(access('create'), create, { status: 201 })],
    [`GET ${onePath}`, handler(access('read'), (call) => records.get(database, idOf(call)))],
    [`PUT ${onePath}`, handler(access('update'), change(putReplaces))],
    [`PATCH ${onePath}`, handler(access('update'), change(false))],
    [`DELETE ${onePath}`, handler(access('delete'), remove)]
  ]
  return Object.fromEntries(all.filter(([key]) => key.startsWith('GET ') || declared.has(key)))
}
