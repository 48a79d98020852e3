import {
  accessTo,
  type Caller,
  channelNameError,
  isTooLong,
  personalChannel,
  resolveChannel
} from '../channel-names.js'
import { expiryAt, refreshesByBackend, ttlOf } from '../clocks.js'
import type { ConnectReply, Encoded, RefreshReply, SubscribeReply } from '../codec/codec.js'
import {
  DISCONNECT_CHANNEL_LIMIT,
  DISCONNECT_CONNECTION_EXPIRED,
  DISCONNECT_CONNECTION_LIMIT,
  DISCONNECT_INSUFFICIENT_STATE,
  DISCONNECT_INVALID_TOKEN,
  DISCONNECT_MALFORMED,
  Disconnect,
  ERROR_EXPIRED,
  ERROR_INTERNAL,
  ERROR_IS_MAP,
  ReplyError
} from '../codes.js'
import { after, type MaybePromise } from '../maybe-promise.js'
import { NO_OVERRIDE, type ServerSubscription } from '../options.js'
import { type ConnectCommand, parseConnect, parseRefresh } from '../protocol.js'
import type { Client, CommandOutcome, RunningCommand } from '../session/client.js'
import { eventData, forwardedHeaders, replyDataError } from '../session/client-events.js'
import { closeEarlierConnections } from '../session/single-connection.js'
import { claimsRejection, connectionClaims, hasEnded, tokenRejection, userRejection } from '../session/tokens.js'
import { countConnection, isLimitedByUser } from '../session/user-connection-limit.js'
import { addSubscription, type SubscribeResult } from '../subscribe/add-subscription.js'
import { ReplySpace, type SubscribeRequest } from '../subscribe/subscribe-request.js'
import { connectLimitError } from './command-limits.js'
import { type Identity, identify } from './identify.js'

const NO_CHANNELS: ReadonlyMap<string, ServerSubscription> = new Map()
const NO_RESULTS: ReadonlyMap<string, SubscribeResult> = new Map()
const PLAIN_SUBSCRIPTION: ServerSubscription = { info: null, data: null, override: NO_OVERRIDE }

/** The first command of every client: identifies the user and makes the server-side subscriptions. */
export const connect = (
  client: Client,
  request: unknown,
  command: RunningCommand,
  encoded: Encoded
): MaybePromise<CommandOutcome> => {
  const { context } = client
  const parsed = parseConnect(request)
  if (parsed === null || client.state !== 'new') return DISCONNECT_MALFORMED
  // Before the backend is asked, which has to know the id.
  client.id = context.newId()
  const emulatedHeaders = forwardedHeaders(parsed.headers, context.eventProxies.emulatedHeaderNames)
  if (emulatedHeaders !== null) client.events.emulatedHeaders = emulatedHeaders
  const identifying = identify(client, parsed, () => eventData(client, encoded, 'connect', request))
  return after(identifying, (identity) => {
    if (identity instanceof Disconnect || identity instanceof ReplyError) return identity
    if (client.isClosed) return null
    assignIdentity(client, identity, parsed)
    const channels = serverChannels(client, identity, parsed)
    if (channels instanceof Disconnect) return channels
    if (channels.size > 0) client.awaitedChannels = new Set(channels.keys())
    return after(connectLimitError(client), (limited) =>
      limited !== null || client.isClosed ? limited : connectUser(client, { identity, channels, parsed }, command)
    )
  })
}

const assignIdentity = (client: Client, identity: Identity, parsed: ConnectCommand): void => {
  const { context } = client
  client.state = 'connecting'
  client.user = identity.user
  client.info = identity.info
  if (identity.meta !== null) client.events.meta = identity.meta
  client.name = parsed.name
  client.version = parsed.version
  client.tokenChannels = parsed.token === '' ? null : channelSet(identity)
  client.expiry = expiryAt(identity.expiresAt * 1000, context, context.clientOptions.refreshProxy)
  // Before anything else is awaited, so that commands for the user and surveys of other nodes find the connection.
  context.clients.setUser(client)
}

interface Connecting {
  readonly identity: Identity
  /** The server-side subscriptions to make. */
  readonly channels: ReadonlyMap<string, ServerSubscription>
  readonly parsed: ConnectCommand
}

