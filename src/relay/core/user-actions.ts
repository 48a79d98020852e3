import type { Position } from './broker.js'
import { channelKind } from './channels.js'
import type { Connection } from './connection.js'
import type { Context } from './context.js'
import { CONNECTION_EXPIRED, Disconnect } from './disconnect.js'
import { LIMIT_EXCEEDED, ReplyError } from './errors.js'
import { joinChannel } from './join-channel.js'
import { after, type MaybePromise } from './maybe-promise.js'
import { refreshPush, subscribePush } from './protocol.js'
import { extend } from './refresh.js'
import type { ServerSubscription } from './tokens.js'
import { SERVER_UNSUBSCRIBE } from './unsubscribe.js'

// What the operator's backend can do to the connections of a user.

export interface Whom {
  /** '' is the user without a name, not everybody. */
  readonly user: string
  /** '' for all of the user's connections. */
  readonly client: string
  readonly session: string
}

const connectionsOf = ({ roster }: Context, { user, client, session }: Whom): readonly Connection[] =>
  roster
    .ofUser(user)
    .filter((each) => each.state === 'live' && (client === '' || each.client === client))
    .filter((each) => session === '' || each.session === session)

export const disconnectUser = (context: Context, whom: Whom, spared: readonly string[], reason: Disconnect): void => {
  for (const connection of connectionsOf(context, whom)) {
    if (!spared.includes(connection.client)) connection.end(reason)
  }
}

/** From all channels where none is named. */
export const unsubscribeUser = (context: Context, whom: Whom, channel: string): void => {
  for (const connection of connectionsOf(context, whom)) {
    for (const subscription of [...connection.subscriptions.values()]) {
      if (channel === '' || subscription.channel.name === channel) {
        connection.loseSubscription(subscription, SERVER_UNSUBSCRIBE)
      }
    }
  }
}

export interface ServerSubscribe extends ServerSubscription {
  readonly channel: string
  /** In seconds; 0 for never. */
  readonly expiresAt: number
  readonly recover: Position | null
}

export const subscribeUser = (
  context: Context,
  whom: Whom,
  subscribe: ServerSubscribe
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

export interface ServerRefresh {
  readonly isExpired: boolean
  /** In seconds; 0 for never. */
  readonly expiresAt: number
  readonly info: string | null
}

export const refreshUser = (context: Context, whom: Whom, { isExpired, expiresAt, info }: ServerRefresh): void => {
  for (const connection of connectionsOf(context, whom)) {
    if (isExpired) {
      connection.end(CONNECTION_EXPIRED)
      continue
    }
    if (info !== null) connection.info = info
    connection.push(refreshPush(extend(connection, expiresAt)), 'push_refresh', '')
  }
}
