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
export const UNKNOWN_CHANNEL = new ReplyError(102, 'unknown channel')
export const PERMISSION_DENIED = new ReplyError(103, 'permission denied')
export const ALREADY_SUBSCRIBED = new ReplyError(105, 'already subscribed')
export const LIMIT_EXCEEDED = new ReplyError(106, 'limit exceeded')
export const BAD_REQUEST = new ReplyError(107, 'bad request')
export const NOT_AVAILABLE = new ReplyError(108, 'not available')
export const TOKEN_EXPIRED = new ReplyError(109, 'token expired')
export const UNRECOVERABLE_POSITION = new ReplyError(112, 'unrecoverable position')
