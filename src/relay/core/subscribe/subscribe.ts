import { channelNameError, isTooLong, type ResolvedChannel, resolveChannel } from '../channel-names.js'
import { expiryAt, refreshesByBackend, ttlOf } from '../clocks.js'
import { EMPTY_REPLY, type Encoded } from '../codec/codec.js'
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
import type { Rate } from '../fan-out/rate-class.js'
import { parseTagFilter, type TagFilter } from '../fan-out/tag-filter.js'
import { after, type MaybePromise } from '../maybe-promise.js'
import { channelOf, parseRefresh, parseSubscribe, type SubscribeCommand } from '../protocol.js'
import type { Client, CommandOutcome, RunningCommand } from '../session/client.js'
import { eventData, replyDataError } from '../session/client-events.js'
import { addSubscription } from './add-subscription.js'
import { authorize, checkSubscriptionToken } from './authorize.js'
import { continueLoading, firstRequestError, type MapGrant, startLoading, TYPES } from './map-subscribe.js'
import { checkRate, checkView, filterLimitError } from './subscribe-data.js'
import { ReplySpace } from './subscribe-request.js'

/** A value of the `type` field that no namespace has. */
const TYPE_SHARED_POLL = 4

export const subscribe = (
  client: Client,
  request: unknown,
  command: RunningCommand,
  encoded: Encoded
): MaybePromise<CommandOutcome> => {
  const parsed = parseSubscribe(request)
  if (parsed === null) return DISCONNECT_MALFORMED
  const { channel } = parsed
  const loading = client.channelCount > client.subscriptions.size ? client.loadings.get(channel) : undefined
  if (loading !== undefined) return continueLoading(client, loading, parsed, command)
  const requested = checkRequest(client, parsed)
  if (requested instanceof ReplyError) return requested
  const filter = checkFilter(parsed, requested)
  if (filter instanceof ReplyError) return filter
  const rate = checkRate(parsed, requested)
  if (rate instanceof ReplyError) return rate
  const asked = checkView(parsed, requested)
  if (asked instanceof ReplyError) return asked
  const authorized = authorize(client, parsed, requested, () => eventData(client, encoded, 'subscribe', request))
  const isAwaited = authorized instanceof Promise
  if (isAwaited) {
    client.awaitedChannels ??= new Set()
    client.awaitedChannels.add(channel)
  }
  return after(authorized, (grant) => {
    const isUnsubscribed = isAwaited && !client.awaitedChannels?.delete(channel)
    if (grant instanceof Disconnect || grant instanceof ReplyError) return grant
    if (client.isClosed) return null
    if (isUnsubscribed) return ERROR_PERMISSION_DENIED
    // A reload may have changed the namespace meanwhile, and the API or another command may have subscribed the client.
    const resolved = isAwaited ? resolveChannel(channel, client.context.channelRules) : requested
    if (resolved instanceof ReplyError) return resolved
    const conflict =
      checkSubscriptions(client, channel) ??
      typeError(parsed, resolved) ??
      replyDataError(client, grant.data) ??
      filterLimitError(client, channel, filter)
    if (conflict !== null) return conflict
    const view = resolved === requested ? asked : checkView(parsed, resolved)
    if (view instanceof ReplyError) return view
    const { map } = resolved.options
    const granted = { grant, filter, view }
    return map === null
      ? subscribeToStream(client, parsed, resolved, { ...granted, rate }, command)
      : startLoading(client, parsed, resolved, map, granted, command)
  })
}

interface StreamGrant extends MapGrant {
  readonly rate: Rate | null
}

const subscribeToStream = (
  client: Client,
  parsed: SubscribeCommand,
  resolved: ResolvedChannel,
  { grant, filter, view, rate }: StreamGrant,
  command: RunningCommand
): MaybePromise<CommandOutcome> => {
  const adding = addSubscription(client, {
    channel: parsed.channel,
    resolved,
    isServerSide: false,
    expiresAt: grant.expiresAt * 1000,
    info: grant.info,
    data: grant.data,
    override: grant.override,
    recover: parsed.recover,
    positioned: parsed.positioned,
    recoverable: parsed.recoverable,
    joinLeave: parsed.joinLeave,
    delta: parsed.delta,
    filter,
    rate,
    view,
    failsUnrecovered: parsed.failsUnrecovered,
    replySpace: new ReplySpace(client)
  })
  return after(adding, (outcome) => {
    if (!('activate' in outcome)) return outcome
    if (client.isClosed) return null
    if (!outcome.isCurrent()) return ERROR_PERMISSION_DENIED
    client.reply(command, 'subscribe', outcome.reply, outcome.hasSnapshot)
    outcome.activate()
    return null
  })
}

