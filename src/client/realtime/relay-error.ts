/**
 * A subscription or a call through the relay failed, with the code of the relay, of the backend, of the official client (up
 * to 99), or one of `CLIENT_CODES`.
 */
export class RelayError extends Error {
  override readonly name = 'RelayError'
  readonly code: number
  /** Whether the same subscription or call may succeed later. */
  readonly temporary: boolean

  constructor({
    code = 0,
    message = '',
    temporary = true
  }: Partial<Pick<RelayError, 'code' | 'message' | 'temporary'>>) {
    super(message)
    this.code = code
    this.temporary = temporary
  }
}

/** Codes of this library; the official client uses 1 to 14. */
export const CLIENT_CODES = {
  /** There is no connection: not signed in, stopped, or the last attempt failed. */
  notConnected: 90,
  /** A publication does not match its schema in `defineChannels`. */
  wrongPublication: 91,
  /** An async iterator has too many publications waiting. */
  slowConsumer: 92
} as const

export const notConnected = (): RelayError =>
  new RelayError({ code: CLIENT_CODES.notConnected, message: 'not connected' })

/** The official client rejects with an object of this shape, whose `temporary` is set by the relay. */
interface Failure {
  readonly code?: number
  readonly message?: string
  readonly temporary?: boolean
}

/** Codes below 100 are of the official client: no response, or no connection. */
export const relayError = (failure: unknown): RelayError => {
  if (failure instanceof RelayError) return failure
  const { code = 0, message = '', temporary = code < 100 } = failure as Failure
  return new RelayError({ code, message, temporary })
}
