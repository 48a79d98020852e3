import { messageOf } from '../shared/error-message.js'
import { isObject } from '../shared/is-object.js'
import { linearRegExpOfJavaScript } from '../shared/linear-regexp.js'
import { childOf, DocumentError, type Documents, type JsonObject, type Located } from './documents.js'
import { LIST_KEYWORDS, MAP_KEYWORDS, SCHEMA_KEYWORDS, VALUE_KEYWORDS, VALUE_KEYWORDS_30 } from './schema-keywords.js'

const MAX_DEPTH = 200

/** The definition of a schema that accepts every value. */
export const ANY = 'any'

/**
 * A keyword of our own for references. Its value is the name of a definition, which is compiled when it is first used: all
 * definitions of a large description take seconds.
 */
export const DEFINITION = 'definition'

/** A keyword of our own beside `$ref`, whose evaluations count too. */
export const COUNTED = 'counted'

export interface RequestSchemasOptions {
  readonly documents: Documents
  readonly isVersion30: boolean
  /** Whether the values are texts, which stand for numbers, booleans and other values. */
  readonly isText: boolean
  readonly report: (error: DocumentError, located: Located) => void
}

/**
 * Collects the schemas of requests from an OpenAPI description and rewrites them as JSON Schema 2020-12, with the
 * differences of OpenAPI: `nullable`, boolean `exclusiveMinimum` (3.0), `discriminator`, and `readOnly` properties, which
 * are not required in a request. All of them become definitions of one schema, so that schemas may refer to themselves.
 */
export class RequestSchemas {
  readonly #documents: Documents
  readonly #isVersion30: boolean
  readonly #isText: boolean
  readonly #report: RequestSchemasOptions['report']
  readonly #names = new Map<string, string>()
  /** Whether definitions refer to each other with `$ref`, so that they must be compiled as parts of one schema. */
  usesRef = false
  readonly #references: Record<string, unknown>[] = []
  readonly definitions: Record<string, unknown> = { [ANY]: true }
  /** The location that each definition was made from, for error messages. */
  readonly locations = new Map<string, string>()

  constructor(options: RequestSchemasOptions) {
    this.#documents = options.documents
    this.#isVersion30 = options.isVersion30
    this.#isText = options.isText
    this.#report = options.report
  }

  /** Adds the schema at this location; returns the name of its definition. */
  add(located: Located): string {
    const key = `${located.file}#${located.pointer}`
    const known = this.#names.get(key)
    if (known !== undefined) return known
    const name = `s${this.#names.size}`
    this.#names.set(key, name)
    this.locations.set(name, this.#documents.describe(located))
    this.definitions[name] = true
    this.definitions[name] = this.#convert(located, 0)
    return name
  }

  /**
   * With `unevaluatedProperties` or `unevaluatedItems`, the validator must see through references: they become `$ref`. Called
   * once, when all schemas have been added.
   */
  complete(): void {
    if (!this.usesRef) return
    for (const reference of this.#references) {
      Object.assign(reference, { $ref: `#/$defs/${reference[DEFINITION]}`, [COUNTED]: true })
      delete reference[DEFINITION]
    }
  }

  #fail(located: Located, message: string): boolean {
    this.#report(this.#documents.error(located, message), located)
    return true
  }

