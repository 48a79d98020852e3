import { maxPublicationBytes } from '../codec/codec.js'
import { ERROR_BAD_REQUEST, ERROR_UNRECOVERABLE_POSITION, type ReplyError } from '../codes.js'
import type { History, HistoryPage } from '../engine.js'
import type { ChannelOptions } from '../options.js'
import type { HistoryCommand } from '../protocol.js'
import type { Position, Publication } from '../publication.js'

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
  return offset === position.offset + publications.length && areConsecutive(position, publications)
}

/** Whether the publications follow the position without a gap. The engine leaves out a stored publication that it cannot read. */
export const areConsecutive = (position: Position, publications: readonly Publication[]): boolean =>
  publications.every((publication, index) => publication.offset === position.offset + 1 + index)

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
  if (buffered.length === 0) return buffered
  const publications = buffered.filter(({ offset }) => offset === 0 || offset > position.offset)
  let next = position.offset + 1
  for (const { offset } of publications) {
    if (offset === 0) continue
    if (offset !== next++) return null
  }
  return publications
}

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
  { history }: { readonly history: History },
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
