import { isObject } from '../shared/is-object.js'
import { jsonOrUndefined } from '../shared/json-or-undefined.js'
import { childOf, type Documents, type JsonObject, type Located } from './documents.js'
import type { PathTemplate } from './path-template.js'
import { isJsonType, mediaTypeOf, NO_SCHEMA_WARNING } from './request-body.js'
import { ANY, type RequestSchemas } from './schemas.js'
import type { FieldError, SchemaCompiler, Validate } from './validators.js'

export interface Parameter {
  readonly name: string
  /** The name that the router gives a path parameter; null for a query parameter. */
  readonly routerName: string | null
  readonly isRequired: boolean
  readonly allowsEmpty: boolean
  /** The character between the entries of a list in one value; null if a list repeats its parameter. */
  readonly delimiter: string | null
  readonly isList: boolean
  /** Whether the value is JSON text (`content` instead of `schema`). */
  readonly isJson: boolean
  /** The type of a value, or of the entries of a list, that must be a number; null for other values. */
  readonly numericType: 'integer' | 'number' | null
  readonly validate: Validate
}

export type MakeParameter = (compile: SchemaCompiler) => Parameter

const LOCATIONS: readonly unknown[] = ['path', 'query', 'header', 'cookie']
const DELIMITERS: Readonly<Record<string, string>> = { form: ',', simple: ',', spaceDelimited: ' ', pipeDelimited: '|' }

export interface ParameterReader {
  readonly documents: Documents
  /** For JSON texts, and for other texts. */
  readonly schemas: RequestSchemas
  readonly textSchemas: RequestSchemas
  /** Runs a step and reports the error that it throws. */
  readonly guard: <Result>(located: Located, step: () => Result) => Result | null
  readonly warn: (located: Located, message: string) => void
}

/** The parameters of an operation that the gateway validates. Those of the operation replace those of its path. */
export const readParameters = (
  reader: ParameterReader,
  operation: Located,
  item: Located,
  template: PathTemplate
): MakeParameter[] => {
  const { documents, guard } = reader
  const found = new Map<string, Located>()
  for (const from of [item, operation]) {
    const list = childOf(from, 'parameters')
    if (list.value === undefined) continue
    const entries: readonly unknown[] | null = guard(list, () => {
      if (!Array.isArray(list.value)) throw documents.error(list, 'must be a list')
      return list.value
    })
    for (const index of entries?.keys() ?? []) {
      guard(list, () => {
        const parameter = documents.dereference(childOf(list, index))
        const { name, in: where } = isObject(parameter.value) ? parameter.value : {}
        if (typeof name !== 'string') throw documents.error(parameter, 'a parameter needs a name')
        if (!LOCATIONS.includes(where)) {
          throw documents.error(childOf(parameter, 'in'), `must be one of ${LOCATIONS.join(', ')}`)
        }
        found.set(`${where} ${name}`, parameter)
      })
    }
  }
  return [...found.values()].flatMap((located) => guard(located, () => readParameter(reader, located, template)) ?? [])
}

/** Null for a parameter that is not validated: a header, a cookie, or an object in several parameters. */
const readParameter = (
  { documents, schemas, textSchemas, warn }: ParameterReader,
  located: Located,
  { names }: PathTemplate
): MakeParameter | null => {
  const { value } = located
  if (!isObject(value) || typeof value.name !== 'string') return null
  const { name, in: where } = value
  if (where !== 'path' && where !== 'query') return null
  const routerName = where === 'path' ? names.get(name) : null
  if (routerName === undefined) throw documents.error(located, `the path has no parameter "${name}"`)
  const schema = schemaOf(documents, located, value)
  if (schema === null) return null
  if (schema.located.value === null) warn(schema.located, NO_SCHEMA_WARNING)
  const types = typesOf(documents, schema.located)
  const style = typeof value.style === 'string' ? value.style : where === 'query' ? 'form' : 'simple'
  const delimiter = Object.hasOwn(DELIMITERS, style) ? DELIMITERS[style] : undefined
  // The properties of an object are parameters of their own, with names that other parameters may have.
  if (!schema.isJson && (types.has('object') || delimiter === undefined)) return null
  const isExploded = typeof value.explode === 'boolean' ? value.explode : style === 'form'
  const definition = schema.located.value === null ? ANY : (schema.isJson ? schemas : textSchemas).add(schema.located)
  const parameter = {
    name,
    routerName,
    isRequired: where === 'path' || value.required === true,
    allowsEmpty: value.allowEmptyValue === true,
    isList: !schema.isJson && types.has('array'),
    delimiter: where === 'query' && isExploded ? null : (delimiter ?? null),
    isJson: schema.isJson,
    numericType: schema.isJson ? null : numericTypeOf(documents, schema.located)
  } as const
  return (compile) => ({
    ...parameter,
    validate: schema.isJson ? compile.body(definition) : compile.parameter(definition)
  })
}

