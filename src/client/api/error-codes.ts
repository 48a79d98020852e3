/** The gateway's own error codes. A test compares this list with the gateway's. */
export type GatewayErrorCode =
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
  | 'RELAY_UNREACHABLE'
  | 'OVERLOADED'
  | 'REVOCATIONS_UNKNOWN'
  | 'REVOCATION_INCOMPLETE'
  | 'BACKEND_TIMEOUT'
  | 'RELAY_TIMEOUT'
  | 'LOOP_DETECTED'

/** Codes for a missing or unusable response. */
export type ClientErrorCode =
  /** No response: no network, a broken connection or an invalid certificate. */
  | 'NETWORK_FAILED'
  /** The caller's signal aborted the request. */
  | 'ABORTED'
  /** The backend rejected the request without a code. */
  | 'BACKEND_REFUSED'
  /** A successful response that cannot be parsed. */
  | 'UNEXPECTED_ANSWER'

/** A backend may have further codes. */
export type ErrorCode = GatewayErrorCode | ClientErrorCode | (string & {})
