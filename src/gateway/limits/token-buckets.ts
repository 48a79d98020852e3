import { BoundedMap } from '../../shared/bounded-map.js'
import type { RequestLimit } from './limits-file.js'

/** The state of a bucket after a request. */
export interface BucketResult {
  readonly limit: RequestLimit
  /** The user or the address that has the bucket. */
  readonly subject: string
  readonly isAllowed: boolean
  /** Requests that are allowed at once now. */
  readonly remaining: number
  /** Until the next request is allowed; 0 if one is. */
  readonly waitMs: number
  /** Until the bucket is full again. */
  readonly fullMs: number
}

/** At least this number of users or addresses have a bucket of their own for each limit. */
const MIN_BUCKETS = 50_000

/**
 * Token buckets in memory. A bucket is the time at which it will be full again, which one request moves by `intervalMs`; a full
 * bucket needs no entry. Memory is bounded: when there are too many buckets, the oldest ones count as full.
 */
export class MemoryBuckets {
  readonly #monotonicMs: () => number
  readonly #fullAt = new Map<RequestLimit, BoundedMap<string, number>>()

  constructor(limits: readonly RequestLimit[], monotonicMs: () => number) {
    this.#monotonicMs = monotonicMs
    for (const limit of limits) this.#fullAt.set(limit, new BoundedMap(MIN_BUCKETS))
  }

  get size(): number {
    let size = 0
    for (const buckets of this.#fullAt.values()) size += buckets.size
    return size
  }

  /** Takes one token from the bucket of each limit, or none if one of them is empty. */
  take(limits: readonly RequestLimit[], subject: string): readonly BucketResult[] {
    const now = this.#monotonicMs()
    const results = limits.map((limit) => bucketResult(limit, subject, this.#msToFull(limit, subject, now)))
    if (results.every(({ isAllowed }) => isAllowed))
      for (const { limit, fullMs } of results) this.#fullAt.get(limit)?.set(subject, now + fullMs)
    return results
  }

  #msToFull(limit: RequestLimit, subject: string, now: number): number {
    return Math.max(0, (this.#fullAt.get(limit)?.get(subject) ?? 0) - now)
  }
}

/** `msToFull`: how long the bucket needs to be full, before this request. */
export const bucketResult = (limit: RequestLimit, subject: string, msToFull: number): BucketResult => {
  const { burst, intervalMs } = limit
  const capacityMs = burst * intervalMs
  const isAllowed = msToFull + intervalMs <= capacityMs + ROUNDING_MS
  const fullMs = isAllowed ? msToFull + intervalMs : msToFull
  const remaining = Math.max(0, Math.floor((capacityMs - fullMs + ROUNDING_MS) / intervalMs))
  return { limit, subject, isAllowed, remaining, waitMs: Math.max(0, fullMs + intervalMs - capacityMs), fullMs }
}

/** Sums of intervals are not exact. */
const ROUNDING_MS = 0.001
