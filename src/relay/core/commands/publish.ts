import { mayPublish, type ResolvedChannel } from '../channel-names.js'
import { EMPTY_REPLY, type Encoded } from '../codec/codec.js'
import { DISCONNECT_MALFORMED, Disconnect, ERROR_BAD_REQUEST, ERROR_PERMISSION_DENIED, ReplyError } from '../codes.js'
import type { MapChanged } from '../engine.js'
import { after, type MaybePromise } from '../maybe-promise.js'
import { parsePublish, TYPE_MAP } from '../protocol.js'
import type { Payload, Published } from '../publication.js'
import {
  inDataFormat,
  inEngineFormat,
  PLAIN_PUBLICATION,
  publishFormatted,
  publishToChannel
} from '../publish/publish.js'
import type { Client, CommandOutcome, RunningCommand } from '../session/client.js'
import { callerOn, resolveFor } from './command-channel.js'
import { publishToMap } from './map-publish.js'

const NO_DATA = Buffer.alloc(0)

/** Not an async function: with the memory engine the reply is written without waiting for a promise. */
export const publish = (
  client: Client,
  request: unknown,
  command: RunningCommand,
  encoded: Encoded
): MaybePromise<CommandOutcome> => {
  const parsed = parsePublish(request)
  if (parsed === null) return DISCONNECT_MALFORMED
  const { channel, type } = parsed
  const resolved = resolveFor(client, channel)
  if (resolved instanceof ReplyError) return resolved
  // In protobuf, empty data and no data are the same.
  const isEmptyAllowed = resolved.options.publicationDataFormat === 'binary'
  const data = client.codec.commandData(encoded, 'publish', request) ?? (isEmptyAllowed ? NO_DATA : null)
  const published: MaybePromise<Published | MapChanged | ReplyError | Disconnect | null> =
    type === TYPE_MAP
      ? publishToMap(client, parsed, resolved, data, publisherInfo(client, channel))
      : publishToStream(client, channel, resolved, data)
  return after(published, (outcome) => {
    if (outcome instanceof ReplyError || outcome instanceof Disconnect || outcome === null) return outcome
    client.reply(command, 'publish', EMPTY_REPLY)
    return null
  })
}

const publishToStream = (
  client: Client,
  channel: string,
  resolved: ResolvedChannel,
  data: Payload | null
): MaybePromise<Published | ReplyError | Disconnect | null> => {
  const { publishProxy, map } = resolved.options
  if (map !== null) return ERROR_PERMISSION_DENIED
  if (data === null) return ERROR_BAD_REQUEST
  return publishProxy === null
    ? publishIfAllowed(client, channel, resolved, data)
    : publishByBackend(client, channel, resolved, data, publishProxy)
}

const publishIfAllowed = (
  client: Client,
  channel: string,
  resolved: ResolvedChannel,
  data: Payload
): MaybePromise<Published | ReplyError> =>
  mayPublish(resolved.options, callerOn(client, channel))
    ? publishToChannel(client.context, resolved, channel, {
        ...PLAIN_PUBLICATION,
        data,
        info: publisherInfo(client, channel)
      })
    : ERROR_PERMISSION_DENIED

/** The permissions of the namespace are not used. Null if the client has left. */
const publishByBackend = async (
  client: Client,
  channel: string,
  resolved: ResolvedChannel,
  received: Payload,
  proxy: string
): Promise<Published | ReplyError | Disconnect | null> => {
  const { context, events } = client
  const { options } = resolved
  const formatted = inDataFormat({ ...PLAIN_PUBLICATION, data: received }, options)
  if (formatted instanceof ReplyError) return formatted
  const { data } = formatted
  const outcome = await events.ask((source) => context.eventProxies.publish(proxy, { ...source, channel, data }))
  if (outcome instanceof ReplyError || outcome instanceof Disconnect) return outcome
  if (client.isClosed) return null
  const publication = { ...formatted, ...outcome, info: publisherInfo(client, channel) }
  return publishFormatted(context, resolved, channel, inEngineFormat(publication, options))
}

const publisherInfo = (client: Client, channel: string): string =>
  client.infoText(client.subscriptions.get(channel)?.info ?? null)
