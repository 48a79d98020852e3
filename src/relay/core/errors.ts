/** What a refused command is answered with. The client decides by the code whether to try again. */
export class ReplyError {
  readonly code: number
  readonly message: string
  /** The same command may succeed later. */
  readonly temporary: boolean

  constructor(code: number, message: string, temporary = false) {
    this.code = code
    this.message = message
    this.temporary = temporary
  }
}

// Made once: a flood of bad commands allocates nothing.
export const INTERNAL = new ReplyError(100, 'internal server error', true)
export const UNAUTHORIZED = new ReplyError(101, 'unauthorized')
export const UNKNOWN_CHANNEL = new ReplyError(102, 'unknown channel')
export const PERMISSION_DENIED = new ReplyError(103, 'permission denied')
export const METHOD_NOT_FOUND = new ReplyError(104, 'method not found')
export const ALREADY_SUBSCRIBED = new ReplyError(105, 'already subscribed')
export const LIMIT_EXCEEDED = new ReplyError(106, 'limit exceeded')
export const BAD_REQUEST = new ReplyError(107, 'bad request')
export const NOT_AVAILABLE = new ReplyError(108, 'not available')
export const TOKEN_EXPIRED = new ReplyError(109, 'token expired')
export const EXPIRED = new ReplyError(110, 'expired')
export const TOO_MANY_REQUESTS = new ReplyError(111, 'too many requests', true)
export const UNRECOVERABLE_POSITION = new ReplyError(112, 'unrecoverable position')
