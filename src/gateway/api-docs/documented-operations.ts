import { Type } from '@sinclair/typebox'
import type { Description, Operation } from '../../openapi/description.js'
import { childOf, DocumentError, type Documents, type JsonObject, type Located } from '../../openapi/documents.js'
import { convertBounds } from '../../openapi/schemas.js'
import { isObject } from '../../shared/is-object.js'
import { type AccessRules, WRITE_METHODS } from '../access.js'
import { errorResponses } from '../routes/error-responses.js'
import { securityOf } from '../routes/route-schema.js'
import { get, post, type RouteDeclaration } from '../routes/tables/declare.js'

type Section = Record<string, unknown>

export interface DocumentedOperations {
  readonly paths: Readonly<Record<string, Section>>
  /** By section and name: `schemas`, `parameters`, … */
  readonly components: Readonly<Record<string, Section>>
  readonly tags: readonly JsonObject[]
}

/**
 * The operations of a description for the document at `/api/docs`: with the paths, access rules and errors of the gateway,
 * and in one file of OpenAPI 3.1. `taken` are the components that the document has already.
 */
export const documentedOperations = (
  { documents, isVersion30, paths }: Description,
  access: AccessRules,
  taken: Readonly<Record<string, object | undefined>>
): DocumentedOperations => {
  const bundle = new Bundle(documents, isVersion30, taken)
  const documented = paths.map(({ template, operations }) => [
    template,
    Object.fromEntries(
      operations.map((operation) => [operation.method.toLowerCase(), documentedOperation(operation, bundle, access)])
    )
  ])
  const tags = childOf(documents.root, 'tags')
  return {
    paths: Object.fromEntries(documented),
    components: bundle.components,
    tags: Array.isArray(tags.value) ? tags.value.filter(isObject) : []
  }
}

const documentedOperation = (operation: Operation, bundle: Bundle, access: AccessRules): Section => {
  const copy = bundle.copy(operation.located)
  const { servers: _servers, callbacks: _callbacks, ...own } = isObject(copy) ? copy : {}
  const parameters = [operation.item, operation.located].flatMap((from) => {
    const list = bundle.copy(childOf(from, 'parameters'))
    return Array.isArray(list) ? list : []
  })
  const row = declarationOf(operation, access)
  return {
    ...own,
    ...(parameters.length > 0 && { parameters: withoutReplaced(parameters) }),
    responses: { ...gatewayErrors(operation, row, access), ...(isObject(own.responses) ? own.responses : {}) },
    security: securityOf(row, access)
  }
}

/** Those of the operation, which come last, replace those of the path. */
const withoutReplaced = (parameters: readonly unknown[]): unknown[] => {
  const byName = new Map<string, unknown>()
  for (const parameter of parameters) {
    const { $ref, in: where, name } = isObject(parameter) ? parameter : {}
    byName.set(typeof $ref === 'string' ? $ref : `${where} ${name}`, parameter)
  }
  return [...byName.values()]
}

/** The declaration that has the same access, errors and security as an operation. */
const declarationOf = (operation: Operation, rules: AccessRules): RouteDeclaration => {
  const { method, template } = operation
  // The type stands for the paths of `GATEWAY_ROUTES`. Those of rows can be outside of `/api/`.
  const path = operation.path as RouteDeclaration['path']
  const access = rules.accessOf(template, operation.access)
  const row = WRITE_METHODS.has(method) ? { ...post(path, '', Type.Any()), method } : get(path, '')
  // The method is one of those of the declaration, which TypeScript cannot see after the test.
  return { ...row, ...(access !== 'write' && { access }) } as RouteDeclaration
}

/** The error responses of the gateway in the form of OpenAPI. */
const gatewayErrors = ({ parameters }: Operation, row: RouteDeclaration, access: AccessRules): Section =>
  Object.fromEntries(
    Object.entries(errorResponses(row, access, parameters.length > 0 ? ['VALIDATION_FAILED'] : [])).map(
      ([status, { description, headers = {} }]) => [
        status,
        {
          description,
          headers: Object.fromEntries(Object.entries(headers).map(([name, schema]) => [name, { schema }])),
          content: { 'application/json': { schema: { $ref: '#/components/schemas/ErrorBody' } } }
        }
      ]
    )
  )

const MAX_DEPTH = 100