/** Makes the server-side subscriptions of an identified client, and replies. */
const connectUser = (
  client: Client,
  { identity, channels, parsed }: Connecting,
  command: RunningCommand
): MaybePromise<CommandOutcome> => {
  const { context } = client
  const dataError = replyDataError(client, identity.data)
  if (dataError !== null) return dataError
  const { channelLimit, userConnectionLimit } = context.clientOptions
  if (channels.size > channelLimit) {
    client.limitReached(`${channelLimit} channels of a connection`)
    return DISCONNECT_CHANNEL_LIMIT
  }
  const counting = () => (isLimitedByUser(client) ? countConnection(client) : true)
  return after(after(closeEarlierConnections(client), counting), (isCounted) => {
    if (!isCounted) {
      client.limitReached(`${userConnectionLimit} connections of a user`)
      return DISCONNECT_CONNECTION_LIMIT
    }
    if (client.isClosed) return null
    return after(channels.size === 0 ? NO_RESULTS : subscribeAll(client, channels, parsed), (results) =>
      results instanceof Disconnect || results instanceof ReplyError
        ? results
        : replyConnected(client, results, identity.data, command)
    )
  })
}

const replyConnected = (
  client: Client,
  results: ReadonlyMap<string, SubscribeResult>,
  data: ConnectReply['data'],
  command: RunningCommand
): CommandOutcome => {
  if (client.isClosed) return null
  const current = results.size === 0 ? results : new Map([...results].filter(([, result]) => result.isCurrent()))
  const hasSnapshot = [...current.values()].some((result) => result.hasSnapshot)
  client.reply(command, 'connect', connectReply(client, current, data), hasSnapshot)
  client.goLive()
  for (const each of current.values()) each.activate()
  client.context.metrics.clientConnected(client.transport.name, client.name, client.version)
  return null
}

/** The channels of a token as one text, to compare with those of a later token. */
const channelSet = ({ subscriptions }: Pick<Identity, 'subscriptions'>): string | null =>
  subscriptions.size === 0 ? null : JSON.stringify([...subscriptions.keys()].sort())

/**
 * The channels of the token or backend, the personal channel, and those channels of the connect command that the client may subscribe to
 * without a subscription token and without asking the backend. The others are skipped, and all of them if the backend has identified
 * the client: it knows which channels the client asks for, and only its result counts.
 */
const serverChannels = (
  { context: { clientOptions, channelRules } }: Client,
  { user, subscriptions, isByBackend }: Identity,
  { subs }: ConnectCommand
): ReadonlyMap<string, ServerSubscription> | Disconnect => {
  const { insecure, userSubscribeToPersonal, personalChannelNamespace } = clientOptions
  if (!userSubscribeToPersonal && subscriptions.size === 0 && subs.size === 0) return NO_CHANNELS
  const channels = new Map<string, ServerSubscription>()
  if (userSubscribeToPersonal && user !== '')
    channels.set(personalChannel(user, personalChannelNamespace, channelRules), PLAIN_SUBSCRIPTION)
  for (const [channel, subscription] of subscriptions) if (channel !== '') channels.set(channel, subscription)
  if (isByBackend) return channels
  const caller: Caller = { user, insecure, isSubscribed: false }
  for (const channel of subs.keys()) {
    if (channels.has(channel) || channel === '' || isTooLong(channel, channelRules)) continue
    const resolved = resolveChannel(channel, channelRules)
    if (resolved instanceof ReplyError) return DISCONNECT_MALFORMED
    const isValid = channelNameError(channel, resolved, channelRules) === null
    if (isValid && accessTo(channel, resolved, caller, channelRules) === 'granted')
      channels.set(channel, PLAIN_SUBSCRIPTION)
  }
  return channels
}

/**
 * Makes the server-side subscriptions. If one of them fails, the client is rejected or closed, which removes
 * the others.
 */
