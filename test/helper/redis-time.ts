import { Redis } from 'ioredis'
import type { Test } from 'tap'
import { startRedis } from './redis.js'

/** For a gateway whose Redis works: longer than a loaded machine can delay a response. */
export const PATIENT_TIMEOUTS = { connect: 60_000, ready: 60_000, command: 60_000 }

const LOG = { info: () => undefined, warn: () => undefined }

/** A Redis for the tests of a contract, empty before each of them. */
export const startContractRedis = async (t: Test) => {
  const { url } = await startRedis(t)
  const client = new Redis(url)
  t.teardown(() => client.disconnect())
  t.beforeEach(() => client.flushall())
  return {
    client,
    /** The options of a connection to it. */
    connection: { redis: { url, timeouts: PATIENT_TIMEOUTS }, log: LOG },
    /** A clock that Redis follows. */
    startClock: (timeMs: number) => {
      let time = timeMs
      return {
        now: () => time,
        advance: async (ms: number): Promise<void> => {
          time += ms
          await advanceRedis(client, ms)
        }
      }
    }
  }
}

/** Brings the expiry of every key forward, as if this much time had passed. */
const advanceRedis = async (redis: Redis, ms: number): Promise<void> => {
  for (const key of await redis.keys('*')) {
    const ttl = await redis.pttl(key)
    if (ttl > ms) await redis.pexpire(key, ttl - ms)
    else if (ttl >= 0) await redis.del(key)
  }
}
