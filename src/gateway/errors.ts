import type { FieldError } from '../../schemas/field-errors.js'

// Every error response of the gateway itself. Error responses of the backend are forwarded unchanged.

const ERRORS = {
  MALFORMED_REQUEST: [400, 'The request is not valid HTTP.'],
  AMBIGUOUS_PATH: [400, 'The path of this request could be read in more than one way. Use its plain spelling.'],
  MALFORMED_BODY: [400, 'The body is not valid JSON.'],
  VALIDATION_FAILED: [400, 'Some fields are missing or wrong.'],
  UNAUTHENTICATED: [401, 'Sign in to do this.'],
  TOKEN_EXPIRED: [401, 'Your session has ended. Sign in again.'],
  FORBIDDEN: [403, 'Your account may not do this.'],
  CSRF_MISMATCH: [403, 'This request does not carry a valid CSRF token. Reload the page and try again.'],
  ORIGIN_REFUSED: [403, 'This cannot be done from a page of another site.'],
  NOT_FOUND: [404, 'This address does not exist.'],
  METHOD_NOT_ALLOWED: [405, 'This path does not take this method.'],
  REQUEST_TIMEOUT: [408, 'The request did not arrive in time.'],
  BODY_TOO_LARGE: [413, 'The body is too large.'],
  URI_TOO_LONG: [414, 'The address is too long.'],
  UNSUPPORTED_MEDIA_TYPE: [415, 'This content type is not accepted here.'],
  EXPECTATION_FAILED: [417, 'The expectation of this request cannot be met.'],
  RATE_LIMITED: [429, 'Too many attempts. Wait a while before you try again.'],
  HEADERS_TOO_LARGE: [431, 'The headers of this request are too large.'],
  INTERNAL: [500, 'Something went wrong on our side.'],
  BACKEND_UNREACHABLE: [502, 'The service behind this page cannot be reached at the moment.'],
  RELAY_UNREACHABLE: [502, 'The realtime service cannot be reached at the moment.'],
  OVERLOADED: [503, 'The service is busy. Try again in a second.'],
  REVOCATIONS_UNKNOWN: [503, 'Your session cannot be checked at the moment. Try again in a second.'],
  REVOCATION_INCOMPLETE: [503, 'The revocation is not in effect everywhere yet. Send it again.'],
  BACKEND_TIMEOUT: [504, 'The service behind this page did not respond in time.'],
  RELAY_TIMEOUT: [504, 'The realtime service did not respond in time.'],
  LOOP_DETECTED: [508, 'This address leads back to this service.']
} as const satisfies Record<string, readonly [status: number, message: string]>

export type GatewayErrorCode = keyof typeof ERRORS

// The type of `Object.keys` is string[], because an object may have more keys than its type. This one does not.
export const GATEWAY_ERROR_CODES = Object.keys(ERRORS) as readonly GatewayErrorCode[]

export interface GatewayErrorOptions {
  readonly details?: readonly FieldError[]
  /** Response headers of this error, such as `allow` or `retry-after`. */
  readonly headers?: Readonly<Record<string, string>>
  /** Logged, never sent to the browser. */
  readonly cause?: unknown
}

export class GatewayError extends Error {
  override readonly name = 'GatewayError'
  readonly code: GatewayErrorCode
  readonly statusCode: number
  readonly details: readonly FieldError[]
  readonly headers: Readonly<Record<string, string>>

  constructor(code: GatewayErrorCode, { details = [], headers = {}, cause }: GatewayErrorOptions = {}) {
    const [statusCode, message] = ERRORS[code]
    super(message, { cause })
    this.code = code
    this.statusCode = statusCode
    this.details = details
    this.headers = headers
  }
}

/** The body of every error response. */
export const errorBody = ({ code, message, details }: GatewayError, requestId: string) => ({
  success: false,
  error: { code, message, details },
  requestId
})

/** Headers of every error response besides the security headers. */
export const errorHeaders = (error: GatewayError): Readonly<Record<string, string>> => ({
  ...error.headers,
  // Distinguishes an error of the gateway from an error of the backend.
  'x-gateway-error': error.code,
  'cache-control': 'no-store'
})

// Errors of Fastify and Node's HTTP parser.
const FRAMEWORK_CODES: Readonly<Record<string, GatewayErrorCode>> = {
  FST_ERR_BAD_URL: 'AMBIGUOUS_PATH',
  FST_ERR_MAX_PARAM_LENGTH: 'URI_TOO_LONG',
  FST_ERR_VALIDATION: 'VALIDATION_FAILED',
  FST_ERR_CTP_BODY_TOO_LARGE: 'BODY_TOO_LARGE',
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'UNSUPPORTED_MEDIA_TYPE',
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: 'MALFORMED_BODY',
  FST_ERR_CTP_EMPTY_JSON_BODY: 'MALFORMED_BODY',
  FST_ERR_CTP_INVALID_JSON_BODY: 'MALFORMED_BODY',
  ERR_HTTP_REQUEST_TIMEOUT: 'REQUEST_TIMEOUT',
  HPE_HEADER_OVERFLOW: 'HEADERS_TOO_LARGE'
}

// For every other Fastify error below 500. All other statuses are MALFORMED_REQUEST.
const CODES_BY_STATUS: Readonly<Record<number, GatewayErrorCode>> = {
  404: 'NOT_FOUND',
  405: 'METHOD_NOT_ALLOWED',
  408: 'REQUEST_TIMEOUT',
  413: 'BODY_TOO_LARGE',
  414: 'URI_TOO_LONG',
  415: 'UNSUPPORTED_MEDIA_TYPE',
  429: 'RATE_LIMITED',
  431: 'HEADERS_TOO_LARGE'
}

/** Maps any error to a `GatewayError`. An error of unknown origin is INTERNAL. */
export const toGatewayError = (error: unknown): GatewayError => {
  if (error instanceof GatewayError) return error
  // Any value can be thrown. Fields of other types match no code below.
  const { code = '', statusCode = 500 } = (error ?? {}) as { code?: string; statusCode?: number }
  const known = FRAMEWORK_CODES[code]
  if (known !== undefined) return new GatewayError(known, { cause: error })
  if (isFrameworkCode(code) && statusCode >= 400 && statusCode < 500)
    return new GatewayError(CODES_BY_STATUS[statusCode] ?? 'MALFORMED_REQUEST', { cause: error })
  return new GatewayError('INTERNAL', { cause: error })
}

const isFrameworkCode = (code: unknown): boolean => typeof code === 'string' && code.startsWith('FST_')
