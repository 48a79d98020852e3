import { Value as Typebox } from '@sinclair/typebox/value'
import { fieldErrors } from '../../schemas/field-errors.js'
import { PagingSchema } from '../../schemas/paging.js'
import { HttpError, invalid, notFound } from './errors.js'
import { flattened, getRecord } from './records.js'
import { type Listed, type Resource, sqlName } from './resources.js'
import { type Call, type CustomReply, fileReply, idOf, type Run } from './route.js'
import type { Fields, Value } from './world.js'

const DEFAULT_LIMIT = 100
const MAX_EXPORTED = 100_000
const WHOLE = /^-?\d+$/

/** The requested part of a list. Pages start at 1; page 0 is the first page too. */
const pageOf = (query: Fields) => {
  const given = Object.entries(query).filter(([, value]) => value !== '')
  const parameters = Object.fromEntries(
    given.map(([name, value]) => [name, WHOLE.test(String(value)) ? Number(value) : value])
  )
  if (!Typebox.Check(PagingSchema, parameters)) throw invalid(fieldErrors(Typebox.Errors(PagingSchema, parameters)))
  const { limit = DEFAULT_LIMIT, page = 0, offset = Math.max(page - 1, 0) * limit, sort, order } = parameters
  return { limit, offset, sort, direction: order === 'desc' ? 'DESC' : 'ASC' }
}

/** The path or query parameter with this name, or null. */
export const textOf = (query: Fields, name: string): string | null => {
  const value = query[name]
  return typeof value === 'string' && value !== '' ? value : null
}

/** The point in time in a query parameter, in ISO 8601 or milliseconds; null without one. */
export const momentOf = (query: Fields, name: string): Date | null => {
  const text = textOf(query, name)
  if (text === null) return null
  const moment = new Date(WHOLE.test(text) ? Number(text) : text)
  if (Number.isNaN(moment.getTime())) throw invalid([{ path: `/${name}`, message: 'must be a point in time' }])
  return moment
}

export interface Range {
  readonly from: Date
  readonly to: Date
}

/** The range from `from` to `to`. Without parameters it is as long as permitted and ends now. */
export const rangeOf = ({ query, now }: Pick<Call, 'query' | 'now'>, longestMs: number): Range => {
  const to = momentOf(query, 'to') ?? now()
  const from = momentOf(query, 'from') ?? new Date(to.getTime() - longestMs)
  const lengthMs = to.getTime() - from.getTime()
  if (lengthMs <= 0) throw invalid([{ path: '/from', message: 'must be before `to`' }])
  if (lengthMs > longestMs)
    throw invalid([{ path: '/from', message: `must be at most ${longestMs / 60_000} minutes before \`to\`` }])
  return { from, to }
}

/**
 * Rejects a change with `?version=` of a row that somebody else has changed since. The row stays locked until the end of the
 * transaction.
 * @param what what the message says has been changed.
 */
export const checkVersion = async (
  { query, database }: Call,
  table: string,
  id: string,
  what: string
): Promise<void> => {
  const expected = textOf(query, 'version')
  if (expected === null) return
  if (!/^\d{1,9}$/.test(expected)) throw invalid([{ path: '/version', message: 'must be a whole number' }])
  const sql = `SELECT version FROM ${table} WHERE id = $1 FOR UPDATE`
  const [stored] = await database.rows<{ version: number }>(sql, [id])
  if (stored === undefined || stored.version === Number(expected)) return
  throw new HttpError(409, 'RECORD_CHANGED', `Another user has changed ${what} meanwhile. Reload it and try again.`)
}

/** The fields that must have a value. Unknown query parameters are ignored. */
const fieldFilters = (query: Fields, { fields }: Pick<Listed, 'fields'>): (readonly [string, string])[] =>
  Object.entries(query).flatMap(([field, text]) =>
    fields.includes(field) && typeof text === 'string' ? [[field, text] as const] : []
  )

