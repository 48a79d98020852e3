import type { TSchema } from '@sinclair/typebox'
import { Value, type ValueError, ValueErrorType } from '@sinclair/typebox/value'
import { errorCode } from '../../shared/error-code.js'
import { isObject } from '../../shared/is-object.js'
import { alternativeTo, isUnused } from './centrifugo-options.js'
import {
  DURATION_PATTERN,
  NAMESPACE_PATTERN,
  PORT_PATTERN,
  type RelayConfigFile,
  RelayConfigFileSchema,
  USER_ID_CLAIM_PATTERN
} from './schema.js'

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

/** Parses the file and checks it against the schema. Returns null after adding to `errors`. */
export const readConfigFile = (path: string, readFile: ReadFile, errors: string[]): RelayConfigFile | null => {
  const parsed = parse(path, readFile, errors)
  if (parsed === undefined) return null
  const value = withoutUnset(parsed, RelayConfigFileSchema)
  if (Value.Check(RelayConfigFileSchema, value)) return value
  errors.push(...schemaErrors(value))
  // Without the options that the relay does not have, the rest can be checked too. A copy, because `Clean` changes it.
  const rest = Value.Clean(RelayConfigFileSchema, JSON.parse(JSON.stringify(value)))
  return Value.Check(RelayConfigFileSchema, rest) ? rest : null
}

/** Removes options of the schema that are null or an empty text: as in Centrifugo, they have their defaults. */
const withoutUnset = (value: unknown, schema: TSchema): unknown => {
  if (Array.isArray(value) && schema.type === 'array') return value.map((each) => withoutUnset(each, schema.items))
  if (!isObject(value) || schema.type !== 'object') return value
  const options: ReadonlyMap<string, TSchema> = new Map(Object.entries<TSchema>(schema.properties))
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, option]) => {
      const inner = options.get(name)
      if (inner === undefined) return [[name, option]]
      return option === null || option === '' ? [] : [[name, withoutUnset(option, inner)]]
    })
  )
}

const parse = (path: string, readFile: ReadFile, errors: string[]): unknown => {
  let text: string
  try {
    text = readFile(path)
  } catch (error) {
    errors.push(`RELAY_CONFIG must name a readable file (${errorCode(error) || 'unreadable'})`)
    return undefined
  }
  try {
    return JSON.parse(text)
  } catch (error) {
    // Without the parser's message, which quotes the text and could contain a secret.
    errors.push(`${FILE_ERROR_PREFIX} the file is not JSON${locationOf(error, text)}`)
    return undefined
  }
}

const locationOf = (error: unknown, text: string): string => {
  const position = /at position (\d+)/.exec(String(error))?.[1]
  if (position === undefined) return ''
  const before = text.slice(0, Number(position)).split('\n')
  return `: look at line ${before.length}, column ${(before.at(-1)?.length ?? 0) + 1}`
}

/** One line per option, even if it violates several rules. */
const schemaErrors = (value: unknown): string[] => {
  const lines = new Map<string, string>()
  for (const error of Value.Errors(RelayConfigFileSchema, value)) {
    if (!lines.has(error.path) && !isIgnored(error))
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

/** An option that the relay does not have, and that the file does not use either. */
const isIgnored = ({ type, path, value }: ValueError): boolean =>
  type === ValueErrorType.ObjectAdditionalProperties &&
  alternativeTo(optionPath(path)) !== null &&
  isUnused(optionPath(path), value)

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
  if (schema.type === 'object') return 'an object'
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
