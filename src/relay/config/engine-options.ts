import { DEFAULT_MAP_BROKER, defaultAddress, type EngineKind } from './engine-kinds.js'
import type { RelayConfigFile } from './schema.js'

/** The address in the file. As in Centrifugo, a file that selects the engine needs no address of a server on this machine. */
export const redisAddress = ({ type, redis = {} }: NonNullable<RelayConfigFile['engine']>): string | undefined => {
  const entries = [redis.address ?? []].flat()
  if (entries.length === 0) return type && defaultAddress(type)
  return entries.join(',')
}

/** Whether maps would be stored elsewhere. */
export const hasOtherMapBroker = ({ map_broker, channel }: RelayConfigFile, kind: EngineKind): boolean => {
  const type = map_broker?.type ?? kind
  const namespaces = [channel?.without_namespace ?? {}, ...(channel?.namespaces ?? [])]
  const hasMaps = namespaces.some(({ subscription_type = 'stream' }) => subscription_type !== 'stream')
  return type !== kind && (type !== DEFAULT_MAP_BROKER || hasMaps)
}