  #convert(located: Located, depth: number): unknown {
    const { value } = located
    if (typeof value === 'boolean') return value
    if (!isObject(value)) return this.#fail(located, 'a schema must be an object')
    if (depth > MAX_DEPTH) return this.#fail(located, `schemas are nested more than ${MAX_DEPTH} levels deep`)
    if ('$dynamicRef' in value || '$recursiveRef' in value) return this.#fail(located, '$dynamicRef is not supported')
    if (typeof value.$ref === 'string') return this.#reference(located, value, value.$ref, depth)
    return this.#keywords(located, value, depth)
  }

  #reference(located: Located, value: JsonObject, reference: string, depth: number): unknown {
    let target: Located
    try {
      target = this.#documents.resolve(located, reference)
    } catch (error) {
      if (!(error instanceof DocumentError)) throw error
      this.#report(error, located)
      return true
    }
    const definition = { [DEFINITION]: this.add(target) }
    this.#references.push(definition)
    // OpenAPI 3.0 ignores what stands beside a $ref.
    if (this.#isVersion30 || Object.keys(value).length === 1) return definition
    const { $ref: _, ...beside } = value
    return { allOf: [definition, this.#keywords({ ...located, value: beside }, beside, depth)] }
  }

  #keywords(located: Located, schema: JsonObject, depth: number): unknown {
    const result: Record<string, unknown> = {}
    const rules = this.#isVersion30 ? VALUE_KEYWORDS_30 : VALUE_KEYWORDS
    for (const [name, value] of Object.entries(schema)) {
      const child = childOf(located, name)
      const rule = rules.get(name)
      if (name.startsWith('unevaluated')) this.usesRef = true
      if (SCHEMA_KEYWORDS.has(name)) result[name] = this.#convert(child, depth + 1)
      else if (LIST_KEYWORDS.has(name)) result[this.#listKeyword(name, schema)] = this.#convertList(child, depth)
      else if (MAP_KEYWORDS.has(name)) result[name] = this.#convertMap(child, depth)
      else if (rule === undefined) continue
      else if (!rule[0](value)) this.#fail(child, rule[1])
      else if (name === 'required') result[name] = this.#requiredInRequests(located, schema, value)
      else if (name !== 'pattern' || this.#isPattern(child, String(value))) result[name] = value
    }
    if (this.#isVersion30) convertBounds(schema, result)
    const discriminated = this.#discriminated(located, schema, depth)
    if (discriminated !== null) {
      delete result.oneOf
      delete result.anyOf
      Object.assign(result, { allOf: [...(Array.isArray(result.allOf) ? result.allOf : []), ...discriminated] })
    }
    return this.#isVersion30 && schema.nullable === true ? nullable(result) : result
  }

  /** Of a text, several alternatives of `oneOf` may be valid: "5" is an integer and a string. */
  #listKeyword(name: string, schema: JsonObject): string {
    return this.#isText && name === 'oneOf' && schema.anyOf === undefined ? 'anyOf' : name
  }

  #convertList(located: Located, depth: number): unknown {
    if (!Array.isArray(located.value) || located.value.length === 0) {
      this.#fail(located, 'must be a list of schemas')
      return [true]
    }
    return located.value.map((_, index) => this.#convert(childOf(located, index), depth + 1))
  }

  #convertMap(located: Located, depth: number): unknown {
    if (!isObject(located.value)) {
      this.#fail(located, 'must be an object of schemas')
      return {}
    }
    const names = Object.keys(located.value)
    const isPatterns = located.pointer.endsWith('/patternProperties')
    return Object.fromEntries(
      (isPatterns ? names.filter((name) => this.#isPattern(childOf(located, name), name)) : names).map((name) => [
        name,
        this.#convert(childOf(located, name), depth + 1)
      ])
    )
  }

  #isPattern(located: Located, source: string): boolean {
    try {
      linearRegExpOfJavaScript(source)
      return true
    } catch (error) {
      return !this.#fail(located, messageOf(error))
    }
  }

  /** `required` without the properties that only responses have. */
  #requiredInRequests(located: Located, schema: JsonObject, required: unknown): unknown {
    if (!Array.isArray(required) || !isObject(schema.properties)) return required
    const properties = childOf(located, 'properties')
    return required.filter((name) => {
      try {
        const property = this.#documents.dereference(childOf(properties, String(name)))
        return !(isObject(property.value) && property.value.readOnly === true)
      } catch {
        // Reported where the property itself is converted.
        return true
      }
    })
  }

  /**
   * `oneOf` with a discriminator: the property selects the schema. An unknown value is an error of that property, instead of
   * one error for each schema.
   */
  #discriminated(located: Located, schema: JsonObject, depth: number): unknown[] | null {
    const { discriminator } = schema
    if (!isObject(discriminator)) return null
    const list = Array.isArray(schema.oneOf) ? 'oneOf' : Array.isArray(schema.anyOf) ? 'anyOf' : null
    if (list === null) return null
    const property = discriminator.propertyName
    if (typeof property !== 'string') {
      this.#fail(childOf(located, 'discriminator'), 'propertyName is required')
      return null
    }
    const choices = this.#choices(childOf(located, list), discriminator, property, depth)
    if (choices === null) return null
    return [
      { type: 'object', required: [property], properties: { [property]: { enum: [...choices.keys()] } } },
      ...[...choices].map(([value, chosen]) => ({
        if: { type: 'object', properties: { [property]: { const: value } }, required: [property] },
        // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
        then: chosen
      }))
    ]
  }

  /**
   * The schema for each value of the discriminator: from its mapping, from the constant that a schema gives the property, or
   * from the name of the schema. Null if the values of a schema are unknown.
   */
  #choices(list: Located, discriminator: JsonObject, property: string, depth: number): Map<string, unknown> | null {
    const choices = new Map<string, unknown>()
    const mapped = new Set<string>()
    const mapping = isObject(discriminator.mapping) ? discriminator.mapping : {}
    for (const [value, target] of Object.entries(mapping)) {
      if (typeof target !== 'string') continue
      // A mapping is a reference, or the bare name of a component.
      const reference = /[/#.]/.test(target) ? target : `#/components/schemas/${target}`
      mapped.add(reference)
      choices.set(value, this.#convert({ ...list, value: { $ref: reference } }, depth + 1))
    }
    const entries: readonly unknown[] = Array.isArray(list.value) ? list.value : []
    for (const [index, entry] of entries.entries()) {
      const reference = isObject(entry) && typeof entry.$ref === 'string' ? entry.$ref : null
      if (reference !== null && mapped.has(reference)) continue
      const values =
        this.#constantsOf(childOf(list, index), property) ?? (reference === null ? null : [nameOf(reference)])
      if (values === null) return null
      for (const value of values) choices.set(value, this.#convert(childOf(list, index), depth + 1))
    }
    return choices.size > 0 ? choices : null
  }

  /** The texts that a schema allows for the property, if it lists them. */
  #constantsOf(located: Located, property: string): string[] | null {
    try {
      const schema = this.#documents.dereference(located)
      const { value } = this.#documents.dereference(childOf(schema, 'properties', property))
      if (!isObject(value)) return null
      const values = Array.isArray(value.enum) ? value.enum : value.const === undefined ? [] : [value.const]
      return values.length > 0 && values.every((each) => typeof each === 'string') ? values : null
    } catch {
      // Reported where the schema itself is converted.
      return null
    }
  }
}

const nameOf = (reference: string): string => reference.slice(reference.lastIndexOf('/') + 1)

/** OpenAPI 3.0 has the booleans of JSON Schema draft 4 here, later drafts have numbers. */
export const convertBounds = (schema: JsonObject, result: Record<string, unknown>): void => {
  for (const [exclusive, bound] of [
    ['exclusiveMinimum', 'minimum'],
    ['exclusiveMaximum', 'maximum']
  ] as const) {
    if (typeof schema[exclusive] !== 'boolean') continue
    delete result[exclusive]
    if (schema[exclusive] === true && schema[bound] !== undefined) {
      delete result[bound]
      result[exclusive] = schema[bound]
    }
  }
}

const nullable = (schema: Record<string, unknown>): unknown => {
  const isPlain = !['enum', 'const', 'allOf', 'anyOf', 'oneOf', 'not', DEFINITION].some((keyword) => keyword in schema)
  if (typeof schema.type === 'string' && isPlain) return { ...schema, type: [schema.type, 'null'] }
  return { anyOf: [schema, { type: 'null' }] }
}
