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
} from './channels.js'
import type { Client } from './client.js'
import {
  DISCONNECT_MALFORMED,
  DISCONNECT_UNAVAILABLE,
  ERROR_BAD_REQUEST,
  ERROR_LIMIT_EXCEEDED,
  ERROR_NOT_AVAILABLE,
  ERROR_PERMISSION_DENIED,
  ReplyError
} from './codes.js'
import { connect, type Outcome, refresh } from './connect.js'
import { after, type MaybePromise } from './engine-interfaces.js'
import { fieldText, onOneLine } from './json.js'
import {
  boundedHistoryText,
  boundedPresenceText,
  channelOf,
  type Method,
  parseHistory,
  presenceStatsText,
  replyText
} from './protocol.js'
import { PLAIN_PUBLICATION, publishToChannel } from './publish.js'
import { readHistory } from './recovery.js'
import { refreshSubscription, subscribe, unsubscribe } from './subscribe.js'

/** `text` is the source text of the command. A command that returns null has written its reply. */
export type CommandHandler = (client: Client, request: unknown, id: number, text: string) => MaybePromise<Outcome>

/** Synchronous if the engine is, as everything from publish to delivery. */
const publish: CommandHandler = (client, request, id, text) => {
  const channel = channelOf(request)
  if (channel === null) return DISCONNECT_MALFORMED
  const resolved = resolve(client, channel)
  if (resolved instanceof ReplyError) return resolved
  // The data is passed on as the client spelled it.
  const data = fieldText(fieldText(text, 'publish') ?? '{}', 'data')
  if (data === null) return ERROR_BAD_REQUEST
  if (!mayPublish(resolved.options, callerOn(client, channel))) return ERROR_PERMISSION_DENIED

  const published = publishToChannel(client.context, resolved, channel, {
    ...PLAIN_PUBLICATION,
    data: onOneLine(data),
    info: client.infoText(client.subscriptions.get(channel)?.info ?? null)
  })
  return after(published, (outcome) => {
    if (outcome instanceof ReplyError) return outcome
    client.reply(replyText(id, 'publish', '{}'))
    return null
  })
}

const presence: CommandHandler = async (client, request, id) => {
  const channel = channelOf(request)
  if (channel === null) return DISCONNECT_MALFORMED
  const error = checkPresence(client, channel, 'presence')
  if (error !== null) return error
  const text = boundedPresenceText(await client.context.presence.read(channel), client.replyBytesLeft)
  if (text === null) return ERROR_LIMIT_EXCEEDED
  client.reply(replyText(id, 'presence', text))
  return null
}

const presenceStats: CommandHandler = async (client, request, id) => {
  const channel = channelOf(request)
  if (channel === null) return DISCONNECT_MALFORMED
  const error = checkPresence(client, channel, 'presence_stats')
  if (error !== null) return error
  const { clients, users } = await client.context.presence.count(channel)
  client.reply(replyText(id, 'presence_stats', presenceStatsText(clients, users)))
  return null
}

const history: CommandHandler = async (client, request, id) => {
  const parsed = parseHistory(request)
  if (parsed === null) return DISCONNECT_MALFORMED
  const { channel } = parsed
  const resolved = resolve(client, channel)
  if (resolved instanceof ReplyError) return resolved
  if (!hasHistory(resolved.options)) return ERROR_NOT_AVAILABLE
  if (!maySeeHistory(resolved.options, callerOn(client, channel))) return ERROR_PERMISSION_DENIED
  client.context.metrics.engineAction('history', resolved.namespace)
  const { historyMaxPublicationLimit: maxLimit } = client.context.clientOptions
  const limit = maxLimit > 0 && (parsed.limit < 0 || parsed.limit > maxLimit) ? maxLimit : parsed.limit
  const page = await readHistory(client.context, { ...parsed, limit }, resolved.options)
  if (page instanceof ReplyError) return page
  const text = boundedHistoryText(page.publications, page, client.replyBytesLeft)
  if (text === null) return ERROR_LIMIT_EXCEEDED
  client.reply(replyText(id, 'history', text))
  return null
}

export const COMMANDS: Readonly<Record<Method, CommandHandler>> = {
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

const resolve = ({ context }: Client, channel: string): ResolvedChannel | ReplyError => {
  const { channelRules } = context
  const resolved = resolveChannel(channel, channelRules)
  if (resolved instanceof ReplyError) return resolved
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
