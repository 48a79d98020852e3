import { NO_POSITION, type Position, type Publication } from './broker.js'
import type { Disconnect, ReplyError, Unsubscribe } from './codes.js'

/** A JSON list that is written only as far as it stays within a number of bytes. */
export class BoundedList {
  readonly #entries: string[] = []
  readonly #maxBytes: number
  /** Of the list so far, with its brackets and the comma behind each entry. */
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

  /** Notes that an entry of at least so many characters will come; false where all of them cannot fit. */
  expect(length: number): boolean {
    this.#expectedLength += length
    return this.#expectedLength <= this.#maxBytes
  }

  /** False, and nothing added, where the entry does not fit. */
  add(entry: string): boolean {
    const bytes = this.#bytes + Buffer.byteLength(entry) + 1
    if (bytes > this.#maxBytes) return false
    this.#bytes = bytes
    this.#entries.push(entry)
    return true
  }
}

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

// What a client's commands must look like. Null means that it does not, and costs the client its connection.

type Fields = Readonly<Record<string, unknown>>

export const isObject = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const isText = (value: unknown): value is string | undefined | null =>
  value === undefined || value === null || typeof value === 'string'

const isFlag = (value: unknown): value is boolean | undefined | null =>
  value === undefined || value === null || typeof value === 'boolean'

const isNatural = (value: unknown): value is number | undefined | null =>
  value === undefined || value === null || (Number.isSafeInteger(value) && (value as number) >= 0)

const isWhole = (value: unknown): value is number | undefined | null =>
  value === undefined || value === null || Number.isSafeInteger(value)

export interface ConnectCommand {
  readonly token: string
  readonly name: string
  readonly version: string
  /** Where the client was on the channels that the server put it on. */
  readonly positions: ReadonlyMap<string, Position>
}

const NAME_LENGTH = 16
const VERSION_LENGTH = 64
const NO_POSITIONS: ReadonlyMap<string, Position> = new Map()

export const parseConnect = (request: unknown): ConnectCommand | null => {
  if (!isObject(request)) return null
  const { token, name, version, subs } = request
  if (!isText(token) || !isText(name) || !isText(version)) return null
  const positions = subs === undefined || subs === null ? NO_POSITIONS : recoverPositions(subs)
  if (positions === null) return null
  return {
    token: token ?? '',
    name: (name ?? '').slice(0, NAME_LENGTH),
    version: (version ?? '').slice(0, VERSION_LENGTH),
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
  /** Where the client was, when it asks for what it missed. */
  readonly recover: Position | null
  readonly positioned: boolean
  readonly recoverable: boolean
  readonly joinLeave: boolean
  readonly delta: boolean
  readonly filtered: boolean
  readonly type: number
  /** An error rather than a fresh start where the place is lost. */
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
  if (!isText(channel) || !isText(token) || !isText(epoch) || !isText(delta)) return null
  if (!isFlag(recover) || !isFlag(positioned) || !isFlag(recoverable) || !isFlag(join_leave)) return null
  if (!isNatural(offset) || !isNatural(flag) || !isNatural(type)) return null
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

/** For commands that name a channel and nothing else that matters. */
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
  if (!isWhole(limit) || !isFlag(reverse)) return null
  if (since === undefined || since === null)
    return { channel, limit: limit ?? 0, since: null, reverse: reverse ?? false }
  if (!isObject(since) || !isNatural(since.offset) || !isText(since.epoch)) return null
  const position = { offset: since.offset ?? NO_POSITION.offset, epoch: since.epoch ?? NO_POSITION.epoch }
  return { channel, limit: limit ?? 0, since: position, reverse: reverse ?? false }
}

export interface RefreshCommand {
  readonly channel: string
  readonly token: string
}

/** Of a connection where no channel is named. */
export const parseRefresh = (request: unknown): RefreshCommand | null => {
  if (!isObject(request) || !isText(request.token) || !isText(request.channel)) return null
  return { channel: request.channel ?? '', token: request.token ?? '' }
}
