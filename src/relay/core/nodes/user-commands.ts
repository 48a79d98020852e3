import { resolveChannel } from '../channel-names.js'
import { isPast } from '../clocks.js'
import {
  DISCONNECT_CONNECTION_EXPIRED,
  Disconnect,
  ERROR_INTERNAL,
  ERROR_IS_MAP,
  ERROR_LIMIT_EXCEEDED,
  ReplyError,
  UNSUBSCRIBE_BY_SERVER
} from '../codes.js'
import { extendExpiry } from '../commands/connect.js'
import type {
  DisconnectParams,
  RefreshParams,
  SubscribeParams,
  TokenInvalidation,
  UnsubscribeParams,
  UserSelector
} from '../node-requests.js'
import type { Client } from '../session/client.js'
import type { RelayContext } from '../session/context.js'
import { isEarlier } from '../session/single-connection.js'
import { addSubscription } from '../subscribe/add-subscription.js'
import { ReplySpace } from '../subscribe/subscribe-request.js'

// The commands of the API for the connections of a user, at this node.

/** Also the connections whose connect command is still running. */
const selectClients = ({ clients }: RelayContext, { user, client, session }: UserSelector): readonly Client[] =>
  clients
    .ofUser(user)
    .filter((each) => client === '' || each.id === client)
    .filter((each) => session === '' || each.session === session)

export const disconnectUser = (
  context: RelayContext,
  { target, whitelist, earlierThan, code, reason }: DisconnectParams
): null => {
  const disconnect = new Disconnect(code, reason)
  // A set, because both the list and the connections of the user can be long.
  const spared = new Set(whitelist)
  for (const client of selectClients(context, target)) {
    const isTarget = earlierThan === undefined || isEarlier(client, earlierThan)
    if (isTarget && !spared.has(client.id)) client.close(disconnect)
  }
  return null
}

/** Afterwards no client can use the tokens again. Clients reconnect, and request new tokens. */
export const invalidateTokens = (context: RelayContext, invalidation: TokenInvalidation): null => {
  context.tokenInvalidations.add(invalidation)
  const { user, channel } = invalidation
  const target = { user, client: '', session: '' }
  if (channel !== '') return unsubscribeUser(context, { target, channel })
  for (const client of selectClients(context, target)) client.close(DISCONNECT_CONNECTION_EXPIRED)
  return null
}

export const unsubscribeUser = (context: RelayContext, { target, channel }: UnsubscribeParams): null => {
  for (const client of selectClients(context, target)) {
    client.closeOnError(() => {
      const subscription = client.subscriptions.get(channel)
      if (subscription !== undefined) client.endSubscription(subscription, UNSUBSCRIBE_BY_SERVER)
      client.awaitedChannels?.delete(channel)
      // The client receives an error for its next page.
      client.loadings.cancel(channel)
    })
  }
  return null
}

/**
 * Subscribes all matching connections, or none if the engine fails: clients are notified after all subscriptions have succeeded.
 * If a connection cannot have the channel, the others are subscribed and the error is returned, on whichever nodes they are.
 */
export const subscribeUser = async (
  context: RelayContext,
  { target, subscription }: SubscribeParams
): Promise<ReplyError | null> => {
  const { channel } = subscription
  const { channelLimit } = context.clientOptions
  const resolved = resolveChannel(channel, context.channelRules)
  if (resolved instanceof ReplyError) return resolved
  // Only a client can load a map, page by page.
  if (resolved.options.map !== null) return ERROR_IS_MAP
  const selected = selectClients(context, target).filter(({ state }) => state === 'live')
  // As in Centrifugo: an error if there is a connection that it would apply to.
  if (selected.length > 0 && isPast(subscription.expiresAt, context)) return ERROR_INTERNAL
  const clients = selected.filter(({ subscriptions }) => !subscriptions.has(channel))
  if (clients.some(({ channelCount }) => channelCount >= channelLimit)) return ERROR_LIMIT_EXCEEDED
  // Async, so that an error that is thrown at once is an outcome too, and the other subscriptions are undone.
  const outcomes = await Promise.allSettled(
    clients.map(async (client) =>
      addSubscription(client, {
        ...subscription,
        resolved,
        isServerSide: true,
        expiresAt: subscription.expiresAt * 1000,
        positioned: false,
        recoverable: false,
        joinLeave: false,
        delta: false,
        filter: null,
        rate: null,
        view: null,
        failsUnrecovered: false,
        replySpace: new ReplySpace(client)
      })
    )
  )
  const failed = outcomes.find((outcome) => outcome.status === 'rejected')
  for (const [index, client] of clients.entries()) {
    const outcome = outcomes[index]
    if (outcome?.status !== 'fulfilled') continue
    client.closeOnError(() => {
      const { value } = outcome
      if (value instanceof Disconnect) client.close(value)
      if (!('activate' in value) || !value.isCurrent()) return
      if (failed !== undefined) {
        value.undo()
        return
      }
      client.push({ kind: 'subscribe', channel, subscribe: value.reply }, resolved.namespace)
      // The push has no field for recovered publications.
      for (const pub of value.reply.publications)
        client.push({ kind: 'pub', channel, pub }, resolved.namespace, value.hasSnapshot)
      value.activate()
    })
  }
  if (failed !== undefined) throw failed.reason
  return rejectionIn(outcomes)
}

const rejectionIn = (outcomes: readonly PromiseSettledResult<unknown>[]): ReplyError | null => {
  for (const outcome of outcomes)
    if (outcome.status === 'fulfilled' && outcome.value instanceof ReplyError) return outcome.value
  return null
}

export const refreshUser = (context: RelayContext, { target, refresh }: RefreshParams): null => {
  const { isExpired, expiresAt, info } = refresh
  // An expiry in the past closes the connection at once, without the grace period for refreshing clients.
  const hasExpired = isExpired || isPast(expiresAt, context)
  for (const client of selectClients(context, target)) {
    if (hasExpired) {
      client.close(DISCONNECT_CONNECTION_EXPIRED)
      continue
    }
    client.closeOnError(() => {
      if (info !== null) client.info = info
      const refresh = extendExpiry(client, expiresAt)
      // The connect reply has the expiry of a client that is not live yet.
      if (client.state === 'live') client.push({ kind: 'refresh', refresh }, '')
    })
  }
  return null
}
