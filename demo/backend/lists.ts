import { Value as Typebox } from '@sinclair/typebox/value'
import { fieldFaults } from '../../schemas/field-faults.js'
import { PagingSchema } from '../../schemas/paging.js'
import { sqlName } from './database/columns.js'
import { invalid } from './errors.js'
import { type Call, fileAnswer, partOfList, type Run } from './route.js'
import type { Fields, Value } from './world.js'

/** Rows that the API lists: of a table, a view, or a query in brackets. */
export interface Listed {
  readonly from: string
  /** By these they can be filtered and sorted; where `at` is among them, also by `from` and `to`. */
  readonly fields: readonly string[]
  /** Fields that `?search=` looks into. */
  readonly search?: readonly string[]
  /** In SQL. */
  readonly order: string
}

const DEFAULT_LIMIT = 100
const MAX_EXPORTED = 100_000
const WHOLE = /^-?\d+$/

/** The part of a list that is asked for. Pages are counted from 1; page 0 is the first one too. */
const pageOf = (query: Fields) => {
  const given = Object.entries(query).filter(([, value]) => value !== '')
  const asked = Object.fromEntries(
    given.map(([name, value]) => [name, WHOLE.test(String(value)) ? Number(value) : value])
  )
  if (!Typebox.Check(PagingSchema, asked)) throw invalid(fieldFaults(Typebox.Errors(PagingSchema, asked)))
  const { limit = DEFAULT_LIMIT, page = 0, offset = Math.max(page - 1, 0) * limit, sort, order } = asked
  return { limit, offset, sort, direction: order === 'desc' ? 'DESC' : 'ASC' }
}

/** What the request says under this name; null where it says nothing. */
export const textOf = (query: Fields, name: string): string | null => {
  const value = query[name]
  return typeof value === 'string' && value !== '' ? value : null
}

const momentOf = (query: Fields, name: string): Date | null => {
  const text = textOf(query, name)
  if (text === null) return null
  const moment = new Date(WHOLE.test(text) ? Number(text) : text)
  if (Number.isNaN(moment.getTime())) throw invalid([{ path: `/${name}`, message: 'must be a point in time' }])
  return moment
}

/** Those that path and query ask for: by the values of fields, by a search, a page of them or all, in an order. */
export const listRows = async ({ database, params, query }: Call, listed: Listed, all?: { readonly limit: number }) => {
  const { from, fields, search = [], order } = listed
  const { sort, direction, ...page } = pageOf(query)
  const values: Value[] = []
  const place = (value: Value): string => `$${values.push(value)}`
  const conditions = ['true']
  // A query may hold parameters that are somebody else's.
  for (const [field, text] of Object.entries({ ...query, ...params }))
    if (fields.includes(field) && typeof text === 'string') conditions.push(`${sqlName(field)}::text = ${place(text)}`)
  const [since, until] = fields.includes('at') ? [momentOf(query, 'from'), momentOf(query, 'to')] : []
  if (since) conditions.push(`at >= ${place(since)}`)
  if (until) conditions.push(`at <= ${place(until)}`)
  const sought = textOf(query, 'search')
  if (sought !== null && search.length > 0) {
    const pattern = place(`%${sought.replace(/[\\%_]/g, '\\$&')}%`)
    conditions.push(`(${search.map((field) => `${sqlName(field)} ILIKE ${pattern}`).join(' OR ')})`)
  }
  if (sort !== undefined && !fields.includes(sort))
    throw invalid([{ path: '/sort', message: 'is not a field to sort by' }])
  const by = sort === undefined ? order : `${sqlName(sort)} ${direction}, ${order}`
  const matching = `FROM ${from} AS listed WHERE ${conditions.join(' AND ')}`
  const [counted] = await database.rows<{ total: number }>(`SELECT count(*)::int AS total ${matching}`, values)
  const { limit, offset } = all ? { ...all, offset: 0 } : page
  const rows = await database.rows(
    `SELECT * ${matching} ORDER BY ${by} LIMIT ${place(limit)} OFFSET ${place(offset)}`,
    values
  )
  return { rows: rows.map(flattened), total: counted?.total ?? 0, limit, offset }
}

/** Answers with a page, and how long the whole list is. */
export const list =
  (listed: Listed): Run =>
  async (call) => {
    const { rows, ...meta } = await listRows(call, listed)
    return partOfList(rows, meta)
  }

/** All that are asked for, as a file to save. */
export const exported =
  (listed: Listed, fileName: string, write: (rows: readonly Fields[]) => string | Buffer): Run =>
  async (call) => {
    const { rows } = await listRows(call, listed, { limit: MAX_EXPORTED })
    return fileAnswer(fileName.endsWith('.pdf') ? 'application/pdf' : 'text/csv; charset=utf-8', write(rows), fileName)
  }

/** Fields without a column stand beside the others, as they came. */
export const flattened = ({ extra, ...row }: Fields): Fields => ({ ...(extra as Fields | undefined), ...row })
