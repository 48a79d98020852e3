import type { Cluster, SurveyResult } from '../core/survey.js'
import type { Page } from './contract.js'
import { ListCache } from './list-cache.js'

// Lists may have 100,000 rows. They are sorted, merged and sent between nodes in steps of a few milliseconds, so that
// clients are served in between.

export interface ListFilter {
  /** A part of the name; '' for all. */
  readonly search: string
  /** Connections that are subscribed to this channel; '' for all. */
  readonly channel: string
}

export interface PageQuery<Sort extends string> extends ListFilter {
  readonly sort: Sort
  readonly isDescending: boolean
  readonly page: number
  readonly size: number
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

/** Matches a part of the text in any letter case; '' matches everything. */
export const searchTest = (search: string): ((text: string) => boolean) => {
  const lower = search.toLowerCase()
  return lower === '' ? () => true : (text) => text.toLowerCase().includes(lower)
}

const MAX_CLUSTER_LISTS = 8

/** Pages of a list of all nodes. */
export class Listing<Row, Sort extends string> {
  readonly sorting: Sorting<Row, Sort>
  readonly #collect: (filter: ListFilter) => Promise<readonly Row[]>
  readonly #lists: ListCache<readonly Row[]>

  constructor(
    collect: (filter: ListFilter) => Promise<readonly Row[]>,
    sorting: Sorting<Row, Sort>,
    monotonicMs: () => number
  ) {
    this.sorting = sorting
    this.#collect = collect
    this.#lists = new ListCache(monotonicMs, MAX_CLUSTER_LISTS)
  }

  async page({ search, channel, sort, ...range }: PageQuery<Sort>): Promise<Page<Row>> {
    return pageOf(await this.#sorted({ search, channel }, sort), range)
  }

  close(): void {
    this.#lists.clear()
  }

  #sorted(filter: ListFilter, sort: Sort): Promise<readonly Row[]> {
    const { search, channel } = filter
    return this.#lists.get(JSON.stringify([search, channel, sort]), async () => {
      const rows = await this.#lists.get(JSON.stringify([search, channel]), () => this.#collect(filter)).value
      const { columns, key } = this.sorting
      return sortInSteps(rows, (left, right) => columns[sort](left, right) || byText(key(left), key(right)))
    }).value
  }
}

/** One page of sorted rows. */
export const pageOf = <Row>(
  rows: readonly Row[],
  { isDescending, page, size }: Pick<PageQuery<string>, 'isDescending' | 'page' | 'size'>
): Page<Row> => {
  const total = rows.length
  const start = page * size
  const shown = isDescending
    ? rows.slice(Math.max(0, total - start - size), Math.max(0, total - start)).reverse()
    : rows.slice(start, start + size)
  return { rows: shown, total, page, size }
}

type ListSurvey = 'adminChannels' | 'adminConnections'
type RowOf<Survey extends ListSurvey> = SurveyResult<Survey>['rows'][number]

/** The matching rows of all nodes, one list per node. */
export const rowsOfAllNodes = async <Survey extends ListSurvey>(
  cluster: Cluster,
  survey: Survey,
  filter: ListFilter
): Promise<readonly (readonly RowOf<Survey>[])[]> => {
  const firstChunks = await cluster.survey(survey, { ...filter, snapshot: null, from: 0 })
  return Promise.all(
    firstChunks.map(async ({ node, result: first }) => {
      if (!first.hasMore) return first.rows
      const rows: RowOf<Survey>[] = [...first.rows]
      for (let hasMore: boolean = first.hasMore; hasMore; ) {
        const next = await cluster.surveyNode(node, survey, { ...filter, snapshot: first.snapshot, from: rows.length })
        // The node has left or has dropped the list. An incomplete list is better than an error.
        if (next === null || next.rows.length === 0) break
        // TypeScript does not relate the rows of the same generic survey to each other.
        for (const row of next.rows) rows.push(row as RowOf<Survey>)
        hasMore = next.hasMore
      }
      return rows
    })
  )
}

/** Requests a part of the rows of one node. */
export interface ChunkRequest extends ListFilter {
  /** The id of the list to continue; null for a new one. */
  readonly snapshot: number | null
  readonly from: number
}

export interface RowChunk<Row> {
  readonly snapshot: number
  readonly rows: readonly Row[]
  readonly hasMore: boolean
}

const CHUNK_ROWS = 5000
const MAX_NODE_LISTS = 4

