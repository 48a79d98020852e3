import type { TSchema } from '@sinclair/typebox'
import { Errors } from '@sinclair/typebox/errors'
import { Check } from '@sinclair/typebox/value'
import { fieldFaults } from '../../../schemas/field-faults.js'
import { ApiError } from './api-error.js'

/**
 * A body as it is sent, once it has passed its schema. What is checked is what the text says, not what the object held: a
 * date has become text by then, and an undefined field is gone. The check interprets the schema; a compiled one would be
 * made from text, which the policy of our pages forbids.
 */
export const bodyText = (schema: TSchema, body: unknown): string => {
  const text = JSON.stringify(body) as string | undefined
  if (text === undefined) throw invalid([{ path: '', message: 'a JSON object is required' }])
  const sent: unknown = JSON.parse(text)
  if (!Check(schema, sent)) throw invalid(fieldFaults(Errors(schema, sent)))
  return text
}

const invalid = (details: ApiError['details']): ApiError =>
  new ApiError({ code: 'VALIDATION_FAILED', message: 'Some fields are missing or wrong.', details })
