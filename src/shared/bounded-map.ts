/**
 * A map that keeps the newest entries: at least `minEntries`, and less than twice as many. It drops half of them at a time. To
 * delete the first key of a `Map` for each new one is slow, because iteration passes all keys that were deleted before.
 */
export class BoundedMap<Key, Value extends NonNullable<unknown>> {
  readonly #minEntries: number
  #newer = new Map<Key, Value>()
  #older = new Map<Key, Value>()
  /** The entries that were set last in each of them. */
  #newest: Value | undefined
  #newestOfOlder: Value | undefined

  constructor(minEntries: number) {
    this.#minEntries = minEntries
  }

  get size(): number {
    return this.#newer.size + this.#older.size
  }

  get(key: Key): Value | undefined {
    return this.#newer.get(key) ?? this.#older.get(key)
  }

  has(key: Key): boolean {
    return this.#newer.has(key) || this.#older.has(key)
  }

  /** The entry becomes the newest one, also if the key exists. */
  set(key: Key, value: Value): void {
    if (this.#older.size > 0) this.#older.delete(key)
    this.#newer.set(key, value)
    this.#newest = value
    if (this.#newer.size >= this.#minEntries) this.#dropOlder()
  }

  delete(key: Key): void {
    this.#newer.delete(key)
    this.#older.delete(key)
  }

  /** An entry that is set during the iteration may be missing in it. */
  *keys(): Generator<Key, void, undefined> {
    const older = this.#older
    yield* this.#newer.keys()
    yield* older.keys()
  }

  /** Called at intervals if entries expire in the order in which they were set. Drops the older half once all of it has expired. */
  expire(isExpired: (value: Value) => boolean): void {
    if (this.#newestOfOlder === undefined || isExpired(this.#newestOfOlder)) this.#dropOlder()
  }

  #dropOlder(): void {
    this.#older = this.#newer
    this.#newestOfOlder = this.#newest
    this.#newer = new Map()
    this.#newest = undefined
  }
}
