import { childOf, DocumentError, Documents, isObject, type Located } from './documents.js'
import { ANY, RequestSchemas } from './schemas.js'
import { compileSchemas, type SchemaCompiler, type Validate } from './validators.js'

const METHODS = ['GET', 'HEAD', 'OPTIONS', 'POST', 'PUT', 'PATCH', 'DELETE'] as const
export type OperationMethod = (typeof METHODS)[number]

/** `public`: no token. `user`: a verified token. `admin`: the token of an admin. */
export const ACCESS_LEVELS = ['public', 'user', 'admin'] as const
export type AccessLevel = (typeof ACCESS_LEVELS)[number]

export interface Operation {
  readonly method: OperationMethod
  /** The path under `/api` as the router takes it, with its parameters renamed to `p0`, `p1`, …: `/api/floors/:p0`. */
  readonly path: `/api/${string}`
  /** The path as people read it: `/api/floors/{floorId}`. */
  readonly template: string
  /** The path as the description has it: `/floors/{floorId}`. */
  readonly source: string
  readonly summary: string
  readonly tags: readonly string[]
  readonly operationId: string | null
  /** From `x-gatehouse-access` or `security: []`; null where the document does not say. */
  readonly access: AccessLevel | null
  readonly body: OperationBody | null
  readonly parameters: readonly Parameter[]
}

export interface OperationBody {
  readonly isRequired: boolean
  /** The validator of JSON bodies; null if the operation takes no JSON. */
  readonly json: Validate | null
  readonly isMultipart: boolean
  /** Other media types that are forwarded without validation: `text/csv`, `image/*`. */
  readonly otherTypes: readonly string[]
}

export interface Parameter {
  readonly name: string
  readonly in: 'path' | 'query'
  /** The name that the router gives a path parameter. */
  readonly routerName: string | null
  readonly isRequired: boolean
  readonly allowsEmpty: boolean
  /** The characters between the entries of a list in one value; null if a list repeats its parameter. */
  readonly delimiter: string | null
  readonly isList: boolean
  /** Whether the value is JSON text (`content` instead of `schema`). */
  readonly isJson: boolean
  readonly validate: Validate
}

export interface Description {
  readonly operations: readonly Operation[]
  /** Faults that do not stop the start. */
  readonly warnings: readonly string[]
}

/** All errors of a description, one per line. */
export class DescriptionError extends Error {
  override readonly name = 'DescriptionError'
  readonly errors: readonly string[]

  constructor(errors: readonly string[]) {
    super(errors.join('\n'))
    this.errors = errors
  }
}

/**
 * Reads an OpenAPI 3.0 or 3.1 description and compiles the validators of its requests. `isOwnPath` says which paths the
 * gateway serves itself. Throws a `DescriptionError` with all errors.
 */
export const readDescription = (file: string, isOwnPath: (path: string) => boolean): Description => {
  let documents: Documents
  try {
    documents = new Documents(file)
  } catch (error) {
    throw error instanceof DocumentError ? new DescriptionError([error.message]) : error
  }
  return new Reader(documents, isOwnPath).read()
}

class Reader {
  readonly #documents: Documents
  readonly #isOwnPath: (path: string) => boolean
  readonly #errors: string[] = []
  readonly #warnings: string[] = []

  constructor(documents: Documents, isOwnPath: (path: string) => boolean) {
    this.#documents = documents
    this.#isOwnPath = isOwnPath
  }

