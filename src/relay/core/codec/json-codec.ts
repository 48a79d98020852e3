import { isObject } from '../../../shared/is-object.js'
import { jsonOrUndefined } from '../../../shared/json-or-undefined.js'
import type { ReplyError } from '../codes.js'
import { type Payload, type Position, type Publication, REMOVED_DATA } from '../publication.js'
import {
  type Codec,
  type ConnectReply,
  type EncodedMessage,
  type HistoryReply,
  MAP_REPLY_TYPE,
  type MapProgress,
  type MessageParts,
  PONG,
  type PresenceReply,
  type PresenceStatsReply,
  type PublicationEncoder,
  type Push,
  type RawCommand,
  type RefreshReply,
  type RepliedMethod,
  type Replies,
  type RpcReply,
  type SentPublication,
  type SubRefreshReply,
  type SubscribeReply
} from './codec.js'
import { onOneLine } from './json.js'
import { MemberSearch, memberText } from './json-members.js'
import { encodedOnce, hasSharedList, isInParts, isSharedList, partsOf } from './message-parts.js'

// Replies and pushes as JSON text. Templates instead of JSON.stringify, because data, info and tags are inserted as the
// text that the publisher sent.

/** Ping of the server and pong of the client. */
const PING = '{}'

export const quote = (text: string): string => JSON.stringify(text)

/** Binary data is written in base64, for the API. It is not sent to JSON clients. */
export const dataField = (data: Payload): string =>
  typeof data === 'string' ? `"data":${data}` : `"b64data":"${data.toString('base64')}"`

const dataFieldIf = (data: Payload | null): string => (data === null ? '' : `,${dataField(data)}`)

export const clientInfoText = (user: string, client: string, connectionInfo: string | null, info: string | null) =>
  `{"user":${quote(user)},"client":"${client}"${connectionInfo === null ? '' : `,"conn_info":${connectionInfo}`}${
    info === null ? '' : `,"chan_info":${info}`
  }}`

/**
 * `data` is a separate parameter because subscribers with deltas receive a patch instead. `epoch` is '' in replies, which have it
 * themselves.
 */
const publicationText = (publication: Publication, epoch: string, data: Payload, isDelta: boolean): string => {
  const { info, tags, offset, version, key } = publication
  let text = key === undefined ? `{${dataField(data)}` : entryText(key, publication, data)
  if (info !== null) text += `,"info":${info}`
  if (offset > 0) text += `,"offset":${offset}`
  if (tags !== null) text += `,"tags":${tags}`
  if (isDelta) text += ',"delta":true'
  if (version > 0 && key === undefined) text += `,"version":${version}`
  // A client that subscribed before the stream began learns the epoch from its first publication.
  if (offset === 1 && epoch !== '') text += `,"epoch":"${epoch}"`
  return `${text}}`
}

/** The beginning of a publication of a map. A removal has data only for subscribers with deltas, which need a text. */
const entryText = (key: string, { removed }: Publication, data: Payload): string => {
  const text = `{"key":${quote(key)}${removed ? ',"removed":true' : ''}`
  return removed && data === REMOVED_DATA ? text : `${text},${dataField(data)}`
}

const repliedPublicationText = ({ publication, data, isDelta }: SentPublication): string =>
  publicationText(publication, '', data, isDelta)

const pushedPublicationText = ({ publication, epoch, data, isDelta }: SentPublication): string =>
  publicationText(publication, epoch, data, isDelta)

// Fields of a result, each with a leading comma. Empty fields are omitted, as clients expect.

const expiryFields = (ttl: number): string => (ttl > 0 ? `,"expires":true,"ttl":${ttl}` : '')

export const positionFields = ({ epoch, offset }: Position): string =>
  `${epoch === '' ? '' : `,"epoch":"${epoch}"`}${offset > 0 ? `,"offset":${offset}` : ''}`

const fieldIf = (isPresent: boolean, name: string): string => (isPresent ? `,"${name}":true` : '')

export const objectText = (fields: string): string => `{${fields.slice(1)}}`

const connectText = ({ client, version, ttl, data, subs, ping, pong, session, node, time }: ConnectReply): string =>
  objectText(
    `,"client":"${client}","version":${quote(version)}` +
      expiryFields(ttl) +
      dataFieldIf(data) +
      (subs.size > 0 ? `,"subs":${subscriptionsText(subs)}` : '') +
      (ping > 0 ? `,"ping":${ping}` : '') +
      fieldIf(pong, 'pong') +
      (session === '' ? '' : `,"session":"${session}"`) +
      (node === '' ? '' : `,"node":"${node}"`) +
      (time > 0 ? `,"time":${time}` : '')
  )

