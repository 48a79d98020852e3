import { BoundedMap } from '../../shared/bounded-map.js'
import { CHANNEL_KINDS, type ChannelKind, MAX_LIST_ROWS, type Page } from './contract.js'

// Lists may have 100,000 rows. A node makes the rows in slices of a few milliseconds and keeps only the first ones in order.

interface ListOrder<Sort extends string> {
  readonly sort: Sort
  readonly isDescending: boolean
}

interface ListSelection<Sort extends string> extends ListOrder<Sort> {
  /** A part of the name; '' for all. */
  readonly search: string
  /** Connections that are subscribed to this channel; '' for all. */
  readonly channel: string
  /** Connections of this user; '' for all. */
  readonly user: string
  readonly kind: ChannelKind
}

/** A page of a list. */
export interface PageQuery<Sort extends string> extends ListSelection<Sort> {
  readonly page: number
  readonly size: number
}

/** The first rows of a list. */
export interface ListQuery<Sort extends string> extends ListSelection<Sort> {
  readonly count: number
}

export interface RowList<Row> {
  /** The first rows in order. */
  readonly rows: readonly Row[]
  /** Number of all rows. */
  readonly total: number
}

type Compare<Row> = (left: Row, right: Row) => number

/** The columns that a list can be sorted by. */
export interface Sorting<Row, Sort extends string> {
  readonly columns: Readonly<Record<Sort, Compare<Row>>>
  readonly defaultColumn: Sort
  /** Unique text of a row; rows that are equal in the sorted column are ordered by it. */
  readonly key: (row: Row) => string
}

/** Compares code units instead of using a locale, which is much faster. */
export const byText = (left: string, right: string): number => (left < right ? -1 : left > right ? 1 : 0)

export const comparison = <Row, Sort extends string>(
  { columns, key }: Sorting<Row, Sort>,
  { sort, isDescending }: ListOrder<Sort>
): Compare<Row> => {
  const compare: Compare<Row> = (left, right) => columns[sort](left, right) || byText(key(left), key(right))
  return isDescending ? (left, right) => compare(right, left) : compare
}

/** Matches a part of the text in any letter case; '' matches everything. */
export const searchTest = (search: string): ((text: string) => boolean) => {
  const lower = search.toLowerCase()
  return lower === '' ? () => true : (text) => text.toLowerCase().includes(lower)
}

/** Counts rows and keeps the first `count` of them in order. */
export class FirstRows<Row> {
  readonly #compare: Compare<Row>
  readonly #count: number
  readonly #rows: Row[] = []
  #total = 0

  constructor(compare: Compare<Row>, count: number) {
    this.#compare = compare
    this.#count = count
  }

  add(row: Row): void {
    this.#total++
    // Sorting twice the rows now and then is cheaper than keeping them sorted, and no step sorts the complete list.
    if (this.#rows.push(row) >= 2 * this.#count) this.#cut()
  }

  list(): RowList<Row> {
    this.#cut()
    return { rows: this.#rows, total: this.#total }
  }

  #cut(): void {
    this.#rows.sort(this.#compare)
    this.#rows.length = Math.min(this.#rows.length, this.#count)
  }
}

/** One page of sorted rows. */
export const pageOf = <Row>(
  { rows, total }: RowList<Row>,
  { page, size }: Pick<PageQuery<string>, 'page' | 'size'>
): Page<Row> => ({ rows: rows.slice(page * size, (page + 1) * size), total, page, size })

/** A list is shared by all requests within this time. */
const FRESH_MS = 1000
/** Between 4 and 7 of the newest lists are cached. */
const MIN_LISTS = 4

/** The lists of this node. Each is made at most once per second, however many operators request it. */
export class ListCache<List> {
  readonly #monotonicMs: () => number
  readonly #lists = new BoundedMap<string, { readonly list: Promise<List>; readonly createdAt: number }>(MIN_LISTS)

  constructor(monotonicMs: () => number) {
    this.#monotonicMs = monotonicMs
  }

  get(query: ListQuery<string>, make: () => Promise<List>): Promise<List> {
    const key = JSON.stringify(query)
    const known = this.#lists.get(key)
    const nowMs = this.#monotonicMs()
    if (known !== undefined && nowMs - known.createdAt < FRESH_MS) return known.list
    const list = make()
    this.#lists.set(key, { list, createdAt: nowMs })
    return list
  }
}

const DEFAULT_SIZE = 50
const MAX_SIZE = 100
const MAX_SEARCH_LENGTH = 256
const MAX_NAME_LENGTH = 1024

/** Parses the query of a list request. Returns an error message if it is invalid. */
export const parsePageQuery = <Row, Sort extends string>(
  query: URLSearchParams,
  { columns, defaultColumn }: Sorting<Row, Sort>
): PageQuery<Sort> | string => {
  const search = query.get('search') ?? ''
  const channel = query.get('channel') ?? ''
  const user = query.get('user') ?? ''
  const isSort = (text: string): text is Sort => Object.hasOwn(columns, text)
  const sort = query.get('sort') ?? defaultColumn
  const order = query.get('order') ?? 'asc'
  const size = parseInteger(query.get('size') ?? String(DEFAULT_SIZE), 1, MAX_SIZE)
  if (search.length > MAX_SEARCH_LENGTH) return `search must not be longer than ${MAX_SEARCH_LENGTH} characters`
  if (channel.length > MAX_NAME_LENGTH) return `channel must not be longer than ${MAX_NAME_LENGTH} characters`
  if (user.length > MAX_NAME_LENGTH) return `user must not be longer than ${MAX_NAME_LENGTH} characters`
  const kind = CHANNEL_KINDS.find((each) => each === (query.get('kind') ?? ''))
  if (kind === undefined) return `kind must be one of ${CHANNEL_KINDS.filter((each) => each !== '').join(', ')}`
  if (!isSort(sort)) return `sort must be one of ${Object.keys(columns).join(', ')}`
  if (order !== 'asc' && order !== 'desc') return 'order must be asc or desc'
  if (size === null) return `size must be a whole number from 1 to ${MAX_SIZE}`
  const lastPage = Math.floor(MAX_LIST_ROWS / size) - 1
  const page = parseInteger(query.get('page') ?? '0', 0, lastPage)
  if (page === null) return `page must be a whole number from 0 to ${lastPage}`
  return { search, channel, user, kind, sort, isDescending: order === 'desc', page, size }
}

const parseInteger = (text: string, minimum: number, maximum: number): number | null => {
  const value = /^\d{1,7}$/.test(text) ? Number(text) : -1
  return value >= minimum && value <= maximum ? value : null
}
