import type { ResolvedChannel } from './channels.js'
import { ERROR_BAD_REQUEST, type ReplyError } from './codes.js'
import type { RelayContext } from './context.js'
import { after, type MaybePromise, type NewPublication, type Published } from './engine-interfaces.js'
import { hasTooManyContainers, MAX_CONTAINERS } from './json.js'
import type { ChannelOptions } from './options.js'

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

const schemaCheck =
  ({ schemaError }: RelayContext, { data }: NewPublication): SchemaCheck =>
  (schema) =>
    hasTooManyContainers(data)
      ? `data holds more than ${MAX_CONTAINERS} objects and lists, too many to check against ${schema}`
      : schemaError(schema, JSON.parse(data))

/** For one publication to many channels: each schema is checked once instead of once per channel. */
export const cachedSchemaCheck = (context: RelayContext, publication: NewPublication): SchemaCheck => {
  const check = schemaCheck(context, publication)
  const results = new Map<string, string | null>()
  return (schema) => {
    if (!results.has(schema)) results.set(schema, check(schema))
    return results.get(schema) ?? null
  }
}

export const publishToChannel = (
  context: RelayContext,
  resolved: ResolvedChannel,
  channel: string,
  publication: NewPublication,
  check: SchemaCheck = schemaCheck(context, publication)
): MaybePromise<Published | ReplyError> => {
  const { options } = resolved
  const error = publicationError(options, check)
  if (error !== null) return error
  return after(context.broker.publish(channel, withDelta(publication, options), options), (result) => {
    countPublished(context, resolved, channel, result)
    return result
  })
}

/** Error 107 if the data does not match the schema of the namespace, else null. */
export const publicationError = ({ schema }: ChannelOptions, check: SchemaCheck): ReplyError | null => {
  const mismatch = schema === null ? null : check(schema)
  return mismatch === null ? null : ERROR_BAD_REQUEST.with(mismatch)
}

/** Applies the `delta_publish` option of the namespace. */
const withDelta = (publication: NewPublication, { deltaPublish }: ChannelOptions): NewPublication =>
  deltaPublish && !publication.delta ? { ...publication, delta: true } : publication

export const countPublished = (
  context: RelayContext,
  resolved: ResolvedChannel,
  channel: string,
  result: Published
): void => {
  if (result.suppressedBy === null) {
    context.metrics.published(resolved.namespace)
    context.activity.published(channel, resolved, context.monotonicMs(), result.offset > 0)
  } else context.metrics.suppressed(resolved.namespace, result.suppressedBy)
}
