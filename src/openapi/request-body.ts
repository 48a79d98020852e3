import { isObject } from '../shared/is-object.js'
import { childOf, type Documents, type Located } from './documents.js'
import { ANY, type RequestSchemas } from './schemas.js'
import type { SchemaCompiler, Validate } from './validators.js'

export interface OperationBody {
  readonly isRequired: boolean
  /** Validators of JSON bodies by media type or range: `application/json`, `application/*`. */
  readonly json: ReadonlyMap<string, Validate>
  /** Media types and ranges of other bodies, which are streamed without validation: `multipart/form-data`, `image/*`. */
  readonly streamed: ReadonlySet<string>
}

/** Some generators write null instead of nothing. */
export const NO_SCHEMA_WARNING = 'null instead of a schema, every value is valid'

/** Reads a request body object. Throws a `DocumentError` if there is something wrong with it. */
export const readRequestBody = (
  documents: Documents,
  located: Located,
  schemas: RequestSchemas,
  warn: (located: Located, message: string) => void
): ((compile: SchemaCompiler) => OperationBody) => {
  const body = documents.dereference(located)
  if (!isObject(body.value)) throw documents.error(body, 'must be an object')
  const content = childOf(body, 'content')
  if (!isObject(content.value)) throw documents.error(content, 'must be an object of media types')
  const isRequired = body.value.required === true
  const json = new Map<string, string>()
  const streamed = new Set<string>()
  for (const key of Object.keys(content.value)) {
    const type = mediaTypeOf(key)
    if (!MEDIA_TYPE.test(type)) throw documents.error(childOf(content, key), 'must be a media type')
    const schema = childOf(content, key, 'schema')
    const mayBeJson = isJsonType(type) || isRange(type)
    if (schema.value === null) warn(schema, NO_SCHEMA_WARNING)
    if (mayBeJson && !json.has(type)) json.set(type, schema.value == null ? ANY : schemas.add(schema))
    if (!isJsonType(type)) streamed.add(type)
  }
  return (compile) => ({
    isRequired,
    json: new Map([...json].map(([type, definition]) => [type, compile.body(definition)])),
    streamed
  })
}

/** The validator of a JSON body with this media type; undefined if the operation does not accept it. */
export const jsonValidator = ({ json }: OperationBody, type: string): Validate | undefined =>
  json.get(type) ?? (type.endsWith('+json') ? json.get('application/*+json') : undefined) ?? ofRange(json, type)

const ofRange = (json: ReadonlyMap<string, Validate>, type: string): Validate | undefined =>
  json.get(rangeOf(type)) ?? json.get('*/*')

/** Whether the operation accepts another body with this media type. */
export const isStreamed = ({ streamed }: OperationBody, type: string): boolean =>
  streamed.has(type) || streamed.has(rangeOf(type)) || streamed.has('*/*')

const MEDIA_TYPE = /^(?:\*|[\w.!#$&^+-]+)\/(?:\*|[\w.!#$&^+*-]+)$/

/** The media type in lower case, without parameters. */
export const mediaTypeOf = (contentType: string): string => contentType.replace(/;.*$/s, '').trim().toLowerCase()

export const isJsonType = (type: string): boolean => /^application\/(?:json|[\w.!#$&^+*-]+\+json)$/.test(type)

const isRange = (type: string): boolean => type === '*/*' || type === 'application/*'

const rangeOf = (type: string): string => type.replace(/\/.*$/s, '/*')
