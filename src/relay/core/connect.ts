import { after, type MaybePromise, settleAll } from './broker.js'
import { personalChannel, resolveChannel } from './channels.js'
import type { Client } from './client.js'
import { expiryAt, ttlSeconds } from './clocks.js'
import {
  DISCONNECT_CHANNEL_LIMIT,
  DISCONNECT_CONNECTION_EXPIRED,
  DISCONNECT_CONNECTION_LIMIT,
  DISCONNECT_INSUFFICIENT_STATE,
  DISCONNECT_INVALID_TOKEN,
  DISCONNECT_MALFORMED,
  DISCONNECT_NOT_PERMITTED,
  Disconnect,
  ERROR_TOKEN_EXPIRED,
  ReplyError
} from './codes.js'
import {
  type ConnectCommand,
  expiryFields,
  fieldIf,
  objectText,
  parseConnect,
  parseRefresh,
  quote,
  replyText
} from './protocol.js'
import { addSubscription, ReplyRoom, type SubscribeRequest, type SubscribeResult } from './subscription.js'
import { type ConnectionClaims, connectionClaims, NO_OVERRIDE, type ServerSubscription } from './tokens.js'
import { countConnection } from './user-connections.js'

/** Null: it went well, and the reply is written. */
export type Outcome = null | ReplyError | Disconnect

const NOBODY: ConnectionClaims = { user: '', expiresAt: 0, info: null, subscriptions: new Map() }
const PLAIN: ServerSubscription = { info: null, data: null, override: NO_OVERRIDE }

/** The first command of every client: who it is, and which channels that puts it on. */
export const connect = (client: Client, request: unknown, id: number): MaybePromise<Outcome> => {
  const { context } = client
  const parsed = parseConnect(request)
  if (parsed === null || client.state !== 'new') return DISCONNECT_MALFORMED
  const claims = identify(client, parsed.token)
  if (claims instanceof Disconnect || claims instanceof ReplyError) return claims

  const channels = withPersonalChannel(client, claims)
  if (channels.size > context.clientOptions.channelLimit && context.clientOptions.channelLimit > 0)
    return DISCONNECT_CHANNEL_LIMIT

  client.state = 'connecting'
  client.id = context.newId()
  client.user = claims.user
  client.info = claims.info
  client.name = parsed.name
  client.version = parsed.version
  client.tokenChannels = channelSet(claims)
  client.expiry = expiryAt(claims.expiresAt * 1000, context)
  // Before it is counted, so that another node that asks is told of it.
  context.clients.setUser(client)
  return after(countConnection(client), (isCounted) => {
    if (!isCounted) return DISCONNECT_CONNECTION_LIMIT
    return client.isClosed ? null : admit(client, channels, parsed, id)
  })
}

/** Puts the connection on its channels, and replies. */
const admit = (
  client: Client,
  channels: ReadonlyMap<string, ServerSubscription>,
  parsed: ConnectCommand,
  id: number
): MaybePromise<Outcome> => {
  const { context } = client
  return after(joinAll(client, channels, parsed), (results) => {
    if (results instanceof Disconnect || results instanceof ReplyError) return results
    if (client.isClosed) return null
    client.reply(replyText(id, 'connect', connectResult(client, results)))
    client.goLive()
    for (const each of results.values()) each.activate()
    context.metrics.clientConnected(client.transport.name, client.name, client.version)
    return null
  })
}

const identify = (connection: Client, token: string): ConnectionClaims | (Outcome & {}) => {
  const { clientOptions: client, checkToken, nowMs } = connection.context
  const tokenRefused = refusalOf(connection)
  const admitsNobody = client.insecure || client.allowAnonymousConnectWithoutToken
  if (token === '' && admitsNobody) return NOBODY
  if (token === '') {
    tokenRefused('missing')
    return DISCONNECT_MALFORMED
  }
  const checked = checkToken(token, nowMs(), tokenRefused)
  if (checked === 'expired') return ERROR_TOKEN_EXPIRED
  if (checked === 'invalid') return DISCONNECT_INVALID_TOKEN
  const claims = connectionClaims(checked, claimRules(connection))
  if (claims === null) {
    tokenRefused('bad-claims')
    return DISCONNECT_INVALID_TOKEN
  }
  if (claims.user !== '' || admitsNobody) return claims
  tokenRefused('no-user')
  return DISCONNECT_NOT_PERMITTED
}

/** What a refused token of this connection is reported to. */
export const refusalOf =
  ({ context, transport }: Client) =>
  (reason: string): void =>
    context.tokenRejected(reason, transport.address)

export const claimRules = ({ context: { clientOptions: client } }: Client) => ({
  expiryRequired: client.tokenExpiryRequired,
  audience: client.tokenAudience,
  issuer: client.tokenIssuer
})

/** The channels of a token in one text, to see whether a later token has others. */
export const channelSet = ({ subscriptions }: ConnectionClaims): string | null =>
  subscriptions.size === 0 ? null : JSON.stringify([...subscriptions.keys()].sort())

