import type { PageWanted } from './listing.js'

const DEFAULT_SIZE = 50
const MAX_SIZE = 100
const MAX_PAGE = 1_000_000
const MAX_SEARCH = 256

/** What a list is asked for; text says what is wrong with it. */
export const pageWanted = <Sort extends string>(
  query: URLSearchParams,
  sorts: readonly Sort[]
): PageWanted<Sort> | string => {
  const search = query.get('search') ?? ''
  const sort = sorts.find((each) => each === (query.get('sort') ?? sorts[0]))
  const order = query.get('order') ?? 'asc'
  const page = whole(query.get('page') ?? '0', 0, MAX_PAGE)
  const size = whole(query.get('size') ?? String(DEFAULT_SIZE), 1, MAX_SIZE)
  if (search.length > MAX_SEARCH) return `search must not be longer than ${MAX_SEARCH} characters`
  if (sort === undefined) return `sort must be one of ${sorts.join(', ')}`
  if (order !== 'asc' && order !== 'desc') return 'order must be asc or desc'
  if (page === null) return 'page must be a whole number from 0'
  if (size === null) return `size must be a whole number from 1 to ${MAX_SIZE}`
  return { search, sort, isDescending: order === 'desc', page, size }
}

const whole = (text: string, least: number, most: number): number | null => {
  const value = /^\d{1,7}$/.test(text) ? Number(text) : -1
  return value >= least && value <= most ? value : null
}
