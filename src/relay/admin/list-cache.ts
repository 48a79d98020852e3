/** A list is shared by all requests within this time. */
const FRESH_MS = 1000
/** All lists are dropped when no new one was made for this time. */
const UNUSED_MS = 10_000

interface CachedList<Value> {
  readonly id: number
  readonly value: Promise<Value>
}

interface Entry<Value> extends CachedList<Value> {
  readonly key: string
  readonly createdAt: number
}

/** A cache of lists that are expensive to make: each is made at most once per second, however many operators request it. */
export class ListCache<Value> {
  readonly #monotonicMs: () => number
  readonly #maxLists: number
  #lists: Entry<Value>[] = []
  #nextId = 1
  #unused: NodeJS.Timeout | null = null

  constructor(monotonicMs: () => number, maxLists: number) {
    this.#monotonicMs = monotonicMs
    this.#maxLists = maxLists
  }

  /** Returns a list of the key that is at most a second old, or makes a new one. */
  get(key: string, make: () => Promise<Value>): CachedList<Value> {
    const nowMs = this.#monotonicMs()
    const fresh = this.#lists.find((each) => each.key === key && nowMs - each.createdAt < FRESH_MS)
    if (fresh !== undefined) return fresh
    const created = { id: this.#nextId++, key, createdAt: nowMs, value: make() }
    this.#lists = [...this.#lists.slice(1 - this.#maxLists), created]
    if (this.#unused === null) this.#unused = setTimeout(() => this.clear(), UNUSED_MS).unref()
    else this.#unused.refresh()
    return created
  }

  /** Finds an earlier list, to read more of it. */
  find(id: number): CachedList<Value> | undefined {
    return this.#lists.find((each) => each.id === id)
  }

  clear(): void {
    if (this.#unused !== null) clearTimeout(this.#unused)
    this.#unused = null
    this.#lists = []
  }
}
