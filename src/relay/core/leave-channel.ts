import type { Channel } from './channel.js'
import type { Connection } from './connection.js'
import type { Context } from './context.js'
import { EngineFault } from './engine-fault.js'
import type { MaybePromise } from './maybe-promise.js'
import type { Subscription } from './subscription.js'

/** Undoes what subscribing did, here and at the engine. */
export const leaveChannel = (connection: Connection, subscription: Subscription): void => {
  const { context } = connection
  const { channel } = subscription
  channel.remove(subscription)
  if (subscription.isTold) context.watch.unsubscribed(channel.namespace, connection.name)
  dropIfUnused(context, channel)
  if (subscription.isInPresence) {
    context.watch.acted('remove_presence', channel.namespace)
    inBackground(context, () => context.presence.remove(channel.name, connection.client))
  }
  if (subscription.announcesJoinLeave) {
    const info = connection.describe(subscription.info)
    context.watch.messageSent('leave', channel.namespace)
    inBackground(context, () => context.broker.joinOrLeave(channel.name, 'leave', info))
  }
}

export const dropIfUnused = (context: Context, channel: Channel): void => {
  if (!channel.isUnused) return
  context.hub.drop(channel)
  inBackground(context, () => context.broker.unsubscribe(channel.name))
}

/** For what no client waits for: an engine that fails is reported, and nothing else fails with it. */
export const inBackground = (context: Context, work: () => MaybePromise<unknown>): void => {
  const failed = (error: unknown): void => {
    if (error instanceof EngineFault) return
    context.watch.unexpectedError('background')
    context.log.error({ err: error }, 'internal error in background work')
  }
  try {
    const result = work()
    if (result instanceof Promise) result.catch(failed)
  } catch (error) {
    failed(error)
  }
}
