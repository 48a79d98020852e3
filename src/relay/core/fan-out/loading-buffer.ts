import { maxPublicationBytes } from '../codec/codec.js'
import type { Publication } from '../engine.js'
import { selected, type TagFilter } from './tag-filter.js'

/**
 * Changes of a map that arrive while a client without a position loads it: the newest of each key, because the client applies
 * them together.
 */
export class LoadingBuffer {
  readonly #filter: TagFilter | null
  readonly #maxBytes: number
  readonly #changes = new Map<string, Publication>()
  #bytes = 0
  #isComplete = true

  constructor(filter: TagFilter | null, maxBytes: number) {
    this.#filter = filter
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
    const change = this.#isComplete ? selected(this.#filter, publication) : null
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