const withPersonalChannel = (
  { context: { clientOptions: client, channelRules: channels } }: Client,
  { user, subscriptions }: ConnectionClaims
): ReadonlyMap<string, ServerSubscription> => {
  if (!client.userSubscribeToPersonal || user === '') return subscriptions
  const personal = personalChannel(user, client.personalChannelNamespace, channels)
  return new Map([[personal, PLAIN], ...subscriptions])
}

/**
 * Puts the client on all channels of its token. Where one of them fails the client is refused or closed, which takes it off
 * the others again.
 */
const joinAll = (
  client: Client,
  channels: ReadonlyMap<string, ServerSubscription>,
  { positions }: ConnectCommand
): MaybePromise<ReadonlyMap<string, SubscribeResult> | ReplyError | Disconnect> => {
  if (channels.size === 0) return NONE_JOINED
  const room = new ReplyRoom(client)
  const wishes: SubscribeRequest[] = []
  // All channels are looked at before the first is joined.
  for (const [channel, subscription] of channels) {
    const kind = resolveChannel(channel, client.context.channelRules)
    if (kind instanceof ReplyError) return kind
    wishes.push({
      ...subscription,
      channel,
      kind,
      isServerSide: true,
      hasToken: false,
      expiresAt: 0,
      recover: positions.get(channel) ?? null,
      positioned: false,
      recoverable: false,
      joinLeave: false,
      delta: false,
      failsUnrecovered: false,
      room
    })
  }
  return after(settleAll(wishes.map((request) => () => addSubscription(client, request))), (outcomes) => {
    const results = new Map<string, SubscribeResult>()
    let failure: ReplyError | Disconnect | null = null
    for (const [index, { channel }] of wishes.entries()) {
      const outcome = outcomes[index] as (typeof outcomes)[number]
      if (outcome.status === 'rejected') throw outcome.reason
      if ('activate' in outcome.value) results.set(channel, outcome.value)
      else failure ??= outcome.value
    }
    return failure ?? results
  })
}

const NONE_JOINED: ReadonlyMap<string, SubscribeResult> = new Map()

const connectResult = (connection: Client, results: ReadonlyMap<string, SubscribeResult>): string => {
  const { context, transport, expiry } = connection
  const { clientOptions: client } = context
  const nowMs = context.nowMs()
  const pings = client.pingIntervalMs > 0 && !transport.hasOwnPings
  if (transport.isEmulated) {
    connection.session = context.newId()
    context.sessions.set(connection.session, connection)
  }
  const ttl = Number.isFinite(expiry.wallMs) ? ttlSeconds(expiry.wallMs, nowMs) : 0
  const { session } = connection
  return objectText(
    `,"client":"${connection.id}","version":${quote(context.version)}` +
      expiryFields(ttl) +
      (results.size > 0 ? `,"subs":${subscriptionsText(results)}` : '') +
      (pings ? `,"ping":${Math.max(1, Math.round(client.pingIntervalMs / 1000))}` : '') +
      fieldIf(pings && client.pongTimeoutMs > 0, 'pong') +
      (session === null ? '' : `,"session":"${session}","node":"${context.node}"`) +
      (client.includeConnectionTime ? `,"time":${nowMs}` : '')
  )
}

const subscriptionsText = (results: ReadonlyMap<string, SubscribeResult>): string =>
  `{${[...results].map(([channel, { result }]) => `${quote(channel)}:${result}`).join(',')}}`

/** A new token for a live connection. The same user goes on; nothing else may have changed. */
export const refresh = (client: Client, request: unknown, id: number): Outcome => {
  const parsed = parseRefresh(request)
  if (parsed === null || parsed.token === '') return DISCONNECT_MALFORMED
  const { checkToken, nowMs } = client.context
  const tokenRefused = refusalOf(client)
  const checked = checkToken(parsed.token, nowMs(), tokenRefused)
  if (checked === 'expired') return DISCONNECT_CONNECTION_EXPIRED
  if (checked === 'invalid') return DISCONNECT_INVALID_TOKEN
  const claims = connectionClaims(checked, claimRules(client))
  if (claims === null || claims.user !== client.user) {
    tokenRefused(claims === null ? 'bad-claims' : 'other-user')
    return DISCONNECT_INVALID_TOKEN
  }
  // Coming back, the client gets the new set.
  if (channelSet(claims) !== client.tokenChannels) return DISCONNECT_INSUFFICIENT_STATE

  client.info = claims.info
  client.reply(replyText(id, 'refresh', extend(client, claims.expiresAt)))
  return null
}

/** Moves the end of a connection; 0 for never. The result names the client: the official one forgets its own name else. */
export const extend = (client: Client, expiresAtSeconds: number): string => {
  client.expiry = expiryAt(expiresAtSeconds * 1000, client.context)
  client.scheduleWake()
  const ttl = expiresAtSeconds > 0 ? ttlSeconds(expiresAtSeconds * 1000, client.context.nowMs()) : 0
  return objectText(`,"client":"${client.id}"${expiryFields(ttl)}`)
}
