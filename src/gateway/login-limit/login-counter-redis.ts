import { RedisConnection, type RedisConnectionOptions } from '../redis-connection.js'
import type { LoginCount, LoginCounter, MemoryLoginCounter } from './login-counter.js'

const KEY_PREFIX = 'gatehouse:login:'

// Increments the count and sets its window atomically. A key without an expiry would block an address for ever, so it
// gets one again.
const INCREMENT_SCRIPT = `
local count = redis.call('INCR', KEYS[1])
local ttl = redis.call('PTTL', KEYS[1])
if ttl < 0 then
  ttl = tonumber(ARGV[1])
  redis.call('PEXPIRE', KEYS[1], ttl)
end
return { count, ttl }`

export interface RedisLoginCounterOptions extends Pick<RedisConnectionOptions, 'redis' | 'log'> {
  readonly windowMs: number
  /** Counts the attempts at this instance too, for use while Redis is unavailable. */
  readonly local: MemoryLoginCounter
}

/** Counts login attempts across instances. While Redis is unavailable, each instance enforces the limit on its own counts. */
export class RedisLoginCounter implements LoginCounter {
  readonly #connection: RedisConnection
  readonly #windowMs: number
  readonly #local: MemoryLoginCounter

  constructor({ windowMs, local, ...connection }: RedisLoginCounterOptions) {
    this.#windowMs = windowMs
    this.#local = local
    this.#connection = new RedisConnection({
      ...connection,
      messages: {
        down: 'Redis unavailable, login attempts counted per instance',
        up: 'Redis available, login attempts counted across instances'
      }
    })
  }

  /** Resolves when Redis is connected or known to be unavailable. */
  ready(): Promise<void> {
    return this.#connection.ready()
  }

  async increment(key: string): Promise<LoginCount> {
    const local = this.#local.increment(key)
    const shared = await this.#connection.run(
      async (redis) => readCount(await redis.eval(INCREMENT_SCRIPT, 1, KEY_PREFIX + key, this.#windowMs)),
      null
    )
    // The local count is higher if Redis was unavailable or lost its data meanwhile.
    return shared === null || shared.current < local.current ? local : shared
  }

  close(): void {
    this.#connection.close()
  }
}

const readCount = (result: unknown): LoginCount => {
  const [current, ttl] = Array.isArray(result) ? result : []
  if (typeof current !== 'number' || typeof ttl !== 'number') throw new Error('unexpected script result')
  return { current, ttl }
}
