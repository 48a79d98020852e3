/** So many places for each server: the shares differ by less than a tenth or so. */
const POINTS_EACH = 160

/**
 * Consistent hashing: of n servers one that is added or removed changes the place of one channel in n. It depends on the
 * servers' names alone, so all relays agree, in whatever order they list them.
 */
export class Ring<T extends { readonly name: string }> {
  readonly #hashes: Uint32Array
  readonly #owners: readonly T[]

  constructor(servers: readonly T[]) {
    const points = servers
      .flatMap((server) =>
        Array.from({ length: POINTS_EACH }, (_, index) => ({ hash: hashOf(`${server.name}#${index}`), server }))
      )
      .sort((a, b) => a.hash - b.hash || (a.server.name < b.server.name ? -1 : 1))
    this.#hashes = Uint32Array.from(points, ({ hash }) => hash)
    this.#owners = points.map(({ server }) => server)
  }

  /** The first at or behind the name's hash; behind the last comes the first. */
  ownerOf(name: string): T {
    const hash = hashOf(name)
    let low = 0
    let high = this.#hashes.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.#hashes[middle] as number) < hash) low = middle + 1
      else high = middle
    }
    return this.#owners[low % this.#owners.length] as T
  }
}

/** FNV-1a, and a last stir, because names that differ in their last letter would lie side by side. */
const hashOf = (text: string): number => {
  let hash = 0x811c9dc5
  for (let index = 0; index < text.length; index++) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return (hash ^ (hash >>> 16)) >>> 0
}
