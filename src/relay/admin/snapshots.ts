/** A snapshot is shared by all requests within this time. */
const FRESH_MS = 1000
/** All snapshots are dropped when no new one was made for this time. */
const UNUSED_MS = 10_000

export interface Snapshot<Value> {
  readonly id: number
  readonly value: Promise<Value>
}

interface CachedSnapshot<Value> extends Snapshot<Value> {
  readonly key: string
  readonly createdAt: number
}

/** A cache of lists that are expensive to make: each is made at most once per second, however many operators request it. */
export class SnapshotCache<Value> {
  readonly #monotonicMs: () => number
  readonly #maxSnapshots: number
  #snapshots: CachedSnapshot<Value>[] = []
  #nextId = 1
  #unused: NodeJS.Timeout | null = null

  constructor(monotonicMs: () => number, maxSnapshots: number) {
    this.#monotonicMs = monotonicMs
    this.#maxSnapshots = maxSnapshots
  }

  /** Returns a snapshot of the key that is at most a second old, or makes a new one. */
  get(key: string, make: () => Promise<Value>): Snapshot<Value> {
    const nowMs = this.#monotonicMs()
    const fresh = this.#snapshots.find((each) => each.key === key && nowMs - each.createdAt < FRESH_MS)
    if (fresh !== undefined) return fresh
    const created = { id: this.#nextId++, key, createdAt: nowMs, value: make() }
    this.#snapshots = [...this.#snapshots.slice(1 - this.#maxSnapshots), created]
    if (this.#unused === null) this.#unused = setTimeout(() => this.clear(), UNUSED_MS).unref()
    else this.#unused.refresh()
    return created
  }

  /** Finds an earlier snapshot, to read more of it. */
  find(id: number): Snapshot<Value> | undefined {
    return this.#snapshots.find((each) => each.id === id)
  }

  clear(): void {
    if (this.#unused !== null) clearTimeout(this.#unused)
    this.#unused = null
    this.#snapshots = []
  }
}
