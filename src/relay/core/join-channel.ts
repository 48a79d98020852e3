import { type HistoryPage, NO_POSITION, type Position, type Publication } from './broker.js'
import type { Channel } from './channel.js'
import { type Caller, type ChannelKind, hasHistory, maySeeHistory, maySeePresence } from './channels.js'
import type { Connection } from './connection.js'
import type { Context } from './context.js'
import { type Disconnect, INSUFFICIENT_STATE } from './disconnect.js'
import { EngineFault } from './engine-fault.js'
import { type ReplyError, UNRECOVERABLE_POSITION } from './errors.js'
import { expiryAt, NEVER, ttlSeconds } from './expiry.js'
import { inBackground } from './leave-channel.js'
import { after, type MaybePromise } from './maybe-promise.js'
import type { ChannelOptions } from './options.js'
import { expiryFields, fieldIf, objectText, positionFields, publicationPush, publicationText } from './protocol.js'
import { cacheRecovery, following, type Recovery, recoveredText, streamRecovery, withNewest } from './recovery.js'
import { Subscription } from './subscription.js'
import { NO_OVERRIDE, type ServerSubscription } from './tokens.js'
import { LOST_POSITION } from './unsubscribe.js'

/** A subscription that has been allowed, whoever asked for it. */
export interface Wish extends ServerSubscription {
  readonly channel: string
  readonly kind: ChannelKind
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
  readonly #connection: Connection
  #taken = 0

  constructor(connection: Connection) {
    this.#connection = connection
  }

