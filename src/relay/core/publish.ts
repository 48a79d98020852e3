import type { NewPublication, Published } from './broker.js'
import type { ChannelKind } from './channels.js'
import type { Context } from './context.js'
import { BAD_REQUEST, ReplyError } from './errors.js'
import { after, type MaybePromise } from './maybe-promise.js'

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
    schemaFault(schema, JSON.parse(data))

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
  const { namespace, options } = kind
  const fault = options.schema === null ? null : findFault(options.schema)
  if (fault !== null) return new ReplyError(BAD_REQUEST.code, `${BAD_REQUEST.message}: ${fault}`)
  const asDelta = options.deltaPublish && !publication.delta
  const published = context.broker.publish(channel, asDelta ? { ...publication, delta: true } : publication, options)
  return after(published, (result) => {
    if (result.suppressedBy === null) {
      context.watch.published(namespace)
      context.activity.published(channel, kind, context.nowMs(), result.offset > 0)
    } else context.watch.suppressed(namespace, result.suppressedBy)
    return result
  })
}
