import {
  _,
  Ajv2020,
  type AnySchemaObject,
  type ErrorObject,
  type FuncKeywordDefinition,
  type KeywordDefinition,
  type Options,
  type ValidateFunction
} from 'ajv/dist/2020.js'
import ajvFormats from 'ajv-formats'
import { messageOf } from '../shared/error-message.js'
import { isObject } from '../shared/is-object.js'
import { BudgetExceeded, ValidationBudget } from './budget.js'
import { escapePointer } from './documents.js'
import { COUNTED, DEFINITION, type RequestSchemas } from './schemas.js'
import { URL_FORMAT } from './url-format.js'

export interface FieldError {
  /** A JSON pointer; empty for the value itself. */
  readonly path: string
  readonly message: string
}

/** The errors of a value; empty if it is valid. */
export type Validate = (value: unknown) => readonly FieldError[]

const ROOT = 'gatehouse:requests'
const MAX_ERRORS = 20
const MAX_PATH_LENGTH = 2000
/** Larger values get their first error only: a list of all of them could be many times as large as the value. */
const MAX_LENGTH_FOR_ALL_ERRORS = 64 * 1024
/** As many characters of schemas are compiled at the start; those of a very large document would take seconds. */
const MAX_LENGTH_COMPILED_AT_START = 16 * 1024

export interface SchemaCompiler {
  /** The validator of a body, or of a parameter that is JSON text. */
  body(definition: string): Validate
  /** The validator of a text or a list of texts, which stand for numbers, booleans and other values. */
  parameter(definition: string): Validate
  /** All validations until the next call are those of one request, and have limits together. */
  startRequest(): void
  /** The location and the reason for each definition that does not compile. */
  readonly errors: readonly string[]
}

type KeywordValidator = ReturnType<NonNullable<FuncKeywordDefinition['compile']>>

/** Makes validators. Definitions that are not compiled at the start are compiled when they are first used. */
export const compileSchemas = (
  bodySchemas: RequestSchemas,
  parameterSchemas: RequestSchemas,
  maxEvaluations: number
): SchemaCompiler => {
  const budget = new ValidationBudget(maxEvaluations)
  const bodies = new CompiledSchemas(bodySchemas, budget)
  const parameters = new CompiledSchemas(parameterSchemas, budget, { coerceTypes: true })
  return {
    body: (definition) => bodies.validator(definition),
    parameter: (definition) => parameters.validator(definition),
    startRequest: () => budget.reset(),
    errors: [bodies, parameters].flatMap((schemas) => schemas.compileFirst(MAX_LENGTH_COMPILED_AT_START))
  }
}

class CompiledSchemas {
  readonly #schemas: RequestSchemas
  readonly #options: Options
  readonly #budget: ValidationBudget
  readonly #ajv = new Lazy(() => this.#newAjv(false))
  /** Collects all errors. */
  readonly #thoroughAjv = new Lazy(() => this.#newAjv(true))
  readonly #validators = new Map<string, Validate>()

  constructor(schemas: RequestSchemas, budget: ValidationBudget, options: Options = {}) {
    schemas.complete()
    this.#budget = budget
    this.#schemas = schemas
    this.#options = options
  }

