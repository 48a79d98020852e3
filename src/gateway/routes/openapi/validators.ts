import { Ajv2020, type ErrorObject, type Options, type ValidateFunction } from 'ajv/dist/2020.js'
import ajvFormats from 'ajv-formats'
import { escapePointer } from './documents.js'
import type { RequestSchemas } from './schemas.js'

export interface FieldError {
  /** A JSON pointer; empty for the value itself. */
  readonly path: string
  readonly message: string
}

/** The errors of a value; empty if it is valid. */
export type Validate = (value: unknown) => readonly FieldError[]

const ROOT = 'gatehouse:requests'
const MAX_ERRORS = 20

export interface SchemaCompiler {
  body(definition: string): Validate
  parameter(definition: string): Validate
}

/** Compiles definitions once each. A schema that does not compile is reported with its location, and accepts everything. */
export const compileSchemas = (
  { definitions, locations }: Pick<RequestSchemas, 'definitions' | 'locations'>,
  report: (error: string) => void
): SchemaCompiler => {
  const schemas = [{ $id: ROOT, $defs: definitions }]
  const compilerWith = (options: Options) => {
    const ajv = makeAjv({ ...options, schemas })
    // Made for the first invalid value.
    let thorough: Ajv2020 | null = null
    const thoroughAjv = (): Ajv2020 => {
      thorough ??= makeAjv({ ...options, schemas, allErrors: true })
      return thorough
    }
    const compiled = new Map<string, Validate>()
    return (definition: string): Validate => {
      // Many parameters have the same small schema.
      const key = JSON.stringify(definitions[definition])
      const known = compiled.get(key)
      if (known !== undefined) return known
      const validate = compile(ajv, thoroughAjv, definition, (error) =>
        report(`${locations.get(definition) ?? definition}: ${error}`)
      )
      compiled.set(key, validate)
      return validate
    }
  }
  return { body: compilerWith({}), parameter: compilerWith({ coerceTypes: true }) }
}

const makeAjv = (options: Options): Ajv2020 => {
  const ajv = new Ajv2020({
    // OpenAPI documents contain keywords and formats of their own, which are ignored.
    strict: false,
    logger: false,
    validateSchema: false,
    unicodeRegExp: false,
    // Optimising the generated code costs a third of the start and saves nothing that can be measured.
    code: { optimize: false },
    ...options
  })
  // The default export of a CommonJS module.
  ajvFormats.default(ajv)
  return ajv
}

/** Larger values get their first error only: a list of all of them could be many times as large as the value. */
const MAX_LENGTH_FOR_ALL_ERRORS = 64 * 1024

const compile = (
  ajv: Ajv2020,
  thoroughAjv: () => Ajv2020,
  definition: string,
  report: (error: string) => void
): Validate => {
  const schema = { $ref: `${ROOT}#/$defs/${definition}` }
  let validate: ValidateFunction
  try {
    validate = ajv.compile(schema)
  } catch (error) {
    report(error instanceof Error ? error.message : String(error))
    return () => []
  }
  let validateAll: ValidateFunction | null = null
  return (value) => {
    if (validate(value)) return []
    const first = validate.errors ?? []
    if (JSON.stringify(value).length > MAX_LENGTH_FOR_ALL_ERRORS) return fieldErrors(first)
    validateAll ??= thoroughAjv().compile(schema)
    validateAll(value)
    return fieldErrors(validateAll.errors ?? first)
  }
}

/** The errors of fields, one for each; Ajv also reports the `if` and `oneOf` that contain them. */
const fieldErrors = (errors: readonly ErrorObject[]): FieldError[] => {
  const fields = new Map<string, FieldError>()
  const inner = errors.filter(({ keyword }) => keyword !== 'if')
  for (const error of inner) {
    const field = fieldError(error)
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
      return {
        path: `${instancePath}/${escapePointer(String(params.additionalProperty))}`,
        message: 'is not a field of this'
      }
    case 'enum':
      return { path: instancePath, message: `must be one of ${listOf(params.allowedValues)}` }
    default:
      return { path: instancePath, message }
  }
}

const listOf = (values: unknown): string =>
  Array.isArray(values)
    ? values
        .map((value) => JSON.stringify(value))
        .join(', ')
        .slice(0, 200)
    : 'the listed values'
