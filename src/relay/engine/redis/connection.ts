import { isIP } from 'node:net'
import { Redis } from 'ioredis'
import { addressName, type RedisAddress } from './address.js'

/** A Redis that has not answered for so long is taken for gone: whoever waits is told, and it is dialled anew. */
export const ANSWER_WITHIN_MS = 2_000
const CONNECT_WITHIN_MS = 2_000
const RETRY_MS = 100
const MAX_RETRY_MS = 1_000

/** A connection that never queues, repeats or resubscribes by itself: what becomes of a loss is decided by us. */
export const openConnection = (address: RedisAddress, purpose: string): Redis => {
  const { host, port, username, password, db, isTls } = address
  return new Redis({
    host,
    port,
    db,
    ...(username === '' ? {} : { username }),
    ...(password === '' ? {} : { password }),
    // An address is no name that a server could have several of.
    ...(isTls ? { tls: isIP(host) === 0 ? { servername: host } : {} } : {}),
    connectionName: `gatehouse-relay-${purpose}`,
    connectTimeout: CONNECT_WITHIN_MS,
    socketTimeout: ANSWER_WITHIN_MS,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    autoResubscribe: false,
    maxRetriesPerRequest: 0,
    enableReadyCheck: false,
    // Not all at the same moment when a Redis comes back to many relays.
    retryStrategy: (attempt) => Math.min(attempt * RETRY_MS, MAX_RETRY_MS) * (0.5 + Math.random() / 2)
  })
}

/** Without a password, and without what it was asked for. */
export const faultText = (address: RedisAddress, error: unknown): string =>
  `Redis at ${addressName(address)}: ${error instanceof Error ? error.message : String(error)}`