  get bytesLeft(): number {
    return Math.max(0, this.#connection.replyBytesLeft - this.#taken)
  }

  take(bytes: number): void {
    this.#taken += bytes
  }
}

/** The result to be sent; `begin` follows when it has been, or `undo` when it will not be. */
export interface Joined {
  readonly result: string
  begin(): void
  undo(): void
}

/** What of the wish and the namespace's options comes true. */
interface Grant {
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

const grant = (wish: Wish, caller: Caller): Grant => {
  const { kind, override } = wish
  // Copied only where something changes: this is on the way of every subscription.
  const options: ChannelOptions = override === NO_OVERRIDE ? kind.options : { ...kind.options, ...override }
  const kept = hasHistory(options)
  const mayRecover = options.allowRecovery || maySeeHistory(options, caller)
  const recoverable = kept && (options.forceRecovery || ((wish.recoverable || wish.recover !== null) && mayRecover))
  const fromCache = options.recoveryMode === 'cache'
  const since = wish.recover ?? (fromCache && options.autoCacheRecover ? NO_POSITION : null)
  const asks = wish.positioned && (options.allowPositioning || mayRecover)
  const positioned = recoverable || (kept && (options.forcePositioning || asks))
  return {
    presence: options.presence,
    joinLeave: options.joinLeave,
    pushJoinLeave:
      options.joinLeave && (options.forcePushJoinLeave || (wish.joinLeave && maySeePresence(options, caller))),
    positioned,
    recoverable,
    since: recoverable ? since : null,
    fromCache,
    // Who takes differences must know when one is missing.
    delta: wish.delta && positioned && options.allowedDeltaTypes.includes('fossil')
  }
}

/**
 * Puts a connection on a channel. Publications are set aside from the first step on, so that none falls between the place
 * that the client is told and the first that it gets.
 */
export const joinChannel = (connection: Connection, wish: Wish): MaybePromise<Joined | ReplyError | Disconnect> => {
  const { context } = connection
  const caller: Caller = { user: connection.user, insecure: context.client.insecure, isSubscribed: true }
  const granted = grant(wish, caller)
  const channel = context.hub.open(wish.channel, wish.kind)
  const subscription = new Subscription(channel, connection, wish.isServerSide)
  subscription.isPositioned = granted.positioned
  subscription.takesDelta = granted.delta
  subscription.wantsJoinLeave = granted.pushJoinLeave
  subscription.info = wish.info
  subscription.expiry = expiryAt(wish.expiresAt, context)
  subscription.hasToken = wish.hasToken
  channel.begin(subscription)
  connection.addSubscription(subscription)

  const fail = (error: unknown): never => {
    connection.removeSubscription(subscription)
    throw error
  }
  try {
    const joined = after(channel.listen(context.broker), () => {
      assertDelivering(context, channel)
      return after(readPlace(connection, wish, granted), (page) => {
        assertDelivering(context, channel)
        return settlePlace(connection, subscription, wish, granted, page)
      })
    })
    return joined instanceof Promise ? joined.catch(fail) : joined
  } catch (error) {
    return fail(error)
  }
}

/** A channel that is known here may have lost its deliveries since: nobody is told "subscribed" until they flow again. */
const assertDelivering = ({ broker }: Context, { name }: Channel): void => {
  if (!broker.isDelivering(name)) throw new EngineFault('the engine does not deliver at the moment')
}

const NO_PAGE: HistoryPage = { ...NO_POSITION, publications: [] }

const readPlace = (
  connection: Connection,
  { channel, kind }: Wish,
  { positioned, since, fromCache }: Grant
): MaybePromise<HistoryPage> => {
  if (!positioned) return NO_PAGE
  const { history, client, watch } = connection.context
  if (since !== null) watch.acted(fromCache ? 'history_recover_cache' : 'history_recover', kind.namespace)
  if (since !== null && fromCache) return history.read(channel, { since: null, limit: 1, reverse: true }, kind.options)
  const limit = since === null ? 0 : client.recoveryMaxPublicationLimit
  return history.read(channel, { since, limit, reverse: false }, kind.options)
}

const settlePlace = (
  connection: Connection,
  subscription: Subscription,
  wish: Wish,
  granted: Grant,
  read: HistoryPage
): Joined | ReplyError | Disconnect => {
  const { context } = connection
  const { namespace, epoch } = subscription.channel
  const { since, fromCache } = granted
  const early = subscription.early ?? []
  const isWhole = !granted.positioned || following(read, early) !== null
  // Differences need every publication before them.
  const skips = since !== null && fromCache && !granted.delta && isWhole && epoch === read.epoch
  const page = skips ? withNewest(read, early) : read
  const isRecovering = granted.recoverable && wish.recover !== null
  const found = since === null ? null : (fromCache ? cacheRecovery : streamRecovery)(since, page)
  const list = found === null ? null : recoveredList(connection, wish, granted, page.epoch, found)
  // More than a client may have waiting for it is not recovered: it begins at the top, as after a loss.
  const recovery = list === null ? null : found
  const publications = recovery?.publications ?? []
  const recovered = recovery !== null
  if (isRecovering) context.watch.recovered(namespace, recovered, publications.length > 0)
  if (isRecovering && !recovered && wish.failsUnrecovered) {
    connection.removeSubscription(subscription)
    return UNRECOVERABLE_POSITION
  }

  // A client that recovers climbs from its own place as it takes the publications.
  const told: Position = { epoch: page.epoch, offset: recovery?.offset ?? page.offset }
  if (!isWhole) {
    connection.removeSubscription(subscription)
    return INSUFFICIENT_STATE
  }
  const ttl = wish.expiresAt > 0 ? ttlSeconds(wish.expiresAt, context.nowMs()) : 0
  const result = objectText(
    expiryFields(ttl) +
      fieldIf(granted.recoverable, 'recoverable') +
      fieldIf(granted.positioned, 'positioned') +
      (granted.positioned ? positionFields(told) : '') +
      (list ?? '') +
      fieldIf(recovered, 'recovered') +
      fieldIf(wish.recover !== null, 'was_recovering') +
      (wish.data === null ? '' : `,"data":${wish.data}`) +
      fieldIf(granted.delta, 'delta')
  )
  return {
    result,
    begin: () => begin(connection, subscription, granted, page, publications.length > 0),
    undo: () => connection.removeSubscription(subscription)
  }
}

/** The field with what is recovered, '' where that is nothing; null where it does not fit into the reply. */
const recoveredList = (
  { context }: Connection,
  { channel, room }: Wish,
  { delta }: Grant,
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
const begin = (
  connection: Connection,
  subscription: Subscription,
  granted: Grant,
  page: HistoryPage,
  gotLast: boolean
): void => {
  if (connection.subscriptions.get(subscription.channel.name) !== subscription) return
  const { context } = connection
  subscription.isTold = true
  context.watch.subscribed(subscription.channel.namespace, connection.name)
  if (subscription.expiry !== NEVER) connection.scheduleWake()
  const isEnding = subscription.endsAfterReply !== null
  context.afterReply(() => connection.contain(() => goLive(connection, subscription, page, gotLast)))
  if (!isEnding) announce(connection, subscription, granted)
}

/** What came in meanwhile, and from here on everything. */
const goLive = (connection: Connection, subscription: Subscription, page: HistoryPage, gotLast: boolean): void => {
  const { channel, takesDelta, isPositioned, endsAfterReply } = subscription
  if (connection.subscriptions.get(channel.name) !== subscription) return
  const { hub } = connection.context
  if (hub.hasQueued) connection.settle()
  const held = subscription.early ?? []
  // The client has had its reply: from here on the subscription can be ended at once.
  subscription.early = null
  if (endsAfterReply !== null) {
    connection.loseSubscription(subscription, endsAfterReply)
    return
  }
  const early = following(page, held) ?? (isPositioned ? null : held)
  // Offsets of another stream say nothing about this place.
  const isElsewhere = isPositioned && channel.epoch !== page.epoch && held.some(({ offset }) => offset > 0)
  if (early === null || isElsewhere) {
    connection.loseSubscription(subscription, LOST_POSITION)
    return
  }
  for (const publication of early) {
    const text = earlyPush(channel.name, publication, page.epoch, takesDelta)
    connection.push(text, 'push_publication', channel.namespace)
  }
  const place = { epoch: page.epoch, offset: early.reduce((top, { offset }) => Math.max(top, offset), page.offset) }
  if (isPositioned && channel.hasPassed(place)) {
    connection.loseSubscription(subscription, LOST_POSITION)
    return
  }
  channel.goLive(subscription, place)
  // Who has just been given the last publication can take the next as a difference to it. Of a client that missed nothing
  // nobody knows whether it holds the last one: it may have come and gone without getting any.
  const holdsLast = gotLast && early.length === 0
  if (holdsLast) subscription.needsFull = !channel.canPatchFrom(page.offset)
}

const earlyPush = (channel: string, publication: Publication, epoch: string, takesDelta: boolean): string => {
  const data = takesDelta ? JSON.stringify(publication.data) : publication.data
  return publicationPush(channel, publicationText(publication, epoch, data, false))
}

const announce = (connection: Connection, subscription: Subscription, granted: Grant): void => {
  if (!granted.presence && !granted.joinLeave) return
  const { context, client, user } = connection
  const { name, namespace } = subscription.channel
  const info = connection.describe(subscription.info)
  subscription.isInPresence = granted.presence
  subscription.announcesJoinLeave = granted.joinLeave
  if (granted.presence) context.watch.acted('add_presence', namespace)
  // Who is told of somebody can ask for them at once.
  inBackground(context, () =>
    after(granted.presence ? context.presence.add(name, client, user, info) : undefined, () => {
      // Who has left meanwhile has said so already.
      if (!granted.joinLeave || connection.subscriptions.get(name) !== subscription) return
      connection.settle()
      context.watch.messageSent('join', namespace)
      return context.broker.joinOrLeave(name, 'join', info)
    })
  )
}