  validator(definition: string): Validate {
    // Many parameters have the same small schema.
    const key = JSON.stringify(this.#schemas.definitions[definition])
    const known = this.#validators.get(key)
    if (known !== undefined) return known
    const fast = new Lazy(() => this.#compiled(this.#ajv.value, definition))
    const thorough = new Lazy(() => this.#compiled(this.#thoroughAjv.value, definition))
    const validate: Validate = (value) =>
      withinLimits(() => {
        if (fast.value(value)) return []
        const first = fieldErrors(fast.value.errors ?? [])
        if (JSON.stringify(value).length > MAX_LENGTH_FOR_ALL_ERRORS) return first
        return withinLimits(() => {
          thorough.value(value)
          return fieldErrors(thorough.value.errors ?? [])
        }, first)
      })
    this.#validators.set(key, validate)
    return validate
  }

  /** Compiles definitions until their text has this length. Returns the errors. */
  compileFirst(maxLength: number): string[] {
    const errors: string[] = []
    let length = 0
    for (const [name, schema] of Object.entries(this.#schemas.definitions)) {
      length += JSON.stringify(schema).length
      if (length > maxLength) break
      try {
        this.#compiled(this.#ajv.value, name)
      } catch (error) {
        const message = messageOf(error)
        errors.push(`${this.#schemas.locations.get(name) ?? name}: ${message}`)
      }
    }
    return errors
  }

  #newAjv(allErrors: boolean): Ajv2020 {
    const budget = this.#budget
    const ajv = new Ajv2020({
      // OpenAPI documents contain formats of their own, which are ignored.
      strict: false,
      logger: false,
      // `RequestSchemas` has checked the values of all keywords.
      validateSchema: false,
      addUsedSchema: false,
      // A property such as `constructor` is missing unless the value itself has it.
      ownProperties: true,
      ...this.#options,
      allErrors,
      // Optimising the generated code costs a third of the start and saves nothing that can be measured.
      code: { optimize: false, regExp: Object.assign((source: string) => budget.pattern(source), { code: 'pattern' }) },
      schemas: this.#schemas.usesRef ? [{ $id: ROOT, $defs: this.#schemas.definitions }] : []
    })
    // The default export of a CommonJS module.
    ajvFormats.default(ajv)
    ajv.addFormat('url', budget.pattern(URL_FORMAT).test)
    ajv.removeKeyword('enum').addKeyword(enumKeyword(this.#options.coerceTypes === true))
    ajv.removeKeyword('uniqueItems').addKeyword(UNIQUE_ITEMS)
    ajv.addKeyword({ keyword: COUNTED, validate: () => budget.countEvaluation() })
    ajv.addKeyword({
      keyword: DEFINITION,
      errors: 'full',
      modifying: true,
      compile: (name: string) => {
        const target = new Lazy(() => this.#compiled(ajv, name))
        const validate: KeywordValidator = (value, context) => {
          budget.countEvaluation()
          const isValid = target.value(value, context)
          validate.errors = target.value.errors ?? []
          return isValid
        }
        return validate
      }
    })
    return ajv
  }

  /** Compiles a definition once. Ajv takes much longer to add one schema with all definitions, so that is done only if needed. */
  #compiled(ajv: Ajv2020, definition: string): ValidateFunction {
    const validate = this.#schemas.usesRef
      ? ajv.getSchema(`${ROOT}#/$defs/${definition}`)
      : ajv.compile(schemaOf(this.#schemas.definitions[definition]))
    if (validate === undefined) throw new Error(`no schema ${definition}`)
    return validate
  }
}

/** The errors of a validation, or `instead` if it takes too much. */
const withinLimits = (
  validate: () => readonly FieldError[],
  instead?: readonly FieldError[]
): readonly FieldError[] => {
  try {
    return validate()
  } catch (error) {
    // The stack is exceeded by a value that is nested as deeply as a recursive schema allows.
    if (error instanceof RangeError) return instead ?? [{ path: '', message: 'is nested too deeply' }]
    if (error instanceof BudgetExceeded) return instead ?? [{ path: '', message: 'takes too long to validate' }]
    throw error
  }
}

const schemaOf = (definition: unknown): AnySchemaObject | boolean =>
  isObject(definition) ? definition : definition !== false

/** A value that is made when it is first read. */
class Lazy<Value> {
  readonly #make: () => Value
  #value: { readonly value: Value } | null = null

  constructor(make: () => Value) {
    this.#make = make
  }

  get value(): Value {
    this.#value ??= { value: this.#make() }
    return this.#value.value
  }
}

/** Like the keyword of Ajv, in time that does not depend on the number of values. */
const enumKeyword = (asText: boolean): KeywordDefinition => ({
  keyword: 'enum',
  schemaType: 'array',
  compile: (values: readonly unknown[]) => {
    const keys = new Set(values.map((value) => (asText ? String(value) : keyOf(value))))
    return (value: unknown) => keys.has(asText ? String(value) : keyOf(value))
  },
  error: {
    message: 'must be one of the listed values',
    params: ({ schemaCode }) => _`{allowedValues: ${schemaCode}}`
  }
})

/** Like the keyword of Ajv, which compares every entry with every other one. */
const UNIQUE_ITEMS: KeywordDefinition = {
  keyword: 'uniqueItems',
  type: 'array',
  schemaType: 'boolean',
  validate: (isUnique: boolean, items: readonly unknown[]) =>
    !isUnique || new Set(items.map(keyOf)).size === items.length,
  error: { message: 'must not have equal entries' }
}

/** Equal for equal JSON values. */
const keyOf = (value: unknown): unknown => {
  if (typeof value === 'object' && value !== null) return `{${JSON.stringify(value, sortedMembers)}`
  return typeof value === 'string' ? `"${value}` : value
}

const sortedMembers = (_name: string, value: unknown): unknown =>
  isObject(value)
    ? Object.fromEntries(Object.entries(value).toSorted(([one], [other]) => (one < other ? -1 : 1)))
    : value

/** One error for each field; Ajv also reports the `if` and `oneOf` that contain it. */
const fieldErrors = (errors: readonly ErrorObject[]): FieldError[] => {
  const fields = new Map<string, FieldError>()
  for (const error of errors) {
    if (error.keyword === 'if') continue
    const field = fieldError(error)
    // A name in the body can be as long as the body.
    if (field.path.length > MAX_PATH_LENGTH) return [{ path: '', message: 'has a name that is too long' }]
    if (!fields.has(field.path)) fields.set(field.path, field)
    if (fields.size === MAX_ERRORS) break
  }
  return [...fields.values()]
}

const fieldError = ({ instancePath, keyword, params, message = 'is invalid' }: ErrorObject): FieldError => {
  switch (keyword) {
    case 'required':
      return { path: `${instancePath}/${escapePointer(String(params.missingProperty))}`, message: 'is required' }
    case 'additionalProperties':
    case 'unevaluatedProperties': {
      const name = String(params.additionalProperty ?? params.unevaluatedProperty)
      return { path: `${instancePath}/${escapePointer(name)}`, message: 'is not a field of this' }
    }
    case 'enum':
      return { path: instancePath, message: `must be one of ${listOf(params.allowedValues)}` }
    default:
      return { path: instancePath, message }
  }
}

const MAX_LISTED = 10

const listOf = (values: unknown): string => {
  const list: readonly unknown[] = Array.isArray(values) ? values : []
  const texts = list.slice(0, MAX_LISTED).map((value) => JSON.stringify(value).slice(0, 100))
  return list.length <= MAX_LISTED ? texts.join(', ') : `${texts.join(', ')} and ${list.length - MAX_LISTED} more`
}
