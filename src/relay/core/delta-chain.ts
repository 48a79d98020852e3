import type { Publication } from './broker.js'
import type { DeltaPatches } from './delta-patches.js'

/**
 * The publications of a channel as differences, each to the one before. One patch serves all subscribers that hold the
 * one before.
 */
export class DeltaChain {
  readonly #channel: string
  readonly #patches: DeltaPatches
  #base: Publication | null = null
  #patch: string | null = null

  constructor(channel: string, patches: DeltaPatches) {
    this.#channel = channel
    this.#patches = patches
  }

  /** Of the last publication: the patch as a JSON string, or null where it must go out whole. */
  get patch(): string | null {
    return this.#patch
  }

  /** Whether who holds the publication at this offset can take the next patch. */
  holds(offset: number): boolean {
    return this.#base === null || (offset > 0 && this.#base.offset === offset)
  }

  advance(publication: Publication, epoch: string): void {
    const base = this.#base
    this.#patch =
      base !== null && publication.delta ? this.#patches.between(this.#channel, epoch, base, publication) : null
    this.#base = publication
  }

  /** Nobody takes deltas any more, so nothing has to be remembered. */
  forget(): void {
    this.#base = null
    this.#patch = null
  }
}
