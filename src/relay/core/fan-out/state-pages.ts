import { type Codec, maxPublicationBytes, type SentPublication } from '../codec/codec.js'
import type { Payload, Publication } from '../publication.js'
import { type RecoveredList, SharedLists, type SizedPublications } from './recovery-cache.js'

/** As many publications as fit into a page, all in full. At least one, so that a client is never stuck at a large one. */
export const fittingPage = (
  { epoch, publications, takesDelta }: RecoveredList,
  { deltaData }: Codec,
  maxBytes: number
): SizedPublications => {
  const sent: SentPublication[] = []
  let bytes = 0
  for (const publication of publications) {
    const data = takesDelta ? deltaData(publication.data) : publication.data
    const next = bytes + maxPublicationBytes(data, publication)
    if (next > maxBytes && sent.length > 0) break
    bytes = next
    sent.push({ publication, epoch, data, isDelta: false })
  }
  return { publications: sent, bytes }
}

/**
 * Pages of the entries of maps that were sent last. Clients that load the same entries receive the same list, which the codec
 * encodes once.
 */
export class StatePages {
  readonly #pages: SharedLists

  constructor(maxBytes?: number) {
    this.#pages = new SharedLists(maxBytes)
  }

  /** The same as `fittingPage`. The page may be shorter than possible. `range` names the part of the map. */
  find(list: RecoveredList, range: string, codec: Codec, maxBytes: number): SizedPublications {
    const { channel, epoch, publications, takesDelta } = list
    const key = `${codec.name} ${takesDelta} ${epoch} ${channel.length} ${channel} ${range}`
    const known = this.#pages.get(key)
    if (known !== undefined && known.bytes <= maxBytes && beginsWith(publications, known.publications)) return known
    const page = fittingPage(list, codec, maxBytes)
    this.#pages.set(key, page)
    return page
  }
}

const beginsWith = (entries: readonly Publication[], sent: readonly SentPublication[]): boolean => {
  // Without an iterator, because a page can have thousands of entries.
  for (let index = 0; index < sent.length; index++) {
    const entry = entries[index]
    const publication = sent[index]?.publication
    if (entry === publication) continue
    if (entry === undefined || publication === undefined || !isSame(entry, publication)) return false
  }
  return true
}

/** An engine in another process returns new objects with each read. */
const isSame = (one: Publication, other: Publication): boolean =>
  one.key === other.key &&
  one.offset === other.offset &&
  one.tags === other.tags &&
  one.info === other.info &&
  isSameData(one.data, other.data)

const isSameData = (one: Payload, other: Payload): boolean =>
  typeof one === 'string' || typeof other === 'string' ? one === other : one.equals(other)
