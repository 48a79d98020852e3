import {
  after,
  EngineError,
  type HistoryPage,
  type MaybePromise,
  NO_POSITION,
  type Position,
  type Publication
} from './broker.js'
import type { Channel } from './channel.js'
import { type Caller, hasHistory, maySeeHistory, maySeePresence, type ResolvedChannel } from './channels.js'
import type { Client } from './client.js'
import { expiryAt, type Moment, NEVER, ttlSeconds } from './clocks.js'
import {
  DISCONNECT_INSUFFICIENT_STATE,
  type Disconnect,
  ERROR_UNRECOVERABLE_POSITION,
  type ReplyError,
  UNSUBSCRIBE_INSUFFICIENT_STATE,
  type Unsubscribe
} from './codes.js'
import type { Backlog } from './conflation.js'
import { type RelayContext, runInBackground } from './context.js'
import type { Group } from './group.js'
import type { ChannelOptions } from './options.js'
import type { Outbox } from './outbox.js'
import { expiryFields, fieldIf, objectText, positionFields, publicationPush, publicationText } from './protocol.js'
import { cacheRecovery, following, type Recovery, recoveredText, streamRecovery, withNewest } from './recovery.js'
import { NO_OVERRIDE, type ServerSubscription } from './tokens.js'

/** The connection as its subscriptions see it. */
export interface Subscriber {
  readonly outbox: Outbox
  readonly id: string
  readonly user: string
  /** Takes a subscription away; one that the server made takes the connection with it where its place was lost. */
  endSubscription(subscription: Subscription, unsubscribe: Unsubscribe): void
  /** Runs something for this connection; an error in it ends this connection alone. */
  contain(work: () => void): void
}

/** One connection on one channel. */
export class Subscription {
  readonly channel: Channel
  readonly subscriber: Subscriber
  /** The subscriber's, one step nearer for those who send to thousands. */
  readonly outbox: Outbox
  /** Made by a token or the API rather than asked for by the client. */
  readonly isServerSide: boolean
  /** Its client counts on getting every publication of the stream. */
  isPositioned = false
  wantsJoinLeave = false
  isInPresence = false
  announcesJoinLeave = false
  takesDelta = false
  /** It has a token of its own, which can be refreshed. */
  hasToken = false
  /** JSON text of the `chan_info`. */
  info: string | null = null
  /** When its token runs out. */
  expiry: Moment = NEVER

  /** Its client knows that it is on the channel. */
  isConfirmed = false
  /** Publications that arrive before the client has had its reply; null once it has. */
  buffered: Publication[] | null = []
  /** Why the relay ends the subscription as soon as its client has had the reply. */
  pendingUnsubscribe: Unsubscribe | null = null
  /** A place the client was told about and the channel has yet to deliver; until then it gets nothing. */
  aheadOffset = 0
  /** The client holds no base for a delta. */
  needsFull = true
  /** What waits, merged, while the client is behind. */
  backlog: Backlog | null = null
  /** How many of its publications the client had before it fell behind. */
  backlogStart = 0
  group: Group | null = null
  /** Its place in the group's list. */
  groupIndex = -1

  constructor(channel: Channel, subscriber: Subscriber, isServerSide: boolean) {
    this.channel = channel
    this.subscriber = subscriber
    this.outbox = subscriber.outbox
    this.isServerSide = isServerSide
  }
}

/** Undoes what subscribing did, here and at the engine. */
export const removeSubscription = (client: Client, subscription: Subscription): void => {
  const { context } = client
  const { channel } = subscription
  channel.remove(subscription)
  if (subscription.isConfirmed) context.metrics.unsubscribed(channel.namespace, client.name)
  removeIfUnused(context, channel)
  if (subscription.isInPresence) {
    context.metrics.engineAction('remove_presence', channel.namespace)
    runInBackground(context, () => context.presence.remove(channel.name, client.id))
  }
  if (subscription.announcesJoinLeave) {
    const info = client.infoText(subscription.info)
    context.metrics.messageSent('leave', channel.namespace)
    runInBackground(context, () => context.broker.joinOrLeave(channel.name, 'leave', info))
  }
}

export const removeIfUnused = (context: RelayContext, channel: Channel): void => {
  if (!channel.isUnused) return
  context.hub.remove(channel)
  runInBackground(context, () => context.broker.unsubscribe(channel.name))
}

/** A subscription that has been allowed, whoever asked for it. */
export interface SubscribeRequest extends ServerSubscription {
  readonly channel: string
  readonly kind: ResolvedChannel
  readonly isServerSide: boolean
  readonly hasToken: boolean
  /** In ms; 0 for never. */
  readonly expiresAt: number
  readonly recover: Position | null
  readonly positioned: boolean
  readonly recoverable: boolean
  readonly joinLeave: boolean
  readonly delta: boolean
  readonly failsUnrecovered: boolean
  /** What the reply that the result goes into may still hold. */
  readonly room: ReplyRoom
}

