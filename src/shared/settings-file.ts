import { readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { type Static, type TObject, Type } from '@sinclair/typebox'
import { type ValueError, ValueErrorType } from '@sinclair/typebox/errors'
import { Value } from '@sinclair/typebox/value'
import { CORE_SCHEMA, constructFromEvents, parseEvents, YAMLException } from 'js-yaml'
import { errorCode } from './error-code.js'
import { isObject } from './is-object.js'
import { type LineOf, linesOf, type Pointer } from './yaml-lines.js'

// Settings that are a list of objects, in a file of YAML or JSON, which is also YAML.

/** A text of a file, and the text of an error about it. */
export interface FileValue {
  readonly value: string
  error(message: string): string
}

export interface ListFile<Entry> {
  /** Empty if there is an error. */
  readonly entries: readonly Entry[]
  /** The valid fields of every entry. Callers check them too, so that all errors are reported at once. */
  readonly checkable: readonly Partial<Entry>[]
  /** All errors, one line each, with the line of the file. They contain no values of the file. */
  readonly errors: readonly string[]
  /** The text of a further error, which the caller has found in an entry or in one of its fields. */
  error(index: number, field: string | null, message: string): string
}

/** Reads the file that a setting names. The schema of a field may have a `rule`, which describes its valid values. */
export const readListFile = <Schema extends TObject>(
  setting: string,
  path: string,
  entrySchema: Schema
): ListFile<Static<Schema>> => {
  const file = basename(path)
  const failed = (message: string): ListFile<Static<Schema>> => ({
    entries: [],
    checkable: [],
    errors: [`${setting} ${message}`],
    error: (_index, _field, message) => `${setting} ${file}: ${message}`
  })
  let text: string
  try {
    text = readFileSync(path, 'utf8').replace(/^\uFEFF/, '')
  } catch (error) {
    return failed(`must name a readable file (${errorCode(error)}): ${path}`)
  }
  try {
    const events = parseEvents(text, {})
    // Aliases could multiply a short text to any size, and no list of settings needs them.
    const documents = constructFromEvents(events, { source: text, schema: CORE_SCHEMA, maxAliases: 0 })
    if (documents.length !== 1) return failed(`${file}: must contain one list`)
    return checkedList(setting, file, documents[0], linesOf(events, text), entrySchema)
  } catch (error) {
    if (!(error instanceof YAMLException)) throw error
    // A reason may quote the file, which may be the wrong one and contain secrets: then it is left out.
    const reason = /^[a-z ,'-]+$/i.test(error.reason) ? ` (${error.reason})` : ''
    return failed(`${file}:${(error.mark?.line ?? 0) + 1}: is not valid YAML or JSON without aliases${reason}`)
  }
}

const checkedList = <Schema extends TObject>(
  setting: string,
  file: string,
  value: unknown,
  lineOf: LineOf,
  entrySchema: Schema
): ListFile<Static<Schema>> => {
  const schema = Type.Array(entrySchema, { minItems: 1, rule: 'a list with at least one entry' })
  const at = (pointer: Pointer, message: string): string => {
    const shown = pointer.slice(1).split('/')
    // Entries count from 1, as people do.
    const name =
      pointer === '' ? '' : `entry ${Number(shown[0]) + 1}${shown.length > 1 ? `, ${shown.slice(1).join('.')}` : ''} `
    return `${setting} ${file}:${lineOf(pointer)}: ${name}${message}`.replace(/[\p{Cc}\u2028\u2029]+/gu, ' ')
  }
  const error = (index: number, field: string | null, message: string): string =>
    at(field === null ? `/${index}` : `/${index}/${field}`, message)
  if (Value.Check(schema, value)) return { entries: value, checkable: value, errors: [], error }
  const messages = new Map<Pointer, string>()
  // One error for each value: a missing field also has the wrong type.
  for (const found of Value.Errors(schema, value))
    if (!messages.has(found.path)) messages.set(found.path, validationMessage(found))
  const checkable = (Array.isArray(value) ? value : []).map((entry: unknown) => validPart(entry, entrySchema))
  return { entries: [], checkable, errors: [...messages].map(([pointer, message]) => at(pointer, message)), error }
}

/** The entry without unknown and malformed fields. */
const validPart = <Schema extends TObject>(entry: unknown, schema: Schema): Partial<Static<Schema>> => {
  const known = Value.Clean(schema, Value.Clone(entry))
  if (!isObject(known)) return {}
  const malformed = new Set([...Value.Errors(schema, known)].map(({ path }) => path.split('/', 2)[1]))
  const valid = Object.entries(known).filter(([name]) => !malformed.has(name))
  // The schema has accepted each of these fields.
  return Object.fromEntries(valid) as Partial<Static<Schema>>
}

const validationMessage = ({ type, schema, message }: ValueError): string => {
  if (type === ValueErrorType.ObjectAdditionalProperties) return 'is not a known field'
  if (type === ValueErrorType.ObjectRequiredProperty) return 'is required'
  return typeof schema.rule === 'string' ? `must be ${schema.rule}` : message.toLowerCase()
}
