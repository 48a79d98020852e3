import { canCarry, type SubscribeReply } from '../codec/codec.js'
import {
  DISCONNECT_INAPPROPRIATE_PROTOCOL,
  type Disconnect,
  ERROR_UNRECOVERABLE_POSITION,
  type ReplyError
} from '../codes.js'
import type { HistoryPage, StatePage, StateRange } from '../engine.js'
import type { SizedPublications } from '../fan-out/recovery-cache.js'
import { fittingPage } from '../fan-out/state-pages.js'
import type { Subscription } from '../fan-out/subscription.js'
import { passes, selectedChanges } from '../fan-out/tag-filter.js'
import { type View, withoutPosition } from '../fan-out/view.js'
import type { MapOptions } from '../options.js'
import { type MapPhase, PHASE_STATE, PHASE_STREAM, type SubscribeCommand } from '../protocol.js'
import { NO_POSITION, type Position, type Publication } from '../publication.js'
import type { Client } from '../session/client.js'
import type { MapLoading } from '../session/map-loading.js'
import { readWhileDelivering } from './add-subscription.js'
import { areConsecutive } from './recovery.js'

/** Entries of a map for one reply. */
export interface EntryPage extends SizedPublications {
  /** Position of the map when the page was read. */
  readonly position: Position
  /** Where the next page starts; '' if this is the last one. */
  readonly cursor: string
  /** Key of the last entry that was read, whether it was sent or not; '' if there is none. */
  readonly lastKey: string
}

/** An entry takes more than this in a reply, so no more of them fit. */
const MIN_ENTRY_BYTES = 100
/** A reply is encoded in one step, so a longer one would block other clients, even if `queue_max_size` allows it. */
const MAX_PAGE_BYTES = 1024 * 1024

/** Maximum size of entries and changes in the next reply. */
export const pageBytes = ({ replyBytesLeft }: Client): number => Math.min(replyBytesLeft, MAX_PAGE_BYTES)

const fittingLimit = (limit: number, maxBytes: number): number =>
  Math.min(limit, 1 + Math.floor(maxBytes / MIN_ENTRY_BYTES))

export const pageSize = (
  { limit }: SubscribeCommand,
  { defaultPageSize, minPageSize, maxPageSize }: MapOptions
): number => (limit <= 0 ? defaultPageSize : Math.min(Math.max(limit, minPageSize), maxPageSize))

/** Reads the entries after the cursor. Error 112 if the map is another one since the first page. */
export const readEntries = async (
  client: Client,
  loading: MapLoading,
  { cursor, position: { epoch } }: SubscribeCommand,
  limit: number
): Promise<EntryPage | ReplyError | Disconnect> => {
  const { context, codec } = client
  const { channel, resolved, filter, delta, subscription } = loading
  const maxBytes = pageBytes(client)
  context.metrics.engineAction('map_state_read', resolved.namespace)
  const range = { after: cursor, limit: fittingLimit(limit, maxBytes) }
  const page = await (subscription?.view
    ? readEntriesInView(client, loading, subscription, subscription.view, range)
    : readPage(client, loading, range))
  loading.frozen ??= { epoch: page.epoch, offset: page.offset }
  const { frozen } = loading
  if (page.epoch !== frozen.epoch || (epoch !== '' && epoch !== frozen.epoch)) return ERROR_UNRECOVERABLE_POSITION
  // Newer entries come from the stream.
  const maxOffset = subscription === null ? frozen.offset : Number.POSITIVE_INFINITY
  const entries: Publication[] = []
  for (const entry of page.entries) {
    if (entry.offset > maxOffset || !passes(filter, entry)) continue
    if (!canCarry(codec, entry)) return DISCONNECT_INAPPROPRIATE_PROTOCOL
    entries.push(entry)
  }
  const list = { channel, epoch: page.epoch, publications: entries, takesDelta: delta, patches: null }
  const sized =
    filter === null
      ? context.statePages.find(list, `${limit} ${subscription?.view?.text ?? ''} ${cursor}`, codec, maxBytes)
      : fittingPage(list, codec, maxBytes)
  const isCut = sized.publications.length < entries.length
  const lastSent = sized.publications[sized.publications.length - 1]?.publication.key ?? ''
  return {
    publications: sized.publications,
    bytes: sized.bytes,
    position: { epoch: page.epoch, offset: page.offset },
    cursor: isCut ? lastSent : page.next,
    lastKey: isCut ? lastSent : page.lastKey
  }
}

interface ReadPage extends StatePage {
  readonly lastKey: string
}

