import type { TSchema } from '@sinclair/typebox'
import { Errors } from '@sinclair/typebox/errors'
import { Check } from '@sinclair/typebox/value'
import { fieldErrors } from '../../../schemas/field-errors.js'
import { ApiError } from './api-error.js'

/**
 * Serialises a body and validates the JSON that is sent, in which dates are texts and undefined fields are gone. The schema
 * is interpreted, because the Content-Security-Policy of our pages forbids compiled validators.
 */
export const bodyText = (schema: TSchema, body: unknown): string => {
  // Undefined for a body such as a function, contrary to its type.
  const text = JSON.stringify(body) as string | undefined
  if (text === undefined) throw invalid([{ path: '', message: 'a JSON object is required' }])
  const sent: unknown = JSON.parse(text)
  if (!Check(schema, sent)) throw invalid(fieldErrors(Errors(schema, sent)))
  return text
}

const invalid = (details: ApiError['details']): ApiError =>
  new ApiError({ code: 'VALIDATION_FAILED', message: 'Some fields are missing or wrong.', details })
