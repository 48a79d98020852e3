import type { HistoryPage, Position, Publication } from './broker.js'
import { patchText } from './delta-chain.js'
import { publicationText } from './protocol.js'

/** Whether what was read since the client's place is all that it missed. */
export const isRecovered = (place: Position, page: HistoryPage): boolean => {
  if (place.epoch !== '' && place.epoch !== page.epoch) return false
  const { publications, offset } = page
  const first = publications[0]
  const last = publications[publications.length - 1]
  if (first === undefined || last === undefined) return offset === place.offset
  return first.offset === place.offset + 1 && last.offset === offset
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
