import type { FieldFault } from '../../../schemas/field-faults.js'
import type { ErrorCode } from './error-codes.js'

export interface ApiErrorFields {
  readonly code: ErrorCode
  readonly message: string
  readonly status?: number
  readonly details?: readonly FieldFault[]
  readonly requestId?: string | null
  readonly retryAfterSeconds?: number | null
  readonly answer?: unknown
  readonly cause?: unknown
}

/** The one error of every call: refused here, by the gateway or by the backend, or never answered. */
export class ApiError extends Error {
  override readonly name = 'ApiError'
  readonly code: ErrorCode
  /** The status of the answer; 0 where there was none. */
  readonly status: number
  /** One entry per field that is wrong. */
  readonly details: readonly FieldFault[]
  /** Finds the request in the logs. */
  readonly requestId: string | null
  /** When to try again, where the answer says so. */
  readonly retryAfterSeconds: number | null
  /** The body of the answer, for what a backend says in its own way. */
  readonly answer: unknown

  constructor(fields: ApiErrorFields) {
    super(fields.message, { cause: fields.cause })
    this.code = fields.code
    this.status = fields.status ?? 0
    this.details = fields.details ?? []
    this.requestId = fields.requestId ?? null
    this.retryAfterSeconds = fields.retryAfterSeconds ?? null
    this.answer = fields.answer ?? null
  }

  /** What is wrong with a field, for the place beside it: `error.faultOf('name')`. */
  faultOf(field: string): string | null {
    const pointer = field.startsWith('/') ? field : `/${field}`
    return this.details.find(({ path }) => path === pointer)?.message ?? null
  }
}

/** There was no answer. An abort is told apart, because nobody needs to be shown it. */
export const withoutAnswer = (cause: unknown, signal: AbortSignal | undefined): ApiError =>
  signal?.aborted
    ? new ApiError({ code: 'ABORTED', message: 'The request was called off.', cause: signal.reason })
    : new ApiError({ code: 'NETWORK_FAILED', message: 'The service cannot be reached. Check the connection.', cause })
