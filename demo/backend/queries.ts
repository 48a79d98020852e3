import { invalid, notFound } from './errors.js'
import { pageOf, textOf } from './paging.js'
import { getRecord } from './records.js'
import type { Resource } from './resources.js'
import { type Call, idOf, type Run } from './route.js'
import type { Fields, Value } from './world.js'

// Answers that are what a statement finds. Its placeholders are, in order, what the request says under the given names, in
// its path or in its query: null where it says nothing.

export const rows =
  (sql: string, ...names: readonly string[]): Run =>
  (call) =>
    call.database.rows(sql, valuesOf(call, names))

/** The only row; null, or `NOT_FOUND` where there is a noun, when there is none. */
export const oneRow =
  (noun: string | null, sql: string, ...names: readonly string[]): Run =>
  async (call) => {
    const [row] = await call.database.rows(sql, valuesOf(call, names))
    if (row === undefined && noun !== null) throw notFound(noun)
    return row ?? null
  }

/** Several answers in one, each under its name. */
export const together =
  (parts: Readonly<Record<string, Run>>) =>
  async (call: Call): Promise<Fields> => {
    const answers: Record<string, unknown> = {}
    for (const [name, run] of Object.entries(parts)) answers[name] = await run(call)
    return answers
  }

/** An answer about one of these; `NOT_FOUND` where it does not exist. */
export const about =
  (resource: Resource, run: Run): Run =>
  async (call) => {
    await getRecord(call, resource, idOf(call))
    return run(call)
  }

export const valuesOf = (call: Call, names: readonly string[]): Value[] => names.map((name) => sentAs(call, name))

const sentAs = (call: Call, name: string): Value => {
  const { query, params, now } = call
  if (name === 'limit' || name === 'offset') return pageOf(query)[name]
  if (name === 'from' || name === 'to') return momentOf(query, name)
  if (name === 'now') return now()
  return params[name] ?? textOf(query, name)
}

const momentOf = (query: Fields, name: string): Date | null => {
  const text = textOf(query, name)
  if (text === null) return null
  const moment = new Date(/^\d+$/.test(text) ? Number(text) : text)
  if (Number.isNaN(moment.getTime())) throw invalid([{ path: `/${name}`, message: 'must be a point in time' }])
  return moment
}
