import { type ChannelKind, channelKind } from './channels.js'
import type { Connection } from './connection.js'
import type { Context } from './context.js'
import { CONNECTION_EXPIRED, Disconnect } from './disconnect.js'
import { LIMIT_EXCEEDED, ReplyError } from './errors.js'
import type { DisconnectParams, RefreshParams, SubscribeParams, UnsubscribeParams, Whom } from './fleet.js'
import { type Joined, joinChannel, ReplyRoom } from './join-channel.js'
import { after, type MaybePromise, settleAll } from './maybe-promise.js'
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
    connection.contain(() => {
      for (const subscription of [...connection.subscriptions.values()]) {
        if (channel === '' || subscription.channel.name === channel) {
          connection.loseSubscription(subscription, SERVER_UNSUBSCRIBE)
        }
      }
    })
  }
}

/** Puts all connections of a user on a channel, or none of them: clients are told when all have joined. */
export const subscribeUser = (
  context: Context,
  { whom, subscription }: SubscribeParams
): MaybePromise<ReplyError | null> => {
  const { channel } = subscription
  const { channelLimit } = context.client
  const kind = channelKind(channel, context.channels)
  if (kind instanceof ReplyError) return kind
  const joining = connectionsOf(context, whom).filter(({ subscriptions }) => !subscriptions.has(channel))
  if (channelLimit > 0 && joining.some(({ subscriptions }) => subscriptions.size >= channelLimit)) return LIMIT_EXCEEDED
  const join = (connection: Connection): MaybePromise<Joined | ReplyError | Disconnect> =>
    joinChannel(connection, {
      ...subscription,
      kind,
      isServerSide: true,
      hasToken: false,
      expiresAt: subscription.expiresAt * 1000,
      positioned: false,
      recoverable: false,
      joinLeave: false,
      delta: false,
      failsUnrecovered: false,
      room: new ReplyRoom(connection)
    })
  return after(settleAll(joining.map((connection) => () => join(connection))), (outcomes) => {
    const failed = outcomes.find((outcome) => outcome.status === 'rejected')
    for (const [index, connection] of joining.entries()) {
      const outcome = outcomes[index]
      if (outcome?.status !== 'fulfilled') continue
      connection.contain(() => conclude(connection, channel, kind, outcome.value, failed === undefined))
    }
    if (failed !== undefined) throw failed.reason
    return null
  })
}

const conclude = (
  connection: Connection,
  channel: string,
  { namespace }: ChannelKind,
  outcome: Joined | ReplyError | Disconnect,
  hasSucceeded: boolean
): void => {
  if (outcome instanceof Disconnect) connection.end(outcome)
  if (!('begin' in outcome) || connection.isEnded) return
  if (!hasSucceeded) {
    outcome.undo()
    return
  }
  connection.push(subscribePush(channel, outcome.result), 'push_subscribe', namespace)
  outcome.begin()
}

/** A time that has passed means at once, not after the time that a client has to refresh by itself. */
const isPast = (expiresAt: number, nowMs: number): boolean => expiresAt > 0 && expiresAt * 1000 <= nowMs

export const refreshUser = (context: Context, { whom, refresh }: RefreshParams): void => {
  const { isExpired, expiresAt, info } = refresh
  const endsNow = isExpired || isPast(expiresAt, context.nowMs())
  for (const connection of connectionsOf(context, whom)) {
    if (endsNow) {
      connection.end(CONNECTION_EXPIRED)
      continue
    }
    connection.contain(() => {
      if (info !== null) connection.info = info
      connection.push(refreshPush(extend(connection, expiresAt)), 'push_refresh', '')
    })
  }
}
