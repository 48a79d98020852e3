import type { TSchema } from '@sinclair/typebox'
import { type TypeCheck, TypeCompiler } from '@sinclair/typebox/compiler'
import { schemas } from '../../../schemas/registry.js'
import { isObject } from '../../shared/is-object.js'
import { MAX_CONTAINERS, onOneLine } from '../core/codec/json.js'
import { type LazyJsonObject, TooManyContainers } from '../core/codec/json-members.js'
import { ERROR_BAD_REQUEST, type ReplyError } from '../core/codes.js'
import { NO_POSITION, type Payload, type Position } from '../core/engine.js'
import type { Override } from '../core/options.js'
import { jsonFromBase64, readOverride } from '../core/session/tokens.js'

/**
 * An invalid field of an API request. Not an `Error`, because capturing stack traces is expensive and one body can contain
 * thousands of invalid requests.
 */
export class InvalidField {
  readonly reply: ReplyError

  constructor(field: string, rule: string) {
    this.reply = ERROR_BAD_REQUEST.with(`${field} ${rule}`)
  }
}

const BASE64 = /^[A-Za-z0-9+/\r\n]+={0,2}[\r\n]*$/

/** The fields of one request. */
export class ApiRequest {
  readonly #fields: LazyJsonObject

  /** `fields` is null if the request is not an object. */
  constructor(fields: LazyJsonObject | null) {
    if (fields === null) throw new InvalidField('the request', 'must be an object')
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
    if (typeof value !== 'string') throw new InvalidField(field, 'must be text')
    return value
  }

  requiredText(field: string): string {
    const value = this.text(field)
    if (value === '') throw new InvalidField(field, 'is missing')
    return value
  }

  flag(field: string): boolean {
    const value = this.value(field)
    if (value === undefined) return false
    if (typeof value !== 'boolean') throw new InvalidField(field, 'must be true or false')
    return value
  }

  integer(field: string, minimum: number): number {
    const value = this.value(field)
    if (value === undefined) return 0
    if (!isSafeInteger(value) || value < minimum) throw new InvalidField(field, 'must be a whole number')
    return value
  }

  texts(field: string): readonly string[] {
    const value = this.value(field)
    if (value === undefined) return []
    if (!Array.isArray(value) || !value.every((each) => typeof each === 'string')) {
      throw new InvalidField(field, 'must be a list of texts')
    }
    return value
  }

  /** The JSON text of a field, or the bytes of its base64 form `b64<field>`, which wins. No bytes if both are missing. */
  payload(field: string): Payload {
    const encoded = this.text(`b64${field}`)
    if (encoded === '') return this.json(field) ?? Buffer.alloc(0)
    // Node.js would skip other characters.
    if (!BASE64.test(encoded)) throw new InvalidField(`b64${field}`, 'must be base64')
    return Buffer.from(encoded, 'base64')
  }

  /** The JSON text of a field, or of its base64 form `b64<field>`, which wins. Null if both are missing. */
  json(field: string): string | null {
    const encoded = this.text(`b64${field}`)
    if (encoded !== '') {
      const text = jsonFromBase64(encoded)
      if (text === undefined) throw new InvalidField(`b64${field}`, 'must be JSON in base64')
      return text
    }
    if (!this.#fields.has(field)) return null
    const text = this.#fields.text(field)
    // JSON parsers disagree about which of two equal names counts.
    if (text === null) throw new InvalidField(field, 'must be there once')
    return onOneLine(text)
  }

  tags(): string | null {
    const value = this.value('tags')
    if (value === undefined) return null
    if (!isObject(value) || !Object.values(value).every((each) => typeof each === 'string')) {
      throw new InvalidField('tags', 'must be an object of texts')
    }
    return Object.keys(value).length === 0 ? null : JSON.stringify(value)
  }

  position(field: string): Position | null {
    const value = this.value(field)
    if (value === undefined) return null
    if (!isObject(value)) throw new InvalidField(field, 'must be an object with offset and epoch')
    const { offset = NO_POSITION.offset, epoch = NO_POSITION.epoch } = value
    if (!isSafeInteger(offset) || offset < 0 || typeof epoch !== 'string') {
      throw new InvalidField(field, 'must be an object with offset and epoch')
    }
    return { offset, epoch }
  }

  override(): Override {
    const override = readOverride(this.value('override'))
    if (override === null) throw new InvalidField('override', 'must be an object of {"value": true or false}')
    return override
  }
}

const isSafeInteger = (value: unknown): value is number => Number.isSafeInteger(value)

// Compiled on first use.
const compiled = new Map<string, TypeCheck<TSchema>>()

const MAX_PATH = 200

const compile = (name: string): TypeCheck<TSchema> | null => {
  const known = compiled.get(name)
  if (known !== undefined) return known
  if (!Object.hasOwn(schemas, name)) return null
  // `hasOwn` above makes the name a key.
  const check = TypeCompiler.Compile<TSchema>(schemas[name as keyof typeof schemas])
  compiled.set(name, check)
  return check
}

/** The first violation of a schema, with the path of its field; null if the data is valid. */
export const schemaError = (name: string, data: unknown): string | null => {
  const check = compile(name)
  if (check === null) return `there is no schema ${name}`
  if (check.Check(data)) return null
  const first = check.Errors(data).First()
  // Truncated: field names may be as long as the data, and a broadcast repeats the error for every channel.
  const path = first?.path.slice(0, MAX_PATH).replaceAll('/', '.') ?? ''
  return `data${path} does not fit ${name}: ${(first?.message ?? 'not valid').toLowerCase()}`
}
