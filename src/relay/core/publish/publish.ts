import type { ResolvedChannel } from '../channel-names.js'
import { hasTooManyContainers, jsonFromBytes, MAX_CONTAINERS } from '../codec/json.js'
import { ERROR_BAD_REQUEST, ERROR_IS_MAP, ReplyError } from '../codes.js'
import type { CoreMetrics } from '../core-metrics.js'
import type { Broker } from '../engine.js'
import { after, type MaybePromise } from '../maybe-promise.js'
import type { ChannelOptions, ChannelRules } from '../options.js'
import type { NewPublication, Payload, Published } from '../publication.js'
import type { PublishActivity } from './publish-activity.js'

/** The parts of the core that publishing needs. */
export interface PublishContext {
  readonly broker: Broker
  readonly metrics: CoreMetrics
  readonly activity: PublishActivity
  readonly channelRules: ChannelRules
  readonly monotonicMs: () => number
  /** Returns a readable description of the first mismatch with the named schema, or null if the data is valid. */
  readonly schemaError: (schema: string, data: unknown) => string | null
}

export const PLAIN_PUBLICATION: NewPublication = {
  data: 'null',
  info: null,
  tags: null,
  delta: false,
  skipHistory: false,
  idempotencyKey: '',
  version: 0,
  versionEpoch: ''
}

/** Checks the data of one publication against the named schema. Returns a description of the mismatch, or null. */
export type SchemaCheck = (schema: string) => string | null

export const schemaCheck =
  ({ schemaError }: Pick<PublishContext, 'schemaError'>, { data }: Pick<NewPublication, 'data'>): SchemaCheck =>
  (schema) => {
    const text = jsonTextOf(data)
    if (text === null) return `data must be JSON to fit ${schema}`
    return hasTooManyContainers(text)
      ? `data holds more than ${MAX_CONTAINERS} objects and lists, too many to check against ${schema}`
      : schemaError(schema, JSON.parse(text))
  }

const jsonTextOf = (data: Payload): string | null => (typeof data === 'string' ? data : jsonFromBytes(data))

/** For one publication to many channels: each schema is checked once instead of once per channel. */
export const cachedSchemaCheck = (context: PublishContext, publication: NewPublication): SchemaCheck => {
  const check = schemaCheck(context, publication)
  const results = new Map<string, string | null>()
  return (schema) => {
    if (!results.has(schema)) results.set(schema, check(schema))
    return results.get(schema) ?? null
  }
}

export const publishToChannel = (
  context: PublishContext,
  resolved: ResolvedChannel,
  channel: string,
  publication: NewPublication,
  check: SchemaCheck = schemaCheck(context, publication)
): MaybePromise<Published | ReplyError> => {
  if (resolved.options.map !== null) return ERROR_IS_MAP
  const formatted = inDataFormat(publication, resolved.options)
  return formatted instanceof ReplyError
    ? formatted
    : publishFormatted(context, resolved, channel, withDelta(formatted, resolved.options), check)
}

/** Publishes data whose format was checked before. */
export const publishFormatted = (
  context: PublishContext,
  resolved: ResolvedChannel,
  channel: string,
  publication: NewPublication,
  check: SchemaCheck = schemaCheck(context, publication)
): MaybePromise<Published | ReplyError> => {
  const { options } = resolved
  const error = publicationError(options, check)
  if (error !== null) return error
  return after(context.broker.publish(channel, publication, options), (result) => {
    countPublished(context, resolved, channel, result)
    return result
  })
}

const ERROR_DATA_MISSING = ERROR_BAD_REQUEST.with('data is missing')
const ERROR_DATA_NOT_JSON = ERROR_BAD_REQUEST.with('data must be JSON')
const ERROR_DATA_NOT_OBJECT = ERROR_BAD_REQUEST.with('data must be a JSON object')

/** The publication with its data in the format of the namespace; error 107 if the data does not have it. */
export const inDataFormat = <Written extends Pick<NewPublication, 'data'>>(
  publication: Written,
  options: ChannelOptions
): Written | ReplyError => {
  const { data } = publication
  const { publicationDataFormat } = options
  if (publicationDataFormat === 'binary') return inEngineFormat(publication, options)
  if (data.length === 0) return ERROR_DATA_MISSING
  const text = jsonTextOf(data)
  if (text === null) return publicationDataFormat === 'any' ? publication : ERROR_DATA_NOT_JSON
  if (publicationDataFormat === 'json_object' && !text.trimStart().startsWith('{')) return ERROR_DATA_NOT_OBJECT
  return text === data ? publication : { ...publication, data: text }
}

/** Error 107 if the data does not match the schema of the namespace, else null. */
export const publicationError = ({ schema }: ChannelOptions, check: SchemaCheck): ReplyError | null => {
  const mismatch = schema === null ? null : check(schema)
  return mismatch === null ? null : ERROR_BAD_REQUEST.with(mismatch)
}

/** The data of a backend, which is free to choose its format: in a namespace with binary data, engines expect bytes. */
export const inEngineFormat = <Written extends Pick<NewPublication, 'data'>>(
  publication: Written,
  { publicationDataFormat }: ChannelOptions
): Written =>
  publicationDataFormat === 'binary' && typeof publication.data === 'string'
    ? { ...publication, data: Buffer.from(publication.data) }
    : publication

/** Applies the `delta_publish` option of the namespace. */
export const withDelta = <Written extends Pick<NewPublication, 'delta'>>(
  publication: Written,
  { deltaPublish }: ChannelOptions
): Written => (deltaPublish && !publication.delta ? { ...publication, delta: true } : publication)

export const countPublished = (
  context: PublishContext,
  resolved: ResolvedChannel,
  channel: string,
  result: Published
): void => {
  if (result.suppressedBy === null) {
    context.metrics.published(resolved.namespace)
    context.activity.published(channel, resolved, context.monotonicMs(), result.offset > 0)
  } else context.metrics.suppressed(resolved.namespace, result.suppressedBy)
}
