import type { FieldFault } from '../../schemas/field-faults.js'

/** A request that is answered with "no"; the message is for a person. */
export class Refusal extends Error {
  override readonly name = 'Refusal'
  readonly status: number
  readonly code: string
  readonly details: readonly FieldFault[] | undefined

  constructor(status: number, code: string, message: string, details?: readonly FieldFault[]) {
    super(message)
    this.status = status
    this.code = code
    this.details = details
  }
}

export const notFound = (noun: string): Refusal => new Refusal(404, 'NOT_FOUND', `There is no such ${noun}.`)

export const invalid = (faults: readonly FieldFault[]): Refusal =>
  new Refusal(400, 'VALIDATION_FAILED', 'The request is not valid.', faults)

export const unknownReference = (): Refusal =>
  new Refusal(409, 'UNKNOWN_REFERENCE', 'Something that this names does not exist.')

const OF_DATABASE: Readonly<Record<string, () => Refusal>> = {
  '23503': unknownReference,
  '23505': () => new Refusal(409, 'ALREADY_EXISTS', 'There is one like this already.')
}

/** What a caller did wrong, in the words of the database; null for everything that is our own fault. */
export const refusalOf = (error: unknown): Refusal | null => {
  if (error instanceof Refusal) return error
  const { code, statusCode, message } = error as { code?: unknown; statusCode?: unknown; message?: string }
  if (typeof code === 'string' && Object.hasOwn(OF_DATABASE, code)) return OF_DATABASE[code]?.() ?? null
  // Class 22: a value that its column cannot hold.
  if (typeof code === 'string' && /^22[0-9A-Z]{3}$/.test(code))
    return invalid([{ path: '', message: 'holds a value that cannot be stored' }])
  // The framework's own: a body that is no JSON, or too large, or of a type that nobody reads; too many requests.
  if (typeof statusCode === 'number' && statusCode < 500) {
    return new Refusal(statusCode, FRAMEWORK_CODES[statusCode] ?? 'BAD_REQUEST', message ?? 'The request is not valid.')
  }
  return null
}

const FRAMEWORK_CODES: Readonly<Record<number, string>> = {
  400: 'MALFORMED_BODY',
  404: 'NOT_FOUND',
  413: 'BODY_TOO_LARGE',
  415: 'UNSUPPORTED_MEDIA_TYPE',
  429: 'RATE_LIMITED'
}
