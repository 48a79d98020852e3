/** What the gateway says when it refuses a request itself. A test compares this list with the gateway's. */
export type RefusalCode =
  | 'MALFORMED_REQUEST'
  | 'AMBIGUOUS_PATH'
  | 'MALFORMED_BODY'
  | 'VALIDATION_FAILED'
  | 'UNAUTHENTICATED'
  | 'TOKEN_EXPIRED'
  | 'FORBIDDEN'
  | 'CSRF_MISMATCH'
  | 'ORIGIN_REFUSED'
  | 'NOT_FOUND'
  | 'METHOD_NOT_ALLOWED'
  | 'REQUEST_TIMEOUT'
  | 'BODY_TOO_LARGE'
  | 'URI_TOO_LONG'
  | 'UNSUPPORTED_MEDIA_TYPE'
  | 'EXPECTATION_FAILED'
  | 'RATE_LIMITED'
  | 'HEADERS_TOO_LARGE'
  | 'INTERNAL'
  | 'BACKEND_UNREACHABLE'
  | 'OVERLOADED'
  | 'BACKEND_TIMEOUT'

/** What this library says when there is no answer, or none that means anything. */
export type OwnCode =
  /** No answer: no network, a broken connection, a certificate that is no good. */
  | 'NETWORK_FAILED'
  /** The caller's signal called it off. */
  | 'ABORTED'
  /** The backend refused, and named no code. */
  | 'BACKEND_REFUSED'
  /** A success that cannot be read. */
  | 'UNEXPECTED_ANSWER'

/** A backend may have codes of its own. */
export type ErrorCode = RefusalCode | OwnCode | (string & {})
