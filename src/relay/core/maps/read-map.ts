import { ERROR_BAD_REQUEST, ERROR_UNRECOVERABLE_POSITION, type ReplyError } from '../codes.js'
import type { HistoryPage, Maps, RetainedPage } from '../engine.js'
import type { Position, Publication } from '../publication.js'
import { TimeSlice } from '../time-slice.js'
import type { MapContext, ResolvedMap } from './write-map.js'

// Reads of a map for the API. Clients read through their subscription.

export interface StateQuery {
  readonly channel: string
  /** Start after this key; '' for the beginning. */
  readonly cursor: string
  /** 0 for the position only, negative for all entries. */
  readonly limit: number
  /** Only this entry; '' for all. */
  readonly key: string
  /** Epoch of the first page; null for none. */
  readonly revisionEpoch: string | null
}

export interface MapState extends Position {
  readonly entries: readonly Publication[]
  /** '' if there are no more entries. */
  readonly cursor: string
}

/** Entries per read of the engine: one script of Redis must not take long. */
const READ_SIZE = 1000

/** A lower bound for the length of an entry in a response. */
export const entryLength = ({ key, data, tags }: Publication): number =>
  (key?.length ?? 0) + data.length + (tags?.length ?? 0)

/** The parts of the core that a long read needs. */
type ReadContext = Pick<MapContext, 'maps' | 'monotonicMs'>

/** Reads in several steps. Null if the entries are longer than `maxLength`; error 112 if the map begins again meanwhile. */
export const readMapState = async (
  { maps, monotonicMs }: ReadContext,
  { map }: Pick<ResolvedMap, 'map'>,
  { channel, cursor, limit, key, revisionEpoch }: StateQuery,
  maxLength: number
): Promise<MapState | ReplyError | null> => {
  const first = await maps.readState(channel, { after: cursor, limit: key === '' ? readSize(limit) : 0 }, map)
  const { epoch, offset } = first
  if (revisionEpoch !== null && revisionEpoch !== epoch) return ERROR_UNRECOVERABLE_POSITION
  if (key !== '') {
    const entry = await maps.readKey(channel, key, map)
    return { epoch, offset, entries: entry === null ? [] : [entry], cursor: '' }
  }
  const entries: Publication[] = []
  const slice = new TimeSlice(monotonicMs)
  let length = 0
  let left = limit < 0 ? Number.POSITIVE_INFINITY : limit
  for (let page = first; ; page = await maps.readState(channel, { after: page.next, limit: readSize(left) }, map)) {
    if (page.epoch !== epoch) return ERROR_UNRECOVERABLE_POSITION
    for (const entry of page.entries) {
      length += entryLength(entry)
      if (length > maxLength) return null
      entries.push(entry)
    }
    left -= page.entries.length
    if (left <= 0 || page.next === '') return { epoch, offset, entries, cursor: page.next }
    // An engine in this process responds at once, so the steps alone would not give way to other work.
    if (slice.isOver) await slice.next()
  }
}

const readSize = (limit: number): number => (limit < 0 ? READ_SIZE : Math.min(limit, READ_SIZE))

export interface StreamQuery {
  readonly channel: string
  /** Null for the beginning, or the end with `reverse`. */
  readonly since: Position | null
  /** 0 for the position only, negative for all changes. */
  readonly limit: number
  readonly reverse: boolean
}

/** Error 112 if changes after the position are missing. */
export const readMapStream = async (
  { maps }: { readonly maps: Maps },
  { map }: ResolvedMap,
  { channel, since, limit, reverse }: StreamQuery
): Promise<HistoryPage | ReplyError> => {
  if (reverse && since !== null && since.offset === 0) return ERROR_BAD_REQUEST
  const page = await maps.readStream(channel, { since, limit, reverse }, map)
  return since === null || isInStream(since, page, reverse) ? page : ERROR_UNRECOVERABLE_POSITION
}

const isInStream = ({ epoch, offset }: Position, page: RetainedPage, reverse: boolean): boolean => {
  if (epoch !== '' && epoch !== page.epoch) return false
  // Backwards, the change before the position is the first one that is read.
  return reverse ? offset <= page.offset + 1 : offset <= page.offset && offset + 1 >= page.oldest
}
