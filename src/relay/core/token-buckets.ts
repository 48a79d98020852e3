import type { Bucket } from './engine.js'

/** Sums of intervals are not exact. */
const ROUNDING_MS = 0.001

/** Where the times are stored at which buckets will be full again. A missing bucket is full. */
interface FullTimes {
  get(key: string): number | undefined
  set(key: string, fullAt: number): void
}

/** Token buckets in memory, by name and owner. */
export class TokenBuckets {
  readonly #fullAt: FullTimes

  constructor(fullAt: FullTimes) {
    this.#fullAt = fullAt
  }

  /** Takes one token from each bucket, or none and returns false if one of them is empty. */
  take(buckets: readonly Bucket[], now: number, owner = ''): boolean {
    const next = new Map<string, number>()
    for (const { name, rate, intervalMs } of buckets) {
      const key = keyOf(name, owner)
      const fullAt = Math.max(now, this.#fullAt.get(key) ?? 0) + intervalMs / rate
      if (fullAt - now > intervalMs + ROUNDING_MS) return false
      next.set(key, fullAt)
    }
    for (const [key, fullAt] of next) this.#fullAt.set(key, fullAt)
    return true
  }

  /** Puts the tokens of an earlier `take` back. */
  putBack(buckets: readonly Bucket[], owner = ''): void {
    const next = new Map<string, number>()
    for (const { name, rate, intervalMs } of buckets) {
      const key = keyOf(name, owner)
      next.set(key, (this.#fullAt.get(key) ?? 0) - intervalMs / rate)
    }
    for (const [key, fullAt] of next) this.#fullAt.set(key, fullAt)
  }
}

/** The owner is last, because it may contain any character. */
const keyOf = (name: string, owner: string): string => `${name} ${owner}`
