import type { Disconnect, ReplyError, Unsubscribe } from './codes.js'
import { NO_POSITION, type Position, type Publication } from './engine-interfaces.js'
import { isObject } from './json.js'

/** Builds a JSON list with a maximum size in bytes. */
export class BoundedList {
  readonly #entries: string[] = []
  readonly #maxBytes: number
  /** Size so far, including brackets and a comma after each entry. */
  #bytes = 2
  #expectedLength = 2

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  get size(): number {
    return this.#entries.length
  }

  get bytes(): number {
    return this.#bytes
  }

  get text(): string {
    return `[${this.#entries.join(',')}]`
  }

  /** Announces an entry of at least this many characters. Returns false if all announced entries cannot fit. */
  expect(length: number): boolean {
    this.#expectedLength += length
    return this.#expectedLength <= this.#maxBytes
  }

  /** Returns false and adds nothing if the entry does not fit. */
  add(entry: string): boolean {
    const bytes = this.#bytes + Buffer.byteLength(entry) + 1
    if (bytes > this.#maxBytes) return false
    this.#bytes = bytes
    this.#entries.push(entry)
    return true
  }
}

// Replies and pushes as JSON text. Templates instead of JSON.stringify, because data, info and tags are inserted as the
// text that the publisher sent.

/** Command names. If a command object contains several, the first one in this order counts. */
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

/** Ping of the server and pong of the client. */
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

/** `data` is a separate parameter because subscribers with deltas receive a patch instead. */
export const publicationText = (publication: Publication, epoch: string, data: string, isDelta: boolean): string => {
  const { info, tags, offset, version } = publication
  let text = `{"data":${data}`
  if (info !== null) text += `,"info":${info}`
  if (offset > 0) text += `,"offset":${offset}`
  if (tags !== null) text += `,"tags":${tags}`
  if (isDelta) text += ',"delta":true'
  if (version > 0) text += `,"version":${version}`
  // A client that subscribed before the stream began learns the epoch from its first publication.
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

/** For transports without a close frame. */
export const disconnectPush = ({ code, reason }: Disconnect): string =>
  `{"push":{"disconnect":{"code":${code},"reason":${quote(reason)}}}}`

// Fields of a result, each with a leading comma. Empty fields are omitted, as clients expect.

export const expiryFields = (ttlSeconds: number): string =>
  ttlSeconds > 0 ? `,"expires":true,"ttl":${ttlSeconds}` : ''

export const positionFields = ({ epoch, offset }: Position): string =>
  `${epoch === '' ? '' : `,"epoch":"${epoch}"`}${offset > 0 ? `,"offset":${offset}` : ''}`

export const fieldIf = (isPresent: boolean, name: string): string => (isPresent ? `,"${name}":true` : '')

export const objectText = (fields: string): string => `{${fields.slice(1)}}`

export const historyText = (publications: readonly Publication[], { epoch, offset }: Position): string => {
  const texts = publications.map((publication) => publicationText(publication, epoch, publication.data, false))
  return `{"publications":[${texts.join(',')}],"epoch":"${epoch}","offset":${offset}}`
}

/** As many publications as fit; the client can continue from the last one. Null if not even the first fits. */
export const boundedHistoryText = (
  publications: readonly Publication[],
  { epoch, offset }: Position,
  maxBytes: number
): string | null => {
  const list = new BoundedList(maxBytes)
  for (const publication of publications) {
    // A publication that cannot fit is not encoded.
    if (list.bytes + publication.data.length > maxBytes) break
    if (!list.add(publicationText(publication, epoch, publication.data, false))) break
  }
  if (list.size === 0 && publications.length > 0) return null
  return `{"publications":${list.text},"epoch":"${epoch}","offset":${offset}}`
}

/** Null if the text has more than `maxBytes`. */
export const boundedPresenceText = (presence: ReadonlyMap<string, string>, maxBytes: number): string | null => {
  let length = 0
  for (const info of presence.values()) length += info.length
  if (length > maxBytes) return null
  const text = presenceText(presence)
  return Buffer.byteLength(text) > maxBytes ? null : text
}

/** A lower bound for the length of `historyText`, without building the text. */
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

// Parsers of client commands. They return null for a malformed command, which closes the connection.

const isOptionalString = (value: unknown): value is string | undefined | null =>
  value === undefined || value === null || typeof value === 'string'

const isOptionalBoolean = (value: unknown): value is boolean | undefined | null =>
  value === undefined || value === null || typeof value === 'boolean'

const isOptionalInteger = (value: unknown): value is number | undefined | null =>
  value === undefined || value === null || Number.isSafeInteger(value)

const isOptionalUnsigned = (value: unknown): value is number | undefined | null =>
  isOptionalInteger(value) && (value ?? 0) >= 0

export interface ConnectCommand {
  readonly token: string
  readonly name: string
  readonly version: string
  /** Positions to recover from, by channel, for server-side subscriptions. */
  readonly positions: ReadonlyMap<string, Position>
}

const MAX_NAME_LENGTH = 16
const MAX_VERSION_LENGTH = 64
const NO_POSITIONS: ReadonlyMap<string, Position> = new Map()

export const parseConnect = (request: unknown): ConnectCommand | null => {
  if (!isObject(request)) return null
  const { token, name, version, subs } = request
  if (!isOptionalString(token) || !isOptionalString(name) || !isOptionalString(version)) return null
  const positions = subs === undefined || subs === null ? NO_POSITIONS : recoverPositions(subs)
  if (positions === null) return null
  return {
    token: token ?? '',
    name: (name ?? '').slice(0, MAX_NAME_LENGTH),
    version: (version ?? '').slice(0, MAX_VERSION_LENGTH),
    positions
  }
}

const recoverPositions = (subs: unknown): ReadonlyMap<string, Position> | null => {
  if (!isObject(subs)) return null
  const positions = new Map<string, Position>()
  for (const [channel, value] of Object.entries(subs)) {
    const request = subscribeFields(value)
    if (request === null) return null
    if (request.recover !== null) positions.set(channel, request.recover)
  }
  return positions
}

export interface SubscribeCommand {
  readonly channel: string
  readonly token: string
  /** Position to recover from; null if the client does not recover. */
  readonly recover: Position | null
  readonly positioned: boolean
  readonly recoverable: boolean
  readonly joinLeave: boolean
  readonly delta: boolean
  readonly filtered: boolean
  readonly type: number
  /** If the position cannot be recovered, subscribing fails instead of starting at the end of the stream. */
  readonly failsUnrecovered: boolean
}

const FLAG_FAIL_UNRECOVERED = 2

export const parseSubscribe = (request: unknown): SubscribeCommand | null => {
  const fields = subscribeFields(request)
  return fields === null || fields.channel === '' ? null : fields
}

const subscribeFields = (request: unknown): SubscribeCommand | null => {
  if (!isObject(request)) return null
  const { channel, token, recover, epoch, offset, positioned, recoverable, join_leave, delta, tf, flag, type } = request
  if (!isOptionalString(channel) || !isOptionalString(token) || !isOptionalString(epoch) || !isOptionalString(delta))
    return null
  if (
    !isOptionalBoolean(recover) ||
    !isOptionalBoolean(positioned) ||
    !isOptionalBoolean(recoverable) ||
    !isOptionalBoolean(join_leave)
  )
    return null
  if (!isOptionalUnsigned(offset) || !isOptionalUnsigned(flag) || !isOptionalUnsigned(type)) return null
  if (delta && delta !== 'fossil') return null
  return {
    channel: channel ?? '',
    token: token ?? '',
    recover: recover ? { epoch: epoch ?? '', offset: offset ?? 0 } : null,
    positioned: positioned ?? false,
    recoverable: recoverable ?? false,
    joinLeave: join_leave ?? false,
    delta: delta === 'fossil',
    filtered: tf !== undefined && tf !== null,
    type: type ?? 0,
    failsUnrecovered: ((flag ?? 0) & FLAG_FAIL_UNRECOVERED) !== 0
  }
}

/** The `channel` field of a command; null if it is missing. */
export const channelOf = (request: unknown): string | null =>
  isObject(request) && typeof request.channel === 'string' && request.channel !== '' ? request.channel : null

export interface HistoryCommand {
  readonly channel: string
  readonly limit: number
  readonly since: Position | null
  readonly reverse: boolean
}

export const parseHistory = (request: unknown): HistoryCommand | null => {
  const channel = channelOf(request)
  if (channel === null || !isObject(request)) return null
  const { limit, since, reverse } = request
  if (!isOptionalInteger(limit) || !isOptionalBoolean(reverse)) return null
  if (since === undefined || since === null)
    return { channel, limit: limit ?? 0, since: null, reverse: reverse ?? false }
  if (!isObject(since) || !isOptionalUnsigned(since.offset) || !isOptionalString(since.epoch)) return null
  const position = { offset: since.offset ?? NO_POSITION.offset, epoch: since.epoch ?? NO_POSITION.epoch }
  return { channel, limit: limit ?? 0, since: position, reverse: reverse ?? false }
}

export interface RefreshCommand {
  readonly channel: string
  readonly token: string
}

/** Without a channel, the connection is refreshed. */
export const parseRefresh = (request: unknown): RefreshCommand | null => {
  if (!isObject(request) || !isOptionalString(request.token) || !isOptionalString(request.channel)) return null
  return { channel: request.channel ?? '', token: request.token ?? '' }
}
