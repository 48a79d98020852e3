import type { NewPublication, Position } from './broker.js'
import type { ChannelKind } from './channels.js'
import type { Context } from './context.js'
import { BAD_REQUEST, ReplyError } from './errors.js'
import type { MaybePromise } from './maybe-promise.js'

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

/** `parsed` is what the text of the publication's data says. */
export const publishOn = (
  context: Context,
  { namespace, options }: ChannelKind,
  channel: string,
  parsed: unknown,
  publication: NewPublication
): MaybePromise<Position | ReplyError> => {
  const fault = options.schema === null ? null : context.schemaFault(options.schema, parsed)
  if (fault !== null) return new ReplyError(BAD_REQUEST.code, `${BAD_REQUEST.message}: ${fault}`)
  context.watch.published(namespace)
  return context.broker.publish(
    channel,
    options.deltaPublish && !publication.delta ? { ...publication, delta: true } : publication,
    options
  )
}
