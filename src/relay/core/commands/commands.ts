import { hasHistory, maySeeHistory, maySeePresence, presenceError } from '../channel-names.js'
import { canCarry, type Encoded } from '../codec/codec.js'
import {
  DISCONNECT_INAPPROPRIATE_PROTOCOL,
  DISCONNECT_MALFORMED,
  DISCONNECT_UNAVAILABLE,
  ERROR_LIMIT_EXCEEDED,
  ERROR_NOT_AVAILABLE,
  ERROR_PERMISSION_DENIED,
  ReplyError
} from '../codes.js'
import type { MaybePromise } from '../maybe-promise.js'
import { channelOf, type Method, parseHistory } from '../protocol.js'
import type { Client, CommandOutcome, RunningCommand } from '../session/client.js'
import { fittingPublications, readHistory } from '../subscribe/recovery.js'
import { refreshSubscription, subscribe, unsubscribe } from '../subscribe/subscribe.js'
import { callerOn, resolveFor } from './command-channel.js'
import { connect, refresh } from './connect.js'
import { publish } from './publish.js'
import { rpc } from './rpc.js'

/** `encoded` is the command as it arrived. A handler that returns null has written its reply. */
export type CommandHandler = (
  client: Client,
  request: unknown,
  command: RunningCommand,
  encoded: Encoded
) => MaybePromise<CommandOutcome>

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
  const resolved = resolveFor(client, channel)
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
  rpc,
  // The relay has no receiver for messages of clients.
  send: () => DISCONNECT_UNAVAILABLE,
  refresh,
  sub_refresh: refreshSubscription
}

const checkPresence = (client: Client, channel: string, action: 'presence' | 'presence_stats'): ReplyError | null => {
  const resolved = resolveFor(client, channel)
  if (resolved instanceof ReplyError) return resolved
  const error = presenceError(resolved.options)
  if (error !== null) return error
  if (!maySeePresence(resolved.options, callerOn(client, channel))) return ERROR_PERMISSION_DENIED
  client.context.metrics.engineAction(action, resolved.namespace)
  return null
}
