import { Check } from '@sinclair/typebox/value'
import { ErrorBodySchema } from '../../../schemas/error-body.js'
import type { FieldFault } from '../../../schemas/field-faults.js'
import { ApiError } from './api-error.js'

/** An answer as both ways of asking have it: fetch, and the XMLHttpRequest of uploads. */
export interface Answer {
  readonly status: number
  readonly text: string
  header(name: string): string | null
}

const GENERAL_MESSAGE = 'The service did not accept this.'

type Fields = Readonly<Record<string, unknown>>

/** An answer that is no success, as an error. A backend's may have any shape: what can be made out of it is kept. */
export const refused = ({ status, text, header }: Answer): ApiError => {
  const answer = jsonOf(text)
  const fields = {
    status,
    answer,
    requestId: header('x-request-id'),
    retryAfterSeconds: secondsIn(header('retry-after'))
  }
  if (Check(ErrorBodySchema, answer)) {
    const { error, requestId } = answer
    return new ApiError({ ...fields, ...error, requestId })
  }

  const { error, message, code } = fieldsOf(answer)
  const inner = fieldsOf(error)
  return new ApiError({
    ...fields,
    code: textOf(inner.code) ?? textOf(code) ?? 'BACKEND_REFUSED',
    message: textOf(inner.message) ?? textOf(message) ?? textOf(error) ?? GENERAL_MESSAGE,
    details: faultsOf(inner.details ?? fieldsOf(answer).details)
  })
}

const jsonOf = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

const fieldsOf = (value: unknown): Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : {}

const textOf = (value: unknown): string | null => (typeof value === 'string' && value !== '' ? value : null)

const faultsOf = (value: unknown): FieldFault[] =>
  (Array.isArray(value) ? value : [])
    .map(fieldsOf)
    .flatMap(({ path, message }) =>
      typeof path === 'string' && typeof message === 'string' ? [{ path, message }] : []
    )

/** The gateway gives seconds. A date, which others may give, would need their clock. */
const secondsIn = (text: string | null): number | null =>
  text !== null && /^\d{1,9}$/.test(text) ? Number(text) : null