/** Null for a value in a format that the gateway does not read. */
const schemaOf = (documents: Documents, located: Located, parameter: JsonObject) => {
  if (parameter.content === undefined) {
    const schema = childOf(located, 'schema')
    if (schema.value === undefined) throw documents.error(located, 'a parameter needs a schema or content')
    return { located: schema, isJson: false }
  }
  const types = isObject(parameter.content) ? Object.keys(parameter.content) : []
  const [type] = types
  if (type === undefined || types.length > 1)
    throw documents.error(childOf(located, 'content'), 'must have one media type')
  const schema = childOf(located, 'content', type, 'schema')
  return isJsonType(mediaTypeOf(type)) && schema.value !== undefined ? { located: schema, isJson: true } : null
}

const MAX_DEPTH = 5

/** The types that a schema allows, as far as it and the schemas that it combines name them. */
const typesOf = (documents: Documents, located: Located, depth = 0): ReadonlySet<string> => {
  const schema = documents.dereference(located)
  if (!isObject(schema.value) || depth > MAX_DEPTH) return new Set()
  const own = [schema.value.type].flat().filter((type) => typeof type === 'string')
  const combined = ['allOf', 'anyOf', 'oneOf'].flatMap((keyword) => {
    const list = childOf(schema, keyword)
    if (!Array.isArray(list.value)) return []
    return list.value.flatMap((_, index) => [...typesOf(documents, childOf(list, index), depth + 1)])
  })
  return new Set([...own, ...combined])
}

const numericTypeOf = (documents: Documents, located: Located): Parameter['numericType'] => {
  const schema = documents.dereference(located)
  const types = isObject(schema.value) ? [schema.value.type].flat() : []
  if (types.length === 1 && types[0] === 'array') return numericTypeOf(documents, childOf(schema, 'items'))
  if (types.length === 0 || !types.every((type) => type === 'integer' || type === 'number')) return null
  return types.includes('number') ? 'number' : 'integer'
}

/** Parameters as the router and the query parser give them: decoded texts, and a list for a repeated name. */
export type ParameterValues = Readonly<Record<string, string | readonly string[] | undefined>>

/** The errors of these parameters; `path` is the name of the parameter. Undeclared parameters are allowed. */
export const parameterErrors = (parameters: readonly Parameter[], values: ParameterValues): FieldError[] => {
  const errors: FieldError[] = []
  for (const parameter of parameters) {
    const key = parameter.routerName ?? parameter.name
    const message = errorOf(parameter, Object.hasOwn(values, key) ? values[key] : undefined)
    if (message !== null) errors.push({ path: parameter.name, message })
  }
  return errors
}

const errorOf = (parameter: Parameter, given: ParameterValues[string]): string | null => {
  if (given === undefined) return parameter.isRequired ? 'is required' : null
  if (given === '' && parameter.allowsEmpty) return null
  if (parameter.isList) return firstError(parameter, entriesOf(parameter, given))
  if (typeof given !== 'string') return 'must not be repeated'
  if (!parameter.isJson) return firstError(parameter, given)
  const value = jsonOrUndefined(given)
  return value === undefined ? 'must be JSON' : firstError(parameter, value)
}

const firstError = ({ validate, numericType }: Parameter, value: unknown): string | null => {
  if (numericType !== null && ![value].flat().every(isNumber)) return `must be ${numericType}`
  return validate(value)[0]?.message ?? null
}

/** Decimal numbers. JavaScript, and so Ajv, would also convert texts such as `0x10` and ` 5`. */
const isNumber = (value: unknown): boolean =>
  typeof value === 'string' && /^-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?$/.test(value)

/** Always a new list, because the validation converts its entries in place. */
const entriesOf = ({ delimiter }: Parameter, given: string | readonly string[]): string[] => {
  const values = typeof given === 'string' ? [given] : [...given]
  return delimiter === null ? values : values.flatMap((value) => value.split(delimiter))
}
