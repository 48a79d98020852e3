import type { JsonSchema } from './document.js'

/** A field of a body, as a row of a table. */
export interface Field {
  /** With the way to it: `center.x`, `polygon[].y`. */
  readonly name: string
  readonly type: string
  readonly limits: string
  readonly required: boolean
  readonly description: string
}

export type Resolve = (schema: JsonSchema) => JsonSchema

/** Every field that a schema names, those of its parts after it. */
export const fieldsOf = (schema: JsonSchema, resolve: Resolve, prefix = ''): readonly Field[] => {
  const fields = new Map<string, Field>()
  for (const { properties = {}, required = [] } of objectsIn(schema, resolve)) {
    for (const [key, property] of Object.entries(properties)) {
      const name = `${prefix}${key}`
      const own = { name, ...typeOf(property, resolve), required: required.includes(key) }
      const below = fieldsBelow(property, resolve, name)
      // Two forms of one body may have a field in common: it is one row all the same.
      for (const field of [{ ...own, description: property.description ?? '' }, ...below]) {
        if (!fields.has(field.name)) fields.set(field.name, field)
      }
    }
  }
  return [...fields.values()]
}

const fieldsBelow = (schema: JsonSchema, resolve: Resolve, name: string): readonly Field[] => [
  ...fieldsOf(schema, resolve, `${name}.`),
  ...choicesOf(schema, resolve).flatMap(({ items }) => (items ? fieldsBelow(items, resolve, `${name}[]`) : []))
]

/** What a value may be: the schema itself, or each of its alternatives. */
const choicesOf = (schema: JsonSchema, resolve: Resolve): readonly JsonSchema[] => {
  const { anyOf, ...whole } = resolve(schema)
  return anyOf === undefined ? [whole] : anyOf.flatMap((choice) => choicesOf(choice, resolve))
}

const objectsIn = (schema: JsonSchema, resolve: Resolve): readonly JsonSchema[] =>
  choicesOf(schema, resolve).filter(({ properties }) => properties !== undefined)

/** In words: which types, and within which limits. */
export const typeOf = (schema: JsonSchema, resolve: Resolve): Pick<Field, 'type' | 'limits'> => {
  const choices = choicesOf(schema, resolve)
  return {
    type: [...new Set(choices.map((choice) => nameOf(choice, resolve)))].join(' | '),
    limits: [...new Set(choices.flatMap(limitsOf))].join(' · ')
  }
}

const nameOf = (schema: JsonSchema, resolve: Resolve): string => {
  if (schema.const !== undefined) return JSON.stringify(schema.const)
  if (schema.not !== undefined) return 'not allowed'
  if (schema.contentMediaType !== undefined) return 'file'
  if (schema.items === undefined) return schema.type ?? 'anything'
  const { type } = typeOf(schema.items, resolve)
  return type.includes(' ') ? `(${type})[]` : `${type}[]`
}

const limitsOf = (schema: JsonSchema): readonly string[] => [
  ...range(schema.minLength, schema.maxLength, ['character', 'characters']),
  ...range(schema.minItems || undefined, schema.maxItems, ['entry', 'entries']),
  ...range(schema.minimum, schema.maximum, ['', '']),
  ...(schema.pattern === undefined ? [] : [`like ${schema.pattern}`])
]

type Unit = readonly [one: string, many: string]

const range = (least: number | undefined, most: number | undefined, unit: Unit): readonly string[] => {
  // A limit of numbers themselves, which nobody has to know of.
  const upper = most === Number.MAX_SAFE_INTEGER ? undefined : most
  if (upper !== undefined)
    return [least === undefined ? `at most ${count(upper, unit)}` : `${digits(least)} to ${count(upper, unit)}`]
  return least === undefined ? [] : [`at least ${count(least, unit)}`]
}

const count = (value: number, [one, many]: Unit): string => `${digits(value)} ${value === 1 ? one : many}`.trim()

/** In groups of three. */
const digits = (value: number): string => String(value).replace(/\B(?=(?:\d{3})+$)/g, '\u202f')
