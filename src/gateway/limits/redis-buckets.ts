import { createHash } from 'node:crypto'
import type { Logger } from 'pino'
import { type RedisConfig, RedisConnection } from '../redis-connection.js'
import type { RequestLimit } from './limits-file.js'
import { type BucketResult, bucketResult } from './token-buckets.js'

const KEY_PREFIX = 'gatehouse:limit:'

/** After a failure requests do not wait for Redis again until then. */
const RETRY_MS = 1_000

// Takes one token from each bucket, or none if one is empty. The clock is that of Redis. Returns how long each bucket needed to be
// full before the request, in microseconds. ARGV: for each key, interval and capacity in microseconds.
const TAKE_SCRIPT = `
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local waits = {}
local allowed = true
for i, key in ipairs(KEYS) do
  local full = tonumber(redis.call('GET', key) or '0')
  waits[i] = math.max(0, full - now)
  if waits[i] + tonumber(ARGV[2 * i - 1]) > tonumber(ARGV[2 * i]) + 1 then allowed = false end
end
if allowed then
  for i, key in ipairs(KEYS) do
    local after = waits[i] + tonumber(ARGV[2 * i - 1])
    redis.call('SET', key, string.format('%.0f', now + after), 'PX', math.ceil(after / 1000))
  end
end
for i, wait in ipairs(waits) do waits[i] = string.format('%.0f', wait) end
return waits`

export interface RedisBucketsOptions {
  readonly redis: RedisConfig
  readonly log: Logger
  readonly monotonicMs: () => number
}

/** Token buckets that all gateways share. */
export class RedisBuckets {
  readonly #connection: RedisConnection
  readonly #monotonicMs: () => number
  #retryAt = 0

  constructor({ redis, log, monotonicMs }: RedisBucketsOptions) {
    this.#monotonicMs = monotonicMs
    this.#connection = new RedisConnection({
      redis,
      log,
      messages: {
        down: 'Redis unavailable, requests limited per instance',
        up: 'Redis available, requests limited across instances'
      }
    })
  }

  /** Resolves when Redis is connected or known to be unavailable. */
  ready(): Promise<void> {
    return this.#connection.ready()
  }

  /** Whether requests are counted in Redis. */
  get isUp(): boolean {
    return this.#connection.isUp && this.#monotonicMs() >= this.#retryAt
  }

  /** In one round trip. Null if Redis is unavailable. */
  async take(limits: readonly RequestLimit[], subject: string): Promise<readonly BucketResult[] | null> {
    if (!this.isUp) return null
    // The keys of one subject are in the same slot of a Redis Cluster.
    const tag = createHash('sha256').update(subject).digest('base64url').slice(0, 22)
    const keys = limits.map(({ name }) => `${KEY_PREFIX}{${tag}}:${name}`)
    const args = limits.flatMap(({ intervalMs, burst }) =>
      [intervalMs * 1000, intervalMs * 1000 * burst].map(Math.round)
    )
    const waits = await this.#connection.run((redis) => redis.eval(TAKE_SCRIPT, keys.length, ...keys, ...args), null)
    if (!Array.isArray(waits)) {
      this.#retryAt = this.#monotonicMs() + RETRY_MS
      return null
    }
    return limits.map((limit, index) => bucketResult(limit, Number(waits[index]) / 1000))
  }

  close(): void {
    this.#connection.close()
  }
}
