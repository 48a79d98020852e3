import type { FastifyBaseLogger } from 'fastify'
import { Redis } from 'ioredis'
import type { Attempts } from './attempts.js'
import type { MemoryAttempts } from './memory-attempts.js'

const COMMAND_TIMEOUT_MS = 500
const CONNECT_TIMEOUT_MS = 2_000
const READY_TIMEOUT_MS = 3_000
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
  readonly log: Pick<FastifyBaseLogger, 'info' | 'warn'>
}

/**
 * Counts attempts in Redis, so that they hold across instances. While Redis is away the local counts decide alone: the
 * limit neither falls nor locks everyone out, and the log says so once per outage.
 */
export class RedisAttempts {
  readonly #redis: Redis
  readonly #windowMs: number
  readonly #local: MemoryAttempts
  readonly #log: RedisAttemptsOptions['log']
  #away = false

  constructor({ url, windowMs, local, log }: RedisAttemptsOptions) {
    this.#windowMs = windowMs
    this.#local = local
    this.#log = log
    this.#redis = new Redis(url, {
      commandTimeout: COMMAND_TIMEOUT_MS,
      connectTimeout: CONNECT_TIMEOUT_MS,
      // A login must not wait for a reconnect: without a connection the command fails at once.
      enableOfflineQueue: false,
      maxRetriesPerRequest: 0,
      retryStrategy: (attempt) => Math.min(attempt * 100, 2_000)
    })
    // ioredis says so at every attempt to reconnect; the outage itself is told where a count meets it.
    this.#redis.on('error', () => undefined)
  }

  /** Resolves when Redis is there or has turned out to be away. */
  async ready(): Promise<void> {
    if (this.#redis.status !== 'ready') {
      await new Promise<unknown>((resolve) => {
        this.#redis.once('ready', resolve)
        this.#redis.once('close', resolve)
        // While Redis loads its data it is neither, for minutes perhaps.
        setTimeout(resolve, READY_TIMEOUT_MS).unref()
      })
    }
    this.#tell(this.#redis.status !== 'ready')
  }

  async add(key: string): Promise<Attempts> {
    const local = this.#local.add(key)
    try {
      const [current, ttl] = (await this.#redis.eval(COUNT_SCRIPT, 1, KEY_PREFIX + key, this.#windowMs)) as [
        number,
        number
      ]
      this.#tell(false)
      // Attempts that were counted here while Redis was away count still.
      return current >= local.current ? { current, ttl } : local
    } catch (error) {
      this.#tell(true, error)
      return local
    }
  }

  close(): void {
    this.#redis.disconnect()
  }

  #tell(away: boolean, error?: unknown): void {
    if (away === this.#away) return
    this.#away = away
    if (away) this.#log.warn({ err: error }, 'Redis is away: login attempts are counted by this instance alone')
    else this.#log.info('Redis is back: login attempts are counted across instances')
  }
}
