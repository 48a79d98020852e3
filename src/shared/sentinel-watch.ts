import { Redis } from 'ioredis'
import { connectionOptions, type SentinelMaster } from './redis-address.js'

const SWITCH_CHANNEL = '+switch-master'
const RETRY_MS = 1_000

/**
 * Calls `switched` when a sentinel reports another master. A master that was replaced may still accept connections and writes,
 * for example if it was only disconnected from the sentinels. Returns a function that ends the watch.
 */
export const watchMaster = (address: SentinelMaster, switched: (host: string, port: number) => void): (() => void) => {
  const watches = sentinelOptions(address).map((options) => {
    const redis = new Redis({
      ...options,
      retryStrategy: () => RETRY_MS,
      enableReadyCheck: false,
      autoResubscribe: false
    })
    // Other sentinels report the same.
    redis.on('error', () => undefined)
    redis.on('message', (_channel, text) => {
      const [name, , , host = '', port] = text.split(' ')
      if (name === address.masterName) switched(host, Number(port))
    })
    redis.on('ready', () => {
      redis.subscribe(SWITCH_CHANNEL).catch(() => redis.disconnect(true))
    })
    return redis
  })
  return () => {
    for (const redis of watches) redis.disconnect()
  }
}

/**
 * Closes an open connection, so that ioredis opens another. Not while it is connecting: ioredis gives up for ever if it is
 * interrupted while it asks the sentinels.
 */
export const reconnect = (redis: Redis): void => {
  if (redis.status === 'connect' || redis.status === 'ready') redis.disconnect(true)
}

/** Reconnects if the connection is to another server than the new master. A host name cannot be compared with an address. */
export const reconnectToMaster = (redis: Redis, host: string, port: number): void => {
  // ioredis has no stream before the first connection, although its type has one.
  const isMaster = redis.stream?.remoteAddress === host && redis.stream.remotePort === port
  if (!isMaster) reconnect(redis)
}

/** The options of a connection to each sentinel. */
const sentinelOptions = ({ sentinels, sentinelUsername, sentinelPassword, isTls }: SentinelMaster) =>
  sentinels.map((sentinel) =>
    connectionOptions({
      kind: 'server',
      ...sentinel,
      username: sentinelUsername,
      password: sentinelPassword,
      db: 0,
      isTls
    })
  )
