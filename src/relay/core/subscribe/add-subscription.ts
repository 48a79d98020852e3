import { type Caller, hasHistory, maySeeHistory, maySeePresence, type ResolvedChannel } from '../channel-names.js'
import { expiryAt, NEVER, ttlOf } from '../clocks.js'
import { canCarry, type SentPublication, type SubscribeReply } from '../codec/codec.js'
import {
  DISCONNECT_INAPPROPRIATE_PROTOCOL,
  DISCONNECT_INSUFFICIENT_STATE,
  type Disconnect,
  ERROR_BINARY_CHANNEL,
  ERROR_UNRECOVERABLE_POSITION,
  type ReplyError,
  UNSUBSCRIBE_INSUFFICIENT_STATE
} from '../codes.js'
import { EngineError, type HistoryPage, NO_POSITION, type Position } from '../engine.js'
import type { Channel } from '../fan-out/channel.js'
import type { Rate } from '../fan-out/rate-class.js'
import { sizedPublications } from '../fan-out/recovery-cache.js'
import { pushInFull, Subscription } from '../fan-out/subscription.js'
import { passes, type TagFilter } from '../fan-out/tag-filter.js'
import { type ChannelOptions, NO_OVERRIDE, type ServerSubscription } from '../options.js'
import type { Client } from '../session/client.js'
import { type RelayContext, runInBackground } from '../session/context.js'
import { publicationsAfter, recoverFromCache, recoverFromStream, withNewest } from './recovery.js'

/** A subscription that passed all permission checks. */
export interface SubscribeRequest extends ServerSubscription {
  readonly channel: string
  readonly resolved: ResolvedChannel
  readonly isServerSide: boolean
  /** Milliseconds since 1970; 0 for never. */
  readonly expiresAt: number
  readonly recover: Position | null
  readonly positioned: boolean
  readonly recoverable: boolean
  readonly joinLeave: boolean
  readonly delta: boolean
  readonly filter: TagFilter | null
  /** Deliveries per second; null for all. */
  readonly rate: Rate | null
  readonly failsUnrecovered: boolean
  /** Space for recovered publications in the reply. */
  readonly replySpace: ReplySpace
}

/** Space for recovered publications in one reply, shared by all subscriptions in it. */
export class ReplySpace {
  readonly #client: Client
  #usedBytes = 0

  constructor(client: Client) {
    this.#client = client
  }

