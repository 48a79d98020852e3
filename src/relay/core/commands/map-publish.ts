import { mayRemove, mayWrite, type ResolvedChannel } from '../channel-names.js'
import { ERROR_BAD_REQUEST, ERROR_PERMISSION_DENIED, ReplyError } from '../codes.js'
import type { MapChanged } from '../engine.js'
import { asMap, PLAIN_WRITE, removeFromMap, writeToMap } from '../maps/write-map.js'
import type { MaybePromise } from '../maybe-promise.js'
import type { PublishCommand } from '../protocol.js'
import type { Payload } from '../publication.js'
import type { Client } from '../session/client.js'
import { callerOn } from './command-channel.js'

/** The write of a client to a map, or the removal of a key. Only the relay writes to maps of clients and users. */
export const publishToMap = (
  client: Client,
  { channel, key: requestedKey, removed }: PublishCommand,
  resolved: ResolvedChannel,
  data: Payload | null,
  info: string
): MaybePromise<MapChanged | ReplyError> => {
  const target = resolved.options.subscriptionType === 'map' ? asMap(resolved) : ERROR_PERMISSION_DENIED
  if (target instanceof ReplyError) return target
  const caller = callerOn(client, channel)
  if (!(removed ? mayRemove : mayWrite)(target.map, caller)) return ERROR_PERMISSION_DENIED
  const { clientKey } = target.map
  if (clientKey === 'user_id' && client.user === '') return ERROR_PERMISSION_DENIED
  const key = clientKey === null ? requestedKey : clientKey === 'user_id' ? client.user : client.id
  if (removed) return removeFromMap(client.context, target, channel, { key, idempotencyKey: '' })
  if (data === null) return ERROR_BAD_REQUEST
  return writeToMap(client.context, target, channel, { ...PLAIN_WRITE, key, data: copied(data), info })
}

/** A part of a text keeps the whole text in memory, here the frame of the client, as long as the entry exists. */
const copied = (data: Payload): Payload => (typeof data === 'string' ? Buffer.from(data).toString() : data)