  read(): Description {
    const { root } = this.#documents
    const version = isObject(root.value) ? root.value.openapi : undefined
    if (typeof version !== 'string' || !/^3\.[01](?:\.\d+)?(?:-.*)?$/.test(version)) {
      const found =
        typeof version === 'string' || typeof version === 'number' ? `"openapi" is ${version}` : 'there is no "openapi"'
      throw new DescriptionError([this.#documents.error(root, `${found}, supported are 3.0 and 3.1`).message])
    }
    const schemas = new RequestSchemas(this.#documents, version.startsWith('3.0'), (error) =>
      this.#errors.push(error.message)
    )
    const found = this.#foundOperations(schemas)
    const compile = compileSchemas(schemas, (message) => this.#errors.push(message))
    const operations = found.map((make) => make(compile))
    if (this.#errors.length > 0) throw new DescriptionError([...new Set(this.#errors)])
    return { operations, warnings: this.#warnings }
  }

  #foundOperations(schemas: RequestSchemas): MakeOperation[] {
    const { root } = this.#documents
    const paths = childOf(root, 'paths')
    if (paths.value === undefined) return []
    if (!isObject(paths.value)) {
      this.#errors.push(this.#documents.error(paths, 'must be an object').message)
      return []
    }
    const prefix = this.#guard(childOf(root, 'servers', 0), () => serverPrefix(childOf(root, 'servers', 0).value)) ?? ''
    const seen = new Map<string, Located>()
    return Object.keys(paths.value)
      .filter((path) => path.startsWith('/'))
      .flatMap((path) => this.#operationsOfPath(childOf(paths, path), prefix, path, schemas, seen))
  }

  #operationsOfPath(
    located: Located,
    prefix: string,
    path: string,
    schemas: RequestSchemas,
    seen: Map<string, Located>
  ): MakeOperation[] {
    const item = this.#guard(located, () => this.#documents.dereference(located))
    if (item === null) return []
    if (!isObject(item.value)) {
      this.#errors.push(this.#documents.error(item, 'must be an object').message)
      return []
    }
    const template = underApi(prefix + path)
    const route = this.#guard(located, () => routeOf(template))
    if (route === null) return []
    return METHODS.flatMap((method) => {
      const operation = childOf(item, method.toLowerCase())
      if (operation.value === undefined) return []
      if (this.#isOwnPath(template)) {
        this.#warnings.push(`${this.#documents.describe(operation)}: ignored, the gateway serves ${template} itself`)
        return []
      }
      const key = `${method} ${route.shape}`
      const other = seen.get(key)
      if (other !== undefined) {
        const message = `the same method and path as ${this.#documents.describe(other)}`
        this.#errors.push(this.#documents.error(operation, message).message)
        return []
      }
      seen.set(key, operation)
      const make = this.#guard(operation, () =>
        this.#operation(operation, item, { method, path: route.path, template, source: path }, route, schemas)
      )
      return make === null ? [] : [make]
    })
  }

  #operation(
    located: Located,
    item: Located,
    identity: Pick<Operation, 'method' | 'path' | 'template' | 'source'>,
    route: Route,
    schemas: RequestSchemas
  ): MakeOperation {
    if (!isObject(located.value)) throw this.#documents.error(located, 'must be an object')
    const { summary, tags, operationId } = located.value
    const access = this.#access(located, item)
    const parameters = this.#parameters(located, item, route, schemas)
    const body = this.#body(childOf(located, 'requestBody'), schemas)
    return (compile) => ({
      ...identity,
      summary: typeof summary === 'string' ? summary : '',
      tags: Array.isArray(tags) ? tags.filter((tag) => typeof tag === 'string') : [],
      operationId: typeof operationId === 'string' ? operationId : null,
      access,
      body: body?.(compile) ?? null,
      parameters: parameters.map((make) => make(compile))
    })
  }

  #access(operation: Located, item: Located): AccessLevel | null {
    for (const from of [operation, item]) {
      const stated = childOf(from, 'x-gatehouse-access')
      if (stated.value === undefined) continue
      const level = ACCESS_LEVELS.find((each) => each === stated.value)
      if (level === undefined) throw this.#documents.error(stated, `must be one of ${ACCESS_LEVELS.join(', ')}`)
      return level
    }
    const security = childOf(operation, 'security').value ?? childOf(this.#documents.root, 'security').value
    return Array.isArray(security) && security.length === 0 ? 'public' : null
  }

  #body(located: Located, schemas: RequestSchemas): ((compile: SchemaCompiler) => OperationBody) | null {
    if (located.value === undefined) return null
    const body = this.#documents.dereference(located)
    if (!isObject(body.value)) throw this.#documents.error(body, 'must be an object')
    const isRequired = body.value.required === true
    const content = childOf(body, 'content')
    const types = isObject(content.value) ? Object.keys(content.value) : []
    const jsonType = types.find((type) => isJsonType(type))
    const schema = jsonType === undefined ? null : childOf(content, jsonType, 'schema')
    const name = schema === null ? null : schema.value === undefined ? ANY : schemas.add(schema)
    return (compile) => ({
      isRequired,
      json: name === null ? null : compile.body(name),
      isMultipart: types.some((type) => mediaTypeOf(type) === 'multipart/form-data'),
      otherTypes: types.map(mediaTypeOf).filter((type) => !isJsonType(type) && type !== 'multipart/form-data')
    })
  }

  #parameters(
    operation: Located,
    item: Located,
    route: Route,
    schemas: RequestSchemas
  ): ((compile: SchemaCompiler) => Parameter)[] {
    const found = new Map<string, Located>()
    // Those of the operation replace those of the path.
    for (const from of [item, operation]) {
      const list = childOf(from, 'parameters')
      if (list.value === undefined) continue
      if (!Array.isArray(list.value)) throw this.#documents.error(list, 'must be a list')
      list.value.forEach((_, index) => {
        const parameter = this.#documents.dereference(childOf(list, index))
        if (!isObject(parameter.value) || typeof parameter.value.name !== 'string') {
          throw this.#documents.error(parameter, 'a parameter needs a name')
        }
        found.set(`${parameter.value.in} ${parameter.value.name}`, parameter)
      })
    }
    return [...found.values()].flatMap((located) => this.#parameter(located, route, schemas))
  }

  #parameter(located: Located, route: Route, schemas: RequestSchemas): ((compile: SchemaCompiler) => Parameter)[] {
    const { value } = located
    if (!isObject(value) || typeof value.name !== 'string') return []
    const where = value.in
    if (where !== 'path' && where !== 'query') return []
    const routerName = where === 'path' ? route.names.get(value.name) : null
    if (routerName === undefined) return []
    const content = isObject(value.content) ? Object.keys(value.content)[0] : undefined
    const isJson = content !== undefined && isJsonType(content)
    if (content !== undefined && !isJson) return []
    const schema = content === undefined ? childOf(located, 'schema') : childOf(located, 'content', content, 'schema')
    if (schema.value === undefined) return []
    const types = typesOf(this.#documents, schema)
    const style = typeof value.style === 'string' ? value.style : where === 'query' ? 'form' : 'simple'
    // The properties of such an object are parameters of their own, with names that other parameters may have.
    if (!isJson && types.has('object')) return []
    if (!SUPPORTED_STYLES.has(style)) return []
    const isExploded = typeof value.explode === 'boolean' ? value.explode : style === 'form'
    const definition = schemas.add(schema)
    const parameter = {
      name: value.name,
      in: where,
      routerName,
      isRequired: where === 'path' || value.required === true,
      allowsEmpty: value.allowEmptyValue === true,
      isList: !isJson && types.has('array'),
      delimiter: style === 'form' && isExploded ? null : (DELIMITERS[style] ?? ','),
      isJson
    } as const
    return [
      (compile) => ({ ...parameter, validate: isJson ? compile.body(definition) : compile.parameter(definition) })
    ]
  }

  /** The result, or null after reporting the fault that it threw. */
  #guard<Result>(located: Located, work: () => Result): Result | null {
    try {
      return work()
    } catch (error) {
      const fault = error instanceof DocumentError ? error : this.#documents.error(located, String(error))
      this.#errors.push(fault.message)
      return null
    }
  }
}

