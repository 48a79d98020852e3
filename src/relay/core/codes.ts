/** Error reply to a command or API call. Clients decide by the code whether to retry. */
export class ReplyError {
  readonly code: number
  readonly message: string
  /** Whether the same command may succeed later. */
  readonly temporary: boolean

  constructor(code: number, message: string, temporary = false) {
    this.code = code
    this.message = message
    this.temporary = temporary
  }

  /** The same error with a detail after its message. */
  with(detail: string): ReplyError {
    return new ReplyError(this.code, `${this.message}: ${detail}`, this.temporary)
  }
}

// Shared instances, so that a flood of invalid commands allocates nothing.
export const ERROR_INTERNAL = new ReplyError(100, 'internal server error', true)
export const ERROR_UNKNOWN_CHANNEL = new ReplyError(102, 'unknown channel')
export const ERROR_PERMISSION_DENIED = new ReplyError(103, 'permission denied')
/** API only: there is no such method. */
export const ERROR_METHOD_NOT_FOUND = new ReplyError(104, 'not found')
export const ERROR_ALREADY_SUBSCRIBED = new ReplyError(105, 'already subscribed')
export const ERROR_LIMIT_EXCEEDED = new ReplyError(106, 'limit exceeded')
export const ERROR_BAD_REQUEST = new ReplyError(107, 'bad request')
export const ERROR_EMPTY_CHANNEL = ERROR_BAD_REQUEST.with('channels must not have an empty name')
/** For methods that only streams have, and for server-side subscriptions. */
export const ERROR_IS_MAP = ERROR_BAD_REQUEST.with('the channel is a map')
export const ERROR_NOT_AVAILABLE = new ReplyError(108, 'not available')
export const ERROR_NO_PRESENCE = ERROR_NOT_AVAILABLE.with('the namespace needs the option presence')
/** For JSON clients on a channel whose namespace has the `publication_data_format` "binary". */
export const ERROR_BINARY_CHANNEL = ERROR_NOT_AVAILABLE.with('the channel has binary data, which needs protobuf')
export const ERROR_TOKEN_EXPIRED = new ReplyError(109, 'token expired')
/** The token is valid, but what it permits has expired already. */
export const ERROR_EXPIRED = new ReplyError(110, 'expired')
/** Too many requests to the backend wait already. */
export const ERROR_TOO_MANY_REQUESTS = new ReplyError(111, 'too many requests', true)
export const ERROR_UNRECOVERABLE_POSITION = new ReplyError(112, 'unrecoverable position')

const HTTP_STATUSES: Readonly<Record<number, number>> = {
  100: 500,
  102: 404,
  104: 404,
  106: 400,
  107: 400,
  108: 400,
  112: 416,
  113: 409
}

/** HTTP status of an API error, for callers that request errors as statuses. */
export const httpStatusOf = ({ code }: ReplyError): number => HTTP_STATUSES[code] ?? 500

/**
 * Reason for closing a connection. Clients reconnect after 3000–3499 and 4000–4499 and give up after 3500–3999 and
 * 4500–4999. The official client ignores the range if the reason is empty, so every code has a reason.
 */
export class Disconnect {
  readonly code: number
  readonly reason: string

  constructor(code: number, reason: string) {
    this.code = code
    this.reason = reason
  }
}

/** Never sent: the connection was closed by the client, or is cut. */
export const DISCONNECT_NORMAL = new Disconnect(3000, 'connection closed')
export const DISCONNECT_SHUTDOWN = new Disconnect(3001, 'shutdown')
export const DISCONNECT_INTERNAL_ERROR = new Disconnect(3004, 'internal server error')
export const DISCONNECT_CONNECTION_EXPIRED = new Disconnect(3005, 'connection expired')
export const DISCONNECT_SUBSCRIPTION_EXPIRED = new Disconnect(3006, 'subscription expired')
export const DISCONNECT_SLOW = new Disconnect(3008, 'slow')
export const DISCONNECT_INSUFFICIENT_STATE = new Disconnect(3010, 'insufficient state')
export const DISCONNECT_NO_PONG = new Disconnect(3012, 'no pong')
export const DISCONNECT_TOO_MANY_COMMANDS = new Disconnect(3013, 'too many requests')
export const DISCONNECT_INVALID_TOKEN = new Disconnect(3500, 'invalid token')
export const DISCONNECT_MALFORMED = new Disconnect(3501, 'bad request')
export const DISCONNECT_STALE = new Disconnect(3502, 'stale')
export const DISCONNECT_FORCED = new Disconnect(3503, 'force disconnect')
export const DISCONNECT_CONNECTION_LIMIT = new Disconnect(3504, 'connection limit')
export const DISCONNECT_CHANNEL_LIMIT = new Disconnect(3505, 'channel limit')
export const DISCONNECT_INAPPROPRIATE_PROTOCOL = new Disconnect(3506, 'inappropriate protocol')
export const DISCONNECT_NOT_PERMITTED = new Disconnect(3507, 'permission denied')
export const DISCONNECT_UNAVAILABLE = new Disconnect(3508, 'not available')

/** A close frame has 125 bytes, two of them for the code. */
export const MAX_REASON_BYTES = 123

const DEFAULT_REASON = 'disconnected by the backend'

/** A disconnect that a backend chose. Codes that a close frame cannot have become 3004. */
export const disconnectOfBackend = (code: number, reason: string): Disconnect => {
  if (code !== 1000 && !(code >= 3000 && code <= 4999)) return DISCONNECT_INTERNAL_ERROR
  return new Disconnect(code, reason === '' ? DEFAULT_REASON : truncated(reason, MAX_REASON_BYTES))
}

/** The longest beginning of a text that has at most so many bytes, without a part of a character. */
const truncated = (text: string, maxBytes: number): string => {
  const bytes = Buffer.from(text)
  if (bytes.length <= maxBytes) return text
  let end = maxBytes
  while (((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1
  return bytes.toString('utf8', 0, end)
}

/** Reason for ending a subscription. Clients resubscribe after codes from 2500 on. */
export interface Unsubscribe {
  readonly code: number
  readonly reason: string
}

export const UNSUBSCRIBE_BY_SERVER: Unsubscribe = { code: 2000, reason: 'server unsubscribe' }
export const UNSUBSCRIBE_INSUFFICIENT_STATE: Unsubscribe = { code: 2500, reason: 'insufficient state' }
export const UNSUBSCRIBE_EXPIRED: Unsubscribe = { code: 2501, reason: 'subscription expired' }
