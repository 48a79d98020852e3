import type { Redis } from 'ioredis'

/** For a gateway whose Redis works: longer than a loaded machine can delay a response. */
export const PATIENT_TIMEOUTS = { connect: 60_000, ready: 60_000, command: 60_000 }

/** Brings the expiry of every key forward, as if this much time had passed. */
export const advanceRedis = async (redis: Redis, ms: number): Promise<void> => {
  for (const key of await redis.keys('*')) {
    const ttl = await redis.pttl(key)
    if (ttl > ms) await redis.pexpire(key, ttl - ms)
    else if (ttl >= 0) await redis.del(key)
  }
}
