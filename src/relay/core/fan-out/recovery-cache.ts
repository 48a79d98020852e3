import { type Codec, maxPublicationBytes, type SentPublication } from '../codec/codec.js'
import { isSharedList } from '../codec/message-parts.js'
import type { Publication } from '../publication.js'
import type { DeltaPatches } from './delta.js'

export interface RecoveredList {
  readonly channel: string
  readonly epoch: string
  readonly publications: readonly Publication[]
  /** The client takes deltas. Its data has another form, also in full. */
  readonly takesDelta: boolean
  /** For a client with deltas: the first publication of each key is sent in full, the others as patches. Null: all in full. */
  readonly patches: DeltaPatches | null
}

/** Publications for one reply, and an upper bound for their size. */
export interface SizedPublications {
  readonly publications: readonly SentPublication[]
  readonly bytes: number
}

/** Null if the publications exceed `maxBytes`, which is determined before their data is escaped if possible. */
export const sizedPublications = (
  { channel, epoch, publications, takesDelta, patches }: RecoveredList,
  { deltaData }: Codec,
  maxBytes: number
): SizedPublications | null => {
  const chain = patches?.chain(channel, epoch, publications) ?? null
  let length = 0
  for (const [index, { data }] of publications.entries()) {
    // A text has at least as many bytes as characters.
    length += (chain?.[index] ?? data).length
    if (length > maxBytes) return null
  }
  const sent: SentPublication[] = []
  let bytes = 0
  for (const [index, publication] of publications.entries()) {
    const patch = chain?.[index] ?? null
    const data = takesDelta ? deltaData(patch ?? publication.data) : publication.data
    bytes += maxPublicationBytes(data, publication)
    if (bytes > maxBytes) return null
    sent.push({ publication, epoch, data, isDelta: patch !== null })
  }
  return { publications: sent, bytes }
}

/** Maximum size of a cache. */
const MAX_CACHED_BYTES = 16 * 1024 * 1024

/**
 * Lists of publications that are worth sharing. The least recently used ones are evicted first. A map of its own, because
 * `BoundedMap` counts entries, and these differ in size by orders of magnitude.
 */
export class SharedLists<List extends SizedPublications = SizedPublications> {
  readonly #maxBytes: number
  /** Least recently used first. */
  readonly #lists = new Map<string, List>()
  #bytes = 0

  constructor(maxBytes = MAX_CACHED_BYTES) {
    this.#maxBytes = maxBytes
  }

  get(key: string): List | undefined {
    const known = this.#lists.get(key)
    if (known === undefined) return undefined
    this.#lists.delete(key)
    this.#lists.set(key, known)
    return known
  }

  /** Replaces the list of this key. Short lists are not stored. */
  set(key: string, list: List): void {
    const replaced = this.#lists.get(key)
    if (replaced !== undefined) this.#remove(key, replaced)
    if (!isSharedList(list.publications)) return
    this.#lists.set(key, list)
    this.#bytes += cachedBytes(list)
    for (const [oldest, evicted] of this.#lists) {
      if (this.#bytes <= this.#maxBytes) return
      this.#remove(oldest, evicted)
    }
  }

  #remove(key: string, list: List): void {
    this.#lists.delete(key)
    this.#bytes -= cachedBytes(list)
  }
}

/** The publications and their encoded form. */
const cachedBytes = ({ bytes }: SizedPublications): number => 2 * bytes

/**
 * Publications of recent recoveries. After a restart many clients recover the same publications of a channel: they receive
 * the same list, which the codec encodes once.
 */
export class RecoveryCache {
  readonly #lists: SharedLists

  constructor(maxBytes?: number) {
    this.#lists = new SharedLists(maxBytes)
  }

  /** The same as `sizedPublications`, for consecutive publications. */
  find(list: RecoveredList, codec: Codec, maxBytes: number): SizedPublications | null {
    const { channel, epoch, publications, takesDelta, patches } = list
    const first = publications[0]?.offset
    const last = publications[publications.length - 1]?.offset
    const key = `${codec.name} ${takesDelta} ${patches !== null} ${first} ${last} ${epoch} ${channel}`
    const known = this.#lists.get(key)
    if (known !== undefined) return known.bytes > maxBytes ? null : known
    const sized = sizedPublications(list, codec, maxBytes)
    if (sized !== null) this.#lists.set(key, sized)
    return sized
  }
}
