import type { HistoryPage, Position, Publication } from './broker.js'
import { patchText } from './delta-chain.js'
import { publicationText } from './protocol.js'

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

/** As the list of a reply; for a client that takes deltas the first whole and the others as differences. */
export const recoveredText = (publications: readonly Publication[], epoch: string, takesDelta: boolean): string => {
  let base: Buffer | null = null
  const texts = publications.map((publication) => {
    if (!takesDelta) return publicationText(publication, epoch, publication.data, false)
    const bytes = Buffer.from(publication.data)
    const patch: string | null = base === null || !publication.delta ? null : patchText(base, bytes)
    base = bytes
    return publicationText(publication, epoch, patch ?? JSON.stringify(publication.data), patch !== null)
  })
  return `[${texts.join(',')}]`
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
