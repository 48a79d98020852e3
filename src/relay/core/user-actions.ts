import { channelKind } from './channels.js'
import type { Connection } from './connection.js'
import type { Context } from './context.js'
import { CONNECTION_EXPIRED, Disconnect } from './disconnect.js'
import { LIMIT_EXCEEDED, ReplyError } from './errors.js'
import type { DisconnectParams, RefreshParams, SubscribeParams, UnsubscribeParams, Whom } from './fleet.js'
import { joinChannel } from './join-channel.js'
import { after, type MaybePromise } from './maybe-promise.js'
import { refreshPush, subscribePush } from './protocol.js'
import { extend } from './refresh.js'
import { SERVER_UNSUBSCRIBE } from './unsubscribe.js'

// What the operator's backend can do to the connections that a user has at this node.

const connectionsOf = ({ roster }: Context, { user, client, session }: Whom): readonly Connection[] =>
  roster
    .ofUser(user)
    .filter((each) => each.state === 'live' && (client === '' || each.client === client))
    .filter((each) => session === '' || each.session === session)

export const disconnectUser = (context: Context, { whom, spared, code, reason }: DisconnectParams): void => {
  const disconnect = new Disconnect(code, reason)
  // A set: both the list and the user's connections may be long.
  const staying = new Set(spared)
  for (const connection of connectionsOf(context, whom)) {
    if (!staying.has(connection.client)) connection.end(disconnect)
  }
}

/** From all channels where none is named. */
export const unsubscribeUser = (context: Context, { whom, channel }: UnsubscribeParams): void => {
  for (const connection of connectionsOf(context, whom)) {
    for (const subscription of [...connection.subscriptions.values()]) {
      if (channel === '' || subscription.channel.name === channel) {
        connection.loseSubscription(subscription, SERVER_UNSUBSCRIBE)
      }
    }
  }
}

export const subscribeUser = (
  context: Context,
  { whom, subscription: subscribe }: SubscribeParams
): MaybePromise<ReplyError | null> => {
  const kind = channelKind(subscribe.channel, context.channels)
  if (kind instanceof ReplyError) return kind
  const joining: Promise<unknown>[] = []
  for (const connection of connectionsOf(context, whom)) {
    const { subscriptions } = connection
    if (subscriptions.has(subscribe.channel)) continue
    if (context.client.channelLimit > 0 && subscriptions.size >= context.client.channelLimit) return LIMIT_EXCEEDED
    const joined = joinChannel(connection, {
      ...subscribe,
      kind,
      isServerSide: true,
      hasToken: false,
      expiresAt: subscribe.expiresAt * 1000,
      positioned: false,
      recoverable: false,
      joinLeave: false,
      delta: false,
      failsUnrecovered: false
    })
    const told = after(joined, (outcome) => {
      if (outcome instanceof Disconnect) connection.end(outcome)
      if (!('begin' in outcome) || connection.isEnded) return
      connection.push(subscribePush(subscribe.channel, outcome.result), 'push_subscribe', kind.namespace)
      outcome.begin()
    })
    if (told instanceof Promise) joining.push(told)
  }
  return joining.length === 0 ? null : Promise.all(joining).then(() => null)
}

export const refreshUser = (context: Context, { whom, refresh }: RefreshParams): void => {
  const { isExpired, expiresAt, info } = refresh
  for (const connection of connectionsOf(context, whom)) {
    if (isExpired) {
      connection.end(CONNECTION_EXPIRED)
      continue
    }
    if (info !== null) connection.info = info
    connection.push(refreshPush(extend(connection, expiresAt)), 'push_refresh', '')
  }
}
