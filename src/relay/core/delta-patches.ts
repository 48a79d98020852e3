import type { Publication } from './broker.js'
import { createDelta } from './fossil.js'

/** What is remembered of patches at most, in characters. */
const MAX_LENGTH = 16 * 1024 * 1024
/** What a patch, and a stream, cost beside their characters. */
const ENTRY_LENGTH = 100

/** Of one stream, by offset of the publication; null where the patch does not pay. */
type StreamPatches = Map<number, string | null>

/**
 * Patches between neighbours in the streams of channels. Each is made once, for those who get it live and for all who
 * recover. Those of the channel that was not asked for for the longest time are forgotten first.
 */
export class DeltaPatches {
  readonly #maxLength: number
  /** In the order in which they were last used. */
  readonly #streams = new Map<string, StreamPatches>()
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
    return this.#find(this.#use(channel, epoch), base, target)
  }

  /** For publications that follow each other: the patch of each to the one before it, null where it must go out whole. */
  chain(channel: string, epoch: string, publications: readonly Publication[]): readonly (string | null)[] {
    const stream = this.#use(channel, epoch)
    const patches: (string | null)[] = []
    let base: Publication | null = null
    for (const target of publications) {
      patches.push(base === null || !target.delta ? null : this.#find(stream, base, target))
      base = target
    }
    return patches
  }

  /** The patches of a stream, which now is the one that was used last. */
  #use(channel: string, epoch: string): StreamPatches {
    const key = `${epoch} ${channel}`
    const known = this.#streams.get(key)
    if (known !== undefined) this.#streams.delete(key)
    else this.#grow(ENTRY_LENGTH + key.length)
    const stream = known ?? new Map()
    this.#streams.set(key, stream)
    return stream
  }

  #find(stream: StreamPatches, base: Publication, target: Publication): string | null {
    // Publications that are not kept have no place to be found by.
    if (base.offset === 0 || base.offset + 1 !== target.offset) return patchText(base, target)
    const known = stream.get(target.offset)
    if (known !== undefined) return known
    const patch = patchText(base, target)
    stream.set(target.offset, patch)
    this.#grow(lengthOf(patch))
    return patch
  }

  /** Makes room by forgetting patches of the streams that were not used for the longest time, the oldest first. */
  #grow(length: number): void {
    this.#length += length
    for (const [key, stream] of this.#streams) {
      for (const [offset, patch] of stream) {
        if (this.#length <= this.#maxLength) return
        stream.delete(offset)
        this.#length -= lengthOf(patch)
      }
      if (this.#length <= this.#maxLength) return
      this.#streams.delete(key)
      this.#length -= ENTRY_LENGTH + key.length
    }
  }
}

const lengthOf = (patch: string | null): number => ENTRY_LENGTH + (patch?.length ?? 0)

/** The patch as a JSON string; null where it does not pay. */
const patchText = (base: Publication, target: Publication): string | null => {
  const bytes = Buffer.from(target.data)
  const patch = createDelta(Buffer.from(base.data), bytes)
  return patch.length < bytes.length ? JSON.stringify(Buffer.from(patch).toString()) : null
}
