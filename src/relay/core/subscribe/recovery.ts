import { type Codec, maxPublicationBytes, type SentPublication } from '../codec/codec.js'
import { isSharedList } from '../codec/message-parts.js'
import { ERROR_BAD_REQUEST, ERROR_UNRECOVERABLE_POSITION, type ReplyError } from '../codes.js'
import type { HistoryPage, Position, Publication } from '../engine.js'
import type { DeltaPatches } from '../fan-out/delta.js'
import type { ChannelOptions } from '../options.js'
import type { HistoryCommand } from '../protocol.js'
import type { RelayContext } from '../session/context.js'

/** The publications for a recovering client, and the offset that it starts from. */
export interface Recovery {
  readonly publications: readonly Publication[]
  readonly offset: number
}

/** All publications after the position; null if the page does not contain all of them. */
export const recoverFromStream = (position: Position, page: HistoryPage): Recovery | null =>
  isComplete(position, page) ? { publications: page.publications, offset: position.offset } : null

const isComplete = (position: Position, page: HistoryPage): boolean => {
  if (position.epoch !== '' && position.epoch !== page.epoch) return false
  const { publications, offset } = page
  const first = publications[0]
  const last = publications[publications.length - 1]
  if (first === undefined || last === undefined) return offset === position.offset
  return first.offset === position.offset + 1 && last.offset === offset
}

/** The newest publication, unless the client already has it; null if it is not in the history. */
export const recoverFromCache = (position: Position, page: HistoryPage): Recovery | null => {
  const isSameEpoch = position.epoch === page.epoch
  if (isSameEpoch && position.offset > 0 && position.offset === page.offset)
    return { publications: [], offset: position.offset }
  const newest = page.publications[page.publications.length - 1]
  if (newest === undefined || newest.offset !== page.offset) return null
  // Offsets of another epoch are meaningless here.
  return { publications: [newest], offset: isSameEpoch && position.offset < newest.offset ? position.offset : 0 }
}

/** Replaces the page by the newest publication that arrived while it was read. */
export const withNewest = (page: HistoryPage, buffered: readonly Publication[]): HistoryPage => {
  const newest = buffered.findLast(({ offset }) => offset > page.offset)
  return newest === undefined ? page : { epoch: page.epoch, offset: newest.offset, publications: [newest] }
}

/** The buffered publications after the position, in order; null if one is missing. */
export const publicationsAfter = (
  position: Position,
  buffered: readonly Publication[]
): readonly Publication[] | null => {
  const publications = buffered.filter(({ offset }) => offset === 0 || offset > position.offset)
  let next = position.offset + 1
  for (const { offset } of publications) {
    if (offset === 0) continue
    if (offset !== next++) return null
  }
  return publications
}

export interface RecoveredList {
  readonly channel: string
  readonly epoch: string
  readonly publications: readonly Publication[]
  /** For a client with deltas: the first publication is sent in full, the others as patches. Null for other clients. */
  readonly patches: DeltaPatches | null
}

/** Publications for one reply, and an upper bound for their size. */
export interface SizedPublications {
  readonly publications: readonly SentPublication[]
  readonly bytes: number
}

/** Null if the publications exceed `maxBytes`, which is determined before their data is escaped if possible. */
export const sizedPublications = (
  { channel, epoch, publications, patches }: RecoveredList,
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
    const data = patches === null ? publication.data : deltaData(patch ?? publication.data)
    bytes += maxPublicationBytes(data, publication)
    if (bytes > maxBytes) return null
    sent.push({ publication, epoch, data, isDelta: patch !== null })
  }
  return { publications: sent, bytes }
}

/** Maximum size of the cache. */
const MAX_CACHED_BYTES = 16 * 1024 * 1024

/**
 * Publications of recent recoveries. After a restart many clients recover the same publications of a channel: they receive
 * the same list, which the codec encodes once. The least recently used lists are evicted first.
 */
export class RecoveryCache {
  readonly #maxBytes: number
  /** Least recently used first. */
  readonly #lists = new Map<string, SizedPublications>()
  #bytes = 0

  constructor(maxBytes = MAX_CACHED_BYTES) {
    this.#maxBytes = maxBytes
  }

  /** The same as `sizedPublications`, for consecutive publications. */
  find(list: RecoveredList, codec: Codec, maxBytes: number): SizedPublications | null {
    const { channel, epoch, publications, patches } = list
    const first = publications[0]?.offset
    const last = publications[publications.length - 1]?.offset
    const key = `${codec.name} ${patches !== null} ${first} ${last} ${epoch} ${channel}`
    const known = this.#lists.get(key)
    if (known !== undefined) {
      this.#lists.delete(key)
      this.#lists.set(key, known)
      return known.bytes > maxBytes ? null : known
    }
    const sized = sizedPublications(list, codec, maxBytes)
    if (sized !== null && isSharedList(sized.publications)) this.#add(key, sized)
    return sized
  }

  #add(key: string, sized: SizedPublications): void {
    this.#lists.set(key, sized)
    this.#bytes += cachedBytes(sized)
    for (const [oldest, evicted] of this.#lists) {
      if (this.#bytes <= this.#maxBytes) return
      this.#lists.delete(oldest)
      this.#bytes -= cachedBytes(evicted)
    }
  }
}

/** The publications and their encoded form. */
const cachedBytes = ({ bytes }: SizedPublications): number => 2 * bytes

/** As many publications as fit into a history reply; the client can continue from the last one. Null if not even the first fits. */
export const fittingPublications = (page: HistoryPage, maxBytes: number): readonly Publication[] | null => {
  const { publications } = page
  let bytes = 0
  for (const [index, publication] of publications.entries()) {
    bytes += maxPublicationBytes(publication.data, publication)
    if (bytes > maxBytes) return index === 0 ? null : publications.slice(0, index)
  }
  return publications
}

/** Reads the history for a client or the API. */
export const readHistory = async (
  { history }: RelayContext,
  { channel, since, limit, reverse }: HistoryCommand,
  options: ChannelOptions
): Promise<HistoryPage | ReplyError> => {
  if (reverse && since !== null && since.offset === 0) return ERROR_BAD_REQUEST
  const page = await history.read(channel, { since, limit, reverse }, options)
  if (since === null) return page
  if (since.epoch !== '' && since.epoch !== page.epoch) return ERROR_UNRECOVERABLE_POSITION
  // Reading backwards starts at the publication before the position, which does not exist here.
  const isBeyondEnd = reverse && since.offset > page.offset + 1
  return isBeyondEnd ? { ...page, publications: [] } : page
}
