import type { Caller } from '../channel-names.js'
import { expiryAt, ttlOf } from '../clocks.js'
import { canCarry, type SubscribeReply } from '../codec/codec.js'
import {
  DISCONNECT_INAPPROPRIATE_PROTOCOL,
  DISCONNECT_INSUFFICIENT_STATE,
  type Disconnect,
  ERROR_BINARY_CHANNEL,
  ERROR_UNRECOVERABLE_POSITION,
  type ReplyError
} from '../codes.js'
import { EngineError } from '../engine.js'
import type { Channel } from '../fan-out/channel.js'
import { Subscription } from '../fan-out/subscription.js'
import { EVERYTHING, type View } from '../fan-out/view.js'
import { after, type MaybePromise, orElse } from '../maybe-promise.js'
import { NO_POSITION } from '../publication.js'
import type { Client } from '../session/client.js'
import type { RelayContext } from '../session/context.js'
import { activate } from './live-delivery.js'
import { publicationsAfter } from './recovery.js'
import { canExtend, replyData } from './subscribe-data.js'
import { resolveOptions, type SubscribeRequest, type SubscriptionOptions } from './subscribe-request.js'
import { readStart, type SubscriptionStart } from './subscription-start.js'

/** The caller sends `reply` and then calls `activate`, or it calls `undo`. */
export interface SubscribeResult {
  readonly reply: SubscribeReply
  /** The reply can be larger than `queue_max_size`. */
  readonly hasSnapshot: boolean
  /** False once the API has ended the subscription, or the client was closed. */
  isCurrent(): boolean
  activate(): void
  undo(): void
}

/**
 * Subscribes a client to a channel. Publications are buffered from the first step on, so that none is lost between the
 * position in the reply and the first live publication.
 */
export const addSubscription = (
  client: Client,
  request: SubscribeRequest
): MaybePromise<SubscribeResult | ReplyError | Disconnect> => {
  if (request.resolved.options.publicationDataFormat === 'binary' && !client.codec.allowsBinary)
    return ERROR_BINARY_CHANNEL
  const options = resolveOptions(request, subscriberOf(client))
  const subscription = openSubscription(client, request, options)
  client.addSubscription(subscription)
  const read = (): MaybePromise<SubscriptionStart> => readStart(client, subscription, request, options)
  return orElse(
    () =>
      after(readWhileDelivering(client, subscription, read), (start) =>
        finish(client, subscription, request, options, start)
      ),
    (error) => {
      client.removeSubscription(subscription)
      throw error
    }
  )
}

/** A client that is asking for options that need permissions is a subscriber already. */
export const subscriberOf = ({ user, context }: Client): Caller => ({
  user,
  insecure: context.clientOptions.insecure,
  isSubscribed: true
})

/** Adds a subscription to its channel. From now on its publications are buffered. */
export const openSubscription = (
  client: Client,
  request: SubscribeRequest,
  options: SubscriptionOptions
): Subscription => {
  const { context } = client
  // Nothing would remove the subscription, which buffers publications for ever.
  if (client.isClosed) throw new Error('a closed client cannot subscribe')
  const channel = context.hub.open(request.channel, request.resolved)
  const subscription = new Subscription(channel, client, request.isServerSide)
  // A client with a snapshot and without a position also relies on every publication: after a gap it gets a new snapshot.
  subscription.isPositioned = options.positioned || options.snapshot || request.view !== null
  subscription.takesDelta = options.delta
  subscription.filter = request.filter
  subscription.rate = request.rate
  subscription.view = openView(channel, request)
  subscription.wantsJoinLeave = options.pushJoinLeave
  subscription.info = request.info
  subscription.expiry = expiryAt(request.expiresAt, context, request.resolved.options.subRefreshProxy !== null)
  // A patch applies to the value of its key, which a subscriber to a map has from the start.
  subscription.needsFull = request.resolved.options.map === null
  channel.addPending(subscription)
  return subscription
}

/** Reads from the engine while it delivers the publications of the channel to this node. */
export const readWhileDelivering = <Result>(
  { context }: Client,
  { channel }: Subscription,
  read: () => MaybePromise<Result>
): MaybePromise<Result> =>
  after(channel.subscribeAtBroker(context.broker), () => {
    assertDelivering(context, channel)
    return after(read(), (result) => {
      assertDelivering(context, channel)
      return result
    })
  })

/**
 * The view that the client receives: the requested one if the reply can name it and the channel has not too many, else everything.
 * Null for a client that has not asked for one.
 */
const openView = (channel: Channel, { view, data }: SubscribeRequest): View | null =>
  view === null ? null : channel.views.open(canExtend(data) ? view : EVERYTHING)

/** The engine may have lost the deliveries of an open channel. Subscribing fails until they are active again. */
const assertDelivering = ({ broker }: RelayContext, { name }: Channel): void => {
  if (!broker.isDelivering(name)) throw new EngineError('the engine does not deliver at the moment')
}

/** Makes the reply from what was read, or fails if the client cannot continue from there without a gap. */
const finish = (
  client: Client,
  subscription: Subscription,
  request: SubscribeRequest,
  options: SubscriptionOptions,
  start: SubscriptionStart
): SubscribeResult | ReplyError | Disconnect => {
  const { page, recovered, snapshot } = start
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
    reply: subscribeReply(request, subscription, options, start, ttlOf(subscription.expiry, client.context)),
    hasSnapshot: snapshot !== null,
    isCurrent: () => client.subscriptions.get(subscription.channel.name) === subscription,
    activate: () => activate(client, subscription, options, page, hasPublications),
    undo
  }
}

const subscribeReply = (
  { recover, data }: SubscribeRequest,
  { rate, view }: Subscription,
  { recoverable, positioned, since, delta }: SubscriptionOptions,
  { page, recovered, snapshot }: SubscriptionStart,
  ttl: number
): SubscribeReply => ({
  ttl,
  recoverable,
  positioned,
  // A recovering client starts at its own position, and advances with each recovered publication.
  position: positioned ? { epoch: page.epoch, offset: recovered?.offset ?? page.offset } : NO_POSITION,
  publications: recovered?.publications ?? snapshot ?? [],
  recovered: recovered !== null,
  wasRecovering: recover !== null || since !== null,
  data: replyData(data, rate, view),
  delta,
  map: null
})