/** Rows filtered, searched, paged and sorted by the path and query parameters. */
const listRows = async ({ database, params, query }: Call, listed: Listed, all?: { readonly limit: number }) => {
  const { from, fields, search = [], order } = listed
  const { sort, direction, ...page } = pageOf(query)
  const values: Value[] = []
  const placeholder = (value: Value): string => `$${values.push(value)}`
  const conditions = ['true']
  for (const [field, text] of fieldFilters({ ...query, ...params }, listed))
    conditions.push(`${sqlName(field)}::text = ${placeholder(text)}`)
  const [since, until] = fields.includes('at') ? [momentOf(query, 'from'), momentOf(query, 'to')] : []
  if (since) conditions.push(`at >= ${placeholder(since)}`)
  if (until) conditions.push(`at <= ${placeholder(until)}`)
  const sought = textOf(query, 'search')
  if (sought !== null && search.length > 0) {
    const pattern = placeholder(`%${sought.replace(/[\\%_]/g, '\\$&')}%`)
    conditions.push(`(${search.map((field) => `${sqlName(field)} ILIKE ${pattern}`).join(' OR ')})`)
  }
  if (sort !== undefined && !fields.includes(sort))
    throw invalid([{ path: '/sort', message: 'is not a field to sort by' }])
  const by = sort === undefined ? order : `${sqlName(sort)} ${direction}, ${order}`
  const matching = `FROM ${from} AS listed WHERE ${conditions.join(' AND ')}`
  const [counted] = await database.rows<{ total: number }>(`SELECT count(*)::int AS total ${matching}`, values)
  const { limit, offset } = all ? { ...all, offset: 0 } : page
  const rows = await database.rows(
    `SELECT * ${matching} ORDER BY ${by} LIMIT ${placeholder(limit)} OFFSET ${placeholder(offset)}`,
    values
  )
  return { rows: rows.map(flattened), total: counted?.total ?? 0, limit, offset }
}

/** A page of a list and the total number of rows. */
const pageReply = ({ rows: data, ...meta }: Fields): CustomReply => {
  return () => ({ success: true, data, meta })
}

export const list =
  (listed: Listed): Run =>
  async (call) =>
    pageReply(await listRows(call, listed))

/** Lists rows that are not in the database, in the order in which they are given. */
export const listOf = ({ query }: Call, fields: readonly string[], all: readonly Fields[]): CustomReply => {
  const { limit, offset } = pageOf(query)
  const filters = fieldFilters(query, { fields })
  const found = all.filter((row) => filters.every(([field, text]) => String(row[field] ?? '') === text))
  return pageReply({ rows: found.slice(offset, offset + limit), total: found.length, limit, offset })
}

/** Writes the rows of an export. */
export type Write = (rows: readonly Fields[], call: Call) => string | Buffer | Promise<Buffer>

/** Without it, spreadsheets read UTF-8 as another encoding. */
export const BYTE_ORDER_MARK = '\uFEFF'

/** All matching rows as a file download: text is a CSV file, bytes are a PDF document. */
export const exported =
  (listed: Listed, fileName: string, write: Write): Run =>
  async (call) => {
    const { rows } = await listRows(call, listed, { limit: MAX_EXPORTED })
    const content = await write(rows, call)
    if (typeof content !== 'string') return fileReply('application/pdf', content, fileName)
    return fileReply('text/csv; charset=utf-8', `${BYTE_ORDER_MARK}${content}`, fileName)
  }

// Responses with the result of a statement. Its placeholders are the path or query parameters with the given names, in
// this order; null for missing ones.

const sentAs = ({ query, params, now }: Call, name: string): Value =>
  name === 'now' ? now() : (params[name] ?? textOf(query, name))

export const rows =
  (sql: string, ...names: readonly string[]) =>
  (call: Call): Promise<Fields[]> =>
    call.database.rows(
      sql,
      names.map((name) => sentAs(call, name))
    )

/** The only row. Without one: `NOT_FOUND` if a noun is given, else null. */
export const oneRow = (noun: string | null, sql: string, ...names: readonly string[]) => {
  const found = rows(sql, ...names)
  return async (call: Call): Promise<Fields | null> => {
    const [row] = await found(call)
    if (row === undefined && noun !== null) throw notFound(noun)
    return row ?? null
  }
}

/** Combines several results by name. */
export const together =
  (parts: Readonly<Record<string, Run>>) =>
  async (call: Call): Promise<Fields> => {
    const results: Record<string, unknown> = {}
    for (const [name, run] of Object.entries(parts)) results[name] = await run(call)
    return results
  }

/** A response about one row; `NOT_FOUND` if it does not exist. */
export const about =
  (resource: Resource, run: Run): Run =>
  async (call) => {
    await getRecord(call, resource, idOf(call))
    return run(call)
  }

/** SQL: the result of a query as one JSON value. */
export const nested = (sql: string): string => `(SELECT coalesce(jsonb_agg(entry), '[]') FROM (${sql}) AS entry)`
