import { RedisLink, type RedisLinkOptions } from '../redis-connection.js'
import type { Attempts, MemoryAttempts } from './login-limit.js'

const KEY_PREFIX = 'gatehouse:login:'

// Count and window in one step. A key that has lost its expiry would lock somebody out for ever, so it gets one again.
const COUNT_SCRIPT = `
local count = redis.call('INCR', KEYS[1])
local ttl = redis.call('PTTL', KEYS[1])
if ttl < 0 then
  ttl = tonumber(ARGV[1])
  redis.call('PEXPIRE', KEYS[1], ttl)
end
return { count, ttl }`

export interface RedisAttemptsOptions {
  readonly url: string
  readonly windowMs: number
  /** Counts along, so that it knows this instance's share when Redis is away. */
  readonly local: MemoryAttempts
  readonly log: RedisLinkOptions['log']
}

/**
 * Counts attempts in Redis, so that they hold across instances. While Redis is away the local counts decide alone: the
 * limit neither falls nor locks everyone out, and the log says so once per outage.
 */
export class RedisAttempts {
  readonly #link: RedisLink
  readonly #windowMs: number
  readonly #local: MemoryAttempts

  constructor({ url, windowMs, local, log }: RedisAttemptsOptions) {
    this.#windowMs = windowMs
    this.#local = local
    this.#link = new RedisLink({
      url,
      log,
      saidWhenAway: 'Redis is away: login attempts are counted by this instance alone',
      saidWhenBack: 'Redis is back: login attempts are counted across instances'
    })
  }

  /** Resolves when Redis is there or has turned out to be away. */
  ready(): Promise<void> {
    return this.#link.ready()
  }

  async add(key: string): Promise<Attempts> {
    const local = this.#local.add(key)
    const counted = await this.#link.orElse(
      (redis) => redis.eval(COUNT_SCRIPT, 1, KEY_PREFIX + key, this.#windowMs) as Promise<[number, number]>,
      null
    )
    if (counted === null) return local
    const [current, ttl] = counted
    // Attempts that were counted here while Redis was away count still.
    return current >= local.current ? { current, ttl } : local
  }

  close(): void {
    this.#link.close()
  }
}
