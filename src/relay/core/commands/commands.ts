import {
  type Caller,
  channelNameError,
  hasHistory,
  isTooLong,
  mayPublish,
  maySeeHistory,
  maySeePresence,
  type ResolvedChannel,
  resolveChannel
} from '../channel-names.js'
import { canCarry, EMPTY_REPLY, type Encoded } from '../codec/codec.js'
import {
  DISCONNECT_INAPPROPRIATE_PROTOCOL,
  DISCONNECT_MALFORMED,
  DISCONNECT_UNAVAILABLE,
  ERROR_BAD_REQUEST,
  ERROR_BINARY_CHANNEL,
  ERROR_LIMIT_EXCEEDED,
  ERROR_NOT_AVAILABLE,
  ERROR_PERMISSION_DENIED,
  ReplyError
} from '../codes.js'
import { after, type MaybePromise } from '../engine.js'
import { channelOf, type Method, parseHistory } from '../protocol.js'
import { PLAIN_PUBLICATION, publishToChannel } from '../publish/publish.js'
import type { Client, CommandOutcome, RunningCommand } from '../session/client.js'
import { fittingPublications, readHistory } from '../subscribe/recovery.js'
import { refreshSubscription, subscribe, unsubscribe } from '../subscribe/subscribe.js'
import { connect, refresh } from './connect.js'

/** `encoded` is the command as it arrived. A handler that returns null has written its reply. */
export type CommandHandler = (
  client: Client,
  request: unknown,
  command: RunningCommand,
  encoded: Encoded
) => MaybePromise<CommandOutcome>

const NO_DATA = Buffer.alloc(0)

/** Not an async function: with the memory engine the reply is written without waiting for a promise. */
const publish: CommandHandler = (client, request, command, encoded) => {
  const channel = channelOf(request)
  if (channel === null) return DISCONNECT_MALFORMED
  const resolved = resolve(client, channel)
  if (resolved instanceof ReplyError) return resolved
  // In protobuf, empty data and no data are the same.
  const isEmptyAllowed = resolved.options.publicationDataFormat === 'binary'
  const data = client.codec.publishData(encoded, request) ?? (isEmptyAllowed ? NO_DATA : null)
  if (data === null) return ERROR_BAD_REQUEST
  if (!mayPublish(resolved.options, callerOn(client, channel))) return ERROR_PERMISSION_DENIED

  const published = publishToChannel(client.context, resolved, channel, {
    ...PLAIN_PUBLICATION,
    data,
    info: client.infoText(client.subscriptions.get(channel)?.info ?? null)
  })
  return after(published, (outcome) => {
    if (outcome instanceof ReplyError) return outcome
    client.reply(command, 'publish', EMPTY_REPLY)
    return null
  })
}

const presence: CommandHandler = async (client, request, command) => {
  const channel = channelOf(request)
  if (channel === null) return DISCONNECT_MALFORMED
  const error = checkPresence(client, channel, 'presence')
  if (error !== null) return error
  const presence = await client.context.presence.read(channel)
  if (presenceBytes(presence) > client.replyBytesLeft) return ERROR_LIMIT_EXCEEDED
  client.reply(command, 'presence', { presence })
  return null
}

const presenceStats: CommandHandler = async (client, request, command) => {
  const channel = channelOf(request)
  if (channel === null) return DISCONNECT_MALFORMED
  const error = checkPresence(client, channel, 'presence_stats')
  if (error !== null) return error
  client.reply(command, 'presence_stats', await client.context.presence.count(channel))
  return null
}

const history: CommandHandler = async (client, request, command) => {
  const parsed = parseHistory(request)
  if (parsed === null) return DISCONNECT_MALFORMED
  const { channel } = parsed
  const resolved = resolve(client, channel)
  if (resolved instanceof ReplyError) return resolved
  if (!hasHistory(resolved.options)) return ERROR_NOT_AVAILABLE
  if (!maySeeHistory(resolved.options, callerOn(client, channel))) return ERROR_PERMISSION_DENIED
  client.context.metrics.engineAction('history', resolved.namespace)
  const { historyMaxPublicationLimit: maxLimit } = client.context.clientOptions
  const limit = parsed.limit < 0 || parsed.limit > maxLimit ? maxLimit : parsed.limit
  const page = await readHistory(client.context, { ...parsed, limit }, resolved.options)
  if (page instanceof ReplyError) return page
  const publications = fittingPublications(page, client.replyBytesLeft)
  if (publications === null) return ERROR_LIMIT_EXCEEDED
  if (!publications.every((each) => canCarry(client.codec, each))) return DISCONNECT_INAPPROPRIATE_PROTOCOL
  client.reply(command, 'history', { publications, epoch: page.epoch, offset: page.offset })
  return null
}

/** Everything in a presence entry except the info: the client id, quotes or lengths, separators. */
const PRESENCE_OVERHEAD_BYTES = 64

/** An upper bound for the size of a presence reply, for all codecs. */
const presenceBytes = (presence: ReadonlyMap<string, string>): number => {
  let bytes = 0
  for (const info of presence.values()) bytes += PRESENCE_OVERHEAD_BYTES + Buffer.byteLength(info)
  return bytes
}

export const COMMAND_HANDLERS: Readonly<Record<Method, CommandHandler>> = {
  connect,
  subscribe,
  unsubscribe,
  publish,
  presence,
  presence_stats: presenceStats,
  history,
  // The relay has no backend for RPC calls and messages.
  rpc: () => ERROR_NOT_AVAILABLE,
  send: () => DISCONNECT_UNAVAILABLE,
  refresh,
  sub_refresh: refreshSubscription
}

const resolve = ({ context, codec }: Client, channel: string): ResolvedChannel | ReplyError => {
  const { channelRules } = context
  const resolved = resolveChannel(channel, channelRules)
  if (resolved instanceof ReplyError) return resolved
  if (resolved.options.publicationDataFormat === 'binary' && !codec.allowsBinary) return ERROR_BINARY_CHANNEL
  return isTooLong(channel, channelRules)
    ? ERROR_BAD_REQUEST
    : (channelNameError(channel, resolved, channelRules) ?? resolved)
}

const callerOn = (client: Client, channel: string): Caller => ({
  user: client.user,
  insecure: client.context.clientOptions.insecure,
  isSubscribed: client.subscriptions.has(channel)
})

const checkPresence = (client: Client, channel: string, action: 'presence' | 'presence_stats'): ReplyError | null => {
  const resolved = resolve(client, channel)
  if (resolved instanceof ReplyError) return resolved
  if (!resolved.options.presence) return ERROR_NOT_AVAILABLE
  if (!maySeePresence(resolved.options, callerOn(client, channel))) return ERROR_PERMISSION_DENIED
  client.context.metrics.engineAction(action, resolved.namespace)
  return null
}
