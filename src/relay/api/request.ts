import type { TSchema } from '@sinclair/typebox'
import { type TypeCheck, TypeCompiler } from '@sinclair/typebox/compiler'
import { schemas } from '../../../schemas/registry.js'
import { isObject } from '../../shared/is-object.js'
import type { LazyJsonObject } from '../core/codec/json-members.js'
import { NO_POSITION, type Payload, type Position } from '../core/publication.js'
import { InvalidField, InvalidType, isSafeInteger, JsonFields } from '../json-fields.js'

/** The fields of one request. */
export class ApiRequest extends JsonFields {
  /** `fields` is null if the request is not an object. */
  constructor(fields: LazyJsonObject | null) {
    if (fields === null) throw new InvalidType('the request', 'must be an object')
    super(fields)
  }

  requiredText(field: string): string {
    const value = this.text(field)
    if (value === '') throw new InvalidField(field, 'is missing')
    return value
  }

  /** No bytes if the field and its base64 form are missing. */
  override payload(field: string): Payload {
    return super.payload(field) ?? Buffer.alloc(0)
  }

  position(field: string): Position | null {
    const value = this.value(field)
    if (value === undefined) return null
    if (!isObject(value)) throw new InvalidType(field, 'must be an object with offset and epoch')
    const { offset = NO_POSITION.offset, epoch = NO_POSITION.epoch } = value
    if (!isSafeInteger(offset) || offset < 0 || typeof epoch !== 'string') {
      throw new InvalidType(field, 'must be an object with offset and epoch')
    }
    return { offset, epoch }
  }
}

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
