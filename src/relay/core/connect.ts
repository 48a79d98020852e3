import { channelKind, personalChannel } from './channels.js'
import type { Connection } from './connection.js'
import * as disconnect from './disconnect.js'
import { Disconnect } from './disconnect.js'
import { ReplyError, TOKEN_EXPIRED } from './errors.js'
import { expiryAt, ttlSeconds } from './expiry.js'
import { type Joined, joinChannel, ReplyRoom, type Wish } from './join-channel.js'
import { after, type MaybePromise, settleAll } from './maybe-promise.js'
import { expiryFields, fieldIf, objectText, quote, replyText } from './protocol.js'
import { type ConnectRequest, connectRequest } from './requests.js'
import { type ConnectionClaims, connectionClaims, NO_OVERRIDE, type ServerSubscription } from './tokens.js'
import { countConnection } from './user-connections.js'

/** Null: it went well, and the reply is written. */
export type Outcome = null | ReplyError | Disconnect

const NOBODY: ConnectionClaims = { user: '', expiresAt: 0, info: null, subscriptions: new Map() }
const PLAIN: ServerSubscription = { info: null, data: null, override: NO_OVERRIDE }

/** The first command of every client: who it is, and which channels that puts it on. */
export const connect = (connection: Connection, request: unknown, id: number): MaybePromise<Outcome> => {
  const { context } = connection
  const parsed = connectRequest(request)
  if (parsed === null || connection.state !== 'new') return disconnect.MALFORMED
  const claims = identify(connection, parsed.token)
  if (claims instanceof Disconnect || claims instanceof ReplyError) return claims

  const channels = withPersonalChannel(connection, claims)
  if (channels.size > context.client.channelLimit && context.client.channelLimit > 0) return disconnect.CHANNEL_LIMIT

  connection.state = 'connecting'
  connection.client = context.newId()
  connection.user = claims.user
  connection.info = claims.info
  connection.name = parsed.name
  connection.version = parsed.version
  connection.tokenChannels = channelSet(claims)
  connection.expiry = expiryAt(claims.expiresAt * 1000, context)
  // Before it is counted, so that another node that asks is told of it.
  context.roster.nameUser(connection)
  return after(countConnection(connection), (isCounted) => {
    if (!isCounted) return disconnect.CONNECTION_LIMIT
    return connection.isEnded ? null : admit(connection, channels, parsed, id)
  })
}

/** Puts the connection on its channels, and replies. */
const admit = (
  connection: Connection,
  channels: ReadonlyMap<string, ServerSubscription>,
  parsed: ConnectRequest,
  id: number
): MaybePromise<Outcome> => {
  const { context } = connection
  return after(joinAll(connection, channels, parsed), (joined) => {
    if (joined instanceof Disconnect || joined instanceof ReplyError) return joined
    if (connection.isEnded) return null
    connection.reply(replyText(id, 'connect', connectResult(connection, joined)))
    connection.goLive()
    for (const each of joined.values()) each.begin()
    context.watch.connected(connection.sink.transport, connection.name, connection.version)
    return null
  })
}

const identify = (connection: Connection, token: string): ConnectionClaims | (Outcome & {}) => {
  const { client, checkToken, nowMs } = connection.context
  const tokenRefused = refusalOf(connection)
  const admitsNobody = client.insecure || client.allowAnonymousConnectWithoutToken
  if (token === '' && admitsNobody) return NOBODY
  if (token === '') {
    tokenRefused('missing')
    return disconnect.MALFORMED
  }
  const checked = checkToken(token, nowMs(), tokenRefused)
  if (checked === 'expired') return TOKEN_EXPIRED
  if (checked === 'invalid') return disconnect.INVALID_TOKEN
  const claims = connectionClaims(checked, claimRules(connection))
  if (claims === null) {
    tokenRefused('bad-claims')
    return disconnect.INVALID_TOKEN
  }
  if (claims.user !== '' || admitsNobody) return claims
  tokenRefused('no-user')
  return disconnect.NOT_PERMITTED
}

/** What a refused token of this connection is reported to. */
export const refusalOf =
  ({ context, sink }: Connection) =>
  (reason: string): void =>
    context.tokenRefused(reason, sink.address)

export const claimRules = ({ context: { client } }: Connection) => ({
  expiryRequired: client.tokenExpiryRequired,
  audience: client.tokenAudience,
  issuer: client.tokenIssuer
})

/** The channels of a token in one text, to see whether a later token has others. */
export const channelSet = ({ subscriptions }: ConnectionClaims): string | null =>
  subscriptions.size === 0 ? null : JSON.stringify([...subscriptions.keys()].sort())

const withPersonalChannel = (
  { context: { client, channels } }: Connection,
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
  connection: Connection,
  channels: ReadonlyMap<string, ServerSubscription>,
  { positions }: ConnectRequest
): MaybePromise<ReadonlyMap<string, Joined> | ReplyError | Disconnect> => {
  if (channels.size === 0) return NONE_JOINED
  const room = new ReplyRoom(connection)
  const wishes: Wish[] = []
  // All channels are looked at before the first is joined.
  for (const [channel, subscription] of channels) {
    const kind = channelKind(channel, connection.context.channels)
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
  return after(settleAll(wishes.map((wish) => () => joinChannel(connection, wish))), (outcomes) => {
    const joined = new Map<string, Joined>()
    let failure: ReplyError | Disconnect | null = null
    for (const [index, { channel }] of wishes.entries()) {
      const outcome = outcomes[index] as (typeof outcomes)[number]
      if (outcome.status === 'rejected') throw outcome.reason
      if ('begin' in outcome.value) joined.set(channel, outcome.value)
      else failure ??= outcome.value
    }
    return failure ?? joined
  })
}

const NONE_JOINED: ReadonlyMap<string, Joined> = new Map()

const connectResult = (connection: Connection, joined: ReadonlyMap<string, Joined>): string => {
  const { context, sink, expiry } = connection
  const { client } = context
  const nowMs = context.nowMs()
  const pings = client.pingIntervalMs > 0 && !sink.pingsItself
  if (sink.isEmulated) {
    connection.session = context.newId()
    context.sessions.set(connection.session, connection)
  }
  const ttl = Number.isFinite(expiry.wallMs) ? ttlSeconds(expiry.wallMs, nowMs) : 0
  const { session } = connection
  return objectText(
    `,"client":"${connection.client}","version":${quote(context.version)}` +
      expiryFields(ttl) +
      (joined.size > 0 ? `,"subs":${subscriptionsText(joined)}` : '') +
      (pings ? `,"ping":${Math.max(1, Math.round(client.pingIntervalMs / 1000))}` : '') +
      fieldIf(pings && client.pongTimeoutMs > 0, 'pong') +
      (session === null ? '' : `,"session":"${session}","node":"${context.node}"`) +
      (client.includeConnectionTime ? `,"time":${nowMs}` : '')
  )
}

const subscriptionsText = (joined: ReadonlyMap<string, Joined>): string =>
  `{${[...joined].map(([channel, { result }]) => `${quote(channel)}:${result}`).join(',')}}`
