import type { TSchema } from '@sinclair/typebox'
import { type TypeCheck, TypeCompiler } from '@sinclair/typebox/compiler'
import { schemas } from '../../../schemas/registry.js'
import { NO_POSITION, type Position } from '../core/broker.js'
import { ERROR_BAD_REQUEST, type ReplyError } from '../core/codes.js'
import { isObject, type JsonObject, MAX_CONTAINERS, onOneLine, TooManyContainers } from '../core/json.js'
import { jsonFromBase64, type Override, readOverride } from '../core/tokens.js'

/**
 * A request of the API could not be read; the reply says which field is at fault. No `Error`: nobody sees its stack, and
 * one body can hold thousands of them, each of which would have one made.
 */
export class InvalidField {
  readonly reply: ReplyError

  constructor(field: string, rule: string) {
    this.reply = ERROR_BAD_REQUEST.with(`${field} ${rule}`)
  }
}

/** The fields of one request. */
export class ApiRequest {
  readonly #fields: JsonObject

  /** Null for what is no object. */
  constructor(fields: JsonObject | null) {
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

  whole(field: string, least: number): number {
    const value = this.value(field)
    if (value === undefined) return 0
    if (!Number.isSafeInteger(value) || (value as number) < least)
      throw new InvalidField(field, 'must be a whole number')
    return value as number
  }

  texts(field: string): readonly string[] {
    const value = this.value(field)
    if (value === undefined) return []
    if (!Array.isArray(value) || !value.every((each) => typeof each === 'string')) {
      throw new InvalidField(field, 'must be a list of texts')
    }
    return value
  }

  /** The JSON text of a field, or of the same in base64 under `b64…`, which wins. Null where it is missing. */
  json(field: string): string | null {
    const encoded = this.text(`b64${field}`)
    if (encoded !== '') {
      const text = jsonFromBase64(encoded)
      if (text === undefined) throw new InvalidField(`b64${field}`, 'must be JSON in base64')
      return text
    }
    if (!this.#fields.has(field)) return null
    const text = this.#fields.text(field)
    // Of two equal names readers do not agree which one counts.
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
    if (!Number.isSafeInteger(offset) || (offset as number) < 0 || typeof epoch !== 'string') {
      throw new InvalidField(field, 'must be an object with offset and epoch')
    }
    return { offset: offset as number, epoch }
  }

  override(): Override {
    const override = readOverride(this.value('override'))
    if (override === null) throw new InvalidField('override', 'must be an object of {"value": true or false}')
    return override
  }
}

// Compiled when the first publication needs it; checking costs next to nothing then.
const compiled = new Map<string, TypeCheck<TSchema>>()

const MAX_PATH = 200

const compile = (name: string): TypeCheck<TSchema> | null => {
  const known = compiled.get(name)
  if (known !== undefined) return known
  if (!Object.hasOwn(schemas, name)) return null
  const check = TypeCompiler.Compile<TSchema>(schemas[name as keyof typeof schemas])
  compiled.set(name, check)
  return check
}

/** The first fault of data that must fit a schema, with the field that it is in; null where it fits. */
export const schemaError = (name: string, data: unknown): string | null => {
  const check = compile(name)
  if (check === null) return `there is no schema ${name}`
  if (check.Check(data)) return null
  const first = check.Errors(data).First()
  // Names in the data may be as long as the data, and a broadcast repeats the text for every channel.
  const path = first?.path.slice(0, MAX_PATH).replaceAll('/', '.') ?? ''
  return `data${path} does not fit ${name}: ${(first?.message ?? 'not valid').toLowerCase()}`
}