const subscribeAll = async (
  client: Client,
  channels: ReadonlyMap<string, ServerSubscription>,
  { subs }: ConnectCommand
): Promise<ReadonlyMap<string, SubscribeResult> | ReplyError | Disconnect> => {
  const results = new Map<string, SubscribeResult>()
  const replySpace = new ReplySpace(client)
  const requests: SubscribeRequest[] = []
  // All channels are checked before the first one is subscribed.
  for (const [channel, subscription] of channels) {
    // The API has unsubscribed it meanwhile.
    if (client.awaitedChannels?.has(channel) !== true) continue
    const resolved = resolveChannel(channel, client.context.channelRules)
    if (resolved instanceof ReplyError) return resolved
    if (resolved.options.map !== null) return ERROR_IS_MAP.with(channel)
    const { recover = null, delta = false } = subs.get(channel) ?? {}
    requests.push({
      ...subscription,
      channel,
      resolved,
      isServerSide: true,
      expiresAt: 0,
      recover,
      positioned: false,
      recoverable: false,
      joinLeave: false,
      delta,
      filter: null,
      rate: null,
      view: null,
      failsUnrecovered: false,
      replySpace
    })
  }
  // All are awaited, also if one fails or throws at once: an unobserved rejection would end the process.
  const outcomes = await Promise.allSettled(requests.map(async (request) => addSubscription(client, request)))
  let failure: ReplyError | Disconnect | null = null
  for (const [index, outcome] of outcomes.entries()) {
    if (outcome.status === 'rejected') throw outcome.reason
    if ('activate' in outcome.value) results.set(requests[index]?.channel ?? '', outcome.value)
    else failure ??= outcome.value
  }
  return failure ?? results
}

const connectReply = (
  client: Client,
  results: ReadonlyMap<string, SubscribeResult>,
  data: ConnectReply['data']
): ConnectReply => {
  const { context, transport, expiry } = client
  const { clientOptions } = context
  const nowMs = context.nowMs()
  const hasPings = !transport.hasOwnPings
  if (transport.isEmulated || transport.isUnidirectional) client.session = context.newId()
  const { session } = client
  // A client that only receives has a session for the API, but cannot send commands with it.
  if (transport.isEmulated && session !== null) context.sessions.set(session, client)
  return {
    client: client.id,
    version: context.version,
    ttl: ttlOf(expiry, context),
    data,
    subs: results.size === 0 ? NO_REPLIES : new Map([...results].map(([channel, { reply }]) => [channel, reply])),
    ping: hasPings ? Math.max(1, Math.round(clientOptions.pingIntervalMs / 1000)) : 0,
    pong: hasPings && !transport.isUnidirectional,
    session: session ?? '',
    node: transport.isEmulated ? context.node : '',
    time: clientOptions.includeConnectionTime ? nowMs : 0
  }
}

const NO_REPLIES: ReadonlyMap<string, SubscribeReply> = new Map()

/** Replaces the token of a live connection. User and channels must not change. */
export const refresh = async (client: Client, request: unknown, command: RunningCommand): Promise<CommandOutcome> => {
  const parsed = parseRefresh(request)
  if (parsed === null || parsed.token === '') return DISCONNECT_MALFORMED
  const { checkToken, nowMs, clientOptions } = client.context
  if (refreshesByBackend(client.expiry, clientOptions.refreshProxy)) return DISCONNECT_MALFORMED
  const rejected = tokenRejection(client)
  const checked = await checkToken(parsed.token, nowMs(), rejected)
  if (client.isClosed) return null
  if (checked === 'unavailable') return ERROR_INTERNAL
  if (checked === 'expired') return DISCONNECT_CONNECTION_EXPIRED
  if (checked === 'invalid') return DISCONNECT_INVALID_TOKEN
  const claims = connectionClaims(checked, client.context.clientOptions.token)
  if (claims === null || claims.user !== client.user) {
    rejected(claims === null ? claimsRejection(checked, client.context.clientOptions.token) : userRejection(claims))
    return DISCONNECT_INVALID_TOKEN
  }
  if (hasEnded(checked, nowMs())) {
    rejected('expired')
    return ERROR_EXPIRED
  }
  // The client gets the new channels when it reconnects.
  if (channelSet(claims) !== client.tokenChannels) return DISCONNECT_INSUFFICIENT_STATE

  client.info = claims.info
  if (claims.meta !== null) client.events.meta = claims.meta
  client.reply(command, 'refresh', extendExpiry(client, claims.expiresAt))
  return null
}

/** Sets the expiry; 0 for never. The result contains the client id, because the official client overwrites its own. */
export const extendExpiry = (client: Client, expiresAtSeconds: number): RefreshReply => {
  const { context } = client
  client.expiry = expiryAt(expiresAtSeconds * 1000, context, context.clientOptions.refreshProxy)
  client.deadlines.schedule()
  return { client: client.id, ttl: ttlOf(client.expiry, context) }
}
