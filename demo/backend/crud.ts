import type { May } from './auth/permissions.js'
import { changeMany } from './bulk.js'
import { declared } from './declared.js'
import { notFound, Refusal } from './errors.js'
import { pageOf } from './paging.js'
import { createRecord, getRecord, listRecords, removeRecords, updateRecord } from './records.js'
import type { Resource } from './resources.js'
import { type Call, type Handler, type Handlers, handler, idOf, idsIn, partOfList, type Run } from './route.js'
import type { Fields } from './world.js'

export interface CrudOptions {
  /** Makes what is stored out of what was sent. */
  readonly prepare?: (call: Call) => Fields | Promise<Fields>
  /** What else has to happen when one was created or changed. */
  readonly stored?: (call: Call, id: string) => Promise<void>
  /** What else has to go when these were deleted. */
  readonly removed?: (call: Call, ids: readonly string[]) => Promise<void>
  /** A PUT empties what it does not name. */
  readonly putReplaces?: boolean
}

/** List, read, create, change and delete one or many, for every resource alike; of mutations, those that are declared. */
export const crud = (resource: Resource, options: CrudOptions = {}): Handlers => {
  const { prepare = ({ body }) => body, stored, removed, putReplaces = false } = options
  const { path, onePath, permission } = resource
  const may = (action: string): May => (permission.includes('.') ? (permission as May) : `${permission}.${action}`)
  const empty = Object.fromEntries(Object.keys(resource.columns).map((field) => [field, null]))

  const list: Run = async (call) => {
    const { limit, offset } = pageOf(call.query)
    const { rows, total } = await listRecords(call, resource, call.query, { limit, offset })
    return partOfList(rows, { total, limit, offset })
  }
  const read: Run = (call) => getRecord(call, resource, idOf(call))
  const create: Run = async (call) => {
    const id = await createRecord(call, resource, await prepare(call))
    await stored?.(call, id)
    return getRecord(call, resource, id)
  }
  const change =
    (replaced: Fields): Run =>
    async (call) => {
      await updateRecord(call, resource, idOf(call), { ...replaced, ...(await prepare(call)) })
      await stored?.(call, idOf(call))
      return read(call)
    }
  const remove: Run = async (call) => {
    const gone = await removeRecords(call, resource, [idOf(call)])
    if (gone.length === 0) throw notFound(resource.noun)
    await removed?.(call, gone)
  }

  const many =
    (action: 'update' | 'delete'): Run =>
    (call) => {
      const { ids: _ids, ...changes } = call.body
      if (idsIn(call.body).length === 0)
        throw new Refusal(400, 'IDS_REQUIRED', 'Say which ones are meant: { "ids": [ … ] }.')
      return changeMany(call, resource, action, changes)
    }

  const all: Readonly<Record<string, Handler>> = {
    [`GET ${path}`]: handler(may('read'), list),
    [`POST ${path}`]: handler(may('create'), create, { status: 201 }),
    [`PUT ${path}`]: handler(may('update'), many('update')),
    [`DELETE ${path}`]: handler(may('delete'), many('delete')),
    [`GET ${onePath}`]: handler(may('read'), read),
    [`POST ${onePath}`]: handler(may('update'), change({})),
    [`PUT ${onePath}`]: handler(may('update'), change(putReplaces ? empty : {})),
    [`PATCH ${onePath}`]: handler(may('update'), change({})),
    [`DELETE ${onePath}`]: handler(may('delete'), remove)
  }
  return Object.fromEntries(Object.entries(all).filter(([key]) => key.startsWith('GET ') || declared.has(key)))
}