const subscriptionsText = (subs: ReadonlyMap<string, SubscribeReply>): string =>
  `{${[...subs].map(([channel, reply]) => `${quote(channel)}:${subscribeText(reply)}`).join(',')}}`

const subscribeText = (reply: SubscribeReply): string => {
  const { publications, map } = reply
  return objectText(
    listField('publications', publications) + listField('state', map?.state ?? []) + subscribeReplyFields(reply)
  )
}

const listField = (name: 'publications' | 'state', publications: readonly SentPublication[]): string =>
  publications.length > 0 ? `,"${name}":[${publicationListText(publications)}]` : ''

const publicationListText = (publications: readonly SentPublication[]): string =>
  publications.map(repliedPublicationText).join(',')

/** All fields except the lists of publications. */
const subscribeReplyFields = (reply: SubscribeReply): string => {
  const { ttl, recoverable, positioned, position, recovered, wasRecovering, data, delta, map } = reply
  return (
    expiryFields(ttl) +
    fieldIf(recoverable, 'recoverable') +
    fieldIf(positioned, 'positioned') +
    positionFields(position) +
    fieldIf(recovered, 'recovered') +
    fieldIf(wasRecovering, 'was_recovering') +
    dataFieldIf(data) +
    fieldIf(delta, 'delta') +
    (map === null ? '' : mapFields(map))
  )
}

const mapFields = ({ phase, cursor }: MapProgress): string =>
  `,"type":${MAP_REPLY_TYPE}${phase > 0 ? `,"phase":${phase}` : ''}${cursor === '' ? '' : `,"cursor":${quote(cursor)}`}`

const publicationListBytes = encodedOnce((publications) => Buffer.from(publicationListText(publications)))

const PUBLICATIONS_START = Buffer.from('{"publications":[')
const STATE_START = Buffer.from('{"state":[')

/** The bytes of `subscribeText`, in parts. Only the longer list is shared; the other one is usually empty. */
const subscribeParts = (reply: SubscribeReply): MessageParts => {
  const { publications, map } = reply
  const state = map?.state ?? []
  const isState = isSharedList(state)
  const other = isState ? listField('publications', publications) : listField('state', state)
  return [
    isState ? STATE_START : PUBLICATIONS_START,
    publicationListBytes(isState ? state : publications),
    Buffer.from(`]${other}${subscribeReplyFields(reply)}}`)
  ]
}

/** Fewer fields than the reply to a subscribe command. */
const subscribePushText = ({ recoverable, positioned, position, data }: SubscribeReply): string =>
  objectText(
    fieldIf(recoverable, 'recoverable') +
      fieldIf(positioned, 'positioned') +
      positionFields(position) +
      dataFieldIf(data)
  )

export const historyText = ({ publications, epoch, offset }: HistoryReply): string => {
  const texts = publications.map((publication) => publicationText(publication, '', publication.data, false))
  return `{"publications":[${texts.join(',')}],"epoch":"${epoch}","offset":${offset}}`
}

/** A lower bound for the length of `historyText`, without building the text. */
export const historyTextLength = (publications: readonly Publication[]): number => {
  let length = 0
  for (const { data, info, tags } of publications) length += data.length + (info?.length ?? 0) + (tags?.length ?? 0)
  return length
}

export const presenceEntryText = ([client, info]: readonly [client: string, info: string]): string =>
  `"${client}":${info}`

const presenceText = ({ presence }: PresenceReply): string =>
  `{"presence":{${[...presence].map(presenceEntryText).join(',')}}}`

export const presenceStatsText = ({ clients, users }: PresenceStatsReply): string =>
  `{"num_clients":${clients},"num_users":${users}}`

const rpcText = ({ data }: RpcReply): string => objectText(dataFieldIf(data))

const refreshText = ({ client, ttl }: RefreshReply): string => objectText(`,"client":"${client}"${expiryFields(ttl)}`)

const subRefreshText = ({ ttl }: SubRefreshReply): string => objectText(expiryFields(ttl))

const emptyText = (): string => '{}'

/** Each returns JSON text, or its bytes in parts. */
const RESULT_ENCODERS: { readonly [M in RepliedMethod]: (result: Replies[M]) => string | MessageParts } = {
  connect: connectText,
  subscribe: (reply) => (hasSharedList(reply) ? subscribeParts(reply) : subscribeText(reply)),
  unsubscribe: emptyText,
  publish: emptyText,
  presence: presenceText,
  presence_stats: presenceStatsText,
  history: historyText,
  rpc: rpcText,
  refresh: refreshText,
  sub_refresh: subRefreshText
}

