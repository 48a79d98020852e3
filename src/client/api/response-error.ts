import type { FieldError } from '../../../schemas/field-errors.js'
import { fieldsOf } from '../fields-of.js'
import { ApiError } from './api-error.js'

/** A response of fetch or of XMLHttpRequest. */
export interface ErrorResponse {
  readonly status: number
  readonly text: string
  header(name: string): string | null
}

const GENERAL_MESSAGE = 'The service did not accept this.'

const NO_ANSWER = 'The service behind this page does not answer at the moment.'

/** For responses without a message, such as the pages of reverse proxies. */
const MESSAGES: Readonly<Record<number, string>> = {
  404: 'The service does not know this address.',
  502: NO_ANSWER,
  503: NO_ANSWER,
  504: NO_ANSWER
}

/**
 * Converts an error response to an ApiError. The gateway's errors have a schema, a backend's may have any format; known
 * fields are used. Not checked with TypeBox, because every web application would have to load it.
 */
export const responseError = ({ status, text, header }: ErrorResponse): ApiError => {
  const body = jsonOf(text)
  const { error, message, code, requestId } = fieldsOf(body)
  const inner = fieldsOf(error)
  return new ApiError({
    status,
    body,
    requestId: textOf(requestId) ?? header('x-request-id'),
    retryAfterSeconds: secondsIn(header('retry-after')),
    code: textOf(inner.code) ?? textOf(code) ?? 'BACKEND_REFUSED',
    message: textOf(inner.message) ?? textOf(message) ?? textOf(error) ?? MESSAGES[status] ?? GENERAL_MESSAGE,
    details: fieldErrorsOf(inner.details ?? fieldsOf(body).details)
  })
}

const jsonOf = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

const textOf = (value: unknown): string | null => (typeof value === 'string' && value !== '' ? value : null)

const fieldErrorsOf = (value: unknown): FieldError[] =>
  (Array.isArray(value) ? value : [])
    .map(fieldsOf)
    .flatMap(({ path, message }) =>
      typeof path === 'string' && typeof message === 'string' ? [{ path, message }] : []
    )

/** The gateway sends seconds. Dates are ignored, because they depend on the server's clock. */
const secondsIn = (text: string | null): number | null =>
  text !== null && /^\d{1,9}$/.test(text) ? Number(text) : null
