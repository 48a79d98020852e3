import { BoundedList } from './bounded-list.js'
import type { Position, Publication } from './broker.js'
import type { Disconnect } from './disconnect.js'
import type { ReplyError } from './errors.js'
import type { Unsubscribe } from './unsubscribe.js'

// Replies and pushes as text. Written by hand rather than by JSON.stringify, because what others wrote (data, info,
// tags) goes in as the text it is.

/** What a client may ask for, in the order in which the first one counts when a command names several. */
export const METHODS = [
  'connect',
  'subscribe',
  'unsubscribe',
  'publish',
  'presence',
  'presence_stats',
  'history',
  'rpc',
  'send',
  'refresh',
  'sub_refresh'
] as const

export type Method = (typeof METHODS)[number]

/** The server's ping, and the client's pong. */
export const PING = '{}'

export const quote = (text: string): string => JSON.stringify(text)

export const replyText = (id: number, method: Method, result: string): string => `{"id":${id},"${method}":${result}}`

export const errorReplyText = (id: number, error: ReplyError): string => `{"id":${id},"error":${errorText(error)}}`

export const errorText = ({ code, message, temporary }: ReplyError): string =>
  `{"code":${code},"message":${quote(message)}${temporary ? ',"temporary":true' : ''}}`

export const clientInfoText = (user: string, client: string, connectionInfo: string | null, info: string | null) =>
  `{"user":${quote(user)},"client":"${client}"${connectionInfo === null ? '' : `,"conn_info":${connectionInfo}`}${
    info === null ? '' : `,"chan_info":${info}`
  }}`

/** `data` is given apart because a subscriber that takes deltas gets something else in its place. */
export const publicationText = (publication: Publication, epoch: string, data: string, isDelta: boolean): string => {
  const { info, tags, offset, version } = publication
  let text = `{"data":${data}`
  if (info !== null) text += `,"info":${info}`
  if (offset > 0) text += `,"offset":${offset}`
  if (tags !== null) text += `,"tags":${tags}`
  if (isDelta) text += ',"delta":true'
  if (version > 0) text += `,"version":${version}`
  // The first of a stream says which stream: a client that subscribed before it began has no epoch yet.
  if (offset === 1) text += `,"epoch":"${epoch}"`
  return `${text}}`
}

const pushText = (channel: string, kind: string, body: string): string =>
  `{"push":{"channel":${quote(channel)},"${kind}":${body}}}`

export const publicationPush = (channel: string, publication: string): string => pushText(channel, 'pub', publication)

export const joinOrLeavePush = (channel: string, kind: 'join' | 'leave', info: string): string =>
  pushText(channel, kind, `{"info":${info}}`)

export const unsubscribePush = (channel: string, { code, reason }: Unsubscribe): string =>
  pushText(channel, 'unsubscribe', `{"code":${code},"reason":${quote(reason)}}`)

export const subscribePush = (channel: string, result: string): string => pushText(channel, 'subscribe', result)

export const refreshPush = (result: string): string => `{"push":{"refresh":${result}}}`

/** For transports that have no close frame. */
export const disconnectPush = ({ code, reason }: Disconnect): string =>
  `{"push":{"disconnect":{"code":${code},"reason":${quote(reason)}}}}`

// Fields of a result, each with a comma in front; '' for one that is left out because it is empty, as clients expect.

export const expiryFields = (ttlSeconds: number): string =>
  ttlSeconds > 0 ? `,"expires":true,"ttl":${ttlSeconds}` : ''

export const positionFields = ({ epoch, offset }: Position): string =>
  `${epoch === '' ? '' : `,"epoch":"${epoch}"`}${offset > 0 ? `,"offset":${offset}` : ''}`

export const fieldIf = (isThere: boolean, name: string): string => (isThere ? `,"${name}":true` : '')

export const objectText = (fields: string): string => `{${fields.slice(1)}}`

export const historyText = (publications: readonly Publication[], { epoch, offset }: Position): string => {
  const texts = publications.map((publication) => publicationText(publication, epoch, publication.data, false))
  return `{"publications":[${texts.join(',')}],"epoch":"${epoch}","offset":${offset}}`
}

/**
 * As many of the publications as fit, so that a client reads on from the last one; null where not even the first fits.
 */
export const boundedHistoryText = (
  publications: readonly Publication[],
  { epoch, offset }: Position,
  maxBytes: number
): string | null => {
  const list = new BoundedList(maxBytes)
  for (const publication of publications) {
    // A publication that is too long for certain is not written.
    if (list.bytes + publication.data.length > maxBytes) break
    if (!list.add(publicationText(publication, epoch, publication.data, false))) break
  }
  if (list.size === 0 && publications.length > 0) return null
  return `{"publications":${list.text},"epoch":"${epoch}","offset":${offset}}`
}

/** Null where it has more than `maxBytes`. */
export const boundedPresenceText = (presence: ReadonlyMap<string, string>, maxBytes: number): string | null => {
  let length = 0
  for (const info of presence.values()) length += info.length
  if (length > maxBytes) return null
  const text = presenceText(presence)
  return Buffer.byteLength(text) > maxBytes ? null : text
}

/** At most as long as `historyText` makes it, without making it. */
export const historyLength = (publications: readonly Publication[]): number => {
  let length = 0
  for (const { data, info, tags } of publications) length += data.length + (info?.length ?? 0) + (tags?.length ?? 0)
  return length
}

export const presenceEntryText = ([client, info]: readonly [client: string, info: string]): string =>
  `"${client}":${info}`

export const presenceText = (presence: ReadonlyMap<string, string>): string =>
  `{"presence":{${[...presence].map(presenceEntryText).join(',')}}}`

export const presenceStatsText = (clients: number, users: number): string =>
  `{"num_clients":${clients},"num_users":${users}}`
