import type { Cluster, SurveyResult } from '../core/survey.js'
import type { Page } from './contract.js'

// Work on lists of a hundred thousand entries, done in pieces of a few milliseconds: clients are served in between.

const STEP = 2000

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

type Compare<Entry> = (left: Entry, right: Entry) => number

/** Sorted pieces first, which are then merged two by two. */
export const sortYielding = async <Entry>(entries: readonly Entry[], compare: Compare<Entry>): Promise<Entry[]> => {
  let runs: Entry[][] = []
  for (let start = 0; start < entries.length; start += STEP) {
    runs.push(entries.slice(start, start + STEP).sort(compare))
    await nextTurn()
  }
  while (runs.length > 1) {
    const merged: Entry[][] = []
    for (let index = 0; index < runs.length; index += 2) {
      merged.push(await mergeInSteps(runs[index] ?? [], runs[index + 1] ?? [], compare))
    }
    runs = merged
  }
  return runs[0] ?? []
}

const mergeInSteps = async <Entry>(left: Entry[], right: Entry[], compare: Compare<Entry>): Promise<Entry[]> => {
  if (right.length === 0) return left
  const merged: Entry[] = []
  let [fromLeft, fromRight] = [0, 0]
  while (fromLeft < left.length || fromRight < right.length) {
    const [one, other] = [left[fromLeft], right[fromRight]]
    const takesLeft = other === undefined || (one !== undefined && compare(one, other) <= 0)
    merged.push((takesLeft ? one : other) as Entry)
    if (takesLeft) fromLeft++
    else fromRight++
    if (merged.length % STEP === 0) await nextTurn()
  }
  return merged
}

export interface PageQuery<Sort extends string> {
  readonly search: string
  readonly sort: Sort
  readonly isDescending: boolean
  readonly page: number
  readonly size: number
}

type RowQuestion = 'adminChannels' | 'adminConnections'
type RowOf<Q extends RowQuestion> = SurveyResult<Q>['rows'][number]

/** All rows that fit, of all nodes. */
export const rowsOfAll = async <Q extends RowQuestion>(
  cluster: Cluster,
  survey: Q,
  search: string
): Promise<readonly (readonly RowOf<Q>[])[]> => {
  const firsts = await cluster.survey(survey, { search, snapshot: null, from: 0 })
  return Promise.all(
    firsts.map(async ({ node, result: first }) => {
      if (!first.hasMore) return first.rows
      const rows: RowOf<Q>[] = [...first.rows]
      for (let hasMore: boolean = first.hasMore; hasMore; ) {
        const next = await cluster.surveyNode(node, survey, { search, snapshot: first.snapshot, from: rows.length })
        // The node is gone, or has forgotten: better a short list than none.
        if (next === null || next.rows.length === 0) break
        for (const row of next.rows) rows.push(row as RowOf<Q>)
        hasMore = next.hasMore
      }
      return rows
    })
  )
}

const FRESH_MS = 1000
const KEPT_MS = 10_000
const MAX_KEPT = 8

interface Kept<Value> {
  readonly value: Promise<Value>
  readonly madeAt: number
}

/** Pages of a long list: gathered and sorted once for all who look within a second. */
export class Listing<Row, Sort extends string> {
  readonly #gather: (search: string) => Promise<readonly Row[]>
  readonly #order: (sort: Sort) => (left: Row, right: Row) => number
  readonly #monotonicMs: () => number
  readonly #kept = new Map<string, Kept<readonly Row[]>>()
  #forgetting: NodeJS.Timeout | null = null

  constructor(
    gather: (search: string) => Promise<readonly Row[]>,
    order: (sort: Sort) => (left: Row, right: Row) => number,
    monotonicMs: () => number
  ) {
    this.#gather = gather
    this.#order = order
    this.#monotonicMs = monotonicMs
  }

