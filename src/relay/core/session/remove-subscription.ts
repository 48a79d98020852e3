import {
  DISCONNECT_INSUFFICIENT_STATE,
  DISCONNECT_SUBSCRIPTION_EXPIRED,
  UNSUBSCRIBE_EXPIRED,
  type Unsubscribe
} from '../codes.js'
import type { Channel } from '../fan-out/channel.js'
import type { Subscription } from '../fan-out/subscription.js'
import { removeFromMap } from '../maps/write-map.js'
import type { Client } from './client.js'
import { type RelayContext, runInBackground } from './context.js'

/** From this code on, clients resubscribe by themselves. A server-side subscription is made again only by a new connection. */
const FIRST_RESUBSCRIBE_CODE = 2500

/** Ends a subscription on the server side and notifies the client, which may resubscribe. */
export const endSubscription = (client: Client, subscription: Subscription, unsubscribe: Unsubscribe): void => {
  const { name, namespace } = subscription.channel
  const isFinal = unsubscribe.code < FIRST_RESUBSCRIBE_CODE
  const endsConnection = subscription.isServerSide && !isFinal
  // The client has no reply yet: its command fails, or the connect reply leaves the channel out.
  const isUnanswered = isFinal && !subscription.isConfirmed
  // A client would take a subscribe reply that follows the push for a new subscription, and wait for publications in vain.
  if (subscription.buffered !== null && !endsConnection && !isUnanswered) {
    subscription.pendingUnsubscribe = unsubscribe
    return
  }
  client.context.metrics.serverUnsubscribed(namespace, unsubscribe.code)
  if (endsConnection) {
    const isExpired = unsubscribe === UNSUBSCRIBE_EXPIRED
    client.close(isExpired ? DISCONNECT_SUBSCRIPTION_EXPIRED : DISCONNECT_INSUFFICIENT_STATE)
    return
  }
  client.removeSubscription(subscription)
  if (!isUnanswered) client.push({ kind: 'unsubscribe', channel: name, unsubscribe }, namespace)
}

/** Removes a subscription from its channel, and its presence from the engine. */
export const removeSubscription = (client: Client, subscription: Subscription): void => {
  const { context } = client
  const { channel } = subscription
  channel.remove(subscription)
  if (subscription.isConfirmed) {
    context.metrics.unsubscribed(channel.namespace, client.name, subscription.rate)
    runInBackground(context, () => context.presenceMaps.remove(subscription))
    removeOwnKey(client, channel)
  }
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

const removeOwnKey = ({ context, id }: Client, { name, namespace, options }: Channel): void => {
  const { map } = options
  if (!map?.removeClientOnUnsubscribe) return
  const resolved = { namespace, options, isPrivate: false, map }
  runInBackground(context, () => removeFromMap(context, resolved, name, { key: id, idempotencyKey: '' }))
}

export const removeIfUnused = (context: RelayContext, channel: Channel): void => {
  if (!channel.isUnused || !context.hub.remove(channel)) return
  const { name, namespace, options } = channel
  context.metrics.engineAction(options.map === null ? 'broker_unsubscribe' : 'map_broker_unsubscribe', namespace)
  runInBackground(context, () => context.broker.unsubscribe(name))
}
