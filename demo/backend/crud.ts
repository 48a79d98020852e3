import type { May } from './auth/permissions.js'
import { declared } from './declared.js'
import { HttpError, invalid, notFound } from './errors.js'
import { checkVersion, list } from './queries.js'
import { changeRecords, createRecord, getRecord, getRecords, removeRecords, updateRecord } from './records.js'
import type { Resource } from './resources.js'
import { type Call, type Handler, type Handlers, handler, idOf, idsIn, type Run, rowsIn } from './route.js'
import type { Fields } from './world.js'

export interface CrudOptions {
  /** Converts a body to the stored row. */
  readonly prepare?: (call: Call) => Fields | Promise<Fields>
  /** Runs after a row was created or changed with the sent fields. */
  readonly stored?: (call: Call, id: string, sent: Fields) => Promise<void>
  /** Runs after rows were deleted. */
  readonly removed?: (call: Call, ids: readonly string[]) => Promise<void>
  /** A PUT clears the fields that it does not contain. */
  readonly putReplaces?: boolean
}

/** List, read, create, update and delete routes of a resource, as far as the gateway declares them. */
export const crud = (resource: Resource, options: CrudOptions = {}): Handlers => {
  const { prepare = ({ body }) => body, stored, removed, putReplaces = false } = options
  const { path, onePath, permission } = resource
  const may = (action: string): May => (isPermission(permission) ? permission : `${permission}.${action}`)
  const empty = Object.fromEntries(Object.keys(resource.columns).map((field) => [field, null]))

  const read: Run = (call) => getRecord(call, resource, idOf(call))
  const create: Run = async (call) => {
    const id = await createRecord(call, resource, await prepare(call))
    await stored?.(call, id, call.body)
    return getRecord(call, resource, id)
  }
  const change =
    (replaced: Fields): Run =>
    async (call) => {
      await checkVersion(call, resource.table, idOf(call), `the ${resource.noun}`)
      await updateRecord(call, resource, idOf(call), { ...replaced, ...(await prepare(call)) })
      await stored?.(call, idOf(call), call.body)
      return read(call)
    }
  const remove: Run = async (call) => {
    const gone = await removeRecords(call, resource, [idOf(call)])
    if (gone.length === 0) throw notFound(resource.noun)
    await removed?.(call, gone)
  }
  const all: Record<string, Handler> = {
    [`GET ${path}`]: handler(may('read'), list(resource)),
    [`POST ${path}`]: handler(may('create'), create, { status: 201 }),
    [`PUT ${path}`]: handler(may('update'), changeMany(resource, 'update', stored)),
    [`DELETE ${path}`]: handler(may('delete'), changeMany(resource, 'delete')),
    [`GET ${onePath}`]: handler(may('read'), read),
    [`POST ${onePath}`]: handler(may('update'), change({})),
    [`PUT ${onePath}`]: handler(may('update'), change(putReplaces ? empty : {})),
    [`PATCH ${onePath}`]: handler(may('update'), change({})),
    [`DELETE ${onePath}`]: handler(may('delete'), remove)
  }
  return Object.fromEntries(Object.entries(all).filter(([key]) => key.startsWith('GET ') || declared.has(key)))
}

const isPermission = (text: string): text is `${string}.${string}` => text.includes('.')

/** The fields that an action on several rows changes; null if it deletes them. */
const ACTIONS: Readonly<Record<string, Fields | null>> = {
  update: {},
  delete: null,
  activate: { isActive: true },
  deactivate: { isActive: false }
}

/** Applies an action to the `ids` in the body. Returns the number of rows and the unknown ids. */
const changeAll = async (call: Call, resource: Resource, changes: Fields | null, stored: CrudOptions['stored']) => {
  const ids = idsIn(call.body)
  const done = await (changes === null
    ? removeRecords(call, resource, ids)
    : changeRecords(call, resource, ids, changes))
  if (changes !== null) for (const id of done) await stored?.(call, id, changes)
  return { affected: done.length, missing: ids.filter((id) => !done.includes(id)) }
}

/** An update changes the other fields in the body. */
export const changeMany =
  (resource: Resource, action: string, stored?: CrudOptions['stored']): Run =>
  (call) => {
    const { ids: _ids, ...sent } = call.body
    if (idsIn(call.body).length === 0)
      throw new HttpError(400, 'IDS_REQUIRED', 'The field ids is required: { "ids": [ … ] }.')
    return changeAll(call, resource, action === 'update' ? sent : (ACTIONS[action] ?? null), stored)
  }

/** Bulk body: a list of rows under the table's name, or ids and an action for all of them. */
export const bulk =
  (resource: Resource, stored?: CrudOptions['stored']): Run =>
  async (call) => {
    const { [resource.table]: sent, changes } = call.body
    const action = String(call.body.action ?? 'update')
    const fixed = Object.hasOwn(ACTIONS, action) ? ACTIONS[action] : undefined
    if (fixed === undefined) throw invalid([{ path: '/action', message: 'is not known' }])
    const ids: string[] = []
    for (const { id, ...fields } of rowsIn(sent)) {
      const [known] = id == null ? [] : await changeRecords(call, resource, [String(id)], fields)
      const row = known ?? (await createRecord(call, resource, fields))
      await stored?.(call, row, fields)
      ids.push(row)
    }
    // The schema of the route declares `changes` as an object.
    const counts = await changeAll(call, resource, fixed && { ...(changes as Fields), ...fixed }, stored)
    return { rows: await getRecords(call, resource, ids), ...counts }
  }
