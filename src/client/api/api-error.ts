import type { FieldError } from '../../../schemas/field-errors.js'
import type { ErrorCode } from './error-codes.js'

export interface ApiErrorFields {
  readonly code: ErrorCode
  readonly message: string
  readonly status?: number
  readonly details?: readonly FieldError[]
  readonly requestId?: string | null
  readonly retryAfterSeconds?: number | null
  readonly body?: unknown
  readonly cause?: unknown
}

/** The error of every call: rejected by validation, the gateway or the backend, or without a response. */
export class ApiError extends Error {
  override readonly name = 'ApiError'
  readonly code: ErrorCode
  /** The HTTP status; 0 without a response. */
  readonly status: number
  /** One entry per invalid field. */
  readonly details: readonly FieldError[]
  /** Identifies the request in the logs. */
  readonly requestId: string | null
  /** From the `Retry-After` header. */
  readonly retryAfterSeconds: number | null
  /** The response body, for errors in the backend's own format. */
  readonly body: unknown

  constructor(fields: ApiErrorFields) {
    super(fields.message, { cause: fields.cause })
    this.code = fields.code
    this.status = fields.status ?? 0
    this.details = fields.details ?? []
    this.requestId = fields.requestId ?? null
    this.retryAfterSeconds = fields.retryAfterSeconds ?? null
    this.body = fields.body ?? null
  }

  /** Whether the same request may succeed later: no response, too many requests, or an error of the server. */
  get retryable(): boolean {
    if (this.status === 0) return this.code === 'NETWORK_FAILED'
    return this.status >= 500 || this.status === 408 || this.status === 429
  }

  /** The message for a form field: `error.fieldError('name')`. */
  fieldError(field: string): string | null {
    const pointer = field.startsWith('/') ? field : `/${field}`
    return this.details.find(({ path }) => path === pointer)?.message ?? null
  }
}

/** Not signed in or not permitted: retrying does not help. */
export const isRejection = (error: unknown): error is ApiError =>
  error instanceof ApiError && (error.status === 401 || error.status === 403)

/** The error for a missing response. An abort has its own code, because it is not shown to users. */
export const noResponseError = (cause: unknown, signal: AbortSignal | undefined): ApiError =>
  signal?.aborted
    ? new ApiError({ code: 'ABORTED', message: 'The request was cancelled.', cause: signal.reason })
    : new ApiError({ code: 'NETWORK_FAILED', message: 'The service cannot be reached. Check the connection.', cause })
