/** Small enough that an insertion moves few keys, large enough that a million keys need few chunks. */
const MAX_CHUNK = 512

/** Keys in the order of their UTF-16 code units, in chunks, so that a change costs about the same in a map of any size. */
export class SortedKeys {
  /** At least one chunk. Only a single chunk may be empty. */
  readonly #chunks: string[][] = [[]]

  /** The key must be new. */
  add(key: string): void {
    const at = this.#chunkOf(key)
    const chunk = this.#chunks[at] ?? []
    chunk.splice(indexIn(chunk, key), 0, key)
    if (chunk.length <= MAX_CHUNK) return
    // Keys that arrive in order leave full chunks behind.
    const middle = at === this.#chunks.length - 1 ? MAX_CHUNK : MAX_CHUNK / 2
    this.#chunks.splice(at, 1, chunk.slice(0, middle), chunk.slice(middle))
  }

  /** The key must exist. */
  delete(key: string): void {
    const at = this.#chunkOf(key)
    const chunk = this.#chunks[at] ?? []
    chunk.splice(indexIn(chunk, key), 1)
    if (chunk.length === 0 && this.#chunks.length > 1) this.#chunks.splice(at, 1)
  }

  /** Up to `limit` keys after this one, which does not need to exist. */
  after(key: string, limit: number): string[] {
    const keys: string[] = []
    for (let at = this.#chunkOf(key); at < this.#chunks.length && keys.length < limit; at++) {
      const chunk = this.#chunks[at] ?? []
      let index = keys.length === 0 ? indexIn(chunk, key) : 0
      if (chunk[index] === key) index += 1
      for (const next of chunk.slice(index, index + limit - keys.length)) keys.push(next)
    }
    return keys
  }

  /** The last chunk that does not begin after the key. */
  #chunkOf(key: string): number {
    let low = 0
    let high = this.#chunks.length - 1
    while (low < high) {
      const middle = (low + high + 1) >> 1
      if ((this.#chunks[middle]?.[0] ?? '') <= key) low = middle
      else high = middle - 1
    }
    return low
  }
}

/** Index of the first key that is not less. */
const indexIn = (chunk: readonly string[], key: string): number => {
  let low = 0
  let high = chunk.length
  while (low < high) {
    const middle = (low + high) >> 1
    if ((chunk[middle] ?? '') < key) low = middle + 1
    else high = middle
  }
  return low
}
