import type { TSchema } from '@sinclair/typebox'
import { type ValueError, ValueErrorType } from '@sinclair/typebox/errors'

const MAX_FAULTS = 20

export interface FieldFault {
  /** A JSON pointer into the body. */
  readonly path: string
  readonly message: string
}

/**
 * What is wrong with a body, field by field, in words for a person. What was sent is never repeated. Gateway and page say it
 * in the same words, because they say it with this.
 */
export const fieldFaults = (errors: Iterable<ValueError>): FieldFault[] => {
  const faults = new Map<string, FieldFault>()
  for (const outer of errors) {
    const error = innermost(outer)
    // The first is the one that matters: what is missing is also of the wrong type.
    if (!faults.has(error.path)) faults.set(error.path, { path: error.path, message: messageOf(error) })
    if (faults.size === MAX_FAULTS) break
  }
  return [...faults.values()]
}

const WRONG_KIND: ReadonlySet<ValueErrorType> = new Set([
  ...[ValueErrorType.String, ValueErrorType.Integer, ValueErrorType.Number, ValueErrorType.Boolean],
  ...[ValueErrorType.Object, ValueErrorType.Array, ValueErrorType.Null, ValueErrorType.Literal]
])

/** Where a value is of one of the kinds that a field may have, what is wrong with it is said of that kind alone. */
const innermost = (error: ValueError): ValueError => {
  if (error.type !== ValueErrorType.Union) return error
  const [fit, another] = error.errors
    .map((errors) => errors.First())
    .filter((first) => first && !WRONG_KIND.has(first.type))
  return fit?.path === error.path && another === undefined ? innermost(fit) : error
}

const messageOf = ({ type, schema, message }: ValueError): string => {
  switch (type) {
    case ValueErrorType.ObjectRequiredProperty:
      return 'is required'
    case ValueErrorType.ObjectAdditionalProperties:
      return 'is not a field of this'
    case ValueErrorType.Never:
      return schema.description ?? 'is not allowed here'
    case ValueErrorType.Union:
      return `must be ${kindsOf(schema)}`
    case ValueErrorType.StringPattern:
      return 'does not have the right form'
    case ValueErrorType.StringMinLength:
      return schema.minLength === 1 ? 'must not be empty' : `must have at least ${schema.minLength} characters`
    case ValueErrorType.StringMaxLength:
      return `must have at most ${schema.maxLength} characters`
    case ValueErrorType.NumberMinimum:
    case ValueErrorType.IntegerMinimum:
      return `must be at least ${schema.minimum}`
    case ValueErrorType.NumberMaximum:
    case ValueErrorType.IntegerMaximum:
      return `must be at most ${schema.maximum}`
    default:
      return message.replace(/^Expected /, 'must be ')
  }
}

/** "string, integer or null". */
const kindsOf = ({ anyOf = [] }: TSchema): string => {
  const kinds = [...new Set((anyOf as TSchema[]).map((kind) => String(kind.const ?? kind.type ?? 'something else')))]
  return kinds.length > 1 ? `${kinds.slice(0, -1).join(', ')} or ${kinds.at(-1)}` : (kinds[0] ?? 'something else')
}
