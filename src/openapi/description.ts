import { ACCESS_LEVELS, type AccessLevel } from '../shared/access-level.js'
import { SettingsError } from '../shared/env.js'
import { messageOf } from '../shared/error-message.js'
import { isObject } from '../shared/is-object.js'
import { childOf, DocumentError, Documents, type Located } from './documents.js'
import { endlessSchemas } from './endless-schemas.js'
import { type MakeParameter, type Parameter, readParameters } from './parameters.js'
import { API_AREA, type PathArea, type PathTemplate, readTemplate, serverPrefix } from './path-template.js'
import { type OperationBody, readRequestBody } from './request-body.js'
import { RequestSchemas } from './schemas.js'
import { compileSchemas, type SchemaCompiler } from './validators.js'
import { OWN_PATH_WARNING, type RouteWarning } from './warnings.js'

const METHODS = ['GET', 'HEAD', 'OPTIONS', 'POST', 'PUT', 'PATCH', 'DELETE'] as const
export type OperationMethod = (typeof METHODS)[number]

export interface Operation {
  readonly method: OperationMethod
  readonly template: PathTemplate['template']
  readonly path: PathTemplate['path']
  /** From `x-gatehouse-access`, or `public` from `security: []`; null if the document has neither. */
  readonly access: AccessLevel | null
  readonly body: OperationBody | null
  readonly parameters: readonly Parameter[]
  /** The operation object, and the path item object that contains it. */
  readonly located: Located
  readonly item: Located
}

/** A path with its operations. */
export interface DescribedPath {
  readonly template: string
  readonly path: PathTemplate['path']
  /** `x-gatehouse-access` of the path, for methods that the document does not have. */
  readonly access: AccessLevel | null
  /** `x-gatehouse-secret-path` of the path or of one of its operations. */
  readonly secretPath: boolean
  readonly operations: readonly Operation[]
}

export interface Description {
  readonly documents: Documents
  readonly isVersion30: boolean
  readonly paths: readonly DescribedPath[]
  readonly warnings: readonly RouteWarning[]
  /** Called before each request is validated. */
  startRequest(): void
}

/**
 * Reads an OpenAPI 3.0 or 3.1 description and compiles the validators of its requests. `isOwnPath` says which paths the
 * gateway serves itself, `maxBodyBytes` how much validating a body may cost, and `area` where the paths are served. Throws a `SettingsError` with one line per error.
 */
export const readDescription = (
  file: string,
  isOwnPath: (template: string) => boolean,
  maxBodyBytes = 1024 * 1024,
  area: PathArea = API_AREA
): Description => {
  let documents: Documents
  try {
    documents = new Documents(file)
  } catch (error) {
    throw error instanceof DocumentError ? new SettingsError([error.message]) : error
  }
  return new DescriptionReader(documents, isOwnPath, area).read(maxBodyBytes / BYTES_PER_EVALUATION)
}

/** A body with more references to schemas than one in so many bytes is rejected. */
const BYTES_PER_EVALUATION = 5

type Make<Result> = (compile: SchemaCompiler) => Result

interface FoundPath extends Pick<DescribedPath, 'template' | 'path'> {
  access: AccessLevel | null
  secretPath: boolean
  readonly operations: Make<Operation>[]
}

class DescriptionReader {
  readonly #documents: Documents
  readonly #isOwnPath: (template: string) => boolean
  readonly #area: PathArea
  readonly #isVersion30: boolean
  readonly #schemas: RequestSchemas
  readonly #textSchemas: RequestSchemas
  readonly #errors: string[] = []
  /** By location and message: a parameter that several operations refer to has one. */
  readonly #warnings = new Map<string, RouteWarning>()
  /** The operation that is being read: an error in a component does not name one. */
  #operationName = ''
  /** By the shape of their template. */
  readonly #paths = new Map<string, FoundPath>()
  /** By method and shape. */
  readonly #operations = new Map<string, Located>()

  constructor(documents: Documents, isOwnPath: (template: string) => boolean, area: PathArea) {
    this.#documents = documents
    this.#isOwnPath = isOwnPath
    this.#area = area
    this.#isVersion30 = versionOf(documents).startsWith('3.0')
    const options = {
      documents,
      isVersion30: this.#isVersion30,
      report: ({ message }: DocumentError, { pointer }: Located) =>
        void this.#errors.push(pointer.startsWith('/paths/') ? message : `${message} (used by ${this.#operationName})`)
    }
    this.#schemas = new RequestSchemas({ ...options, isText: false })
    this.#textSchemas = new RequestSchemas({ ...options, isText: true })
  }

