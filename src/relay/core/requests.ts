import { NO_POSITION, type Position } from './broker.js'

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

export interface ConnectRequest {
  readonly token: string
  readonly name: string
  readonly version: string
  /** Where the client was on the channels that the server put it on. */
  readonly positions: ReadonlyMap<string, Position>
}

const NAME_LENGTH = 16
const VERSION_LENGTH = 64
const NO_POSITIONS: ReadonlyMap<string, Position> = new Map()

export const connectRequest = (request: unknown): ConnectRequest | null => {
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

export interface SubscribeRequest {
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

export const subscribeRequest = (request: unknown): SubscribeRequest | null => {
  const fields = subscribeFields(request)
  return fields === null || fields.channel === '' ? null : fields
}

const subscribeFields = (request: unknown): SubscribeRequest | null => {
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

export interface HistoryRequest {
  readonly channel: string
  readonly limit: number
  readonly since: Position | null
  readonly reverse: boolean
}

export const historyRequest = (request: unknown): HistoryRequest | null => {
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

export interface RefreshRequest {
  readonly channel: string
  readonly token: string
}

/** Of a connection where no channel is named. */
export const refreshRequest = (request: unknown): RefreshRequest | null => {
  if (!isObject(request) || !isText(request.token) || !isText(request.channel)) return null
  return { channel: request.channel ?? '', token: request.token ?? '' }
}
