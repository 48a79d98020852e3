import type { RelayConfigFile } from './schema.js'

/** The engine, with the options that only it has. */
export type EngineConfig = { readonly kind: 'memory' } | RedisEngineConfig

export interface RedisEngineConfig {
  readonly kind: 'redis'
  readonly url: string
  /** Prefix of all keys and topics. */
  readonly prefix: string
  /** How long the presence of a crashed relay's clients remains. */
  readonly presenceTtlMs: number
}

const DEFAULT_REDIS_ADDRESS = 'redis://127.0.0.1:6379'
const HOST_AND_PORT = /^(?:[\w.-]+|\[[\da-f:.]+\]):\d+$/i

/**
 * The address in the file. As in Centrifugo, an entry may be `host:port`, and a file that selects the engine needs no address
 * of a server on this machine.
 */
export const redisAddress = ({ type, redis = {} }: NonNullable<RelayConfigFile['engine']>): string | undefined => {
  const entries = [redis.address ?? []].flat()
  if (entries.length === 0) return type === 'redis' ? DEFAULT_REDIS_ADDRESS : undefined
  return entries.map((entry) => (HOST_AND_PORT.test(entry) ? `redis://${entry}` : entry)).join(',')
}

/** Whether maps would be stored elsewhere. "memory" is Centrifugo's default, which does not matter without maps. */
export const hasOtherMapBroker = ({ map_broker, channel }: RelayConfigFile, kind: EngineConfig['kind']): boolean => {
  const type = map_broker?.type ?? kind
  const namespaces = [channel?.without_namespace ?? {}, ...(channel?.namespaces ?? [])]
  const hasMaps = namespaces.some(({ subscription_type = 'stream' }) => subscription_type !== 'stream')
  return type !== kind && (type === 'redis' || hasMaps)
}