const readPage = async (client: Client, loading: MapLoading, range: StateRange): Promise<ReadPage> => {
  const { channel, options, subscription } = loading
  const read = (): Promise<StatePage> => client.context.maps.readState(channel, range, options)
  const page = await (subscription === null ? read() : readWhileDelivering(client, subscription, read))
  return { ...page, lastKey: page.entries[page.entries.length - 1]?.key ?? '' }
}

/** Most entries may be outside. Bounds the work of one request. */
const MAX_READS_OF_VIEW = 10

/** Reads until the page is full, so that a client does not load a large map in almost empty pages. */
const readEntriesInView = async (
  client: Client,
  loading: MapLoading,
  { channel }: Subscription,
  view: View,
  { after, limit }: StateRange
): Promise<ReadPage> => {
  const entries: Publication[] = []
  const isInside = ({ data }: Publication): boolean => channel.views.map?.test(data)(view) ?? true
  let page = await readPage(client, loading, { after, limit: loading.options.maxPageSize })
  const first = page
  for (let reads = 1; ; reads++) {
    entries.push(...page.entries.filter(isInside).map(withoutPosition))
    const isOther = page.epoch !== first.epoch
    if (isOther || page.next === '' || entries.length >= limit || reads === MAX_READS_OF_VIEW) break
    page = await readPage(client, loading, { after: page.next, limit: loading.options.maxPageSize })
  }
  const cut = entries[limit - 1]?.key
  const isCut = entries.length > limit && cut !== undefined
  return {
    epoch: page.epoch,
    // Changes after the first read are buffered.
    offset: first.offset,
    entries: isCut ? entries.slice(0, limit) : entries,
    next: isCut ? cut : page.next,
    lastKey: isCut ? cut : page.lastKey
  }
}

/** Changes of a map for one reply. */
export interface ChangePage extends SizedPublications {
  /** Position of the last change that was read, whether it was sent or not. */
  readonly position: Position
}

/** Reads the changes after the client's position. Error 112 if the stream does not continue there. */
export const readChanges = async (
  client: Client,
  loading: MapLoading,
  { position }: SubscribeCommand,
  limit: number
): Promise<ChangePage | ReplyError | Disconnect> => {
  const { context, codec } = client
  const { channel, resolved, options, filter, delta } = loading
  const maxBytes = pageBytes(client)
  context.metrics.engineAction('map_stream_read', resolved.namespace)
  const range = { since: position, limit: fittingLimit(limit, maxBytes), reverse: false }
  const page = await context.maps.readStream(channel, range, options)
  const { epoch, publications } = page
  if (epoch !== position.epoch || publications.length === 0 || !areConsecutive(position, publications))
    return ERROR_UNRECOVERABLE_POSITION
  const changes = selectedChanges(filter, publications)
  if (!changes.every((change) => canCarry(codec, change))) return DISCONNECT_INAPPROPRIATE_PROTOCOL
  const list = { channel, epoch: page.epoch, publications: changes, takesDelta: delta, patches: null }
  const sized = fittingPage(list, codec, maxBytes)
  const isCut = sized.publications.length < changes.length
  const last = isCut ? sized.publications[sized.publications.length - 1]?.publication : lastOf(page)
  return { ...sized, position: { epoch: page.epoch, offset: last?.offset ?? position.offset } }
}

const lastOf = ({ publications }: HistoryPage): Publication | undefined => publications[publications.length - 1]

/** The end of the stream of a map. */
export const readStreamEnd = async ({ context }: Client, { channel, options }: MapLoading): Promise<Position> =>
  context.maps.readStream(channel, { since: null, limit: 0, reverse: false }, options)

/** A reply that is not the last one. */
const pageReply = (
  phase: MapPhase,
  position: Position,
  fields: Partial<Pick<SubscribeReply, 'publications'>>,
  cursor = '',
  state: SizedPublications['publications'] = []
): SubscribeReply => ({
  ttl: 0,
  recoverable: false,
  positioned: false,
  position,
  publications: fields.publications ?? [],
  recovered: false,
  wasRecovering: false,
  data: null,
  delta: false,
  map: { phase, cursor, state }
})

export const entriesReply = (
  { frozen, subscription }: MapLoading,
  { publications }: SizedPublications,
  cursor: string
): SubscribeReply =>
  pageReply(PHASE_STATE, subscription === null ? (frozen ?? NO_POSITION) : NO_POSITION, {}, cursor, publications)

export const changesReply = ({ position, publications }: ChangePage): SubscribeReply =>
  pageReply(PHASE_STREAM, position, { publications })
