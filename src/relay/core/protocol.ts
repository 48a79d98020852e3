import { isObject } from '../../shared/is-object.js'
import { NO_POSITION, type Position } from './publication.js'

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

// Parsers of commands, for the objects of all codecs. They return null for a malformed command, which closes the connection.

const isOptionalString = (value: unknown): value is string | undefined | null =>
  value === undefined || value === null || typeof value === 'string'

const isOptionalBoolean = (value: unknown): value is boolean | undefined | null =>
  value === undefined || value === null || typeof value === 'boolean'

const isOptionalInteger = (value: unknown): value is number | undefined | null =>
  value === undefined || value === null || Number.isSafeInteger(value)

const isOptionalUnsigned = (value: unknown): value is number | undefined | null =>
  isOptionalInteger(value) && (value ?? 0) >= 0

const isOptionalTexts = (value: unknown): value is Readonly<Record<string, string>> | undefined | null =>
  value === undefined ||
  value === null ||
  (isObject(value) && Object.values(value).every((each) => typeof each === 'string'))

export interface ConnectCommand {
  readonly token: string
  readonly name: string
  readonly version: string
  /** Channels that the client wants to receive from the start, and its positions on channels of its token. */
  readonly subs: ReadonlyMap<string, SubscribeCommand>
  /** Headers for the backend, from clients that cannot set them in their request. */
  readonly headers: Readonly<Record<string, string>>
}

const MAX_NAME_LENGTH = 16
const MAX_VERSION_LENGTH = 64
const NO_SUBS: ReadonlyMap<string, SubscribeCommand> = new Map()
const NO_HEADERS: Readonly<Record<string, string>> = {}

export const parseConnect = (request: unknown): ConnectCommand | null => {
  if (!isObject(request)) return null
  const { token, name, version, subs, headers } = request
  if (!isOptionalString(token) || !isOptionalString(name) || !isOptionalString(version)) return null
  const parsedSubs = subs === undefined || subs === null ? NO_SUBS : parseSubs(subs)
  if (parsedSubs === null || !isOptionalTexts(headers)) return null
  return {
    token: token ?? '',
    name: (name ?? '').slice(0, MAX_NAME_LENGTH),
    version: (version ?? '').slice(0, MAX_VERSION_LENGTH),
    subs: parsedSubs,
    headers: headers ?? NO_HEADERS
  }
}

const parseSubs = (subs: unknown): ReadonlyMap<string, SubscribeCommand> | null => {
  if (!isObject(subs)) return null
  const parsed = new Map<string, SubscribeCommand>()
  for (const [channel, value] of Object.entries(subs)) {
    const request = readSubscribe(value)
    if (request === null) return null
    parsed.set(channel, request)
  }
  return parsed
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
  /** The tag filter, not validated yet; null for none. */
  readonly filter: unknown
  /** Free-form data of the client: a JSON value, or bytes from a protobuf client; undefined for none. */
  readonly data: unknown
  readonly type: number
  /** Position of the client. Loading a map continues there, also without `recover`. */
  readonly position: Position
  /** Which part of a map the client requests: `PHASE_STATE`, `PHASE_STREAM` or `PHASE_LIVE`, if it is valid. */
  readonly phase: number
  /** Where the page starts that the client requests; '' for the beginning. */
  readonly cursor: string
  /** Number of entries or publications in the page; not above 0 for the default. */
  readonly limit: number
  /** If the position cannot be recovered, subscribing fails instead of starting at the end of the stream. */
  readonly failsUnrecovered: boolean
}

const FLAG_FAIL_UNRECOVERED = 2

// The phases of loading a map.

/** The client is live, or wants to be with this request. */
export const PHASE_LIVE = 0
/** Pages of the changes since the state. */
export const PHASE_STREAM = 1
/** Pages of the entries. */
export const PHASE_STATE = 2

export type MapPhase = typeof PHASE_LIVE | typeof PHASE_STREAM | typeof PHASE_STATE

export const parseSubscribe = (request: unknown): SubscribeCommand | null => {
  const fields = readSubscribe(request)
  return fields === null || fields.channel === '' ? null : fields
}

const readSubscribe = (request: unknown): SubscribeCommand | null => {
  if (!isObject(request)) return null
  const { channel, token, recover, positioned, recoverable, join_leave, delta, tf, flag, type, data } = request
  if (!isOptionalString(channel) || !isOptionalString(token) || !isOptionalString(delta)) return null
  if (
    !isOptionalBoolean(recover) ||
    !isOptionalBoolean(positioned) ||
    !isOptionalBoolean(recoverable) ||
    !isOptionalBoolean(join_leave)
  )
    return null
  if (!isOptionalUnsigned(flag) || !isOptionalUnsigned(type)) return null
  if (delta && delta !== 'fossil') return null
  const page = readMapPage(request)
  if (page === null) return null
  return {
    channel: channel ?? '',
    token: token ?? '',
    recover: recover ? page.position : null,
    positioned: positioned ?? false,
    recoverable: recoverable ?? false,
    joinLeave: join_leave ?? false,
    delta: delta === 'fossil',
    filter: tf ?? null,
    data,
    type: type ?? 0,
    ...page,
    failsUnrecovered: ((flag ?? 0) & FLAG_FAIL_UNRECOVERED) !== 0
  }
}

const readMapPage = ({
  epoch,
  offset,
  phase,
  cursor,
  limit
}: Readonly<Record<string, unknown>>): Pick<SubscribeCommand, 'position' | 'phase' | 'cursor' | 'limit'> | null => {
  if (!isOptionalString(epoch) || !isOptionalUnsigned(offset) || !isOptionalString(cursor)) return null
  if (!isOptionalInteger(phase) || !isOptionalInteger(limit)) return null
  return {
    position: { epoch: epoch ?? '', offset: offset ?? 0 },
    phase: phase ?? PHASE_LIVE,
    cursor: cursor ?? '',
    limit: limit ?? 0
  }
}

/** The `channel` field of a command; null if it is missing. */
export const channelOf = (request: unknown): string | null =>
  isObject(request) && typeof request.channel === 'string' && request.channel !== '' ? request.channel : null

export interface PublishCommand {
  readonly channel: string
  /** `TYPE_MAP` for a write to a map. */
  readonly type: number
  readonly key: string
  /** Removes the key. */
  readonly removed: boolean
}

export const TYPE_MAP = 1

export const parsePublish = (request: unknown): PublishCommand | null => {
  const channel = channelOf(request)
  if (channel === null || !isObject(request)) return null
  const { type, key, removed } = request
  if (!isOptionalInteger(type) || !isOptionalString(key) || !isOptionalBoolean(removed)) return null
  return { channel, type: type ?? 0, key: key ?? '', removed: removed ?? false }
}

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

export interface RpcCommand {
  readonly method: string
}

export const parseRpc = (request: unknown): RpcCommand | null =>
  isObject(request) && isOptionalString(request.method) ? { method: request.method ?? '' } : null

export interface RefreshCommand {
  readonly channel: string
  readonly token: string
}

/** Without a channel, the connection is refreshed. */
export const parseRefresh = (request: unknown): RefreshCommand | null => {
  if (!isObject(request) || !isOptionalString(request.token) || !isOptionalString(request.channel)) return null
  return { channel: request.channel ?? '', token: request.token ?? '' }
}