const OBJECT_END = Buffer.from('}')

/** A reply from the text before its result, and the result. */
const replyWith = (prefix: string, result: string | MessageParts): EncodedMessage =>
  typeof result === 'string' ? `${prefix}${result}}` : [Buffer.from(prefix), ...result, OBJECT_END]

const errorText = ({ code, message, temporary }: ReplyError): string =>
  `{"code":${code},"message":${quote(message)}${temporary ? ',"temporary":true' : ''}}`

const channelPushText = (channel: string, kind: Push['kind'], body: string): string =>
  `{"channel":${quote(channel)},"${kind}":${body}}`

const closeText = ({ code, reason }: { readonly code: number; readonly reason: string }): string =>
  `{"code":${code},"reason":${quote(reason)}}`

/** A push without the object that marks it as one. */
const pushText = (push: Push): string => {
  switch (push.kind) {
    case 'pub':
      return channelPushText(push.channel, push.kind, pushedPublicationText(push.pub))
    case 'join':
    case 'leave':
      return channelPushText(push.channel, push.kind, `{"info":${push.info}}`)
    case 'unsubscribe':
      return channelPushText(push.channel, push.kind, closeText(push.unsubscribe))
    case 'subscribe':
      return channelPushText(push.channel, push.kind, subscribePushText(push.subscribe))
    case 'refresh':
      return `{"refresh":${refreshText(push.refresh)}}`
    case 'disconnect':
      return `{"disconnect":${closeText(push.disconnect)}}`
  }
}

const parse = (line: string): RawCommand | null => {
  const command = jsonOrUndefined(line)
  if (!isObject(command)) return null
  return Object.keys(command).length === 0 ? PONG : command
}

const publicationEncoder =
  (prefix: string, suffix: string): PublicationEncoder =>
  (publication, epoch, data, isDelta) =>
    `${prefix}${publicationText(publication, epoch, data, isDelta)}${suffix}`

export const LINE_END = Buffer.from('\n')

/** Joined replies are copied, because many small parts take longer to write. */
const joinLines = (messages: readonly EncodedMessage[]): EncodedMessage => {
  if (!messages.some(isInParts)) return messages.join('\n')
  const lines = messages.flatMap((message, index) => [...(index === 0 ? [] : [LINE_END]), ...partsOf(message)])
  return [Buffer.concat(lines)]
}

/** Commands with data. */
const REQUESTS = {
  connect: new MemberSearch(['connect']),
  subscribe: new MemberSearch(['subscribe']),
  publish: new MemberSearch(['publish']),
  rpc: new MemberSearch(['rpc'])
}
const DATA = new MemberSearch(['data'])

/** One command, reply or push per line. */
export const jsonCodec: Codec = {
  name: 'json',
  allowsBinary: false,
  ping: PING,
  split: (frame) => {
    const lines = frame.toString().split('\n')
    if (lines[lines.length - 1] === '') lines.pop()
    return lines.length === 0 ? null : lines
  },
  isPongFrame: (frame) => frame.length === PING.length && frame.toString() === PING,
  decode: (command) => parse(command.toString()),
  commandData: (command, method) => {
    // The data is passed on as the client spelled it.
    const data = memberText(memberText(command.toString(), REQUESTS[method]) ?? PING, DATA)
    return data === null ? null : onOneLine(data)
  },
  reply: (id, method, result) => replyWith(`{"id":${id},"${method}":`, RESULT_ENCODERS[method](result)),
  errorReply: (id, error) => `{"id":${id},"error":${errorText(error)}}`,
  push: (push) => `{"push":${pushText(push)}}`,
  publicationEncoder: (channel) => publicationEncoder(`{"push":{"channel":${quote(channel)},"pub":`, '}}'),
  // The protocol sends all data of a subscriber with deltas as JSON strings, full publications included.
  deltaData: (data) => (typeof data === 'string' ? quote(data) : data),
  join: joinLines
}

/** For clients that only receive: everything is a push, also the result of connecting, and nothing marks it as one. */
export const unidirectionalJsonCodec: Codec = {
  ...jsonCodec,
  reply: (_id, method, result) => replyWith(`{"${method}":`, RESULT_ENCODERS[method](result)),
  push: pushText,
  publicationEncoder: (channel) => publicationEncoder(`{"channel":${quote(channel)},"pub":`, '}')
}