/** Keywords of schemas whose values are data, in which `$ref` has no meaning. */
const DATA_KEYWORDS: ReadonlySet<string> = new Set(['example', 'examples', 'default', 'enum', 'const'])

/** Copies parts of a description, and collects the components that they refer to. */
class Bundle {
  readonly #documents: Documents
  readonly #isVersion30: boolean
  readonly #taken: Readonly<Record<string, object | undefined>>
  /** The new reference of each target. */
  readonly #references = new Map<string, string>()
  readonly components: Record<string, Section> = {}

  constructor(documents: Documents, isVersion30: boolean, taken: Readonly<Record<string, object | undefined>>) {
    this.#documents = documents
    this.#isVersion30 = isVersion30
    this.#taken = taken
  }

  copy(located: Located, isSchema = false, depth = 0): unknown {
    const { value } = located
    if (typeof value !== 'object' || value === null) return value
    // Deeper than any published description.
    if (depth > MAX_DEPTH) return Array.isArray(value) ? [] : {}
    if (Array.isArray(value)) return value.map((_, index) => this.copy(childOf(located, index), isSchema, depth + 1))
    if (!isObject(value)) return value
    if (typeof value.$ref === 'string') return this.#reference(located, value, value.$ref, isSchema, depth)
    const entries = Object.keys(value).map((name) => {
      const child = childOf(located, name)
      if (isSchema && DATA_KEYWORDS.has(name)) return [name, child.value]
      if (isSchema && name === 'discriminator') return [name, this.#discriminator(child, depth)]
      return [name, this.copy(child, isSchema || name === 'schema', depth + 1)]
    })
    const copy = Object.fromEntries(entries)
    return isSchema && this.#isVersion30 ? asVersion31(copy) : copy
  }

  #reference(located: Located, value: JsonObject, reference: string, isSchema: boolean, depth: number): unknown {
    const target = this.#resolve(located, reference)
    if (target === null) return {}
    const section = /^\/components\/([^/]+)\/[^/]+$/.exec(target.pointer)?.[1] ?? (isSchema ? 'schemas' : null)
    if (section === null) return this.copy(target, isSchema, depth + 1)
    const { $ref: _, ...beside } = value
    return { ...(this.#isVersion30 ? {} : beside), $ref: this.#component(target, section) }
  }

  #discriminator(located: Located, depth: number): unknown {
    const { value } = located
    if (!isObject(value) || !isObject(value.mapping)) return this.copy(located, false, depth + 1)
    const mapping = Object.entries(value.mapping).map(([name, target]) => {
      const reference = /[/#.]/.test(String(target)) ? String(target) : `#/components/schemas/${target}`
      const resolved = this.#resolve(located, reference)
      return [name, resolved === null ? target : this.#component(resolved, 'schemas')]
    })
    return { ...value, mapping: Object.fromEntries(mapping) }
  }

  #component(target: Located, section: string): string {
    const key = `${target.file}#${target.pointer}`
    const known = this.#references.get(key)
    if (known !== undefined) return known
    this.components[section] ??= {}
    const components = this.components[section]
    const isTaken = (name: string): boolean =>
      Object.hasOwn(components, name) || Object.hasOwn(this.#taken[section] ?? {}, name)
    const base = /([^/]*)$/.exec(target.pointer || target.file)?.[1]?.replace(/[^\w.-]/g, '_') || 'schema'
    let name = base
    for (let number = 2; isTaken(name) || name === '__proto__'; number += 1) name = `${base}_${number}`
    const reference = `#/components/${section}/${name}`
    this.#references.set(key, reference)
    // Before its content, which may refer to it.
    components[name] = {}
    components[name] = this.copy(target, section === 'schemas')
    return reference
  }

  /** Null for a reference without a target: only those of requests are checked at start. */
  #resolve(from: Located, reference: string): Located | null {
    try {
      return this.#documents.resolve(from, reference)
    } catch (error) {
      if (error instanceof DocumentError) return null
      throw error
    }
  }
}

/** The keywords of 3.0 that 3.1 writes differently. */
const asVersion31 = (schema: Record<string, unknown>): unknown => {
  const { nullable, ...rest } = schema
  if (typeof nullable === 'boolean') {
    if (nullable && typeof rest.type === 'string') rest.type = [rest.type, 'null']
  } else if (nullable !== undefined) rest.nullable = nullable
  convertBounds(schema, rest)
  return rest
}
