import { EngineError, type HistoryPage, NO_POSITION, type Position, type Publication } from './broker.js'
import type { Channel } from './channel.js'
import { type Caller, hasHistory, maySeeHistory, maySeePresence, type ResolvedChannel } from './channels.js'
import type { Client } from './client.js'
import { expiryAt, NEVER, ttlSeconds } from './clocks.js'
import {
  DISCONNECT_INSUFFICIENT_STATE,
  type Disconnect,
  ERROR_UNRECOVERABLE_POSITION,
  type ReplyError,
  UNSUBSCRIBE_INSUFFICIENT_STATE
} from './codes.js'
import { type RelayContext, runInBackground } from './context.js'
import type { ChannelOptions } from './options.js'
import { expiryFields, fieldIf, objectText, positionFields, publicationPush, publicationText } from './protocol.js'
import {
  publicationsAfter,
  type Recovery,
  recoveredText,
  recoverFromCache,
  recoverFromStream,
  withNewest
} from './recovery.js'
import { Subscription } from './subscription.js'
import { NO_OVERRIDE, type ServerSubscription } from './tokens.js'

/** A subscription that passed all permission checks. */
export interface SubscribeRequest extends ServerSubscription {
  readonly channel: string
  readonly kind: ResolvedChannel
  readonly isServerSide: boolean
  readonly hasToken: boolean
  /** Milliseconds since 1970; 0 for never. */
  readonly expiresAt: number
  readonly recover: Position | null
  readonly positioned: boolean
  readonly recoverable: boolean
  readonly joinLeave: boolean
  readonly delta: boolean
  readonly failsUnrecovered: boolean
  /** Space for recovered publications in the reply. */
  readonly room: ReplyRoom
}