  read(maxEvaluations: number): Description {
    this.#readPaths()
    for (const location of [...endlessSchemas(this.#schemas), ...endlessSchemas(this.#textSchemas)]) {
      this.#errors.push(`${location}: the schema refers to itself for the same value`)
    }
    const errors = [...this.#documents.errors.map(({ message }) => message), ...this.#errors]
    if (errors.length > 0) throw new SettingsError([...new Set(errors)])
    const compile = compileSchemas(this.#schemas, this.#textSchemas, maxEvaluations)
    if (compile.errors.length > 0) throw new SettingsError(compile.errors)
    const paths = [...this.#paths.values()].map((path) => ({
      ...path,
      operations: path.operations.map((make) => make(compile))
    }))
    return {
      documents: this.#documents,
      isVersion30: this.#isVersion30,
      paths,
      warnings: [...this.#warnings.values()],
      startRequest: compile.startRequest
    }
  }

  #readPaths(): void {
    const { root } = this.#documents
    const paths = childOf(root, 'paths')
    if (!isObject(paths.value)) {
      this.#errors.push(this.#documents.error(paths, 'must be an object of paths').message)
      return
    }
    this.#checkExtensions(root, [])
    this.#checkExtensions(paths, [])
    const prefix = serverPrefix(childOf(root, 'servers', 0).value)
    const names = Object.keys(paths.value).filter((name) => !name.startsWith('x-'))
    // Those with a fragment last: an operation without one takes precedence.
    for (const path of names.toSorted((one, other) => Number(one.includes('#')) - Number(other.includes('#')))) {
      const located = childOf(paths, path)
      this.#guard(located, () => {
        if (!path.startsWith('/')) throw new Error('a path must begin with "/"')
        const [withoutFragment = ''] = path.split('#')
        this.#readPath(located, readTemplate(prefix + withoutFragment, this.#area), path !== withoutFragment)
      })
    }
  }

