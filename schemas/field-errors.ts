import type { TSchema } from '@sinclair/typebox'
import { type ValueError, ValueErrorType } from '@sinclair/typebox/errors'

const MAX_ERRORS = 20

export interface FieldError {
  /** A JSON pointer into the body. */
  readonly path: string
  readonly message: string
}

/** Validation messages by field, for people. They never contain the value. Gateway and web applications share them. */
export const fieldErrors = (errors: Iterable<ValueError>): FieldError[] => {
  const byPath = new Map<string, FieldError>()
  for (const outer of errors) {
    const error = innermost(outer)
    // Only the first error of a field: a missing field also has the wrong type.
    if (!byPath.has(error.path)) byPath.set(error.path, { path: error.path, message: validationMessage(error) })
    if (byPath.size === MAX_ERRORS) break
  }
  return [...byPath.values()]
}

const WRONG_TYPE: ReadonlySet<ValueErrorType> = new Set([
  ...[ValueErrorType.String, ValueErrorType.Integer, ValueErrorType.Number, ValueErrorType.Boolean],
  ...[ValueErrorType.Object, ValueErrorType.Array, ValueErrorType.Null, ValueErrorType.Literal]
])

/** For a union, the error of the one member whose type matches the value. */
const innermost = (error: ValueError): ValueError => {
  if (error.type !== ValueErrorType.Union) return error
  const [fit, another] = error.errors
    .map((errors) => errors.First())
    .filter((first) => first && !WRONG_TYPE.has(first.type))
  return fit?.path === error.path && another === undefined ? innermost(fit) : error
}

const validationMessage = ({ type, schema, message }: ValueError): string => {
  switch (type) {
    case ValueErrorType.ObjectRequiredProperty:
      return 'is required'
    case ValueErrorType.ObjectAdditionalProperties:
      return 'is not a field of this'
    case ValueErrorType.Never:
      return schema.description ?? 'is not allowed here'
    case ValueErrorType.Union:
      return `must be ${typesOf(schema)}`
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
const typesOf = ({ anyOf = [] }: TSchema): string => {
  // `TSchema` declares `anyOf` as any. TypeBox puts the schemas of a union there.
  const types = [
    ...new Set((anyOf as TSchema[]).map((member) => String(member.const ?? member.type ?? 'something else')))
  ]
  return types.length > 1 ? `${types.slice(0, -1).join(', ')} or ${types.at(-1)}` : (types[0] ?? 'something else')
}