type MakeOperation = (compile: SchemaCompiler) => Operation

const SUPPORTED_STYLES = new Set(['form', 'simple', 'spaceDelimited', 'pipeDelimited'])
const DELIMITERS: Readonly<Record<string, string>> = { spaceDelimited: ' ', pipeDelimited: '|' }

const mediaTypeOf = (type: string): string => type.replace(/;.*$/s, '').trim().toLowerCase()

const isJsonType = (type: string): boolean => /^application\/(?:json|[\w.!#$&^+-]+\+json)$/.test(mediaTypeOf(type))

const typesOf = (documents: Documents, located: Located, depth = 0): ReadonlySet<string> => {
  const { value } = documents.dereference(located)
  if (!isObject(value) || depth > 5) return new Set()
  const { type } = value
  const own = Array.isArray(type)
    ? type.filter((each) => typeof each === 'string')
    : typeof type === 'string'
      ? [type]
      : []
  const combined = ['allOf', 'anyOf', 'oneOf'].flatMap((keyword) => {
    const list = value[keyword]
    if (!Array.isArray(list)) return []
    const resolved = documents.dereference(located)
    return list.flatMap((_, index) => [...typesOf(documents, childOf(resolved, keyword, index), depth + 1)])
  })
  return new Set([...own, ...combined])
}

/** The path of the first server, with the defaults of its variables and without a slash at its end. */
const serverPrefix = (server: unknown): string => {
  if (!isObject(server) || typeof server.url !== 'string') return ''
  const variables = isObject(server.variables) ? server.variables : {}
  const url = server.url.replace(/\{([^}]*)\}/g, (_, name: string) => {
    const variable = variables[name]
    return isObject(variable) && typeof variable.default === 'string' ? variable.default : ''
  })
  const path = /^[a-z][a-z0-9+.-]*:\/\/[^/]*(.*)$/i.exec(url)?.[1] ?? url
  const [withoutQuery = ''] = path.split(/[?#]/)
  const trimmed = withoutQuery.replace(/\/+$/, '')
  return trimmed === '' || trimmed.startsWith('/') ? trimmed : `/${trimmed}`
}

const underApi = (path: string): string => (path === '/api' || path.startsWith('/api/') ? path : `/api${path}`)

interface Route {
  readonly path: `/api/${string}`
  /** The same for all templates that match the same paths. */
  readonly shape: string
  /** The router's name of each parameter. */
  readonly names: ReadonlyMap<string, string>
}

/** A path template in the syntax of the router. */
const routeOf = (template: string): Route => {
  const names = new Map<string, string>()
  let path = ''
  let shape = ''
  let end = 0
  for (const match of template.matchAll(/\{([^{}/]+)\}/g)) {
    const [whole, name = ''] = match
    if (names.has(name)) throw new Error(`the path has two parameters "${name}"`)
    const routerName = `p${names.size}`
    names.set(name, routerName)
    const literal = template.slice(end, match.index)
    end = match.index + whole.length
    const next = template[end] ?? '/'
    path += literalPath(literal)
    shape += `${literal}{}`
    // A parameter that is a whole segment ends at the next slash; before other text it ends at the first such character.
    path += next === '/' ? `:${routerName}` : `:${routerName}(^[^/${escapeInClass(next)}]+)`
    if (next === '{') throw new Error('two parameters follow each other without a character between them')
  }
  const rest = template.slice(end)
  path += literalPath(rest)
  shape += rest
  if (/[{}]/.test(shape.replaceAll('{}', ''))) throw new Error('the braces of the path do not match')
  if (!isApiPath(path)) throw new Error('the path is not below /api/')
  return { path, shape, names }
}

const isApiPath = (path: string): path is `/api/${string}` => path.startsWith('/api/')

/** The router takes a colon for the start of a parameter and an asterisk for a wildcard. */
const literalPath = (literal: string): string => {
  if (literal.includes('*')) throw new Error('the path contains "*"')
  return literal.replaceAll(':', '::')
}

const escapeInClass = (character: string): string => character.replace(/[\\\]^-]/g, '\\$&')
