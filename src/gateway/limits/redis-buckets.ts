import { createHash } from 'node:crypto'
import type { Logger } from 'pino'
import { TAKE_TOKENS } from '../../shared/token-bucket-script.js'
import { type RedisConfig, RedisConnection } from '../redis-connection.js'
import type { RequestLimit } from './limits-file.js'
import { type BucketResult, bucketResult } from './token-buckets.js'

const KEY_PREFIX = 'gatehouse:limit:'

/** After a failure requests do not wait for Redis again until then. */
const RETRY_MS = 1_000

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
    const waits = await this.#connection.run((redis) => redis.eval(TAKE_TOKENS, keys.length, ...keys, ...args), null)
    if (!Array.isArray(waits)) {
      this.#retryAt = this.#monotonicMs() + RETRY_MS
      return null
    }
    return limits.map((limit, index) => bucketResult(limit, subject, Number(waits[index]) / 1000))
  }

  close(): void {
    this.#connection.close()
  }
}
