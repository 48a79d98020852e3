import { extname } from 'node:path'
import { CORE_SCHEMA, load, mergeTag, YAMLException } from 'js-yaml'
import { parse, TomlError } from 'smol-toml'

/** The content of a file is not in the format that its extension names. */
export class FormatError extends Error {
  override readonly name = 'FormatError'

  /** Line and column count from 1. */
  constructor(format: string, line: number, column: number, reason = '') {
    // A reason may quote the file, which may contain secrets: then it is left out.
    const shown = /^[a-z ,'-]+$/i.test(reason) ? ` (${reason})` : ''
    super(`is not valid ${format}: line ${line}, column ${column}${shown}`)
  }
}

/** Parses YAML and TOML by the extension of the file, and JSON with any other. Throws a `FormatError`. */
export const parseConfigText = (path: string, text: string): unknown => {
  switch (extname(path).toLowerCase()) {
    case '.yaml':
    case '.yml':
      return parseYaml(text)
    case '.toml':
      return parseToml(text)
    default:
      return parseJson(text)
  }
}

const parseJson = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    const before = text.slice(0, validLength(text)).split('\n')
    throw new FormatError('JSON', before.length, (before.at(-1)?.length ?? 0) + 1)
  }
}

/** The length of the longest beginning of a text that could continue as JSON. V8 reports it for some errors only. */
const validLength = (text: string): number => {
  let valid = 0
  let invalid = text.length + 1
  while (invalid - valid > 1) {
    const middle = Math.floor((valid + invalid) / 2)
    if (canContinue(text.slice(0, middle))) valid = middle
    else invalid = middle
  }
  return valid
}

const canContinue = (text: string): boolean => {
  try {
    JSON.parse(text)
    return true
  } catch (error) {
    const position = /at position (\d+)/.exec(String(error))?.[1]
    return position === undefined ? String(error).includes('end of JSON input') : Number(position) >= text.length
  }
}

/** Without dates, which no option has. Merge keys (`<<`) share options between namespaces. */
const YAML_SCHEMA = CORE_SCHEMA.withTags(mergeTag)

const MAX_VALUES = 100_000
const MAX_DEPTH = 100

const parseYaml = (text: string): unknown => {
  try {
    const value = load(text, { schema: YAML_SCHEMA })
    if (countValues(value, MAX_VALUES, MAX_DEPTH) > MAX_VALUES) throw new YAMLException('too many values')
    return value
  } catch (error) {
    if (!(error instanceof YAMLException)) throw error
    throw new FormatError('YAML', (error.mark?.line ?? 0) + 1, (error.mark?.column ?? 0) + 1, error.reason)
  }
}

/** Aliases can contain themselves, or multiply a short text to any size: counting ends at either limit. */
const countValues = (value: unknown, limit: number, depth: number): number => {
  if (typeof value !== 'object' || value === null) return 1
  if (depth === 0) return limit + 1
  let count = 1
  for (const each of Object.values(value)) {
    count += countValues(each, limit - count, depth - 1)
    if (count > limit) break
  }
  return count
}

const parseToml = (text: string): unknown => {
  try {
    return parse(text)
  } catch (error) {
    if (!(error instanceof TomlError)) throw error
    const [reason = ''] = error.message.replace('Invalid TOML document: ', '').split('\n', 1)
    throw new FormatError('TOML', error.line, error.column, reason)
  }
}
