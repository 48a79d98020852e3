import { maxPublicationBytes } from '../codec/codec.js'
import type { Publication } from '../publication.js'

/**
 * Changes of a map that arrive while a client without a position loads it: the newest of each key, because the client applies
 * them together.
 */
export class LoadingBuffer {
  readonly #select: (change: Publication) => Publication | null
  readonly #maxBytes: number
  readonly #changes = new Map<string, Publication>()
  #bytes = 0
  #isComplete = true

  /** `select` returns what the client receives of a change, null for nothing. */
  constructor(select: (change: Publication) => Publication | null, maxBytes: number) {
    this.#select = select
    this.#maxBytes = maxBytes
  }

  /** False if changes are missing. The client then has to start again. */
  get isComplete(): boolean {
    return this.#isComplete
  }

  get changes(): readonly Publication[] {
    return [...this.#changes.values()]
  }

  add(publication: Publication): void {
    const change = this.#isComplete ? this.#select(publication) : null
    if (change === null) return
    const { key = '' } = change
    const replaced = this.#changes.get(key)
    if (replaced !== undefined) this.#bytes -= maxPublicationBytes(replaced.data, replaced)
    // Deleted first, so that the key moves to the end.
    this.#changes.delete(key)
    this.#changes.set(key, change)
    this.#bytes += maxPublicationBytes(change.data, change)
    if (this.#bytes > this.#maxBytes) this.lose()
  }

  /** Deliveries were lost, or do not fit. */
  lose(): void {
    this.#isComplete = false
    this.#changes.clear()
  }
}
