import type { Publication } from './broker.js'
import { createDelta } from './fossil.js'

/** What is remembered of patches at most, in characters. */
const MAX_LENGTH = 16 * 1024 * 1024
/** What an entry costs beside its patch. */
const ENTRY_LENGTH = 200

/**
 * Patches between neighbours in the stream of a channel. Each is made once, for those who get it live and for all who
 * recover; those that were not asked for for the longest time are forgotten first.
 */
export class DeltaPatches {
  readonly #maxLength: number
  /** By place of the publication; null where the patch does not pay. In the order in which they were last used. */
  readonly #patches = new Map<string, string | null>()
  #length = 0

  constructor(maxLength = MAX_LENGTH) {
    this.#maxLength = maxLength
  }

  /** Characters of all that is remembered. */
  get length(): number {
    return this.#length
  }

  /** What makes `target` of the publication before it, as a JSON string; null where it must go out whole. */
  between(channel: string, epoch: string, base: Publication, target: Publication): string | null {
    // Publications that are not kept have no place to be found by.
    if (epoch === '' || base.offset === 0 || base.offset + 1 !== target.offset) return patchText(base, target)
    const key = `${target.offset} ${epoch} ${channel}`
    const known = this.#patches.get(key)
    if (known !== undefined) {
      this.#patches.delete(key)
      this.#patches.set(key, known)
      return known
    }
    const patch = patchText(base, target)
    this.#patches.set(key, patch)
    this.#length += lengthOf(key, patch)
    while (this.#length > this.#maxLength) this.#forgetOldest()
    return patch
  }

  #forgetOldest(): void {
    const [oldest] = this.#patches
    if (oldest === undefined) return
    const [key, patch] = oldest
    this.#patches.delete(key)
    this.#length -= lengthOf(key, patch)
  }
}

const lengthOf = (key: string, patch: string | null): number => ENTRY_LENGTH + key.length + (patch?.length ?? 0)

/** The patch as a JSON string; null where it does not pay. */
const patchText = (base: Publication, target: Publication): string | null => {
  const bytes = Buffer.from(target.data)
  const patch = createDelta(Buffer.from(base.data), bytes)
  return patch.length < bytes.length ? JSON.stringify(Buffer.from(patch).toString()) : null
}
