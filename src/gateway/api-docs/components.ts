import type { TSchema } from '@sinclair/typebox'
import type { JsonSchema, Reference, Response } from './document.js'

const SCHEMAS = '#/components/schemas/'
const RESPONSES = '#/components/responses/'

// Where a schema keeps other schemas. Everything else in it is data, in which `$id` and `$ref` would mean nothing.
const IN_LISTS = ['allOf', 'anyOf', 'oneOf', 'prefixItems'] as const
const IN_MAPS = ['properties', 'patternProperties', '$defs'] as const
const ALONE = ['items', 'additionalProperties', 'not', 'contains', 'propertyNames', 'if', 'then', 'else'] as const

type Loose = Record<string, unknown>

/**
 * What several operations have in common: it stands in one place of the document, by name, and they refer to it.
 *
 * The `$id` of a schema is a name to our validator, but an address to a reader of OpenAPI: it would make every reference
 * below it lead elsewhere. So the copies in here have none.
 */
export class Components {
  readonly #schemas = new Map<string, JsonSchema>()
  readonly #responses = new Map<string, Response>()

  /** A reference to the copy of a named schema; one without a name is copied to where it is used. */
  useSchema(schema: TSchema): JsonSchema {
    if (schema.$id !== undefined && this.#schemas.has(schema.$id)) return { $ref: `${SCHEMAS}${schema.$id}` }
    // What the library adds for itself is under symbols, which do not survive this.
    return this.#place(JSON.parse(JSON.stringify(schema)))
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

  #place(schema: Loose): JsonSchema {
    const { $id, ...rest } = schema
    if (typeof $id !== 'string') return this.#withPlacedParts(rest)
    if (!this.#schemas.has($id)) {
      // Known before its parts are looked at: they may contain it.
      this.#schemas.set($id, {})
      this.#schemas.set($id, this.#withPlacedParts(rest))
    }
    return { $ref: `${SCHEMAS}${$id}` }
  }

  #withPlacedParts(schema: Loose): JsonSchema {
    const copy = { ...schema }
    const place = (part: unknown): unknown => (isObject(part) ? this.#place(part) : part)
    for (const keyword of IN_LISTS) if (Array.isArray(copy[keyword])) copy[keyword] = copy[keyword].map(place)
    for (const keyword of IN_MAPS) if (isObject(copy[keyword])) copy[keyword] = mapValues(copy[keyword], place)
    for (const keyword of ALONE) if (keyword in copy) copy[keyword] = place(copy[keyword])
    if (typeof copy.$ref === 'string' && !copy.$ref.startsWith('#')) copy.$ref = `${SCHEMAS}${copy.$ref}`
    return copy
  }
}

const sorted = <Value>(map: ReadonlyMap<string, Value>): Readonly<Record<string, Value>> =>
  Object.fromEntries([...map].toSorted(([one], [other]) => (one < other ? -1 : 1)))

const isObject = (value: unknown): value is Loose =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const mapValues = (map: Loose, change: (value: unknown) => unknown): Loose =>
  Object.fromEntries(Object.entries(map).map(([name, value]) => [name, change(value)]))