/** Space for recovered publications in one reply, shared by all subscriptions in it. */
export class ReplyRoom {
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

/** The caller sends `result` and then calls `activate`, or it calls `undo`. */
export interface SubscribeResult {
  /** JSON text. */
  readonly result: string
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
  readonly delta: boolean
}

const resolveOptions = (request: SubscribeRequest, caller: Caller): SubscriptionOptions => {
  const { kind, override } = request
  // Copied only if something changes, because this runs for every subscription.
  const options: ChannelOptions = override === NO_OVERRIDE ? kind.options : { ...kind.options, ...override }
  const hasStream = hasHistory(options)
  const mayRecover = options.allowRecovery || maySeeHistory(options, caller)
  const recoverable =
    hasStream && (options.forceRecovery || ((request.recoverable || request.recover !== null) && mayRecover))
  const fromCache = options.recoveryMode === 'cache'
  const since = request.recover ?? (fromCache && options.autoCacheRecover ? NO_POSITION : null)
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
  const { context } = client
  const caller: Caller = { user: client.user, insecure: context.clientOptions.insecure, isSubscribed: true }
  const options = resolveOptions(request, caller)
  const channel = context.hub.open(request.channel, request.kind)
  const subscription = new Subscription(channel, client, request.isServerSide)
  subscription.isPositioned = options.positioned
  subscription.takesDelta = options.delta
  subscription.wantsJoinLeave = options.pushJoinLeave
  subscription.info = request.info
  subscription.expiry = expiryAt(request.expiresAt, context)
  subscription.hasToken = request.hasToken
  channel.addPending(subscription)
  client.addSubscription(subscription)
  try {
    await channel.subscribeAtBroker(context.broker)
    assertDelivering(context, channel)
    const page = await readPosition(client, request, options)
    assertDelivering(context, channel)
    return finish(client, subscription, request, options, page)
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

/** Reads the end of the stream and what is to be recovered. */
const readPosition = async (
  { context }: Client,
  { channel, kind }: SubscribeRequest,
  { positioned, since, fromCache }: SubscriptionOptions
): Promise<HistoryPage> => {
  if (!positioned) return EMPTY_PAGE
  const { history, clientOptions, metrics } = context
  if (since !== null) metrics.engineAction(fromCache ? 'history_recover_cache' : 'history_recover', kind.namespace)
  if (since !== null && fromCache) return history.read(channel, { since: null, limit: 1, reverse: true }, kind.options)
  const limit = since === null ? 0 : clientOptions.recoveryMaxPublicationLimit
  return history.read(channel, { since, limit, reverse: false }, kind.options)
}

const finish = (
  client: Client,
  subscription: Subscription,
  request: SubscribeRequest,
  options: SubscriptionOptions,
  read: HistoryPage
): SubscribeResult | ReplyError | Disconnect => {
  const { context } = client
  const { namespace, epoch } = subscription.channel
  const { since, fromCache } = options
  const buffered = subscription.buffered ?? []
  const isComplete = !options.positioned || publicationsAfter(read, buffered) !== null
  // With deltas nothing can be skipped: each publication is the base of the next one.
  const skipsToNewest = since !== null && fromCache && !options.delta && isComplete && epoch === read.epoch
  const page = skipsToNewest ? withNewest(read, buffered) : read
  const isRecovering = options.recoverable && request.recover !== null
  const found = since === null ? null : (fromCache ? recoverFromCache : recoverFromStream)(since, page)
  const list = found === null ? null : recoveredField(client, request, options, page.epoch, found)
  // If the publications exceed the client's queue limit, it starts at the end of the stream, as after a loss.
  const recovery = list === null ? null : found
  const publications = recovery?.publications ?? []
  const recovered = recovery !== null
  if (isRecovering) context.metrics.recovered(namespace, recovered, publications.length > 0)
  if (isRecovering && !recovered && request.failsUnrecovered) {
    client.removeSubscription(subscription)
    return ERROR_UNRECOVERABLE_POSITION
  }
  if (!isComplete) {
    client.removeSubscription(subscription)
    return DISCONNECT_INSUFFICIENT_STATE
  }
  // A recovering client starts at its own position, and advances with each recovered publication.
  const position: Position = { epoch: page.epoch, offset: recovery?.offset ?? page.offset }
  const ttl = request.expiresAt > 0 ? ttlSeconds(request.expiresAt, context.nowMs()) : 0
  const result = objectText(
    expiryFields(ttl) +
      fieldIf(options.recoverable, 'recoverable') +
      fieldIf(options.positioned, 'positioned') +
      (options.positioned ? positionFields(position) : '') +
      (list ?? '') +
      fieldIf(recovered, 'recovered') +
      fieldIf(request.recover !== null, 'was_recovering') +
      (request.data === null ? '' : `,"data":${request.data}`) +
      fieldIf(options.delta, 'delta')
  )
  return {
    result,
    activate: () => activate(client, subscription, options, page, publications.length > 0),
    undo: () => client.removeSubscription(subscription)
  }
}

/** The `publications` field of the result; '' if there are none, null if they do not fit into the reply. */
const recoveredField = (
  { context }: Client,
  { channel, room }: SubscribeRequest,
  { delta }: SubscriptionOptions,
  epoch: string,
  { publications }: Recovery
): string | null => {
  if (publications.length === 0) return ''
  const patches = delta ? context.patches : null
  const text = recoveredText({ channel, epoch, publications, patches }, room.bytesLeft)
  if (text === null) return null
  room.use(Buffer.byteLength(text))
  return `,"publications":${text}`
}

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
  context.metrics.subscribed(subscription.channel.namespace, client.name)
  if (subscription.expiry !== NEVER) client.scheduleWake()
  const isEnding = subscription.pendingUnsubscribe !== null
  context.delayPushAfterReply(() => client.contain(() => goLive(client, subscription, page, receivedLast)))
  if (!isEnding) runInBackground(context, () => announceJoin(client, subscription, options))
}

/** Sends the buffered publications and starts live delivery. */
const goLive = (client: Client, subscription: Subscription, page: HistoryPage, receivedLast: boolean): void => {
  const { channel, takesDelta, isPositioned, pendingUnsubscribe } = subscription
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
  for (const publication of missed) {
    const text = publicationPushText(channel.name, publication, page.epoch, takesDelta)
    client.push(text, 'push_publication', channel.namespace)
  }
  const offset = missed.reduce((highest, each) => Math.max(highest, each.offset), page.offset)
  const position: Position = { epoch: page.epoch, offset }
  if (isPositioned && channel.hasPassed(position)) {
    client.endSubscription(subscription, UNSUBSCRIBE_INSUFFICIENT_STATE)
    return
  }
  channel.goLive(subscription, position)
  // The last publication is a base for the next delta only if it was in the reply. A client that missed nothing may not
  // have it: it may have reconnected before it received any.
  if (receivedLast && missed.length === 0) subscription.needsFull = !channel.canPatchFrom(page.offset)
}

const publicationPushText = (channel: string, publication: Publication, epoch: string, takesDelta: boolean): string => {
  const data = takesDelta ? JSON.stringify(publication.data) : publication.data
  return publicationPush(channel, publicationText(publication, epoch, data, false))
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
