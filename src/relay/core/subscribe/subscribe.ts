import { isObject } from '../../../shared/is-object.js'
import {
  type Caller,
  channelNameError,
  isTooLong,
  maySubscribe,
  type ResolvedChannel,
  resolveChannel
} from '../channel-names.js'
import { expiryAt, ttlSeconds } from '../clocks.js'
import { EMPTY_REPLY } from '../codec/codec.js'
import {
  DISCONNECT_INVALID_TOKEN,
  DISCONNECT_MALFORMED,
  DISCONNECT_SUBSCRIPTION_EXPIRED,
  Disconnect,
  ERROR_ALREADY_SUBSCRIBED,
  ERROR_BAD_REQUEST,
  ERROR_EXPIRED,
  ERROR_INTERNAL,
  ERROR_LIMIT_EXCEEDED,
  ERROR_NOT_AVAILABLE,
  ERROR_PERMISSION_DENIED,
  ERROR_TOKEN_EXPIRED,
  ReplyError
} from '../codes.js'
import { type Rate, rateFor } from '../fan-out/rate-class.js'
import { parseTagFilter, type TagFilter } from '../fan-out/tag-filter.js'
import { NO_OVERRIDE } from '../options.js'
import { channelOf, parseRefresh, parseSubscribe, type SubscribeCommand } from '../protocol.js'
import type { Client, CommandOutcome, RunningCommand } from '../session/client.js'
import {
  claimsRejection,
  hasEnded,
  type SubscriptionClaims,
  subscriptionClaims,
  type TokenRejectionReason,
  tokenRejection,
  userRejection
} from '../session/tokens.js'
import { addSubscription } from './add-subscription.js'
import { ReplySpace } from './subscribe-request.js'

/** Values of the `type` field. */
const TYPE_STREAM = 0
const TYPE_SHARED_POLL = 4

export const subscribe = async (client: Client, request: unknown, command: RunningCommand): Promise<CommandOutcome> => {
  const parsed = parseSubscribe(request)
  if (parsed === null) return DISCONNECT_MALFORMED
  const { channel } = parsed
  const resolved = checkRequest(client, parsed)
  if (resolved instanceof ReplyError) return resolved
  const filter = checkFilter(parsed, resolved)
  if (filter instanceof ReplyError) return filter
  const rate = checkRate(parsed, resolved)
  if (rate instanceof ReplyError) return rate
  const claims = parsed.token === '' ? null : await checkSubscriptionToken(client, channel, parsed.token)
  if (claims instanceof Disconnect || claims instanceof ReplyError) return claims
  if (client.isClosed) return null
  // The API or another command may have subscribed the client while its token was being verified.
  const conflict = checkSubscriptions(client, channel)
  if (conflict !== null) return conflict
  const { context, user } = client
  const caller: Caller = { user, insecure: context.clientOptions.insecure, isSubscribed: false }
  if (claims === null && !maySubscribe(channel, resolved, caller, context.channelRules)) return ERROR_PERMISSION_DENIED

  const outcome = await addSubscription(client, {
    channel,
    resolved,
    isServerSide: false,
    expiresAt: claims === null ? 0 : claims.expiresAt * 1000,
    info: claims === null ? null : claims.info,
    data: replyData(claims === null ? null : claims.data, rate),
    override: claims === null ? NO_OVERRIDE : claims.override,
    recover: parsed.recover,
    positioned: parsed.positioned,
    recoverable: parsed.recoverable,
    joinLeave: parsed.joinLeave,
    delta: parsed.delta,
    filter,
    rate,
    failsUnrecovered: parsed.failsUnrecovered,
    replySpace: new ReplySpace(client)
  })
  if (!('activate' in outcome)) return outcome
  if (client.isClosed) return null
  client.reply(command, 'subscribe', outcome.reply, outcome.hasSnapshot)
  outcome.activate()
  return null
}

/** The checks that do not depend on the user. */
const checkRequest = (client: Client, { channel, type }: SubscribeCommand): ResolvedChannel | ReplyError => {
  const { channelRules: channels } = client.context
  if (isTooLong(channel, channels)) return ERROR_BAD_REQUEST
  const conflict = checkSubscriptions(client, channel)
  if (conflict !== null) return conflict
  const resolved = resolveChannel(channel, channels)
  if (resolved instanceof ReplyError) return resolved
  const nameError = channelNameError(channel, resolved, channels)
  if (nameError !== null) return nameError
  if (type !== TYPE_STREAM) return type === TYPE_SHARED_POLL ? ERROR_NOT_AVAILABLE : ERROR_PERMISSION_DENIED
  return resolved
}

const checkSubscriptions = ({ context, subscriptions }: Client, channel: string): ReplyError | null => {
  const { channelLimit } = context.clientOptions
  if (subscriptions.has(channel)) return ERROR_ALREADY_SUBSCRIBED
  return subscriptions.size >= channelLimit ? ERROR_LIMIT_EXCEEDED : null
}

