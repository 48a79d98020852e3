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
const FRESH_MS = 1000
const KEPT_MS = 10_000
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
