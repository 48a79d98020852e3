import type { TSchema } from '@sinclair/typebox'
import { Value, type ValueError, ValueErrorType } from '@sinclair/typebox/value'
import { errorCode } from '../../shared/error-code.js'
import { alternativeTo } from './centrifugo-options.js'
import { NAMESPACE_PATTERN } from './channel-schema.js'
import { FormatError, parseConfigText } from './file-format.js'
import { fileValues } from './file-values.js'
import { PORT_PATTERN, type RelayConfigFile, RelayConfigFileSchema } from './schema.js'
import { DURATION_PATTERN } from './schema-kinds.js'
import { USER_ID_CLAIM_PATTERN } from './token-schema.js'

/** Returns the text of a file, or throws. */
export type ReadFile = (path: string) => string

/** Start of every error message about the file. */
export const FILE_ERROR_PREFIX = 'RELAY_CONFIG:'

/** Reports a problem with the option at `path`, such as `client.ping_interval`. */
export type ReportError = (path: string, problem: string) => void

/** Reports problems with options of the section at `path`. */
export const reportIn =
  (path: string, report: ReportError): ReportError =>
  (option, problem) =>
    report(`${path}.${option}`, problem)

/**
 * Parses the file and checks it against the schema. Returns null after adding to `errors`. `engine` is the one that the
 * environment selects. `notes` receives a line for each option of Centrifugo that is accepted without its effect.
 */
export const readConfigFile = (
  path: string,
  readFile: ReadFile,
  errors: string[],
  engine: string | null = null,
  notes: string[] = []
): RelayConfigFile | null => {
  const parsed = parse(path, readFile, errors)
  if (parsed === undefined) return null
  const value = fileValues(parsed, RelayConfigFileSchema, engine, notes)
  if (Value.Check(RelayConfigFileSchema, value)) return value
  errors.push(...schemaErrors(value))
  // Without the options that the relay does not have, the rest can be checked too. A copy, because `Clean` changes it.
  const rest = Value.Clean(RelayConfigFileSchema, JSON.parse(JSON.stringify(value)))
  return Value.Check(RelayConfigFileSchema, rest) ? rest : null
}

const parse = (path: string, readFile: ReadFile, errors: string[]): unknown => {
  let text: string
  try {
    text = readFile(path)
  } catch (error) {
    errors.push(`RELAY_CONFIG must name a readable file (${errorCode(error) || 'unreadable'}): ${path}`)
    return undefined
  }
  try {
    return parseConfigText(path, text)
  } catch (error) {
    if (!(error instanceof FormatError)) throw error
    errors.push(`${FILE_ERROR_PREFIX} ${path} ${error.message}`)
    return undefined
  }
}

/** One line per option, even if it violates several rules. */
const schemaErrors = (value: unknown): string[] => {
  const lines = new Map<string, string>()
  for (const error of Value.Errors(RelayConfigFileSchema, value)) {
    if (!lines.has(error.path))
      lines.set(error.path, `${FILE_ERROR_PREFIX} ${optionPath(error.path)} ${problemOf(error)}`)
  }
  return [...lines.values()]
}

/** Converts `/channel/namespaces/0/name` to `channel.namespaces[0].name`. */
const optionPath = (pointer: string): string =>
  pointer === ''
    ? 'the file'
    : pointer
        .slice(1)
        .split('/')
        .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))
        .reduce((name, step) => (/^\d+$/.test(step) ? `${name}[${step}]` : name === '' ? step : `${name}.${step}`), '')

const problemOf = ({ type, path, schema }: ValueError): string => {
  if (type === ValueErrorType.ObjectAdditionalProperties) {
    const alternative = alternativeTo(optionPath(path))
    return alternative === null ? 'is not an option that the relay has' : `is not supported: ${alternative}`
  }
  if (type === ValueErrorType.ObjectRequiredProperty) return 'is missing'
  return `must be ${ruleOf(schema)}`
}

const PATTERN_RULES: ReadonlyMap<unknown, string> = new Map([
  [DURATION_PATTERN, 'a duration such as "300s"'],
  [PORT_PATTERN, 'such a number as text'],
  [USER_ID_CLAIM_PATTERN, 'letters and "_"'],
  [NAMESPACE_PATTERN, 'two or more letters, digits, "-", "_" or "."']
])

const MAX_LISTED_CHOICES = 10

/** Describes valid values. The given value is never shown, because it may be a secret. */
export const ruleOf = (schema: TSchema): string => {
  if (schema.const !== undefined) return JSON.stringify(schema.const)
  if (Array.isArray(schema.anyOf)) return unionRule(schema.anyOf)
  if (schema.type === 'boolean') return 'true or false'
  if (schema.type === 'integer') return `a whole number from ${schema.minimum} to ${schema.maximum}`
  if (schema.type === 'array') return schema.uniqueItems ? 'a list without repetitions' : 'a list'
  if (schema.type === 'object') return schema.properties === undefined ? 'an object of texts' : 'an object'
  if (schema.maxLength === 1) return 'one character'
  return PATTERN_RULES.get(schema.pattern) ?? `text of 1 to ${schema.maxLength ?? 'any number of'} characters`
}

const unionRule = (choices: readonly TSchema[]): string =>
  choices.every((choice) => choice.const !== undefined)
    ? choiceRule(choices.map((choice) => choice.const))
    : choices.map(ruleOf).join(', or ')

const choiceRule = (choices: readonly unknown[]): string =>
  choices.length > MAX_LISTED_CHOICES
    ? 'one of the names in docs/relay-config.schema.json'
    : `one of ${choices.map((choice) => JSON.stringify(choice)).join(', ')}`
