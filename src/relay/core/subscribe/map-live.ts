import { ttlOf } from '../clocks.js'
import { canCarry, type SubscribeReply } from '../codec/codec.js'
import {
  DISCONNECT_INAPPROPRIATE_PROTOCOL,
  DISCONNECT_INSUFFICIENT_STATE,
  ERROR_PERMISSION_DENIED,
  ERROR_UNRECOVERABLE_POSITION
} from '../codes.js'
import type { HistoryPage } from '../engine.js'
import { LoadingBuffer } from '../fan-out/loading-buffer.js'
import { type SizedPublications, sizedPublications } from '../fan-out/recovery-cache.js'
import { receivedBy, type Subscription } from '../fan-out/subscription.js'
import { selectedChanges } from '../fan-out/tag-filter.js'
import { PHASE_LIVE } from '../protocol.js'
import { NO_POSITION, type Position, type Publication } from '../publication.js'
import type { Client, CommandOutcome, RunningCommand } from '../session/client.js'
import type { MapLoading } from '../session/map-loading.js'
import { openSubscription, readWhileDelivering, subscriberOf } from './add-subscription.js'
import { activate } from './live-delivery.js'
import { pageBytes } from './map-pages.js'
import { publicationsAfter, recoverFromStream } from './recovery.js'
import { filterLimitError, replyData } from './subscribe-data.js'
import { ReplySpace, resolveOptions, type SubscribeRequest, type SubscriptionOptions } from './subscribe-request.js'

/** Changes after the position of a client, and the entries that it receives with them. */
export interface LiveStart {
  readonly position: Position
  readonly entries: SizedPublications
  readonly isRecovering: boolean
}

export const NO_ENTRIES: SizedPublications = { publications: [], bytes: 0 }

/** The end of loading: null or an error, or `too-large` if entries and changes do not fit into one reply. */
export type LiveOutcome = CommandOutcome | 'too-large'

/** Makes a client live that has a position. Buffered deliveries continue where the stream ends that is read here. */
export const goLiveFrom = async (
  client: Client,
  loading: MapLoading,
  start: LiveStart,
  command: RunningCommand
): Promise<LiveOutcome> => {
  const { context } = client
  const { channel, options: map, resolved, filter } = loading
  const limitError = filterLimitError(client, channel, filter)
  if (limitError !== null) return limitError
  const request = requestOf(client, loading, start.isRecovering ? start.position : null)
  const options = resolveOptions(request, subscriberOf(client))
  const subscription = openSubscription(client, request, options)
  client.addSubscription(subscription)
  const range = { since: start.position, limit: map.liveLimit, reverse: false }
  context.metrics.engineAction('map_stream_read', resolved.namespace)
  try {
    const page = await readWhileDelivering(client, subscription, () => context.maps.readStream(channel, range, map))
    if (client.isClosed) return null
    // The API has unsubscribed the client meanwhile.
    if (client.subscriptions.get(channel) !== subscription) return ERROR_PERMISSION_DENIED
    const changes = changesOf(client, loading, start, options, page, subscription)
    if (start.isRecovering) context.metrics.recovered(resolved.namespace, 'bytes' in changes, page.publications.length)
    if ('bytes' in changes) {
      const { epoch, offset } = page
      finish(client, loading, subscription, options, { ...start, position: { epoch, offset } }, changes, command)
      return null
    }
    client.removeSubscription(subscription)
    return changes.outcome
  } catch (error) {
    client.removeSubscription(subscription)
    throw error
  }
}

