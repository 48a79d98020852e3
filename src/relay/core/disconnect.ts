/**
 * Why the relay ends a connection. Clients come back after 3000–3499 and 4000–4499 and stay away after 3500–3999 and
 * 4500–4999; the official one looks at the range only when there is a reason, so there always is one.
 */
export class Disconnect {
  readonly code: number
  readonly reason: string

  constructor(code: number, reason: string) {
    this.code = code
    this.reason = reason
  }
}

/** Never sent: the other side went away by itself. */
export const CONNECTION_CLOSED = new Disconnect(3000, 'connection closed')
export const SHUTDOWN = new Disconnect(3001, 'shutdown')
export const INTERNAL_ERROR = new Disconnect(3004, 'internal server error')
export const CONNECTION_EXPIRED = new Disconnect(3005, 'connection expired')
export const SUBSCRIPTION_EXPIRED = new Disconnect(3006, 'subscription expired')
export const SLOW = new Disconnect(3008, 'slow')
export const INSUFFICIENT_STATE = new Disconnect(3010, 'insufficient state')
export const NO_PONG = new Disconnect(3012, 'no pong')
export const TOO_MANY_COMMANDS = new Disconnect(3013, 'too many requests')
export const INVALID_TOKEN = new Disconnect(3500, 'invalid token')
export const MALFORMED = new Disconnect(3501, 'bad request')
export const STALE = new Disconnect(3502, 'stale')
export const FORCED = new Disconnect(3503, 'force disconnect')
export const CONNECTION_LIMIT = new Disconnect(3504, 'connection limit')
export const CHANNEL_LIMIT = new Disconnect(3505, 'channel limit')
export const INAPPROPRIATE_PROTOCOL = new Disconnect(3506, 'inappropriate protocol')
export const NOT_PERMITTED = new Disconnect(3507, 'permission denied')
export const UNAVAILABLE = new Disconnect(3508, 'not available')
