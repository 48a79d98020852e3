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

export const publishOn = (
  context: Context,
  kind: ChannelKind,
  channel: string,
  publication: NewPublication
): MaybePromise<Published | ReplyError> => {
  const { namespace, options } = kind
  const fault = options.schema === null ? null : context.schemaFault(options.schema, JSON.parse(publication.data))
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
