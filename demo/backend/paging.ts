import { Value } from '@sinclair/typebox/value'
import { fieldFaults } from '../../schemas/field-faults.js'
import { PagingSchema } from '../../schemas/paging.js'
import { invalid } from './errors.js'
import type { Fields } from './world.js'

const DEFAULT_LIMIT = 100
const WHOLE = /^-?\d+$/

/** The part of a list that is asked for. Pages are counted from 1; page 0 is the first one too. */
export const pageOf = (query: Fields) => {
  const given = Object.entries(query).filter(([, value]) => value !== '')
  const asked = Object.fromEntries(
    given.map(([name, value]) => [name, WHOLE.test(String(value)) ? Number(value) : value])
  )
  if (!Value.Check(PagingSchema, asked)) throw invalid(fieldFaults(Value.Errors(PagingSchema, asked)))
  const { limit = DEFAULT_LIMIT, page = 0, offset = Math.max(page - 1, 0) * limit, sort, order } = asked
  return { limit, offset, sort, descending: order === 'desc', search: textOf(query, 'search') }
}

export const textOf = (query: Fields, name: string): string | null => {
  const value = query[name]
  return typeof value === 'string' && value !== '' ? value : null
}
