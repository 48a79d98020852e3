import type { Channel } from '../fan-out/channel.js'
import type { Subscription } from '../fan-out/subscription.js'
import type { Client } from './client.js'
import { type RelayContext, runInBackground } from './context.js'

/** Removes a subscription from its channel, and its presence from the engine. */
export const removeSubscription = (client: Client, subscription: Subscription): void => {
  const { context } = client
  const { channel } = subscription
  channel.remove(subscription)
  if (subscription.isConfirmed) context.metrics.unsubscribed(channel.namespace, client.name, subscription.rate)
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
