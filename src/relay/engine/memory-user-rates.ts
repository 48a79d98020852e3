import { BoundedMap } from '../../shared/bounded-map.js'
import type { Bucket, UserRates } from '../core/engine.js'
import { TokenBuckets } from '../core/token-buckets.js'

/** At least this number of buckets are in memory. Older ones count as full. */
const MIN_BUCKETS = 100_000

/** The token buckets of users, in a single process or in the primary of several workers. */
export class MemoryUserRates implements UserRates {
  readonly #buckets = new TokenBuckets(new BoundedMap<string, number>(MIN_BUCKETS))
  readonly #monotonicMs: () => number

  constructor(monotonicMs: () => number) {
    this.#monotonicMs = monotonicMs
  }

  take(user: string, buckets: readonly Bucket[]): boolean {
    return this.#buckets.take(buckets, this.#monotonicMs(), user)
  }
}
