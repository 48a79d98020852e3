import { readFileSync } from 'node:fs'
import { basename, dirname, extname, relative, resolve } from 'node:path'
import { CORE_SCHEMA, load, mergeTag, YAMLException } from 'js-yaml'
import { errorCode } from '../shared/error-code.js'
import { messageOf } from '../shared/error-message.js'
import { isObject } from '../shared/is-object.js'
import { duplicateNames } from './duplicate-names.js'

export type JsonObject = { readonly [name: string]: unknown }

/** A value of a document, and its location: the file and the JSON pointer (RFC 6901) inside it. */
export interface Located {
  readonly file: string
  readonly pointer: string
  readonly value: unknown
}

/** An error in a document. The gateway does not start, and the message names the location. */
export class DocumentError extends Error {
  override readonly name = 'DocumentError'

  constructor(message: string) {
    // One line, even if names and texts of the document contain line breaks.
    super(message.replace(/[\p{Cc}\u2028\u2029]+/gu, ' '))
  }
}

const MAX_REFERENCES_IN_A_ROW = 50
/** More than any description has. */
const MAX_VALUES = 5_000_000
const YAML_SCHEMA = CORE_SCHEMA.withTags(mergeTag)

/** The files of an OpenAPI description: the main file, and those that its `$ref`s name. */
export class Documents {
  readonly #folder: string
  readonly #files = new Map<string, unknown>()
  /** Errors of the files that were read so far. They do not prevent reading further, so that all can be reported. */
  readonly errors: DocumentError[] = []
  readonly root: Located

  /** Throws a `DocumentError` if the file cannot be read or parsed. */
  constructor(file: string) {
    const path = resolve(file)
    this.#folder = dirname(path)
    this.root = { file: path, pointer: '', value: this.#read(path) }
  }

  /** The location as it is shown to people: `openapi.yaml#/paths/~1floors/post`. */
  describe({ file, pointer }: Pick<Located, 'file' | 'pointer'>): string {
    const name = relative(this.#folder, file) || basename(file)
    return pointer === '' ? name : `${name}#${pointer}`
  }

  error(location: Pick<Located, 'file' | 'pointer'>, message: string): DocumentError {
    return new DocumentError(`${this.describe(location)}: ${message}`)
  }

  /** The value that a reference object stands for, after any number of references; other values as they are. */
  dereference(located: Located): Located {
    let current = located
    for (let steps = 0; steps < MAX_REFERENCES_IN_A_ROW; steps += 1) {
      if (!isObject(current.value) || typeof current.value.$ref !== 'string') return current
      current = this.resolve(current, current.value.$ref)
    }
    throw this.error(located, '$ref refers to itself')
  }

  /** The target of `$ref: reference` at `from`: in the same file or in a file relative to it. */
  resolve(from: Located, reference: string): Located {
    const [address = '', fragment = ''] = reference.split('#', 2)
    if (/^[a-z][a-z0-9+.-]*:|^\/\//i.test(address)) {
      throw this.error(from, `$ref to a URL is not supported: ${reference}`)
    }
    const file = address === '' ? from.file : resolve(dirname(from.file), decode(address))
    let value: unknown
    try {
      value = this.#files.has(file) ? this.#files.get(file) : this.#read(file)
    } catch (error) {
      throw error instanceof DocumentError ? this.error(from, `$ref ${reference}: ${error.message}`) : error
    }
    if (fragment !== '' && !fragment.startsWith('/')) return this.#anchored(from, file, value, fragment, reference)
    const names = fragment === '' ? [] : fragment.slice(1).split('/')
    for (const name of names) {
      value = memberOf(value, decode(name).replaceAll('~1', '/').replaceAll('~0', '~'))
      if (value === undefined) throw this.error(from, `$ref ${reference} has no target`)
    }
    return {
      file,
      pointer: fragment === '' ? '' : `/${names.map((name) => escapePointer(unescapePointer(decode(name)))).join('/')}`,
      value
    }
  }

  #anchored(from: Located, file: string, value: unknown, anchor: string, reference: string): Located {
    const found = findAnchor(value, anchor, '')
    if (found === null) throw this.error(from, `$ref ${reference} has no target`)
    return { file, ...found }
  }

  #read(file: string): unknown {
    let text: string
    try {
      // Some programs write a byte order mark, which is not part of JSON.
      text = readFileSync(file, 'utf8').replace(/^\uFEFF/, '')
    } catch (error) {
      throw new DocumentError(
        `${this.describe({ file, pointer: '' })}: cannot be read (${errorCode(error) || messageOf(error)})`
      )
    }
    const value = extname(file).toLowerCase() === '.json' ? this.#parseJson(file, text) : this.#parseYaml(file, text)
    this.#files.set(file, value)
    return value
  }