/** The checks that do not depend on the user. */
const checkRequest = (client: Client, command: SubscribeCommand): ResolvedChannel | ReplyError => {
  const { channel } = command
  const { channelRules: channels } = client.context
  if (isTooLong(channel, channels)) return ERROR_BAD_REQUEST
  const conflict = checkSubscriptions(client, channel)
  if (conflict !== null) return conflict
  const resolved = resolveChannel(channel, channels)
  if (resolved instanceof ReplyError) return resolved
  const nameError = channelNameError(channel, resolved, channels)
  return nameError ?? typeError(command, resolved) ?? resolved
}

const typeError = (command: SubscribeCommand, { options }: ResolvedChannel): ReplyError | null => {
  if (command.type === TYPE_SHARED_POLL) return ERROR_NOT_AVAILABLE
  if (command.type !== TYPES[options.subscriptionType]) return ERROR_PERMISSION_DENIED
  return options.map === null ? null : firstRequestError(command, options.map)
}

const checkSubscriptions = (client: Client, channel: string): ReplyError | null => {
  const { context, subscriptions, channelCount } = client
  const { channelLimit } = context.clientOptions
  if (subscriptions.has(channel)) return ERROR_ALREADY_SUBSCRIBED
  if (channelCount < channelLimit) return null
  client.limitReached(`${channelLimit} channels of a connection`)
  return ERROR_LIMIT_EXCEEDED
}

/** Error 107 for a filter that is invalid, not allowed, or combined with deltas: the base of a delta might be filtered out. */
const checkFilter = (
  { filter, delta }: SubscribeCommand,
  { options: { allowTagsFilter, allowedDeltaTypes } }: ResolvedChannel
): TagFilter | null | ReplyError => {
  if (filter === null) return null
  const isAllowed = allowTagsFilter && !(delta && allowedDeltaTypes.includes('fossil'))
  return (isAllowed ? parseTagFilter(filter) : null) ?? ERROR_BAD_REQUEST
}

/** Succeeds even if the client is not subscribed, because clients reconnect after an error. */
export const unsubscribe = (client: Client, request: unknown, command: RunningCommand): CommandOutcome => {
  const channel = channelOf(request)
  if (channel === null) return DISCONNECT_MALFORMED
  const subscription = client.subscriptions.get(channel)
  if (subscription !== undefined) {
    if (client.context.hub.hasPending) client.flushPending()
    client.removeSubscription(subscription)
  } else client.loadings.cancel(channel)
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
  const hasProxy = subscription.channel.options.subRefreshProxy !== null
  if (subscription.isServerSide || refreshesByBackend(subscription.expiry, hasProxy)) return DISCONNECT_MALFORMED
  if (parsed.token === '') return ERROR_BAD_REQUEST
  const claims = await checkSubscriptionToken(client, parsed.channel, parsed.token)
  // The subscription may have ended while the token was being verified.
  if (client.isClosed || client.subscriptions.get(parsed.channel) !== subscription) return ERROR_PERMISSION_DENIED
  if (claims === ERROR_INTERNAL) return claims
  if (claims === ERROR_TOKEN_EXPIRED || claims === ERROR_EXPIRED) return DISCONNECT_SUBSCRIPTION_EXPIRED
  if (claims instanceof ReplyError) return DISCONNECT_INVALID_TOKEN
  if (claims instanceof Disconnect) return claims

  const { context } = client
  subscription.expiry = expiryAt(claims.expiresAt * 1000, context, hasProxy)
  subscription.info = claims.info
  client.deadlines.schedule()
  client.reply(command, 'sub_refresh', { ttl: ttlOf(subscription.expiry, context) })
  return null
}
