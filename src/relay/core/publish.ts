import type { NewPublication, Published } from './broker.js'
import { after, type MaybePromise } from './broker.js'
import type { ResolvedChannel } from './channels.js'
import { ERROR_BAD_REQUEST, ReplyError } from './codes.js'
import type { RelayContext } from './context.js'
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

/** What is wrong with the data of a publication, for those who want it to fit this schema. */
export type SchemaCheck = (schema: string) => string | null

const schemaCheck =
  ({ schemaError: schemaFault }: RelayContext, { data }: NewPublication): SchemaCheck =>
  (schema) =>
    hasTooManyContainers(data)
      ? `data holds more than ${MAX_CONTAINERS} objects and lists, too many to check against ${schema}`
      : schemaFault(schema, JSON.parse(data))

/** For a publication to many channels: each schema looks at it once, else a large one would cost its size for every channel. */
export const cachedSchemaCheck = (context: RelayContext, publication: NewPublication): SchemaCheck => {
  const find = schemaCheck(context, publication)
  const found = new Map<string, string | null>()
  return (schema) => {
    if (!found.has(schema)) found.set(schema, find(schema))
    return found.get(schema) ?? null
  }
}

export const publishToChannel = (
  context: RelayContext,
  kind: ResolvedChannel,
  channel: string,
  publication: NewPublication,
  findFault: SchemaCheck = schemaCheck(context, publication)
): MaybePromise<Published | ReplyError> => {
  const { options } = kind
  const refusal = publicationFault(options, findFault)
  if (refusal !== null) return refusal
  return after(context.broker.publish(channel, withDelta(publication, options), options), (result) => {
    countPublished(context, kind, channel, result)
    return result
  })
}

/** Error 107 for data that does not fit the schema of its namespace, else null. */
export const publicationFault = ({ schema }: ChannelOptions, findFault: SchemaCheck): ReplyError | null => {
  const fault = schema === null ? null : findFault(schema)
  return fault === null ? null : new ReplyError(ERROR_BAD_REQUEST.code, `${ERROR_BAD_REQUEST.message}: ${fault}`)
}

/** The publication as the namespace has it published. */
const withDelta = (publication: NewPublication, { deltaPublish }: ChannelOptions): NewPublication =>
  deltaPublish && !publication.delta ? { ...publication, delta: true } : publication

export const countPublished = (
  context: RelayContext,
  kind: ResolvedChannel,
  channel: string,
  result: Published
): void => {
  if (result.suppressedBy === null) {
    context.metrics.published(kind.namespace)
    context.activity.published(channel, kind, context.monotonicMs(), result.offset > 0)
  } else context.metrics.suppressed(kind.namespace, result.suppressedBy)
}
