import type { TSchema } from '@sinclair/typebox'
import type { JsonSchema, Reference, Response } from './document.js'

const SCHEMAS = '#/components/schemas/'
const RESPONSES = '#/components/responses/'

// Keywords with subschemas. Values of other keywords are data, in which `$id` and `$ref` have no meaning.
const LIST_KEYWORDS = ['allOf', 'anyOf', 'oneOf', 'prefixItems'] as const
const MAP_KEYWORDS = ['properties', 'patternProperties', '$defs'] as const
const SINGLE_KEYWORDS = [
  'items',
  'additionalProperties',
  'not',
  'contains',
  'propertyNames',
  'if',
  'then',
  'else'
] as const

type JsonObject = Record<string, unknown>

/**
 * Schemas and responses that several operations reference by name. The copies have no `$id`: in OpenAPI it is a base
 * URI, and would change the meaning of every reference below it.
 */
export class Components {
  readonly #schemas = new Map<string, JsonSchema>()
  readonly #responses = new Map<string, Response>()

  /** A reference to the copy of a named schema, or a copy of a schema without a name. */
  useSchema(schema: TSchema): JsonSchema {
    if (schema.$id !== undefined && this.#schemas.has(schema.$id)) return { $ref: `${SCHEMAS}${schema.$id}` }
    // Removes the symbol properties of TypeBox.
    return this.#add(JSON.parse(JSON.stringify(schema)))
  }

  useResponse(name: string, response: Response): Reference {
    this.#responses.set(name, response)
    return { $ref: `${RESPONSES}${name}` }
  }

  schemas(): Readonly<Record<string, JsonSchema>> {
    return sorted(this.#schemas)
  }

  responses(): Readonly<Record<string, Response>> {
    return sorted(this.#responses)
  }

  #add(schema: JsonObject): JsonSchema {
    const { $id, ...rest } = schema
    if (typeof $id !== 'string') return this.#withReferences(rest)
    if (!this.#schemas.has($id)) {
      // Before its subschemas, which may contain it.
      this.#schemas.set($id, {})
      this.#schemas.set($id, this.#withReferences(rest))
    }
    return { $ref: `${SCHEMAS}${$id}` }
  }

  #withReferences(schema: JsonObject): JsonSchema {
    const copy = { ...schema }
    const add = (part: unknown): unknown => (isObject(part) ? this.#add(part) : part)
    for (const keyword of LIST_KEYWORDS) if (Array.isArray(copy[keyword])) copy[keyword] = copy[keyword].map(add)
    for (const keyword of MAP_KEYWORDS) if (isObject(copy[keyword])) copy[keyword] = mapValues(copy[keyword], add)
    for (const keyword of SINGLE_KEYWORDS) if (keyword in copy) copy[keyword] = add(copy[keyword])
    if (typeof copy.$ref === 'string' && !copy.$ref.startsWith('#')) copy.$ref = `${SCHEMAS}${copy.$ref}`
    return copy
  }
}

const sorted = <Value>(map: ReadonlyMap<string, Value>): Readonly<Record<string, Value>> =>
  Object.fromEntries([...map].toSorted(([one], [other]) => (one < other ? -1 : 1)))

const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const mapValues = (map: JsonObject, change: (value: unknown) => unknown): JsonObject =>
  Object.fromEntries(Object.entries(map).map(([name, value]) => [name, change(value)]))
