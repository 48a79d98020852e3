import type { Payload, Publication } from '../publication.js'
import { createDelta } from './fossil.js'

/** Deltas between consecutive publications of a channel, or between the values of a key of a map, shared by all its subscribers. */
export class DeltaChain {
  readonly #channel: string
  readonly #patches: DeltaPatches
  #base: Publication | null = null
  #patch: Payload | null = null

  constructor(channel: string, patches: DeltaPatches) {
    this.#channel = channel
    this.#patches = patches
  }

  /** Patch of the last publication; null if it must be sent in full. */
  get patch(): Payload | null {
    return this.#patch
  }

  /** A client has received this publication, the last one of the stream. Returns whether it can apply the next patch. */
  joinDeltas(publication: Publication): boolean {
    this.#base ??= publication
    return publication.offset > 0 && this.#base.offset === publication.offset
  }

  advance(publication: Publication, epoch: string): void {
    if (publication.key !== undefined) {
      this.#patch = entryPatch(publication)
      return
    }
    const base = this.#base
    this.#patch =
      base !== null && publication.delta ? this.#patches.between(this.#channel, epoch, base, publication) : null
    this.#base = publication
  }

  /** Called when no subscriber uses deltas. */
  reset(): void {
    this.#base = null
    this.#patch = null
  }
}

/** Maximum size of the cache in characters. */
const MAX_LENGTH = 16 * 1024 * 1024
/** Overhead of a patch or a stream in the cache. */
const ENTRY_LENGTH = 100
/** Evicted at once, because iteration of a `Map` passes all entries at its start that were deleted before. */
const EVICTED_SHARE = 1 / 16

/** Patches of a stream by offset; null if the patch is not shorter than the publication. */
type StreamPatches = Map<number, Payload | null>

/**
 * Cache of the patches between consecutive publications. Each patch is created once, for live delivery and for recovery.
 * Patches of the least recently used channel are evicted first. A map of its own, because channels are evicted patch by patch
 * and share one limit of characters.
 */
export class DeltaPatches {
  readonly #maxLength: number
  /** Least recently used first. */
  readonly #streams = new Map<string, StreamPatches>()
  #length = 0

  constructor(maxLength = MAX_LENGTH) {
    this.#maxLength = maxLength
  }

  /** Size of the cache in characters. */
  get length(): number {
    return this.#length
  }

  /** The patch from `base` to `target`; null if the target must be sent in full. */
  between(channel: string, epoch: string, base: Publication, target: Publication): Payload | null {
    return this.#find(this.#use(channel, epoch), base, target)
  }

  /** The patches of consecutive publications, each to the previous one of its key; null if it must be sent in full. */
  chain(channel: string, epoch: string, publications: readonly Publication[]): readonly (Payload | null)[] {
    const stream = this.#use(channel, epoch)
    const patches: (Payload | null)[] = []
    // Publications of streams have no key.
    const bases = new Map<string | undefined, Publication>()
    for (const target of publications) {
      const base = bases.get(target.key)
      const isFull = base === undefined || base.removed || target.removed || !target.delta
      patches.push(isFull || isWithoutPosition(target) ? null : this.#find(stream, base, target))
      bases.set(target.key, target)
    }
    return patches
  }

  /** Returns the patches of a stream and marks it as used last. */
  #use(channel: string, epoch: string): StreamPatches {
    const key = `${epoch} ${channel}`
    const existing = this.#streams.get(key)
    if (existing !== undefined) this.#streams.delete(key)
    else this.#grow(ENTRY_LENGTH + key.length)
    const stream: StreamPatches = existing ?? new Map()
    this.#streams.set(key, stream)
    return stream
  }

  #find(stream: StreamPatches, base: Publication, target: Publication): Payload | null {
    // Publications without history have no offset to cache by.
    if (base.offset + 1 !== target.offset) return createPatch(base, target)
    const cached = stream.get(target.offset)
    if (cached !== undefined) return cached
    const patch = createPatch(base, target)
    stream.set(target.offset, patch)
    this.#grow(lengthOf(patch))
    return patch
  }

  /** Adds to the size, and evicts the oldest patches of the least recently used streams. */
  #grow(length: number): void {
    this.#length += length
    if (this.#length <= this.#maxLength) return
    const target = this.#maxLength * (1 - EVICTED_SHARE)
    for (const [key, stream] of this.#streams) {
      for (const [offset, patch] of stream) {
        if (this.#length <= target) return
        stream.delete(offset)
        this.#length -= lengthOf(patch)
      }
      if (this.#length <= target) return
      this.#streams.delete(key)
      this.#length -= ENTRY_LENGTH + key.length
    }
  }
}

const lengthOf = (patch: Payload | null): number => ENTRY_LENGTH + (patch?.length ?? 0)

/**
 * A change of a map without a position is sent in full: a client may have received the value in a page already, and could not
 * apply a patch to the value before it.
 */
const isWithoutPosition = ({ key, offset }: Publication): boolean => key !== undefined && offset === 0

/** The patch of a change of a map. */
export const entryPatch = (change: Publication): Payload | null => {
  const { previous, delta, removed } = change
  return previous === undefined || !delta || removed || isWithoutPosition(change) ? null : createPatch(previous, change)
}

interface WithData {
  readonly data: Payload
}

/** Null if the patch is not shorter than the target. A patch between texts is text, because it never splits a character. */
const createPatch = (base: WithData, target: WithData): Payload | null => {
  const { data } = target
  if (typeof base.data !== typeof data) return null
  const bytes = Buffer.from(data)
  const patch = Buffer.from(createDelta(Buffer.from(base.data), bytes))
  if (patch.length >= bytes.length) return null
  return typeof data === 'string' ? patch.toString() : patch
}
