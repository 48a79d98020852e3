import { childOf, type Documents, decode, type JsonObject, type Located } from '../openapi/documents.js'
import { isObject } from '../shared/is-object.js'

/** Properties that only requests or only responses have are left out of the other. */
export type Direction = 'request' | 'response'

const INDENT = '  '

/** Writes the schemas of an OpenAPI description as TypeScript types. Named schemas become exported types. */
export class TypeScriptTypes {
  readonly #documents: Documents
  /** The name of each type, by direction and location. */
  readonly #names = new Map<string, string>()
  readonly #taken = new Set<string>()
  readonly #declarations: string[] = []

  constructor(documents: Documents, reservedNames: Iterable<string> = []) {
    this.#documents = documents
    for (const name of reservedNames) this.#taken.add(name)
  }

  /** The declarations of all types that were used so far. */
  get declarations(): readonly string[] {
    return this.#declarations
  }

  /** The expression of a schema; types that it refers to are declared. */
  expression(located: Located, direction: Direction, depth = 0): string {
    const { value } = located
    if (value === undefined || value === true) return 'unknown'
    if (value === false) return 'never'
    if (!isObject(value)) return 'unknown'
    if (typeof value.$ref === 'string')
      return this.#named(this.#documents.resolve(located, value.$ref), value.$ref, direction)
    const type = this.#withoutNull(located, value, direction, depth)
    return value.nullable === true && type !== 'unknown' ? union([type, 'null']) : type
  }

  #withoutNull(located: Located, schema: JsonObject, direction: Direction, depth: number): string {
    if (Array.isArray(schema.enum)) return union(schema.enum.map(literal))
    if ('const' in schema) return literal(schema.const)
    const parts = ['allOf', 'anyOf', 'oneOf'].flatMap((keyword) => {
      const list = schema[keyword]
      if (!Array.isArray(list)) return []
      const types = list.map((_, index) => this.expression(childOf(located, keyword, index), direction, depth))
      return [keyword === 'allOf' ? intersection(types) : union(types)]
    })
    const types = Array.isArray(schema.type) ? schema.type : schema.type === undefined ? [] : [schema.type]
    const own =
      types.length > 0
        ? union(types.map((type) => this.#ofType(type, located, schema, direction, depth)))
        : isObject(schema.properties) || schema.additionalProperties !== undefined
          ? this.#object(located, schema, direction, depth)
          : null
    const isOpenObject = parts.length > 0 && own === objectOf('unknown')
    return intersection([...parts, ...(own === null || isOpenObject ? [] : [own])])
  }

  #ofType(type: unknown, located: Located, schema: JsonObject, direction: Direction, depth: number): string {
    switch (type) {
      case 'string':
        return schema.format === 'binary' ? 'Blob' : 'string'
      case 'integer':
      case 'number':
        return 'number'
      case 'boolean':
      case 'null':
        return type
      case 'array':
        return `readonly ${parenthesised(this.expression(childOf(located, 'items'), direction, depth))}[]`
      case 'object':
        return this.#object(located, schema, direction, depth)
      default:
        return 'unknown'
    }
  }

  #object(located: Located, schema: JsonObject, direction: Direction, depth: number): string {
    const properties = childOf(located, 'properties')
    const names = isObject(properties.value) ? Object.keys(properties.value) : []
    const required = new Set(Array.isArray(schema.required) ? schema.required : [])
    const lines = names.flatMap((name) => {
      const property = childOf(properties, name)
      const { value } = this.#documents.dereference(property)
      const hidden = direction === 'request' ? 'readOnly' : 'writeOnly'
      if (isObject(value) && value[hidden] === true) return []
      const type = this.expression(property, direction, depth + 1)
      return [...comment(value), `readonly ${propertyName(name)}${required.has(name) ? '' : '?'}: ${type}`]
    })
    const additional = schema.additionalProperties
    if (lines.length === 0) {
      if (additional === false) return objectOf('never')
      const type = isObject(additional)
        ? this.expression(childOf(located, 'additionalProperties'), direction, depth)
        : 'unknown'
      return objectOf(type)
    }
    if (isObject(additional)) lines.push('readonly [name: string]: unknown')
    const indent = INDENT.repeat(depth + 1)
    return `{\n${lines.map((line) => `${indent}${line}\n`).join('')}${INDENT.repeat(depth)}}`
  }

  #named(located: Located, reference: string, direction: Direction): string {
    const key = `${direction} ${located.file}#${located.pointer}`
    const known = this.#names.get(key)
    if (known !== undefined) return known
    const name = this.#freeName(identifier(decode(reference.slice(reference.lastIndexOf('/') + 1))), direction)
    this.#names.set(key, name)
    const index = this.#declarations.push('') - 1
    const description = comment(located.value).map((line) => `${line}\n`)
    this.#declarations[index] = `${description.join('')}export type ${name} = ${this.expression(located, direction)}`
    return name
  }

  #freeName(wanted: string, direction: Direction): string {
    const candidates = [wanted, `${wanted}${direction === 'request' ? 'Request' : 'Response'}`]
    let name = candidates.find((candidate) => !this.#taken.has(candidate))
    for (let number = 2; name === undefined; number += 1) {
      if (!this.#taken.has(`${wanted}${number}`)) name = `${wanted}${number}`
    }
    this.#taken.add(name)
    return name
  }
}

/** A name in PascalCase. */
export const identifier = (text: string): string => {
  const words = text.split(/[^A-Za-z0-9]+/)
  const name = words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('')
  return /^[A-Za-z]/.test(name) ? name : `Type${name}`
}

/** A comment from the description of a schema, on one line. */
export const comment = (value: unknown): string[] => {
  const description = isObject(value) && typeof value.description === 'string' ? value.description : ''
  const [firstLine = ''] = description.trim().split(/\r?\n/)
  return firstLine === '' ? [] : [`/** ${firstLine.replaceAll('*/', '* /')} */`]
}

export const propertyName = (name: string): string => (/^[A-Za-z_$][\w$]*$/.test(name) ? name : JSON.stringify(name))

/** Not `Record`, because a type alias may refer to itself only inside of an object type. */
const objectOf = (type: string): string => `{ readonly [name: string]: ${type} }`

const literal = (value: unknown): string =>
  typeof value === 'object' && value !== null ? 'unknown' : (JSON.stringify(value) ?? 'unknown')

/** `unknown` for no types. */
export const union = (types: readonly string[]): string => {
  const different = [...new Set(types)]
  if (different.includes('unknown') || different.length === 0) return 'unknown'
  return different.map((type) => (type.includes(' & ') ? parenthesised(type) : type)).join(' | ')
}

const intersection = (types: readonly string[]): string => {
  const different = [...new Set(types)].filter((type) => type !== 'unknown')
  if (different.length === 0) return 'unknown'
  return different
    .map((type) => (different.length > 1 && type.includes(' | ') ? parenthesised(type) : type))
    .join(' & ')
}

const parenthesised = (type: string): string => (/^[\w.]+$/.test(type) ? type : `(${type})`)