  async page({ search, sort, isDescending, page, size }: PageQuery<Sort>): Promise<Page<Row>> {
    const all = await this.#keep(`sorted ${sort} ${search}`, async () =>
      sortYielding(await this.#keep(`rows ${search}`, () => this.#gather(search)), this.#order(sort))
    )
    const total = all.length
    const start = page * size
    const rows = isDescending
      ? all.slice(Math.max(0, total - start - size), Math.max(0, total - start)).reverse()
      : all.slice(start, start + size)
    return { rows, total, page, size }
  }

  close(): void {
    if (this.#forgetting !== null) clearTimeout(this.#forgetting)
    this.#forgetting = null
    this.#kept.clear()
  }

  #keep(name: string, make: () => Promise<readonly Row[]>): Promise<readonly Row[]> {
    const nowMs = this.#monotonicMs()
    const known = this.#kept.get(name)
    if (known !== undefined && nowMs - known.madeAt < FRESH_MS) return known.value
    const value = make()
    this.#kept.delete(name)
    this.#kept.set(name, { value, madeAt: nowMs })
    if (this.#kept.size > MAX_KEPT) this.#kept.delete(this.#kept.keys().next().value as string)
    if (this.#forgetting === null) this.#forgetting = setTimeout(() => this.close(), KEPT_MS).unref()
    else this.#forgetting.refresh()
    return value
  }
}

/** Part of the rows of one node: what nodes tell each other must not keep either of them busy for long. */
export interface RowsWanted {
  readonly search: string
  /** Of which list; null for a new one. */
  readonly snapshot: number | null
  readonly from: number
}

export interface RowChunk<Row> {
  readonly snapshot: number
  readonly rows: readonly Row[]
  readonly hasMore: boolean
}

interface Snapshot<Row> {
  readonly id: number
  readonly search: string
  readonly madeAt: number
  readonly rows: Promise<readonly Row[]>
}

const CHUNK = 5000
/** One that is as young is as good as a new one. */
const MAX_SNAPSHOTS = 4

/** The rows of this node, made once for all who ask within a second and handed out in parts. */
export class RowSource<Row> {
  readonly #make: (search: string) => Promise<readonly Row[]>
  readonly #monotonicMs: () => number
  #snapshots: Snapshot<Row>[] = []
  #nextId = 1
  #forgetting: NodeJS.Timeout | null = null

  constructor(make: (search: string) => Promise<readonly Row[]>, monotonicMs: () => number) {
    this.#make = make
    this.#monotonicMs = monotonicMs
  }

  async chunk({ search, snapshot: id, from }: RowsWanted): Promise<RowChunk<Row>> {
    const snapshot = id === null ? this.#fresh(search) : this.#snapshots.find((each) => each.id === id)
    const rows = (await snapshot?.rows) ?? []
    const part = from === 0 && rows.length <= CHUNK ? rows : rows.slice(from, from + CHUNK)
    return { snapshot: snapshot?.id ?? 0, rows: part, hasMore: from + part.length < rows.length }
  }

  close(): void {
    if (this.#forgetting !== null) clearTimeout(this.#forgetting)
    this.#forgetting = null
    this.#snapshots = []
  }

  #fresh(search: string): Snapshot<Row> {
    const nowMs = this.#monotonicMs()
    const known = this.#snapshots.find((each) => each.search === search && nowMs - each.madeAt < FRESH_MS)
    if (known !== undefined) return known
    const made = { id: this.#nextId++, search, madeAt: nowMs, rows: this.#make(search) }
    this.#snapshots = [...this.#snapshots.slice(1 - MAX_SNAPSHOTS), made]
    // A long list is not kept for nobody.
    if (this.#forgetting === null) this.#forgetting = setTimeout(() => this.close(), KEPT_MS).unref()
    else this.#forgetting.refresh()
    return made
  }
}

const DEFAULT_SIZE = 50
const MAX_SIZE = 100
const MAX_PAGE = 1_000_000
const MAX_SEARCH = 256

/** What a list is asked for; text says what is wrong with it. */
export const parsePageQuery = <Sort extends string>(
  query: URLSearchParams,
  sorts: readonly Sort[]
): PageQuery<Sort> | string => {
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
