import {
  type Caller,
  type ChannelKind,
  channelKind,
  hasHistory,
  isTooLong,
  mayPublish,
  maySeeHistory,
  maySeePresence,
  nameFault
} from './channels.js'
import type { Outcome } from './connect.js'
import type { Connection } from './connection.js'
import * as disconnect from './disconnect.js'
import * as errors from './errors.js'
import { ReplyError } from './errors.js'
import { readHistory } from './history-reading.js'
import { fieldText, onOneLine } from './json-text.js'
import { after, type MaybePromise } from './maybe-promise.js'
import { boundedHistoryText, boundedPresenceText, presenceStatsText, replyText } from './protocol.js'
import { PLAIN_PUBLICATION, publishOn } from './publish.js'
import { channelOf, historyRequest } from './requests.js'

// What a client may ask about a channel, or say on it.

const kindOf = ({ context }: Connection, channel: string): ChannelKind | ReplyError => {
  const { channels } = context
  const kind = channelKind(channel, channels)
  if (kind instanceof ReplyError) return kind
  return isTooLong(channel, channels) ? errors.BAD_REQUEST : (nameFault(channel, kind, channels) ?? kind)
}

const callerOn = (connection: Connection, channel: string): Caller => ({
  user: connection.user,
  insecure: connection.context.client.insecure,
  isSubscribed: connection.subscriptions.has(channel)
})

/** `text` is the command as it came, so that the data can go on as the bytes it is. */
export const publish = (connection: Connection, request: unknown, id: number, text: string): MaybePromise<Outcome> => {
  const channel = channelOf(request)
  if (channel === null) return disconnect.MALFORMED
  const kind = kindOf(connection, channel)
  if (kind instanceof ReplyError) return kind
  const data = fieldText(fieldText(text, 'publish') ?? '{}', 'data')
  if (data === null) return errors.BAD_REQUEST
  if (!mayPublish(kind.options, callerOn(connection, channel))) return errors.PERMISSION_DENIED

  const published = publishOn(connection.context, kind, channel, {
    ...PLAIN_PUBLICATION,
    data: onOneLine(data),
    info: connection.describe(connection.subscriptions.get(channel)?.info ?? null)
  })
  return after(published, (outcome) => {
    if (outcome instanceof ReplyError) return outcome
    connection.reply(replyText(id, 'publish', '{}'))
    return null
  })
}

const mayAskPresence = (
  connection: Connection,
  channel: string,
  action: 'presence' | 'presence_stats'
): ReplyError | null => {
  const kind = kindOf(connection, channel)
  if (kind instanceof ReplyError) return kind
  if (!kind.options.presence) return errors.NOT_AVAILABLE
  if (!maySeePresence(kind.options, callerOn(connection, channel))) return errors.PERMISSION_DENIED
  connection.context.watch.acted(action, kind.namespace)
  return null
}

export const presence = (connection: Connection, request: unknown, id: number): MaybePromise<Outcome> => {
  const channel = channelOf(request)
  if (channel === null) return disconnect.MALFORMED
  const refusal = mayAskPresence(connection, channel, 'presence')
  if (refusal !== null) return refusal
  return after(connection.context.presence.read(channel), (present) => {
    const text = boundedPresenceText(present, connection.replyBytesLeft)
    if (text === null) return errors.LIMIT_EXCEEDED
    connection.reply(replyText(id, 'presence', text))
    return null
  })
}

export const presenceStats = (connection: Connection, request: unknown, id: number): MaybePromise<Outcome> => {
  const channel = channelOf(request)
  if (channel === null) return disconnect.MALFORMED
  const refusal = mayAskPresence(connection, channel, 'presence_stats')
  if (refusal !== null) return refusal
  return after(connection.context.presence.count(channel), ({ clients, users }) => {
    connection.reply(replyText(id, 'presence_stats', presenceStatsText(clients, users)))
    return null
  })
}

export const history = (connection: Connection, request: unknown, id: number): MaybePromise<Outcome> => {
  const parsed = historyRequest(request)
  if (parsed === null) return disconnect.MALFORMED
  const { channel } = parsed
  const kind = kindOf(connection, channel)
  if (kind instanceof ReplyError) return kind
  if (!hasHistory(kind.options)) return errors.NOT_AVAILABLE
  if (!maySeeHistory(kind.options, callerOn(connection, channel))) return errors.PERMISSION_DENIED
  connection.context.watch.acted('history', kind.namespace)
  const most = connection.context.client.historyMaxPublicationLimit
  const limit = most > 0 && (parsed.limit < 0 || parsed.limit > most) ? most : parsed.limit
  return after(readHistory(connection.context, { ...parsed, limit }, kind.options), (page) => {
    if (page instanceof ReplyError) return page
    const text = boundedHistoryText(page.publications, page, connection.replyBytesLeft)
    if (text === null) return errors.LIMIT_EXCEEDED
    connection.reply(replyText(id, 'history', text))
    return null
  })
}
