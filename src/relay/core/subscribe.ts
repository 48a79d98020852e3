import { type ChannelKind, channelKind, isTooLong, maySubscribe, nameFault } from './channels.js'
import { claimRules, type Outcome, refusalOf } from './connect.js'
import type { Connection } from './connection.js'
import * as disconnect from './disconnect.js'
import { Disconnect } from './disconnect.js'
import * as errors from './errors.js'
import { ReplyError } from './errors.js'
import { expiryAt, ttlSeconds } from './expiry.js'
import { joinChannel, ReplyRoom } from './join-channel.js'
import { after, type MaybePromise } from './maybe-promise.js'
import { expiryFields, objectText, replyText } from './protocol.js'
import { channelOf, refreshRequest, type SubscribeRequest, subscribeRequest } from './requests.js'
import { NO_OVERRIDE, type SubscriptionClaims, subscriptionClaims } from './tokens.js'

const STREAM = 0
const SHARED_POLL = 4

export const subscribe = (connection: Connection, request: unknown, id: number): MaybePromise<Outcome> => {
  const parsed = subscribeRequest(request)
  if (parsed === null) return disconnect.MALFORMED
  const { channel } = parsed
  const kind = mayAsk(connection, parsed)
  if (kind instanceof ReplyError) return kind
  const claims = parsed.token === '' ? null : checkSubscriptionToken(connection, channel, parsed.token)
  if (claims instanceof Disconnect || claims instanceof ReplyError) return claims
  if (claims === null && !mayWithoutToken(connection, channel, kind)) return errors.PERMISSION_DENIED

  const joined = joinChannel(connection, {
    channel,
    kind,
    isServerSide: false,
    hasToken: claims !== null,
    expiresAt: claims === null ? 0 : claims.expiresAt * 1000,
    info: claims === null ? null : claims.info,
    data: claims === null ? null : claims.data,
    override: claims === null ? NO_OVERRIDE : claims.override,
    recover: parsed.recover,
    positioned: parsed.positioned,
    recoverable: parsed.recoverable,
    joinLeave: parsed.joinLeave,
    delta: parsed.delta,
    failsUnrecovered: parsed.failsUnrecovered,
    room: new ReplyRoom(connection)
  })
  return after(joined, (outcome) => {
    if (!('begin' in outcome)) return outcome
    if (connection.isEnded) return null
    connection.reply(replyText(id, 'subscribe', outcome.result))
    outcome.begin()
    return null
  })
}

/** What can be said before anybody asks who the client is. */
const mayAsk = (connection: Connection, { channel, filtered, type }: SubscribeRequest): ChannelKind | ReplyError => {
  const { client, channels } = connection.context
  if (isTooLong(channel, channels)) return errors.BAD_REQUEST
  if (connection.subscriptions.has(channel)) return errors.ALREADY_SUBSCRIBED
  if (client.channelLimit > 0 && connection.subscriptions.size >= client.channelLimit) return errors.LIMIT_EXCEEDED
  const kind = channelKind(channel, channels)
  if (kind instanceof ReplyError) return kind
  const fault = nameFault(channel, kind, channels)
  if (fault !== null) return fault
  if (type !== STREAM) return type === SHARED_POLL ? errors.NOT_AVAILABLE : errors.PERMISSION_DENIED
  return filtered ? errors.BAD_REQUEST : kind
}

const mayWithoutToken = ({ context, user }: Connection, channel: string, kind: ChannelKind): boolean => {
  const { client, channels } = context
  if (kind.isPrivate && !client.insecure) return false
  return maySubscribe(channel, kind.options, { user, insecure: client.insecure, isSubscribed: false }, channels)
}

/** A good token grants the subscription, whatever the namespace says. */
const checkSubscriptionToken = (
  connection: Connection,
  channel: string,
  token: string
): SubscriptionClaims | ReplyError | Disconnect => {
  const { context } = connection
  const tokenRefused = refusalOf(connection)
  const checked = context.checkSubscriptionToken(token, context.nowMs(), tokenRefused)
  if (checked === 'expired') return errors.TOKEN_EXPIRED
  if (checked === 'invalid') return errors.PERMISSION_DENIED
  const claims = subscriptionClaims(checked, claimRules(connection))
  if (claims === null) {
    tokenRefused('bad-claims')
    return errors.PERMISSION_DENIED
  }
  const isTheirs = claims.user === connection.user && (claims.client === '' || claims.client === connection.client)
  if (isTheirs && claims.channel === channel) return claims
  tokenRefused(isTheirs ? 'other-channel' : 'other-user')
  return disconnect.INVALID_TOKEN
}

/** Succeeds for a channel that the client is not on: an error here makes clients drop the connection. */
export const unsubscribe = (connection: Connection, request: unknown, id: number): Outcome => {
  const channel = channelOf(request)
  if (channel === null) return disconnect.MALFORMED
  const subscription = connection.subscriptions.get(channel)
  if (subscription !== undefined) {
    if (connection.context.hub.hasQueued) connection.settle()
    connection.removeSubscription(subscription)
  }
  connection.reply(replyText(id, 'unsubscribe', '{}'))
  return null
}

export const refreshSubscription = (connection: Connection, request: unknown, id: number): Outcome => {
  const parsed = refreshRequest(request)
  if (parsed === null || parsed.channel === '') return disconnect.MALFORMED
  const subscription = connection.subscriptions.get(parsed.channel)
  if (subscription === undefined) return errors.PERMISSION_DENIED
  if (parsed.token === '') return errors.BAD_REQUEST
  if (!subscription.hasToken) return disconnect.MALFORMED
  const claims = checkSubscriptionToken(connection, parsed.channel, parsed.token)
  if (claims === errors.TOKEN_EXPIRED) return disconnect.SUBSCRIPTION_EXPIRED
  if (claims instanceof ReplyError) return disconnect.INVALID_TOKEN
  if (claims instanceof Disconnect) return claims

  subscription.expiry = expiryAt(claims.expiresAt * 1000, connection.context)
  subscription.info = claims.info
  connection.scheduleWake()
  const ttl = claims.expiresAt > 0 ? ttlSeconds(claims.expiresAt * 1000, connection.context.nowMs()) : 0
  connection.reply(replyText(id, 'sub_refresh', objectText(expiryFields(ttl))))
  return null
}
