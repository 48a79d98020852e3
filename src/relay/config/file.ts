import type { TSchema } from '@sinclair/typebox'
import { Value, type ValueError, ValueErrorType } from '@sinclair/typebox/value'
import { DURATION_PATTERN, NAMESPACE_PATTERN, type RelayConfigFile, RelayConfigFileSchema } from './schema.js'

/** Text of a file; throws where it cannot be read. */
export type ReadFile = (path: string) => string

/** How every fault of the file begins. */
export const FILE_FAULT = 'RELAY_CONFIG:'

/** The file as it is written, or null where `faults` got the reasons. What it means is decided elsewhere. */
export const readConfigFile = (path: string, readFile: ReadFile, faults: string[]): RelayConfigFile | null => {
  const value = parse(path, readFile, faults)
  if (value === undefined) return null
  if (Value.Check(RelayConfigFileSchema, value)) return value
  faults.push(...schemaFaults(value))
  return null
}

const parse = (path: string, readFile: ReadFile, faults: string[]): unknown => {
  let text: string
  try {
    text = readFile(path)
  } catch (error) {
    faults.push(`RELAY_CONFIG must name a readable file (${(error as NodeJS.ErrnoException).code ?? 'unreadable'})`)
    return undefined
  }
  try {
    return JSON.parse(text)
  } catch (error) {
    // Without the message itself: it quotes the text, which may be a secret.
    faults.push(`${FILE_FAULT} the file is not JSON${placeOf(error, text)}`)
    return undefined
  }
}

const placeOf = (error: unknown, text: string): string => {
  const position = /at position (\d+)/.exec(String(error))?.[1]
  if (position === undefined) return ''
  const before = text.slice(0, Number(position)).split('\n')
  return `: look at line ${before.length}, column ${(before.at(-1)?.length ?? 0) + 1}`
}

/** One line per place, however many rules it breaks. */
const schemaFaults = (value: unknown): string[] => {
  const lines = new Map<string, string>()
  for (const error of Value.Errors(RelayConfigFileSchema, value)) {
    if (!lines.has(error.path)) lines.set(error.path, `${FILE_FAULT} ${placeName(error.path)} ${complaint(error)}`)
  }
  return [...lines.values()]
}

/** `/channel/namespaces/0/name` as it is said: `channel.namespaces[0].name`. */
const placeName = (pointer: string): string =>
  pointer === ''
    ? 'the file'
    : pointer
        .slice(1)
        .split('/')
        .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))
        .reduce((name, step) => (/^\d+$/.test(step) ? `${name}[${step}]` : name === '' ? step : `${name}.${step}`), '')

const complaint = ({ type, schema }: ValueError): string => {
  if (type === ValueErrorType.ObjectAdditionalProperties) return 'is not an option that the relay has'
  if (type === ValueErrorType.ObjectRequiredProperty) return 'is missing'
  return `must be ${ruleOf(schema)}`
}

const PATTERN_RULES: ReadonlyMap<unknown, string> = new Map([
  [DURATION_PATTERN, 'a duration such as "300s"'],
  [NAMESPACE_PATTERN, 'two or more letters, digits, "-", "_" or "."']
])

const MANY_CHOICES = 10

/** What a good value looks like. Values themselves are never shown: some are secrets. */
const ruleOf = (schema: TSchema): string => {
  if (schema.const !== undefined) return JSON.stringify(schema.const)
  if (Array.isArray(schema.anyOf)) return choiceRule(schema.anyOf.map((choice: TSchema) => choice.const))
  if (schema.type === 'boolean') return 'true or false'
  if (schema.type === 'integer') return `a whole number from ${schema.minimum} to ${schema.maximum}`
  if (schema.type === 'array') return schema.uniqueItems ? 'a list without repetitions' : 'a list'
  if (schema.type === 'object') return 'an object'
  return PATTERN_RULES.get(schema.pattern) ?? `text of 1 to ${schema.maxLength ?? 'any number of'} characters`
}

const choiceRule = (choices: readonly unknown[]): string =>
  choices.length > MANY_CHOICES
    ? 'one of the names in docs/relay-config.schema.json'
    : `one of ${choices.map((choice) => JSON.stringify(choice)).join(', ')}`
