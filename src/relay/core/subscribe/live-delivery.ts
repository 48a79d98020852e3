import { NEVER } from '../clocks.js'
import { UNSUBSCRIBE_INSUFFICIENT_STATE } from '../codes.js'
import type { HistoryPage } from '../engine.js'
import { entryPatch } from '../fan-out/delta.js'
import { deliveredTo, pushPublication, type Subscription } from '../fan-out/subscription.js'
import { hasPresenceMaps } from '../maps/presence-maps.js'
import type { Position, Publication } from '../publication.js'
import type { Client } from '../session/client.js'
import { runInBackground } from '../session/context.js'
import { publicationsAfter } from './recovery.js'
import type { SubscriptionOptions } from './subscribe-request.js'

/** Called when the reply was sent. Live delivery starts after the client had time to process it. */
export const activate = (
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
  if (isEnding) return
  const { name, options: channelOptions } = subscription.channel
  if (hasPresenceMaps(channelOptions)) {
    const present = { id: client.id, user: client.user, info: client.infoText(subscription.info) }
    runInBackground(context, () => context.presenceMaps.add(subscription, name, channelOptions, present))
  }
  if (options.presence || options.joinLeave) runInBackground(context, () => announceJoin(client, subscription, options))
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
  const passing = missed.flatMap((publication) => deliveredTo(subscription, publication) ?? [])
  const isLimited = subscription.rate !== null
  // A client that missed nothing may not have the last publication: it may have reconnected before it received any.
  const last = receivedLast ? (page.publications.at(-1) ?? null) : null
  if (!isLimited) pushMissed(client, subscription, passing, last)
  const offset = missed.reduce((highest, each) => Math.max(highest, each.offset), page.offset)
  const position: Position = { epoch: page.epoch, offset }
  if (isPositioned && channel.hasPassed(position)) {
    client.endSubscription(subscription, UNSUBSCRIBE_INSUFFICIENT_STATE)
    return
  }
  channel.goLive(subscription, position, isLimited ? passing : [])
  const newest = passing.at(-1) ?? last
  if (subscription.takesDelta && !isLimited && newest !== null) subscription.needsFull = !channel.joinDeltas(newest)
}

/** Sends the publications after the reply; as deltas if the client takes them and has the one before. `last` was in the reply. */
const pushMissed = (
  { context: { patches } }: Client,
  subscription: Subscription,
  missed: readonly Publication[],
  last: Publication | null
): void => {
  const { takesDelta, channel } = subscription
  // The page of a client without a position has no epoch.
  const { epoch, name, options } = channel
  const received = last === null ? [] : [last]
  const isChain = takesDelta && options.map === null
  const chain = isChain ? patches.chain(name, epoch, [...received, ...missed]) : []
  for (const [index, publication] of missed.entries()) {
    // A client of a map has the value before each change.
    const patch = takesDelta && !isChain ? entryPatch(publication) : (chain[received.length + index] ?? null)
    pushPublication(subscription, publication, epoch, patch)
  }
}

/** Adds the client to the presence of the channel before other clients receive the join push. */
const announceJoin = async (
  client: Client,
  subscription: Subscription,
  { presence, joinLeave }: SubscriptionOptions
): Promise<void> => {
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
