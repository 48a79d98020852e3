import type { FieldError } from '../../schemas/field-errors.js'

/** An error response to the client; the message is shown to users. */
export class HttpError extends Error {
  override readonly name = 'HttpError'
  readonly status: number
  readonly code: string
  readonly details: readonly FieldError[] | undefined

  constructor(status: number, code: string, message: string, details?: readonly FieldError[]) {
    super(message)
    this.status = status
    this.code = code
    this.details = details
  }
}

export const notFound = (noun: string): HttpError => new HttpError(404, 'NOT_FOUND', `There is no such ${noun}.`)

export const invalid = (errors: readonly FieldError[]): HttpError =>
  new HttpError(400, 'VALIDATION_FAILED', 'The request is not valid.', errors)

export const unknownReference = (): HttpError =>
  new HttpError(409, 'UNKNOWN_REFERENCE', 'A referenced record does not exist.')

const FRAMEWORK_CODES: Readonly<Record<number, string>> = {
  400: 'MALFORMED_BODY',
  404: 'NOT_FOUND',
  413: 'BODY_TOO_LARGE',
  414: 'URI_TOO_LONG',
  415: 'UNSUPPORTED_MEDIA_TYPE',
  429: 'RATE_LIMITED'
}

/** Converts client errors of the database and of Fastify; null for internal errors. */
export const httpErrorOf = (error: unknown): HttpError | null => {
  if (error instanceof HttpError) return error
  // Errors of the database and of Fastify have these fields; others have none of them.
  const { code, statusCode = 500, message = '' } = error as { code?: unknown; statusCode?: number; message?: string }
  if (code === '23503') return unknownReference()
  if (code === '23505') return new HttpError(409, 'ALREADY_EXISTS', 'A record with these values exists already.')
  // Class 40: transaction rollback, for example after a deadlock.
  if (/^40[0-9A-Z]{3}$/.test(String(code)))
    return new HttpError(409, 'CONFLICT', 'The record is being changed by another request. Try again.')
  // Class 22: data exception, a value that does not fit its column. Class 54: a limit of the database.
  if (/^(?:22|54)[0-9A-Z]{3}$/.test(String(code)))
    return invalid([{ path: '', message: 'contains a value that cannot be stored' }])
  // Fastify: malformed or too large body, unsupported media type, rate limit.
  return statusCode < 500 ? new HttpError(statusCode, FRAMEWORK_CODES[statusCode] ?? 'BAD_REQUEST', message) : null
}
