import { after, type HistoryPage, type MaybePromise, type Position, type Publication } from './broker.js'
import { ERROR_BAD_REQUEST, ERROR_UNRECOVERABLE_POSITION, type ReplyError } from './codes.js'
import type { RelayContext } from './context.js'
import type { DeltaPatches } from './delta.js'
import type { ChannelOptions } from './options.js'
import { BoundedList, type HistoryCommand, publicationText } from './protocol.js'

/** Whether what was read since the client's place is all that it missed. */
const isRecovered = (place: Position, page: HistoryPage): boolean => {
  if (place.epoch !== '' && place.epoch !== page.epoch) return false
  const { publications, offset } = page
  const first = publications[0]
  const last = publications[publications.length - 1]
  if (first === undefined || last === undefined) return offset === place.offset
  return first.offset === place.offset + 1 && last.offset === offset
}

/** What a client is handed and the place that it climbs from; null where it begins at the top. */
export interface Recovery {
  readonly publications: readonly Publication[]
  readonly offset: number
}

/** All that the client missed. */
export const streamRecovery = (place: Position, page: HistoryPage): Recovery | null =>
  isRecovered(place, page) ? { publications: page.publications, offset: place.offset } : null

/** The newest publication, unless the client has it. */
export const cacheRecovery = (place: Position, page: HistoryPage): Recovery | null => {
  const isSameStream = place.epoch === page.epoch
  if (isSameStream && place.offset > 0 && place.offset === page.offset)
    return { publications: [], offset: place.offset }
  const newest = page.publications[page.publications.length - 1]
  if (newest === undefined || newest.offset !== page.offset) return null
  // An offset of another stream is no place in this one.
  return { publications: [newest], offset: isSameStream && place.offset < newest.offset ? place.offset : 0 }
}

/** The page with what arrived while it was read: of that too only the newest counts. */
export const withNewest = (page: HistoryPage, early: readonly Publication[]): HistoryPage => {
  const newest = early.filter(({ offset }) => offset > page.offset).pop()
  return newest === undefined ? page : { epoch: page.epoch, offset: newest.offset, publications: [newest] }
}

/** What a client that recovers is handed, as the list of its reply. */
export interface RecoveredList {
  readonly channel: string
  readonly epoch: string
  readonly publications: readonly Publication[]
  /** Of a client that takes deltas: the first publication is whole and the others are patches. Null for other clients. */
  readonly patches: DeltaPatches | null
}

/** The text of the list; null where it has more than `maxBytes`, which is found out before it is written where it can be. */
export const recoveredText = (
  { channel, epoch, publications, patches }: RecoveredList,
  maxBytes: number
): string | null => {
  const chain = patches?.chain(channel, epoch, publications) ?? null
  const list = new BoundedList(maxBytes)
  let index = 0
  for (const { data } of publications) {
    // A text has at least as many bytes as characters.
    if (!list.expect((chain?.[index++] ?? data).length)) return null
  }
  index = 0
  for (const publication of publications) {
    const patch = chain?.[index++] ?? null
    const data = patch ?? (patches === null ? publication.data : JSON.stringify(publication.data))
    if (!list.add(publicationText(publication, epoch, data, patch !== null))) return null
  }
  return list.text
}

/** What arrived while a place was looked up and lies behind it, in order; null where something between is missing. */
export const following = (place: Position, early: readonly Publication[]): readonly Publication[] | null => {
  const after = early.filter(({ offset }) => offset === 0 || offset > place.offset)
  let next = place.offset + 1
  for (const { offset } of after) {
    if (offset === 0) continue
    if (offset !== next++) return null
  }
  return after
}

/** What clients and the API ask of the history, with the errors that both are answered with. */
export const readHistory = (
  { history }: RelayContext,
  { channel, since, limit, reverse }: HistoryCommand,
  options: ChannelOptions
): MaybePromise<HistoryPage | ReplyError> => {
  if (reverse && since !== null && since.offset === 0) return ERROR_BAD_REQUEST
  return after(history.read(channel, { since, limit, reverse }, options), (page) =>
    since !== null && since.epoch !== '' && since.epoch !== page.epoch ? ERROR_UNRECOVERABLE_POSITION : page
  )
}