/** The rows of this node, sent in chunks. */
export class NodeRows<Row> {
  readonly #collect: (filter: ListFilter) => Promise<readonly Row[]>
  readonly #lists: ListCache<readonly Row[]>

  constructor(collect: (filter: ListFilter) => Promise<readonly Row[]>, monotonicMs: () => number) {
    this.#collect = collect
    this.#lists = new ListCache(monotonicMs, MAX_NODE_LISTS)
  }

  /** Earlier versions do not send `channel`. */
  async chunk({ search, channel = '', snapshot: id, from }: ChunkRequest): Promise<RowChunk<Row>> {
    const collect = (): Promise<readonly Row[]> => this.#collect({ search, channel })
    const snapshot = id === null ? this.#lists.get(JSON.stringify([search, channel]), collect) : this.#lists.find(id)
    const rows = (await snapshot?.value) ?? []
    const chunk = from === 0 && rows.length <= CHUNK_ROWS ? rows : rows.slice(from, from + CHUNK_ROWS)
    return { snapshot: snapshot?.id ?? 0, rows: chunk, hasMore: from + chunk.length < rows.length }
  }

  close(): void {
    this.#lists.clear()
  }
}

const STEP_ROWS = 2000

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** A merge sort that yields to the event loop after every step. */
const sortInSteps = async <Row>(rows: readonly Row[], compare: Compare<Row>): Promise<Row[]> => {
  let runs: Row[][] = []
  for (let start = 0; start < rows.length; start += STEP_ROWS) {
    runs.push(rows.slice(start, start + STEP_ROWS).sort(compare))
    await nextTurn()
  }
  while (runs.length > 1) {
    const merged: Row[][] = []
    for (let index = 0; index < runs.length; index += 2) {
      merged.push(await mergeInSteps(runs[index] ?? [], runs[index + 1] ?? [], compare))
    }
    runs = merged
  }
  return runs[0] ?? []
}

const mergeInSteps = async <Row>(
  left: readonly Row[],
  right: readonly Row[],
  compare: Compare<Row>
): Promise<Row[]> => {
  const merged: Row[] = []
  let rightIndex = 0
  for (const row of left) {
    for (let next = right[rightIndex]; next !== undefined && compare(row, next) > 0; next = right[rightIndex]) {
      merged.push(next)
      rightIndex++
      if (merged.length % STEP_ROWS === 0) await nextTurn()
    }
    merged.push(row)
    if (merged.length % STEP_ROWS === 0) await nextTurn()
  }
  for (; rightIndex < right.length; rightIndex += STEP_ROWS) {
    merged.push(...right.slice(rightIndex, rightIndex + STEP_ROWS))
    await nextTurn()
  }
  return merged
}

const DEFAULT_SIZE = 50
const MAX_SIZE = 100
const MAX_PAGE = 1_000_000
const MAX_SEARCH_LENGTH = 256
const MAX_CHANNEL_LENGTH = 1024

/** Parses the query of a list request. Returns an error message if it is invalid. */
export const parsePageQuery = <Row, Sort extends string>(
  query: URLSearchParams,
  { columns, defaultColumn }: Sorting<Row, Sort>
): PageQuery<Sort> | string => {
  const search = query.get('search') ?? ''
  const channel = query.get('channel') ?? ''
  const isSort = (text: string): text is Sort => Object.hasOwn(columns, text)
  const sort = query.get('sort') ?? defaultColumn
  const order = query.get('order') ?? 'asc'
  const page = parseInteger(query.get('page') ?? '0', 0, MAX_PAGE)
  const size = parseInteger(query.get('size') ?? String(DEFAULT_SIZE), 1, MAX_SIZE)
  if (search.length > MAX_SEARCH_LENGTH) return `search must not be longer than ${MAX_SEARCH_LENGTH} characters`
  if (channel.length > MAX_CHANNEL_LENGTH) return `channel must not be longer than ${MAX_CHANNEL_LENGTH} characters`
  if (!isSort(sort)) return `sort must be one of ${Object.keys(columns).join(', ')}`
  if (order !== 'asc' && order !== 'desc') return 'order must be asc or desc'
  if (page === null) return 'page must be a whole number from 0'
  if (size === null) return `size must be a whole number from 1 to ${MAX_SIZE}`
  return { search, channel, sort, isDescending: order === 'desc', page, size }
}

const parseInteger = (text: string, minimum: number, maximum: number): number | null => {
  const value = /^\d{1,7}$/.test(text) ? Number(text) : -1
  return value >= minimum && value <= maximum ? value : null
}
