import type { Fields } from './database/database.js'
import { invalid } from './errors.js'

/** The part of a list that is asked for. */
export interface Page {
  readonly limit: number
  readonly offset: number
  readonly sort: string | null
  readonly descending: boolean
  readonly search: string | null
}

const DEFAULT_LIMIT = 100
const MAX_LIMIT = 1000
const MAX_OFFSET = 1_000_000

export const WHOLE_LIST = { limit: 1_000_000, offset: 0 } as const

export const pageOf = (query: Fields): Page => {
  const limit = wholeNumber(query, 'limit', 1, MAX_LIMIT) ?? DEFAULT_LIMIT
  const page = wholeNumber(query, 'page', 0, MAX_OFFSET) ?? 0
  return {
    limit,
    // Pages are counted from 1; page 0 is the first one too.
    offset: wholeNumber(query, 'offset', 0, MAX_OFFSET) ?? Math.max(page - 1, 0) * limit,
    sort: textOf(query, 'sort'),
    descending: query.order === 'desc',
    search: textOf(query, 'search')
  }
}

export const textOf = (query: Fields, name: string): string | null => {
  const value = query[name]
  return typeof value === 'string' && value !== '' ? value : null
}

export const wholeNumber = (query: Fields, name: string, low: number, high: number): number | null => {
  const text = textOf(query, name)
  if (text === null) return null
  const value = Number(text)
  if (Number.isInteger(value) && value >= low && value <= high) return value
  throw invalid(`/${name}`, `must be a whole number from ${low} to ${high}`)
}