  #readPath(located: Located, template: PathTemplate, hasFragment: boolean): void {
    const item = this.#documents.dereference(located)
    if (!isObject(item.value)) throw this.#documents.error(item, 'must be an object')
    if (item !== located) this.#checkBesideReference(located)
    this.#checkExtensions(item, EXTENSIONS)
    this.#warnOfIgnoredFields(item)
    const access = this.#guard(item, () => this.#statedAccess(located) ?? this.#statedAccess(item))
    const methods = METHODS.filter((method) => childOf(item, method.toLowerCase()).value !== undefined)
    if (methods.length === 0) return
    if (this.#isOwnPath(template.template)) {
      for (const method of methods) this.#warn(childOf(item, method.toLowerCase()), OWN_PATH_WARNING)
      return
    }
    const found: FoundPath = this.#paths.get(template.shape) ?? {
      ...template,
      access: null,
      secretPath: false,
      operations: []
    }
    found.access ??= access
    const described = [located, item, ...methods.map((method) => childOf(item, method.toLowerCase()))]
    for (const each of described) {
      if (this.#guard(each, () => this.#statedSecretPath(each, template)) === true) found.secretPath = true
    }
    this.#paths.set(template.shape, found)
    for (const method of methods) {
      const operation = childOf(item, method.toLowerCase())
      if (hasFragment && this.#isVariant(operation, item, `${method} ${template.shape}`)) continue
      this.#guard(operation, () => found.operations.push(this.#operation(operation, item, method, template, access)))
    }
  }

  /**
   * Whether an operation of a path such as `/files/{id}#share` describes another use of an operation without the fragment.
   * Requests do not contain the fragment, so that only one of them can be served.
   */
  #isVariant(operation: Located, item: Located, key: string): boolean {
    const served = this.#operations.get(key)
    if (served === undefined || served.pointer.includes('#')) {
      this.#warn(operation, 'fragment of the path ignored, requests do not contain it')
      return false
    }
    this.#warn(operation, `operation ignored, ${this.#documents.describe(served)} is the same without a fragment`)
    // It would not have the access level that it states.
    for (const located of [item, operation]) this.#checkExtensions(located, [])
    return true
  }

  #operation(
    located: Located,
    item: Located,
    method: OperationMethod,
    template: PathTemplate,
    pathAccess: AccessLevel | null
  ): Make<Operation> {
    const { value } = located
    if (!isObject(value)) throw this.#documents.error(located, 'must be an object')
    if (value.$ref !== undefined) throw this.#documents.error(located, 'an operation must not be a $ref')
    const key = `${method} ${template.shape}`
    const other = this.#operations.get(key)
    if (other !== undefined) throw new Error(`the same method and path as ${this.#documents.describe(other)}`)
    this.#operations.set(key, located)
    this.#operationName = `${method} ${template.template}`
    this.#checkExtensions(located, EXTENSIONS)
    const security = childOf(located, 'security').value ?? childOf(this.#documents.root, 'security').value
    const isOpen = Array.isArray(security) && security.length === 0
    const stated = this.#guard(located, () => this.#statedAccess(located)) ?? pathAccess
    const parameters: MakeParameter[] = readParameters(
      {
        documents: this.#documents,
        schemas: this.#schemas,
        textSchemas: this.#textSchemas,
        guard: (at, step) => this.#guard(at, step),
        warn: (at, message) => this.#warn(at, message)
      },
      located,
      item,
      template
    )
    const body = this.#body(childOf(located, 'requestBody'), method)
    return (compile) => ({
      method,
      template: template.template,
      path: template.path,
      access: stated ?? (isOpen ? 'public' : null),
      body: body?.(compile) ?? null,
      parameters: parameters.map((make) => make(compile)),
      located,
      item
    })
  }

  #body(located: Located, method: OperationMethod): Make<OperationBody> | null {
    if (located.value === undefined) return null
    if (BODILESS_METHODS.has(method)) {
      this.#warn(located, `requestBody ignored, the gateway forwards ${method} without a body`)
      return null
    }
    return this.#guard(located, () =>
      readRequestBody(this.#documents, located, this.#schemas, (at, message) => this.#warn(at, message))
    )
  }

  /** A misspelled or misplaced access level must not leave an operation unprotected. */
  #checkExtensions(located: Located, allowed: readonly string[]): void {
    for (const name of Object.keys(isObject(located.value) ? located.value : {})) {
      if (!/^x-gatehouse/i.test(name) || allowed.includes(name)) continue
      const message = `has no effect here, only ${EXTENSIONS.join(' and ')} of an operation or a path have one`
      this.#errors.push(this.#documents.error(childOf(located, name), message).message)
    }
  }

  /** Fields beside `$ref` of a path would be ignored, except for extensions of the gateway. */
  #checkBesideReference(located: Located): void {
    for (const name of Object.keys(isObject(located.value) ? located.value : {})) {
      if (['$ref', 'summary', 'description'].includes(name) || name.startsWith('x-')) continue
      this.#errors.push(this.#documents.error(childOf(located, name), 'is not supported beside $ref').message)
    }
    this.#checkExtensions(located, EXTENSIONS)
  }

  #warnOfIgnoredFields(item: Located): void {
    for (const name of Object.keys(isObject(item.value) ? item.value : {})) {
      if (PATH_ITEM_FIELDS.has(name) || name.startsWith('x-')) continue
      this.#warn(childOf(item, name), 'unknown method or field ignored')
    }
  }

  #statedAccess(from: Located): AccessLevel | null {
    const stated = childOf(from, ACCESS_EXTENSION)
    if (stated.value === undefined) return null
    const level = ACCESS_LEVELS.find((each) => each === stated.value)
    if (level === undefined) throw this.#documents.error(stated, `must be one of ${ACCESS_LEVELS.join(', ')}`)
    return level
  }

  #statedSecretPath(from: Located, { template }: PathTemplate): boolean {
    const stated = childOf(from, SECRET_PATH_EXTENSION)
    if (stated.value === undefined || stated.value === false) return false
    if (stated.value !== true) throw this.#documents.error(stated, 'must be true or false')
    if (!template.includes('{')) throw this.#documents.error(stated, 'the path has no parameter')
    return true
  }

  #warn(located: Located, message: string): void {
    const location = this.#documents.describe(located)
    this.#warnings.set(`${location} ${message}`, { location, message })
  }

  /** The result, or null after reporting the error that the step threw. */
  #guard<Result>(located: Located, step: () => Result): Result | null {
    try {
      return step()
    } catch (error) {
      const { message } = error instanceof DocumentError ? error : this.#documents.error(located, messageOf(error))
      this.#errors.push(message)
      return null
    }
  }
}

const ACCESS_EXTENSION = 'x-gatehouse-access'
const SECRET_PATH_EXTENSION = 'x-gatehouse-secret-path'
const EXTENSIONS = [ACCESS_EXTENSION, SECRET_PATH_EXTENSION]

const PATH_ITEM_FIELDS: ReadonlySet<string> = new Set([
  ...METHODS.map((method) => method.toLowerCase()),
  ...['$ref', 'summary', 'description', 'servers', 'parameters']
])

/** Methods that the forwarder sends without a body. */
const BODILESS_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])

const VERSION_IS_TEXT = 'must be a text, such as "3.1.0"'

const versionOf = (documents: Documents): string => {
  const version = isObject(documents.root.value) ? documents.root.value.openapi : undefined
  if (typeof version === 'string' && /^3\.[01](?:\.\d+)?(?:-.*)?$/.test(version)) return version
  if (typeof version === 'number') {
    // `openapi: 3.1` in YAML.
    throw new SettingsError([documents.error(childOf(documents.root, 'openapi'), VERSION_IS_TEXT).message])
  }
  const found = typeof version === 'string' ? `"openapi" is ${version}` : 'there is no "openapi"'
  throw new SettingsError([documents.error(documents.root, `${found}, supported are 3.0 and 3.1`).message])
}
