import type { NewPublication, Published } from './broker.js'
import type { ChannelKind } from './channels.js'
import type { Context } from './context.js'
import { BAD_REQUEST, ReplyError } from './errors.js'
import { hasTooManyContainers, MAX_CONTAINERS } from './json-text.js'
import { after, type MaybePromise } from './maybe-promise.js'
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
export type FaultFinder = (schema: string) => string | null

const faultFinder =
  ({ schemaFault }: Context, { data }: NewPublication): FaultFinder =>
  (schema) =>
    hasTooManyContainers(data)
      ? `data holds more than ${MAX_CONTAINERS} objects and lists, too many to check against ${schema}`
      : schemaFault(schema, JSON.parse(data))

/** For a publication to many channels: each schema looks at it once, else a large one would cost its size for every channel. */
export const rememberingFaultFinder = (context: Context, publication: NewPublication): FaultFinder => {
  const find = faultFinder(context, publication)
  const found = new Map<string, string | null>()
  return (schema) => {
    if (!found.has(schema)) found.set(schema, find(schema))
    return found.get(schema) ?? null
  }
}

export const publishOn = (
  context: Context,
  kind: ChannelKind,
  channel: string,
  publication: NewPublication,
  findFault: FaultFinder = faultFinder(context, publication)
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
export const publicationFault = ({ schema }: ChannelOptions, findFault: FaultFinder): ReplyError | null => {
  const fault = schema === null ? null : findFault(schema)
  return fault === null ? null : new ReplyError(BAD_REQUEST.code, `${BAD_REQUEST.message}: ${fault}`)
}

/** The publication as the namespace has it published. */
const withDelta = (publication: NewPublication, { deltaPublish }: ChannelOptions): NewPublication =>
  deltaPublish && !publication.delta ? { ...publication, delta: true } : publication

export const countPublished = (context: Context, kind: ChannelKind, channel: string, result: Published): void => {
  if (result.suppressedBy === null) {
    context.watch.published(kind.namespace)
    context.activity.published(channel, kind, context.monotonicMs(), result.offset > 0)
  } else context.watch.suppressed(kind.namespace, result.suppressedBy)
}