/** What one reply may still hold of what is recovered, for all channels whose results go into it. */
export class ReplyRoom {
  readonly #client: Client
  #taken = 0

  constructor(client: Client) {
    this.#client = client
  }

  get bytesLeft(): number {
    return Math.max(0, this.#client.replyBytesLeft - this.#taken)
  }

  take(bytes: number): void {
    this.#taken += bytes
  }
}

/** The result to be sent; `begin` follows when it has been, or `undo` when it will not be. */
export interface SubscribeResult {
  readonly result: string
  activate(): void
  undo(): void
}

/** What of the wish and the namespace's options comes true. */
interface SubscriptionOptions {
  readonly presence: boolean
  readonly joinLeave: boolean
  readonly pushJoinLeave: boolean
  readonly positioned: boolean
  readonly recoverable: boolean
  /** The place to recover from. */
  readonly since: Position | null
  /** Only the newest publication is handed over. */
  readonly fromCache: boolean
  readonly delta: boolean
}

const resolveOptions = (request: SubscribeRequest, caller: Caller): SubscriptionOptions => {
  const { kind, override } = request
  // Copied only where something changes: this is on the way of every subscription.
  const options: ChannelOptions = override === NO_OVERRIDE ? kind.options : { ...kind.options, ...override }
  const kept = hasHistory(options)
  const mayRecover = options.allowRecovery || maySeeHistory(options, caller)
  const recoverable =
    kept && (options.forceRecovery || ((request.recoverable || request.recover !== null) && mayRecover))
  const fromCache = options.recoveryMode === 'cache'
  const since = request.recover ?? (fromCache && options.autoCacheRecover ? NO_POSITION : null)
  const asks = request.positioned && (options.allowPositioning || mayRecover)
  const positioned = recoverable || (kept && (options.forcePositioning || asks))
  return {
    presence: options.presence,
    joinLeave: options.joinLeave,
    pushJoinLeave:
      options.joinLeave && (options.forcePushJoinLeave || (request.joinLeave && maySeePresence(options, caller))),
    positioned,
    recoverable,
    since: recoverable ? since : null,
    fromCache,
    // Who takes differences must know when one is missing.
    delta: request.delta && positioned && options.allowedDeltaTypes.includes('fossil')
  }
}

/**
 * Puts a connection on a channel. Publications are set aside from the first step on, so that none falls between the place
 * that the client is told and the first that it gets.
 */
export const addSubscription = (
  client: Client,
  request: SubscribeRequest
): MaybePromise<SubscribeResult | ReplyError | Disconnect> => {
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

  const fail = (error: unknown): never => {
    client.removeSubscription(subscription)
    throw error
  }
  try {
    const results = after(channel.subscribeAtBroker(context.broker), () => {
      assertDelivering(context, channel)
      return after(readPosition(client, request, options), (page) => {
        assertDelivering(context, channel)
        return finishSubscribe(client, subscription, request, options, page)
      })
    })
    return results instanceof Promise ? results.catch(fail) : results
  } catch (error) {
    return fail(error)
  }
}

/** A channel that is known here may have lost its deliveries since: nobody is told "subscribed" until they flow again. */
const assertDelivering = ({ broker }: RelayContext, { name }: Channel): void => {
  if (!broker.isDelivering(name)) throw new EngineError('the engine does not deliver at the moment')
}

const NO_PAGE: HistoryPage = { ...NO_POSITION, publications: [] }

const readPosition = (
  connection: Client,
  { channel, kind }: SubscribeRequest,
  { positioned, since, fromCache }: SubscriptionOptions
): MaybePromise<HistoryPage> => {
  if (!positioned) return NO_PAGE
  const { history, clientOptions: client, metrics } = connection.context
  if (since !== null) metrics.engineAction(fromCache ? 'history_recover_cache' : 'history_recover', kind.namespace)
  if (since !== null && fromCache) return history.read(channel, { since: null, limit: 1, reverse: true }, kind.options)
  const limit = since === null ? 0 : client.recoveryMaxPublicationLimit
  return history.read(channel, { since, limit, reverse: false }, kind.options)
}

const finishSubscribe = (
  client: Client,
  subscription: Subscription,
  request: SubscribeRequest,
  options: SubscriptionOptions,
  read: HistoryPage
): SubscribeResult | ReplyError | Disconnect => {
  const { context } = client
  const { namespace, epoch } = subscription.channel
  const { since, fromCache } = options
  const early = subscription.buffered ?? []
  const isWhole = !options.positioned || following(read, early) !== null
  // Differences need every publication before them.
  const skips = since !== null && fromCache && !options.delta && isWhole && epoch === read.epoch
  const page = skips ? withNewest(read, early) : read
  const isRecovering = options.recoverable && request.recover !== null
  const found = since === null ? null : (fromCache ? cacheRecovery : streamRecovery)(since, page)
  const list = found === null ? null : recoveredList(client, request, options, page.epoch, found)
  // More than a client may have waiting for it is not recovered: it begins at the top, as after a loss.
  const recovery = list === null ? null : found
  const publications = recovery?.publications ?? []
  const recovered = recovery !== null
  if (isRecovering) context.metrics.recovered(namespace, recovered, publications.length > 0)
  if (isRecovering && !recovered && request.failsUnrecovered) {
    client.removeSubscription(subscription)
    return ERROR_UNRECOVERABLE_POSITION
  }

  // A client that recovers climbs from its own place as it takes the publications.
  const told: Position = { epoch: page.epoch, offset: recovery?.offset ?? page.offset }
  if (!isWhole) {
    client.removeSubscription(subscription)
    return DISCONNECT_INSUFFICIENT_STATE
  }
  const ttl = request.expiresAt > 0 ? ttlSeconds(request.expiresAt, context.nowMs()) : 0
  const result = objectText(
    expiryFields(ttl) +
      fieldIf(options.recoverable, 'recoverable') +
      fieldIf(options.positioned, 'positioned') +
      (options.positioned ? positionFields(told) : '') +
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

/** The field with what is recovered, '' where that is nothing; null where it does not fit into the reply. */
const recoveredList = (
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
  room.take(Buffer.byteLength(text))
  return `,"publications":${text}`
}

/** The client is told; what it gets follows when it has had the time to take that. */
const activate = (
  client: Client,
  subscription: Subscription,
  options: SubscriptionOptions,
  page: HistoryPage,
  gotLast: boolean
): void => {
  if (client.subscriptions.get(subscription.channel.name) !== subscription) return
  const { context } = client
  subscription.isConfirmed = true
  context.metrics.subscribed(subscription.channel.namespace, client.name)
  if (subscription.expiry !== NEVER) client.scheduleWake()
  const isEnding = subscription.pendingUnsubscribe !== null
  context.delayPushAfterReply(() => client.contain(() => goLive(client, subscription, page, gotLast)))
  if (!isEnding) announceJoin(client, subscription, options)
}

/** What came in meanwhile, and from here on everything. */
const goLive = (client: Client, subscription: Subscription, page: HistoryPage, gotLast: boolean): void => {
  const { channel, takesDelta, isPositioned, pendingUnsubscribe } = subscription
  if (client.subscriptions.get(channel.name) !== subscription) return
  const { hub } = client.context
  if (hub.hasPending) client.flushPending()
  const held = subscription.buffered ?? []
  // The client has had its reply: from here on the subscription can be ended at once.
  subscription.buffered = null
  if (pendingUnsubscribe !== null) {
    client.endSubscription(subscription, pendingUnsubscribe)
    return
  }
  const early = following(page, held) ?? (isPositioned ? null : held)
  // Offsets of another stream say nothing about this place.
  const isElsewhere = isPositioned && channel.epoch !== page.epoch && held.some(({ offset }) => offset > 0)
  if (early === null || isElsewhere) {
    client.endSubscription(subscription, UNSUBSCRIBE_INSUFFICIENT_STATE)
    return
  }
  for (const publication of early) {
    const text = publicationPushText(channel.name, publication, page.epoch, takesDelta)
    client.push(text, 'push_publication', channel.namespace)
  }
  const place = { epoch: page.epoch, offset: early.reduce((top, { offset }) => Math.max(top, offset), page.offset) }
  if (isPositioned && channel.hasPassed(place)) {
    client.endSubscription(subscription, UNSUBSCRIBE_INSUFFICIENT_STATE)
    return
  }
  channel.goLive(subscription, place)
  // Who has just been given the last publication can take the next as a difference to it. Of a client that missed nothing
  // nobody knows whether it holds the last one: it may have come and gone without getting any.
  const holdsLast = gotLast && early.length === 0
  if (holdsLast) subscription.needsFull = !channel.canPatchFrom(page.offset)
}

const publicationPushText = (channel: string, publication: Publication, epoch: string, takesDelta: boolean): string => {
  const data = takesDelta ? JSON.stringify(publication.data) : publication.data
  return publicationPush(channel, publicationText(publication, epoch, data, false))
}

const announceJoin = (connection: Client, subscription: Subscription, options: SubscriptionOptions): void => {
  if (!options.presence && !options.joinLeave) return
  const { context, id: client, user } = connection
  const { name, namespace } = subscription.channel
  const info = connection.infoText(subscription.info)
  subscription.isInPresence = options.presence
  subscription.announcesJoinLeave = options.joinLeave
  if (options.presence) context.metrics.engineAction('add_presence', namespace)
  // Who is told of somebody can ask for them at once.
  runInBackground(context, () =>
    after(options.presence ? context.presence.add(name, client, user, info) : undefined, () => {
      // Who has left meanwhile has said so already.
      if (!options.joinLeave || connection.subscriptions.get(name) !== subscription) return
      connection.flushPending()
      context.metrics.messageSent('join', namespace)
      return context.broker.joinOrLeave(name, 'join', info)
    })
  )
}