  get bytesLeft(): number {
    return Math.max(0, this.#client.replyBytesLeft - this.#usedBytes)
  }

  use(bytes: number): void {
    this.#usedBytes += bytes
  }
}

/** The caller sends `reply` and then calls `activate`, or it calls `undo`. */
export interface SubscribeResult {
  readonly reply: SubscribeReply
  /** The reply can be larger than `queue_max_size`. */
  readonly hasSnapshot: boolean
  activate(): void
  undo(): void
}

/** The effective options: what was requested and what the namespace allows. */
interface SubscriptionOptions {
  readonly presence: boolean
  readonly joinLeave: boolean
  readonly pushJoinLeave: boolean
  readonly positioned: boolean
  readonly recoverable: boolean
  /** Position to recover from; null for no recovery. */
  readonly since: Position | null
  /** Recover only the newest publication. */
  readonly fromCache: boolean
  /** Without a recovery the reply contains a snapshot. */
  readonly snapshot: boolean
  readonly delta: boolean
}

const resolveOptions = (request: SubscribeRequest, caller: Caller): SubscriptionOptions => {
  const { resolved, override } = request
  // Copied only if something changes, because this runs for every subscription.
  const options: ChannelOptions = override === NO_OVERRIDE ? resolved.options : { ...resolved.options, ...override }
  const hasStream = hasHistory(options)
  const mayRecover = options.allowRecovery || maySeeHistory(options, caller)
  const recoverable =
    hasStream && (options.forceRecovery || ((request.recoverable || request.recover !== null) && mayRecover))
  const fromCache = options.recoveryMode === 'cache'
  const snapshot = options.snapshot && hasStream
  // A snapshot contains the newest publication.
  const since = request.recover ?? (fromCache && options.autoCacheRecover && !snapshot ? NO_POSITION : null)
  const mayPosition = request.positioned && (options.allowPositioning || mayRecover)
  const positioned = recoverable || (hasStream && (options.forcePositioning || mayPosition))
  return {
    presence: options.presence,
    joinLeave: options.joinLeave,
    pushJoinLeave:
      options.joinLeave && (options.forcePushJoinLeave || (request.joinLeave && maySeePresence(options, caller))),
    positioned,
    recoverable,
    since: recoverable ? since : null,
    fromCache,
    snapshot,
    // A client with deltas has to detect missing publications.
    delta: request.delta && positioned && options.allowedDeltaTypes.includes('fossil')
  }
}

/**
 * Subscribes a client to a channel. Publications are buffered from the first step on, so that none is lost between the
 * position in the reply and the first live publication.
 */
export const addSubscription = async (
  client: Client,
  request: SubscribeRequest
): Promise<SubscribeResult | ReplyError | Disconnect> => {
  const { context, codec } = client
  if (request.resolved.options.publicationDataFormat === 'binary' && !codec.allowsBinary) return ERROR_BINARY_CHANNEL
  const caller: Caller = { user: client.user, insecure: context.clientOptions.insecure, isSubscribed: true }
  const options = resolveOptions(request, caller)
  const channel = context.hub.open(request.channel, request.resolved)
  const subscription = new Subscription(channel, client, request.isServerSide)
  // A client with a snapshot and without a position also relies on every publication: after a gap it gets a new snapshot.
  subscription.isPositioned = options.positioned || options.snapshot
  subscription.takesDelta = options.delta
  subscription.filter = request.filter
  subscription.rate = request.rate
  subscription.wantsJoinLeave = options.pushJoinLeave
  subscription.info = request.info
  subscription.expiry = expiryAt(request.expiresAt, context, request.resolved.options.subRefreshProxy !== null)
  channel.addPending(subscription)
  client.addSubscription(subscription)
  try {
    await channel.subscribeAtBroker(context.broker)
    assertDelivering(context, channel)
    const start = await readStart(client, subscription, request, options)
    assertDelivering(context, channel)
    return finish(client, subscription, request, options, start)
  } catch (error) {
    client.removeSubscription(subscription)
    throw error
  }
}

/** The engine may have lost the deliveries of an open channel. Subscribing fails until they are active again. */
const assertDelivering = ({ broker }: RelayContext, { name }: Channel): void => {
  if (!broker.isDelivering(name)) throw new EngineError('the engine does not deliver at the moment')
}

const EMPTY_PAGE: HistoryPage = { ...NO_POSITION, publications: [] }

/** Where a subscription starts, and what the client receives in its reply. */
interface Start {
  readonly page: HistoryPage
  /** Null without a recovery. */
  readonly recovered: SentRecovery | null
  readonly snapshot: readonly SentPublication[] | null
}

const readStart = async (
  client: Client,
  subscription: Subscription,
  request: SubscribeRequest,
  options: SubscriptionOptions
): Promise<Start> => {
  const { codec, context } = client
  if (options.since !== null || !options.snapshot) {
    const read = await readPosition(client, request, options)
    const page = skipToNewest(subscription, options, read)
    const recovered = recover(client, request, options, page)
    if (recovered !== null || !options.snapshot || request.failsUnrecovered) return { page, recovered, snapshot: null }
  }
  const read = await subscription.channel.readSnapshot(context.history, request.filter)
  // The option was removed while the client subscribed.
  if (read === null) return { page: await readPosition(client, request, options), recovered: null, snapshot: null }
  const { position, snapshot } = read
  const offset = options.positioned ? position.offset : NO_POSITION.offset
  return {
    page: { ...position, publications: [] },
    recovered: null,
    snapshot: snapshot?.toSend(codec, options.delta, { epoch: position.epoch, offset }) ?? null
  }
}

/** Reads the end of the stream and what is to be recovered. */
const readPosition = async (
  { context }: Client,
  { channel, resolved }: SubscribeRequest,
  { positioned, since, fromCache }: SubscriptionOptions
): Promise<HistoryPage> => {
  if (!positioned) return EMPTY_PAGE
  const { history, clientOptions, metrics } = context
  if (since !== null) metrics.engineAction(fromCache ? 'history_recover_cache' : 'history_recover', resolved.namespace)
  if (since !== null && fromCache)
    return history.read(channel, { since: null, limit: 1, reverse: true }, resolved.options)
  const limit = since === null ? 0 : clientOptions.recoveryMaxPublicationLimit
  return history.read(channel, { since, limit, reverse: false }, resolved.options)
}

/** Makes the reply from what was read, or fails if the client cannot continue from there without a gap. */
const finish = (
  client: Client,
  subscription: Subscription,
  request: SubscribeRequest,
  options: SubscriptionOptions,
  { page, recovered, snapshot }: Start
): SubscribeResult | ReplyError | Disconnect => {
  const isComplete = !subscription.isPositioned || publicationsAfter(page, subscription.buffered ?? []) !== null
  const hasPublications = recovered !== null && recovered.publications.length > 0
  const undo = (): void => client.removeSubscription(subscription)
  if (options.recoverable && request.recover !== null) {
    client.context.metrics.recovered(
      subscription.channel.namespace,
      recovered !== null,
      recovered?.publications.length ?? 0
    )
    if (recovered === null && request.failsUnrecovered) {
      undo()
      return ERROR_UNRECOVERABLE_POSITION
    }
  }
  const isReadable = recovered?.publications.every(({ publication }) => canCarry(client.codec, publication)) ?? true
  if (!isComplete || !isReadable) {
    undo()
    return isComplete ? DISCONNECT_INAPPROPRIATE_PROTOCOL : DISCONNECT_INSUFFICIENT_STATE
  }
  return {
    reply: subscribeReply(request, options, page, recovered, snapshot, ttlOf(subscription.expiry, client.context)),
    hasSnapshot: snapshot !== null,
    activate: () => activate(client, subscription, options, page, hasPublications),
    undo
  }
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

/** The publications of a recovery in the form in which they are sent. */
interface SentRecovery {
  /** The offset that the client starts from. */
  readonly offset: number
  readonly publications: readonly SentPublication[]
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
  // Publications that were filtered out do not advance the client's position.
  const offset = filter === null ? recovery.offset : page.offset
  if (publications.length === 0) return { offset, publications: [] }
  const list = { channel, epoch: page.epoch, publications, patches: delta ? context.patches : null }
  const { bytesLeft } = replySpace
  const sized =
    filter === null ? context.recoveryCache.find(list, codec, bytesLeft) : sizedPublications(list, codec, bytesLeft)
  if (sized === null) return null
  replySpace.use(sized.bytes)
  return { offset, publications: sized.publications }
}

const subscribeReply = (
  { recover, data }: SubscribeRequest,
  { recoverable, positioned, delta }: SubscriptionOptions,
  page: HistoryPage,
  recovered: SentRecovery | null,
  snapshot: readonly SentPublication[] | null,
  ttl: number
): SubscribeReply => ({
  ttl,
  recoverable,
  positioned,
  // A recovering client starts at its own position, and advances with each recovered publication.
  position: positioned ? { epoch: page.epoch, offset: recovered?.offset ?? page.offset } : NO_POSITION,
  publications: recovered?.publications ?? snapshot ?? [],
  recovered: recovered !== null,
  wasRecovering: recover !== null,
  data,
  delta
})

/** Called when the reply was sent. Live delivery starts after the client had time to process it. */
const activate = (
  client: Client,
  subscription: Subscription,
  options: SubscriptionOptions,
  page: HistoryPage,
  receivedLast: boolean
): void => {
  if (client.subscriptions.get(subscription.channel.name) !== subscription) return
  const { context } = client
  subscription.isConfirmed = true
  context.metrics.subscribed(subscription.channel.namespace, client.name, subscription.rate)
  if (subscription.expiry !== NEVER) client.deadlines.schedule()
  const isEnding = subscription.pendingUnsubscribe !== null
  context.delayPushAfterReply(() => client.closeOnError(() => goLive(client, subscription, page, receivedLast)))
  if (!isEnding) runInBackground(context, () => announceJoin(client, subscription, options))
}

/** Sends the buffered publications and starts live delivery. */
const goLive = (client: Client, subscription: Subscription, page: HistoryPage, receivedLast: boolean): void => {
  const { channel, isPositioned, pendingUnsubscribe } = subscription
  if (client.subscriptions.get(channel.name) !== subscription) return
  if (client.context.hub.hasPending) client.flushPending()
  const buffered = subscription.buffered ?? []
  // The client has processed its reply: from now on the subscription can be ended at once.
  subscription.buffered = null
  if (pendingUnsubscribe !== null) {
    client.endSubscription(subscription, pendingUnsubscribe)
    return
  }
  const missed = publicationsAfter(page, buffered) ?? (isPositioned ? null : buffered)
  // Offsets of another epoch cannot be compared with this position.
  const isOtherEpoch = isPositioned && channel.epoch !== page.epoch && buffered.some(({ offset }) => offset > 0)
  if (missed === null || isOtherEpoch) {
    client.endSubscription(subscription, UNSUBSCRIBE_INSUFFICIENT_STATE)
    return
  }
  const passing = missed.filter((publication) => passes(subscription.filter, publication))
  const isLimited = subscription.rate !== null
  for (const publication of isLimited ? [] : passing) pushInFull(subscription, publication, page.epoch)
  const offset = missed.reduce((highest, each) => Math.max(highest, each.offset), page.offset)
  const position: Position = { epoch: page.epoch, offset }
  if (isPositioned && channel.hasPassed(position)) {
    client.endSubscription(subscription, UNSUBSCRIBE_INSUFFICIENT_STATE)
    return
  }
  channel.goLive(subscription, position, isLimited ? passing : [])
  // The last publication is a base for the next delta only if it was in the reply. A client that missed nothing may not
  // have it: it may have reconnected before it received any.
  if (receivedLast && missed.length === 0) subscription.needsFull = !channel.canPatchFrom(page.offset)
}

/** Adds the client to the presence of the channel before other clients receive the join push. */
const announceJoin = async (
  client: Client,
  subscription: Subscription,
  { presence, joinLeave }: SubscriptionOptions
): Promise<void> => {
  if (!presence && !joinLeave) return
  const { context } = client
  const { name, namespace } = subscription.channel
  const info = client.infoText(subscription.info)
  subscription.isInPresence = presence
  subscription.announcesJoinLeave = joinLeave
  if (presence) {
    context.metrics.engineAction('add_presence', namespace)
    await context.presence.add(name, client.id, client.user, info)
  }
  // If the client has unsubscribed meanwhile, its leave push was already sent.
  if (!joinLeave || client.subscriptions.get(name) !== subscription) return
  client.flushPending()
  context.metrics.messageSent('join', namespace)
  await context.broker.joinOrLeave(name, 'join', info)
}
