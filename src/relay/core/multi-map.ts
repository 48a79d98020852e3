/**
 * Any number of values for each key. Most keys have a single value: a Set for each of them would be the largest part of their
 * memory, and of the time to add them.
 */
export class MultiMap<Key, Value extends string | object> {
  readonly #values = new Map<Key, Value | Set<Value>>()

  /** Number of keys. */
  get size(): number {
    return this.#values.size
  }

  get(key: Key): readonly Value[] {
    const existing = this.#values.get(key)
    if (existing === undefined) return []
    return existing instanceof Set ? [...existing] : [existing]
  }

  has(key: Key, value: Value): boolean {
    const existing = this.#values.get(key)
    return existing instanceof Set ? existing.has(value) : existing === value
  }

  count(key: Key): number {
    const existing = this.#values.get(key)
    return existing instanceof Set ? existing.size : existing === undefined ? 0 : 1
  }

  add(key: Key, value: Value): void {
    const existing = this.#values.get(key)
    if (existing === undefined) this.#values.set(key, value)
    else if (existing instanceof Set) existing.add(value)
    else if (existing !== value) this.#values.set(key, new Set([existing, value]))
  }

  delete(key: Key, value: Value): void {
    const existing = this.#values.get(key)
    if (existing instanceof Set) {
      existing.delete(value)
      if (existing.size === 0) this.#values.delete(key)
    } else if (existing === value) this.#values.delete(key)
  }
}
