import { Check } from '@sinclair/typebox/value'
import { ErrorBodySchema } from '../../../schemas/error-body.js'
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

/** Converts an error response to an ApiError. A backend's error may have any format; known fields are used. */
export const responseError = ({ status, text, header }: ErrorResponse): ApiError => {
  const body = jsonOf(text)
  const fields = {
    status,
    body,
    requestId: header('x-request-id'),
    retryAfterSeconds: secondsIn(header('retry-after'))
  }
  if (Check(ErrorBodySchema, body)) {
    const { error, requestId } = body
    return new ApiError({ ...fields, ...error, requestId })
  }

  const { error, message, code } = fieldsOf(body)
  const inner = fieldsOf(error)
  return new ApiError({
    ...fields,
    code: textOf(inner.code) ?? textOf(code) ?? 'BACKEND_REFUSED',
    message: textOf(inner.message) ?? textOf(message) ?? textOf(error) ?? GENERAL_MESSAGE,
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