  #parseJson(file: string, text: string): unknown {
    let value: unknown
    try {
      value = JSON.parse(text)
    } catch (error) {
      const name = this.describe({ file, pointer: '' })
      throw new DocumentError(`${name}${positionIn(text, messageOf(error))}: ${messageOf(error)}`)
    }
    for (const member of duplicateNames(text)) {
      this.errors.push(this.error(childOf({ file, pointer: '', value }, ...member), 'duplicate name'))
    }
    return value
  }

  #parseYaml(file: string, text: string): unknown {
    try {
      const value = load(text, { schema: YAML_SCHEMA })
      if (countValues(value) > MAX_VALUES) throw new Error(`its aliases stand for more than ${MAX_VALUES} values`)
      return value
    } catch (error) {
      const name = this.describe({ file, pointer: '' })
      if (!(error instanceof YAMLException)) throw new DocumentError(`${name}: ${messageOf(error)}`)
      const { line = 0, column = 0 } = error.mark ?? {}
      throw new DocumentError(`${name}:${line + 1}:${column + 1}: ${error.reason}`)
    }
  }
}

export const childOf = (parent: Located, ...names: readonly (string | number)[]): Located => {
  let { pointer, value } = parent
  for (const name of names) {
    pointer += `/${escapePointer(String(name))}`
    value = memberOf(value, String(name))
  }
  return { file: parent.file, pointer, value }
}

const memberOf = (value: unknown, name: string): unknown => {
  if (Array.isArray(value)) return /^\d+$/.test(name) ? value[Number(name)] : undefined
  return isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined
}

export const escapePointer = (name: string): string => name.replaceAll('~', '~0').replaceAll('/', '~1')
const unescapePointer = (name: string): string => name.replaceAll('~1', '/').replaceAll('~0', '~')

/** The text that a percent-encoded one stands for; the text itself if it is not encoded correctly. */
export const decode = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** The line and column in an error message of `JSON.parse`: `:2:11`. */
const positionIn = (text: string, message: string): string => {
  const position = /at position (\d+)/.exec(message)?.[1]
  if (position === undefined) return ''
  const lines = text.slice(0, Number(position)).split('\n')
  return `:${lines.length}:${(lines.at(-1)?.length ?? 0) + 1}`
}

/** How many values there are if each alias of YAML is a copy; infinitely many if one contains itself. */
const countValues = (value: unknown, counts = new Map<object, number>()): number => {
  if (typeof value !== 'object' || value === null) return 1
  const known = counts.get(value)
  if (known !== undefined) return known
  counts.set(value, Number.POSITIVE_INFINITY)
  const count = Object.values(value).reduce<number>((sum, member) => sum + countValues(member, counts), 1)
  counts.set(value, count)
  return count
}

const MAX_ANCHOR_DEPTH = 1000

const findAnchor = (
  value: unknown,
  anchor: string,
  pointer: string,
  depth = 0
): { pointer: string; value: unknown } | null => {
  if (typeof value !== 'object' || value === null || depth > MAX_ANCHOR_DEPTH) return null
  if (isObject(value) && (value.$anchor === anchor || value.$dynamicAnchor === anchor)) return { pointer, value }
  for (const [name, member] of Object.entries(value)) {
    const found = findAnchor(member, anchor, `${pointer}/${escapePointer(name)}`, depth + 1)
    if (found !== null) return found
  }
  return null
}
