import { isObject } from '../shared/is-object.js'
import { jsonFromBytes, MAX_CONTAINERS, onOneLine } from './core/codec/json.js'
import { type LazyJsonObject, TooManyContainers } from './core/codec/json-members.js'
import { ERROR_BAD_REQUEST, ReplyError } from './core/codes.js'
import type { KeyMode } from './core/engine.js'
import type { Override } from './core/options.js'
import type { Payload } from './core/publication.js'
import { readOverride } from './core/session/tokens.js'

/**
 * An invalid field of an API request or of a response of the backend. Not an `Error`, because capturing stack traces is
 * expensive and one body can contain thousands of invalid requests.
 */
export class InvalidField {
  /** Names the field, and has no part of its value. */
  readonly problem: string

  constructor(field: string, rule: string) {
    this.problem = `${field} ${rule}`
  }

  /** For a request of the API. */
  get reply(): ReplyError {
    return ERROR_BAD_REQUEST.with(this.problem)
  }
}

/** The reply to a request with a value of another JSON type: status 400 unless it is one of several commands. */
export class MalformedRequest extends ReplyError {
  readonly problem: string

  constructor(problem: string) {
    const { code, message } = ERROR_BAD_REQUEST.with(problem)
    super(code, message)
    this.problem = problem
  }
}

/** A field with a value of another JSON type. */
export class InvalidType extends InvalidField {
  override get reply(): MalformedRequest {
    return new MalformedRequest(this.problem)
  }
}

/** The fields of a JSON object. Methods throw `InvalidType` for a value of another type. A field with null is missing. */
export class JsonFields {
  readonly #fields: LazyJsonObject

  constructor(fields: LazyJsonObject) {
    this.#fields = fields
  }

  value(field: string): unknown {
    try {
      return this.#fields.value(field) ?? undefined
    } catch (error) {
      if (!(error instanceof TooManyContainers)) throw error
      throw new InvalidField(field, `must not hold more than ${MAX_CONTAINERS} objects and lists`)
    }
  }

  text(field: string): string {
    const value = this.value(field)
    if (value === undefined) return ''
    if (typeof value !== 'string') throw new InvalidType(field, 'must be text')
    return value
  }

  flag(field: string): boolean {
    const value = this.value(field)
    if (value === undefined) return false
    if (typeof value !== 'boolean') throw new InvalidType(field, 'must be true or false')
    return value
  }

  integer(field: string, minimum: number, maximum = Number.MAX_SAFE_INTEGER): number {
    const value = this.value(field)
    if (value === undefined) return 0
    if (!isSafeInteger(value) || value < minimum || value > maximum)
      throw new InvalidType(field, 'must be a whole number')
    return value
  }

  texts(field: string): readonly string[] {
    const value = this.value(field)
    if (value === undefined) return []
    if (!Array.isArray(value) || !value.every((each) => typeof each === 'string')) {
      throw new InvalidType(field, 'must be a list of texts')
    }
    return value
  }

  /** Null if the field is missing. */
  object(field: string): JsonFields | null {
    if (!this.#fields.has(field)) return null
    const object = this.#fields.object(field)
    if (object !== null) return new JsonFields(object)
    if (this.#fields.text(field) === 'null') return null
    throw new InvalidType(field, 'must be an object')
  }

  /** The members of an object of objects. */
  *objects(field: string): Iterable<readonly [name: string, fields: JsonFields]> {
    const object = this.#fields.object(field)
    if (object === null) {
      this.object(field)
      return
    }
    for (const [name, value] of object.objects()) {
      if (value === null) throw new InvalidType(field, 'must be an object of objects')
      yield [name, new JsonFields(value)]
    }
  }

  /** The bytes of `b64<field>`; null if it is missing. */
  bytes(field: string): Buffer | null {
    const encoded = this.text(`b64${field}`)
    if (encoded === '') return null
    const bytes = fromBase64(encoded)
    if (bytes === null) throw new InvalidField(`b64${field}`, 'must be base64')
    return bytes
  }

  /** The JSON text of a field, without its base64 form; null if it is missing. The text of null is `null`. */
  jsonText(field: string): string | null {
    if (!this.#fields.has(field)) return null
    const text = this.#fields.text(field)
    // JSON parsers disagree about which of two equal names counts.
    if (text === null) throw new InvalidField(field, 'must be there once')
    return onOneLine(text)
  }

  /** The bytes of `b64<field>`, or else the JSON text of the field; null if both are missing. */
  payload(field: string): Payload | null {
    return this.bytes(field) ?? this.jsonText(field)
  }

  /** The JSON text of a field, or of its base64 form `b64<field>`, which wins. Null if both are missing. */
  json(field: string): string | null {
    const bytes = this.bytes(field)
    if (bytes === null) return this.jsonText(field)
    const text = jsonFromBytes(bytes)
    if (text === null) throw new InvalidField(`b64${field}`, 'must be JSON in base64')
    return text
  }

  tags(): string | null {
    const value = this.value('tags')
    if (value === undefined) return null
    if (!isObject(value) || !Object.values(value).every((each) => typeof each === 'string')) {
      throw new InvalidType('tags', 'must be an object of texts')
    }
    return Object.keys(value).length === 0 ? null : JSON.stringify(value)
  }

  keyMode(): KeyMode | null {
    const text = this.text('key_mode')
    if (text !== '' && text !== 'if_new' && text !== 'if_exists')
      throw new InvalidField('key_mode', 'must be "if_new" or "if_exists"')
    return text === '' ? null : text
  }

  override(): Override {
    const override = readOverride(this.value('override'))
    if (override === null) throw new InvalidType('override', 'must be an object of {"value": true or false}')
    return override
  }
}

export const isSafeInteger = (value: unknown): value is number => Number.isSafeInteger(value)

const BASE64 = /^[A-Za-z0-9+/\r\n]+={0,2}[\r\n]*$/

/** Null if the text is not base64: Node.js would skip other characters. */
const fromBase64 = (text: string): Buffer | null => {
  if (!BASE64.test(text)) return null
  const length = text.includes('\n') || text.includes('\r') ? text.replace(/[\r\n]/g, '').length : text.length
  return length % 4 === 0 ? Buffer.from(text, 'base64') : null
}
