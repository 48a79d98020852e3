import type { SentPublication } from '../codec/codec.js'
import type { HistoryPage } from '../engine.js'
import { sizedPublications } from '../fan-out/recovery-cache.js'
import type { Subscription } from '../fan-out/subscription.js'
import { passes } from '../fan-out/tag-filter.js'
import { after, type MaybePromise } from '../maybe-promise.js'
import { NO_POSITION } from '../publication.js'
import type { Client } from '../session/client.js'
import { publicationsAfter, recoverFromCache, recoverFromStream, withNewest } from './recovery.js'
import type { SubscribeRequest, SubscriptionOptions } from './subscribe-request.js'

/** The publications of a recovery in the form in which they are sent. */
export interface SentRecovery {
  /** The offset that the client starts from. */
  readonly offset: number
  readonly publications: readonly SentPublication[]
}

const EMPTY_PAGE: HistoryPage = { ...NO_POSITION, publications: [] }

/** Where a subscription starts, and what the client receives in its reply. */
export interface SubscriptionStart {
  readonly page: HistoryPage
  /** Null without a recovery. */
  readonly recovered: SentRecovery | null
  readonly snapshot: readonly SentPublication[] | null
}

export const readStart = (
  client: Client,
  subscription: Subscription,
  request: SubscribeRequest,
  options: SubscriptionOptions
): MaybePromise<SubscriptionStart> => {
  if (options.since === null && options.snapshot) return readSnapshot(client, subscription, request, options)
  return after(readStream(client, request, options), (read) => {
    const page = skipToNewest(subscription, options, read)
    const recovered = recover(client, request, options, page)
    return recovered !== null || !options.snapshot || request.failsUnrecovered
      ? { page, recovered, snapshot: null }
      : readSnapshot(client, subscription, request, options)
  })
}

const readSnapshot = (
  client: Client,
  subscription: Subscription,
  request: SubscribeRequest,
  options: SubscriptionOptions
): MaybePromise<SubscriptionStart> => {
  const { codec, context } = client
  const reading = subscription.channel.readSnapshot(context.history, subscription)
  // The option was removed while the client subscribed.
  if (reading === null)
    return after(readStream(client, request, options), (page) => ({ page, recovered: null, snapshot: null }))
  return after(reading, ({ position, snapshot }) => {
    const offset = options.positioned ? position.offset : NO_POSITION.offset
    return {
      page: { ...position, publications: [] },
      recovered: null,
      snapshot: snapshot?.toSend(codec, options.delta, { epoch: position.epoch, offset }) ?? null
    }
  })
}

/** Reads the end of the stream and what is to be recovered. */
const readStream = (
  { context }: Client,
  { channel, resolved }: SubscribeRequest,
  { positioned, since, fromCache }: SubscriptionOptions
): MaybePromise<HistoryPage> => {
  if (!positioned) return EMPTY_PAGE
  const { history, clientOptions, metrics } = context
  const recovery = fromCache ? 'history_recover_cache' : 'history_recover'
  metrics.engineAction(since === null ? 'history_stream_top' : recovery, resolved.namespace)
  if (since !== null && fromCache)
    return history.read(channel, { since: null, limit: 1, reverse: true }, resolved.options)
  const limit = since === null ? 0 : clientOptions.recoveryMaxPublicationLimit
  return history.read(channel, { since, limit, reverse: false }, resolved.options)
}

/** In cache mode, the newest publication may be among those that were buffered while the history was read. */
const skipToNewest = (
  { channel, buffered }: Subscription,
  { since, fromCache, delta }: SubscriptionOptions,
  read: HistoryPage
): HistoryPage => {
  // With deltas nothing can be skipped: each publication is the base of the next one. With a gap nothing is skipped either.
  const isComplete = publicationsAfter(read, buffered ?? []) !== null
  const skips = isComplete && since !== null && fromCache && !delta && channel.epoch === read.epoch
  return skips ? withNewest(read, buffered ?? []) : read
}

/**
 * Null if nothing was requested, if the position is not in the stream any more, or if the publications do not fit into the
 * reply. The client then starts at the end of the stream.
 */
const recover = (
  { context, codec }: Client,
  { channel, filter, replySpace }: SubscribeRequest,
  { since, fromCache, delta }: SubscriptionOptions,
  page: HistoryPage
): SentRecovery | null => {
  if (since === null) return null
  const recovery = fromCache ? recoverFromCache(since, page) : recoverFromStream(since, page)
  if (recovery === null) return null
  const publications =
    filter === null ? recovery.publications : recovery.publications.filter((publication) => passes(filter, publication))
  const { offset } = recovery
  if (publications.length === 0) return { offset, publications: [] }
  const list = {
    channel,
    epoch: page.epoch,
    publications,
    takesDelta: delta,
    patches: delta ? context.patches : null
  }
  const { bytesLeft } = replySpace
  const sized =
    filter === null ? context.recoveryCache.find(list, codec, bytesLeft) : sizedPublications(list, codec, bytesLeft)
  if (sized === null) return null
  replySpace.use(sized.bytes)
  return { offset, publications: sized.publications }
}
