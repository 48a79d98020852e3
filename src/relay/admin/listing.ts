import type { Answer, Fleet } from '../core/fleet.js'
import type { Page } from './contract.js'
import { sortInSteps } from './in-steps.js'

export interface PageWanted<Sort extends string> {
  readonly search: string
  readonly sort: Sort
  readonly isDescending: boolean
  readonly page: number
  readonly size: number
}

type RowQuestion = 'adminChannels' | 'adminConnections'
type RowOf<Q extends RowQuestion> = Answer<Q>['rows'][number]

/** All rows that fit, of all nodes. */
export const rowsOfAll = async <Q extends RowQuestion>(
  fleet: Fleet,
  question: Q,
  search: string
): Promise<readonly (readonly RowOf<Q>[])[]> => {
  const firsts = await fleet.ask(question, { search, snapshot: null, from: 0 })
  return Promise.all(
    firsts.map(async ({ node, answer: first }) => {
      if (!first.hasMore) return first.rows
      const rows: RowOf<Q>[] = [...first.rows]
      for (let hasMore: boolean = first.hasMore; hasMore; ) {
        const next = await fleet.askOne(node, question, { search, snapshot: first.snapshot, from: rows.length })
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

  async page({ search, sort, isDescending, page, size }: PageWanted<Sort>): Promise<Page<Row>> {
    const all = await this.#keep(`sorted ${sort} ${search}`, async () =>
      sortInSteps(await this.#keep(`rows ${search}`, () => this.#gather(search)), this.#order(sort))
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
