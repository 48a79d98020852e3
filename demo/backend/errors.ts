import type { FieldError } from '../../schemas/field-errors.js'

/** A request that is answered with "no"; the message is for a person. */
export class Refusal extends Error {
  override readonly name = 'Refusal'
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

export const notFound = (noun: string): Refusal => new Refusal(404, 'NOT_FOUND', `There is no such ${noun}.`)

export const invalid = (faults: readonly FieldError[]): Refusal =>
  new Refusal(400, 'VALIDATION_FAILED', 'The request is not valid.', faults)

export const unknownReference = (): Refusal =>
  new Refusal(409, 'UNKNOWN_REFERENCE', 'Something that this names does not exist.')

const FRAMEWORK_CODES: Readonly<Record<number, string>> = {
  400: 'MALFORMED_BODY',
  404: 'NOT_FOUND',
  413: 'BODY_TOO_LARGE',
  414: 'URI_TOO_LONG',
  415: 'UNSUPPORTED_MEDIA_TYPE',
  429: 'RATE_LIMITED'
}

/** What a caller did wrong, in the words of the database or the framework; null for everything that is our own fault. */
export const refusalOf = (error: unknown): Refusal | null => {
  if (error instanceof Refusal) return error
  const { code, statusCode = 500, message = '' } = error as { code?: unknown; statusCode?: number; message?: string }
  if (code === '23503') return unknownReference()
  if (code === '23505') return new Refusal(409, 'ALREADY_EXISTS', 'There is one like this already.')
  // Class 40: two changes that wait for each other, of which one had to give way.
  if (/^40[0-9A-Z]{3}$/.test(String(code)))
    return new Refusal(409, 'CONFLICT', 'Somebody else is changing the same. Try again.')
  // Class 22: a value that its column cannot hold.
  if (/^22[0-9A-Z]{3}$/.test(String(code)))
    return invalid([{ path: '', message: 'holds a value that cannot be stored' }])
  // A body that is no JSON, or too large, or of a type that nobody reads; too many requests.
  return statusCode < 500 ? new Refusal(statusCode, FRAMEWORK_CODES[statusCode] ?? 'BAD_REQUEST', message) : null
}