/** The changes in the reply, or why the client cannot continue from here. */
const changesOf = (
  client: Client,
  { channel, filter }: MapLoading,
  { position, entries }: LiveStart,
  { delta }: SubscriptionOptions,
  page: HistoryPage,
  { buffered }: Subscription
): SizedPublications | { readonly outcome: LiveOutcome } => {
  const { context, codec } = client
  // A position without an epoch could be one of any stream.
  const recovery = position.epoch === '' ? null : recoverFromStream(position, page)
  if (recovery === null) return { outcome: ERROR_UNRECOVERABLE_POSITION }
  if (publicationsAfter(page, buffered ?? []) === null) return { outcome: DISCONNECT_INSUFFICIENT_STATE }
  const publications = selectedChanges(filter, recovery.publications)
  if (publications.length === 0) return NO_ENTRIES
  if (!publications.every((each) => canCarry(codec, each))) return { outcome: DISCONNECT_INAPPROPRIATE_PROTOCOL }
  const patches = delta ? context.patches : null
  const list = { channel, epoch: page.epoch, publications, takesDelta: delta, patches }
  const maxBytes = pageBytes(client) - entries.bytes
  const sized =
    filter === null ? context.recoveryCache.find(list, codec, maxBytes) : sizedPublications(list, codec, maxBytes)
  return sized ?? { outcome: 'too-large' }
}

/** Adds a subscription for a client without a position, which buffers changes from now on. */
export const startBuffering = (client: Client, loading: MapLoading): void => {
  const request = requestOf(client, loading, null)
  const subscription = openSubscription(client, request, resolveOptions(request, subscriberOf(client)))
  subscription.loading = new LoadingBuffer((change) => receivedBy(subscription, change), client.outbox.maxBytes)
  loading.subscription = subscription
}

/**
 * Makes a client live that has no position: it receives the last entries and all changes since its first page. The start is at
 * its first page, because changes may be in the later ones that were not delivered yet.
 */
export const goLiveBuffered = (
  client: Client,
  loading: MapLoading,
  subscription: Subscription,
  start: LiveStart,
  command: RunningCommand
): LiveOutcome => {
  const { codec, replyBytesLeft } = client
  const { channel, delta } = loading
  const changes: readonly Publication[] = subscription.loading?.changes ?? []
  if (!changes.every((change) => canCarry(codec, change))) return DISCONNECT_INAPPROPRIATE_PROTOCOL
  const list = { channel, epoch: '', publications: changes, takesDelta: delta, patches: null }
  const sized = sizedPublications(list, codec, replyBytesLeft - start.entries.bytes)
  if (sized === null) return 'too-large'
  const options = resolveOptions(requestOf(client, loading, null), subscriberOf(client))
  const position = laterOf(start.position, subscription.channel.delivered)
  subscription.loading = null
  client.addSubscription(subscription)
  finish(client, loading, subscription, options, { ...start, position }, sized, command)
  return null
}

/** The buffered changes reach to the position that the channel has delivered, which may be after the last read. */
const laterOf = (read: Position, delivered: Position | null): Position =>
  delivered !== null && delivered.epoch === read.epoch && delivered.offset > read.offset ? delivered : read

/** Sends the last reply. */
const finish = (
  client: Client,
  loading: MapLoading,
  subscription: Subscription,
  options: SubscriptionOptions,
  start: LiveStart,
  changes: SizedPublications,
  command: RunningCommand
): void => {
  const { position, entries, isRecovering } = start
  const reply: SubscribeReply = {
    ttl: ttlOf(subscription.expiry, client.context),
    recoverable: options.recoverable,
    positioned: false,
    position: loading.subscription === null ? position : NO_POSITION,
    publications: changes.publications,
    recovered: isRecovering,
    wasRecovering: isRecovering,
    data: replyData(loading.grant.data, null, subscription.view),
    delta: options.delta,
    map: { phase: PHASE_LIVE, cursor: '', state: entries.publications }
  }
  client.loadings.finish(loading)
  client.reply(command, 'subscribe', reply, entries.bytes > client.replyBytesLeft)
  activate(client, subscription, options, { ...position, publications: [] }, false)
}

const requestOf = (client: Client, loading: MapLoading, recover: Position | null): SubscribeRequest => {
  const { channel, resolved, grant, filter, view, delta, joinLeave } = loading
  const { info, data, override } = grant
  return {
    channel,
    resolved,
    isServerSide: false,
    expiresAt: grant.expiresAt * 1000,
    info,
    data,
    override,
    recover,
    positioned: false,
    recoverable: false,
    joinLeave,
    delta,
    filter,
    rate: null,
    view,
    failsUnrecovered: true,
    replySpace: new ReplySpace(client)
  }
}
