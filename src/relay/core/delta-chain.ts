import type { Publication } from './broker.js'
import { createDelta } from './fossil.js'

/**
 * The publications of a channel as differences, each to the one before. One patch serves all subscribers that hold the
 * one before, so it is made once.
 */
export class DeltaChain {
  #base: Buffer | null = null
  #baseOffset = 0
  #patch: string | null = null

  /** Of the last publication: the patch as a JSON string, or null where it must go out whole. */
  get patch(): string | null {
    return this.#patch
  }

  /** Whether who holds the publication at this offset can take the next patch. */
  holds(offset: number): boolean {
    return this.#base === null || (offset > 0 && this.#baseOffset === offset)
  }

  advance({ data, offset, delta }: Publication): void {
    const bytes = Buffer.from(data)
    this.#patch = this.#base !== null && delta ? patchText(this.#base, bytes) : null
    this.#base = bytes
    this.#baseOffset = offset
  }

  /** Nobody takes deltas any more, so nothing has to be remembered. */
  forget(): void {
    this.#base = null
    this.#patch = null
  }
}

/** The patch as a JSON string; null where it does not pay. */
export const patchText = (base: Uint8Array, target: Uint8Array): string | null => {
  const patch = createDelta(base, target)
  return patch.length < target.length ? JSON.stringify(Buffer.from(patch).toString()) : null
}
