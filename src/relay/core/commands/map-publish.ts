import { mayRemove, mayWrite, type ResolvedChannel } from '../channel-names.js'
import { Disconnect, ERROR_BAD_REQUEST, ERROR_PERMISSION_DENIED, ReplyError } from '../codes.js'
import type { MapChanged, MapWrite } from '../engine.js'
import {
  asMap,
  keyError,
  PLAIN_WRITE,
  type ResolvedMap,
  removeFromMap,
  writeFormatted,
  writeToMap
} from '../maps/write-map.js'
import type { MaybePromise } from '../maybe-promise.js'
import type { PublishCommand } from '../protocol.js'
import type { Payload } from '../publication.js'
import { inDataFormat, inEngineFormat } from '../publish/publish.js'
import type { Client } from '../session/client.js'
import { callerOn } from './command-channel.js'

/** Null if the client has left while the backend was asked. */
type MapOutcome = MapChanged | ReplyError | Disconnect | null

/** The write of a client to a map, or the removal of a key. Only the relay writes to maps of clients and users. */
export const publishToMap = (
  client: Client,
  { channel, key: requestedKey, removed }: PublishCommand,
  resolved: ResolvedChannel,
  data: Payload | null,
  info: string
): MaybePromise<MapOutcome> => {
  const target = resolved.options.subscriptionType === 'map' ? asMap(resolved) : ERROR_PERMISSION_DENIED
  if (target instanceof ReplyError) return target
  const { publishProxy, removeProxy } = target.map
  const isByBackend = (removed ? removeProxy : publishProxy) !== null
  const key = isByBackend ? requestedKey : allowedKey(client, channel, requestedKey, target, removed)
  if (key instanceof ReplyError) return key
  if (removed)
    return removeProxy === null
      ? removeFromMap(client.context, target, channel, { key, idempotencyKey: '' })
      : removeByBackend(client, channel, target, key, removeProxy)
  if (data === null) return ERROR_BAD_REQUEST
  const write = { ...PLAIN_WRITE, key, data: copied(data), info }
  return publishProxy === null
    ? writeToMap(client.context, target, channel, write)
    : writeByBackend(client, channel, target, write, publishProxy)
}

/** The key that the client may change, by the permissions of the namespace. */
const allowedKey = (
  client: Client,
  channel: string,
  requestedKey: string,
  { map }: ResolvedMap,
  removed: boolean
): string | ReplyError => {
  if (!(removed ? mayRemove : mayWrite)(map, callerOn(client, channel))) return ERROR_PERMISSION_DENIED
  const { clientKey } = map
  if (clientKey === 'user_id' && client.user === '') return ERROR_PERMISSION_DENIED
  return clientKey === null ? requestedKey : clientKey === 'user_id' ? client.user : client.id
}

/** A part of a text keeps the whole text in memory, here the frame of the client, as long as the entry exists. */
const copied = (data: Payload): Payload => (typeof data === 'string' ? Buffer.from(data).toString() : data)

/** A client may leave the key to the backend. */
const optionalKeyError = (key: string): ReplyError | null => (key === '' ? null : keyError(key))

/** The permissions of the namespace are not used. */
const writeByBackend = async (
  client: Client,
  channel: string,
  target: ResolvedMap,
  received: MapWrite,
  proxy: string
): Promise<MapOutcome> => {
  const { context, events } = client
  const { key } = received
  const write = optionalKeyError(key) ?? inDataFormat(received, target.options)
  if (write instanceof ReplyError) return write
  const { data } = write
  const outcome = await events.ask((source) =>
    context.eventProxies.mapPublish(proxy, { ...source, channel, key, data })
  )
  if (outcome instanceof ReplyError || outcome instanceof Disconnect) return outcome
  if (client.isClosed) return null
  return writeFormatted(context, target, channel, inEngineFormat({ ...write, ...outcome }, target.options))
}

const removeByBackend = async (
  client: Client,
  channel: string,
  target: ResolvedMap,
  key: string,
  proxy: string
): Promise<MapOutcome> => {
  const { context, events } = client
  const invalidKey = optionalKeyError(key)
  if (invalidKey !== null) return invalidKey
  const outcome = await events.ask((source) => context.eventProxies.mapRemove(proxy, { ...source, channel, key }))
  if (outcome instanceof ReplyError || outcome instanceof Disconnect) return outcome
  return client.isClosed ? null : removeFromMap(context, target, channel, { key, idempotencyKey: '', ...outcome })
}