/** Error 107 for a filter that is invalid, not allowed, or combined with deltas: the base of a delta might be filtered out. */
const checkFilter = (
  { filter, delta }: SubscribeCommand,
  { options }: ResolvedChannel
): TagFilter | null | ReplyError =>
  filter === null ? null : ((options.allowTagsFilter && !delta ? parseTagFilter(filter) : null) ?? ERROR_BAD_REQUEST)

/** The rate of a client that limits it with `data: {"max_rate": n}`; null for none. Error 107 for a value that is not a rate. */
const checkRate = ({ data }: SubscribeCommand, { options }: ResolvedChannel): Rate | null | ReplyError => {
  if (!options.allowMaxRate || data === undefined) return null
  const value = Buffer.isBuffer(data) ? jsonIn(data) : data
  if (!isObject(value) || value.max_rate === undefined) return null
  return typeof value.max_rate === 'number' && value.max_rate > 0 ? rateFor(value.max_rate) : ERROR_BAD_REQUEST
}

/** Undefined for bytes that are not JSON: clients may send any data. */
const jsonIn = (bytes: Buffer): unknown => {
  try {
    return JSON.parse(bytes.toString())
  } catch {
    return undefined
  }
}

/** The data of the token, with the rate of the client. Data that is not an object has no place for a rate and stays as it is. */
const replyData = (data: string | null, rate: Rate | null): string | null => {
  if (rate === null) return data
  const value: unknown = data === null ? {} : JSON.parse(data)
  return isObject(value) ? JSON.stringify({ ...value, max_rate: rate }) : data
}

/** A valid token grants the subscription regardless of the namespace's permissions. */
const checkSubscriptionToken = async (
  client: Client,
  channel: string,
  token: string
): Promise<SubscriptionClaims | ReplyError | Disconnect> => {
  const { context } = client
  const rejected = tokenRejection(client)
  const checked = await context.checkSubscriptionToken(token, context.nowMs(), rejected)
  if (checked === 'unavailable') return ERROR_INTERNAL
  if (checked === 'expired') return ERROR_TOKEN_EXPIRED
  if (checked === 'invalid') return ERROR_PERMISSION_DENIED
  const claims = subscriptionClaims(checked, context.clientOptions.subscriptionToken)
  if (claims === null) {
    rejected(claimsRejection(checked, context.clientOptions.subscriptionToken))
    return ERROR_PERMISSION_DENIED
  }
  const mismatch = subscriptionMismatch(client, channel, claims)
  if (mismatch !== null) {
    rejected(mismatch)
    return DISCONNECT_INVALID_TOKEN
  }
  if (!hasEnded(checked, context.nowMs())) return claims
  rejected('expired')
  return ERROR_EXPIRED
}

const subscriptionMismatch = (
  { user, id }: Client,
  channel: string,
  claims: SubscriptionClaims
): TokenRejectionReason | null => {
  if (claims.user !== user) return userRejection(claims)
  if (claims.client !== '' && claims.client !== id) return 'other-client'
  return claims.channel === channel ? null : 'other-channel'
}

/** Succeeds even if the client is not subscribed, because clients reconnect after an error. */
export const unsubscribe = (client: Client, request: unknown, command: RunningCommand): CommandOutcome => {
  const channel = channelOf(request)
  if (channel === null) return DISCONNECT_MALFORMED
  const subscription = client.subscriptions.get(channel)
  if (subscription !== undefined) {
    if (client.context.hub.hasPending) client.flushPending()
    client.removeSubscription(subscription)
  }
  client.reply(command, 'unsubscribe', EMPTY_REPLY)
  return null
}

/** Only the token decides about the new expiry. The subscription may have been made without one. */
export const refreshSubscription = async (
  client: Client,
  request: unknown,
  command: RunningCommand
): Promise<CommandOutcome> => {
  const parsed = parseRefresh(request)
  if (parsed === null || parsed.channel === '') return DISCONNECT_MALFORMED
  const subscription = client.subscriptions.get(parsed.channel)
  if (subscription === undefined) return ERROR_PERMISSION_DENIED
  // The backend refreshes the subscriptions that it has made.
  if (subscription.isServerSide) return DISCONNECT_MALFORMED
  if (parsed.token === '') return ERROR_BAD_REQUEST
  const claims = await checkSubscriptionToken(client, parsed.channel, parsed.token)
  // The subscription may have ended while the token was being verified.
  if (client.isClosed || client.subscriptions.get(parsed.channel) !== subscription) return ERROR_PERMISSION_DENIED
  if (claims === ERROR_INTERNAL || claims === ERROR_EXPIRED) return claims
  if (claims === ERROR_TOKEN_EXPIRED) return DISCONNECT_SUBSCRIPTION_EXPIRED
  if (claims instanceof ReplyError) return DISCONNECT_INVALID_TOKEN
  if (claims instanceof Disconnect) return claims

  subscription.expiry = expiryAt(claims.expiresAt * 1000, client.context)
  subscription.info = claims.info
  client.deadlines.schedule()
  const ttl = claims.expiresAt > 0 ? ttlSeconds(claims.expiresAt * 1000, client.context.nowMs()) : 0
  client.reply(command, 'sub_refresh', { ttl })
  return null
}
