import type { TSchema } from '@sinclair/typebox'
import { Errors } from '@sinclair/typebox/errors'
import { Check } from '@sinclair/typebox/value'
import { fieldErrors } from '../../../../schemas/field-errors.js'
import { ApiError } from '../../api/api-error.js'

/**
 * Validates the JSON of a body, in which dates are texts and undefined fields are gone, and returns its value. The schema
 * is interpreted, because the Content-Security-Policy of our pages forbids compiled validators.
 */
export const checkBody = (schema: TSchema, body: unknown): unknown => {
  // Undefined for a body such as a function, contrary to its type.
  const text = JSON.stringify(body) as string | undefined
  if (text === undefined) throw invalid([{ path: '', message: 'a JSON object is required' }])
  const sent: unknown = JSON.parse(text)
  if (!Check(schema, sent)) throw invalid(fieldErrors(Errors(schema, sent)))
  return sent
}

const invalid = (details: ApiError['details']): ApiError =>
  new ApiError({ code: 'VALIDATION_FAILED', message: 'Some fields are missing or wrong.', details })
