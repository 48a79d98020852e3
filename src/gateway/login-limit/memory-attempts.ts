import { createHmac, randomBytes } from 'node:crypto'
import { monotonicMs } from '../../shared/monotonic.js'
import type { Attempts } from './attempts.js'

const SWEEP_MS = 5 * 60_000

export interface MemoryAttemptsOptions {
  readonly windowMs: number
  /** How many keys have a count of their own, at most. */
  readonly maxKeys?: number
  /** How many counts those that come later share. */
  readonly sharedCounts?: number
  /** Windows must end in the order in which they began, so it may only go forward. */
  readonly now?: () => number
}

interface Count {
  attempts: number
  readonly endsAt: number
}

/**
 * Counts attempts per key in fixed windows. It is bounded, and no count is dropped before its window ends: when an attack
 * has filled it, further keys share a set of counts, picked by a hash that nobody outside can foresee. So memory stays
 * flat, nobody's count starts anew early, and a newcomer is limited too early only if an attacker met the same count.
 */
export class MemoryAttempts {
  // All windows are equally long, so the order of insertion is the order in which they end.
  readonly #counts = new Map<string, Count>()
  readonly #windowMs: number
  readonly #maxKeys: number
  readonly #sharedCounts: number
  readonly #now: () => number
  readonly #hashKey = randomBytes(32)
  readonly #sweep: NodeJS.Timeout

  constructor({ windowMs, maxKeys = 100_000, sharedCounts = 4096, now = monotonicMs }: MemoryAttemptsOptions) {
    this.#windowMs = windowMs
    this.#maxKeys = maxKeys
    this.#sharedCounts = sharedCounts
    this.#now = now
    this.#sweep = setInterval(() => this.sweep(), SWEEP_MS).unref()
  }

  get size(): number {
    return this.#counts.size
  }

  add(key: string): Attempts {
    const now = this.#now()
    this.sweep()
    const own = this.#counts.get(key)
    if (own !== undefined) return this.#increment(own, now)

    // Also where there is room again: who was counted in it would start anew.
    const sharedKey = this.#sharedKey(key)
    const shared = this.#counts.get(sharedKey)
    if (shared !== undefined) return this.#increment(shared, now)
    return this.#begin(this.#counts.size < this.#maxKeys ? key : sharedKey, now)
  }

  /** Forgets the windows that have ended. Costs nothing where none has. */
  sweep(): void {
    const now = this.#now()
    for (const [key, { endsAt }] of this.#counts) {
      if (endsAt > now) return
      this.#counts.delete(key)
    }
  }

  close(): void {
    clearInterval(this.#sweep)
    this.#counts.clear()
  }

  #begin(key: string, now: number): Attempts {
    this.#counts.set(key, { attempts: 1, endsAt: now + this.#windowMs })
    return { current: 1, ttl: this.#windowMs }
  }

  #increment(count: Count, now: number): Attempts {
    count.attempts += 1
    return { current: count.attempts, ttl: count.endsAt - now }
  }

  /** Cannot be taken for an address. */
  #sharedKey(key: string): string {
    const hash = createHmac('sha256', this.#hashKey).update(key).digest().readUInt32BE(0)
    return `shared ${hash % this.#sharedCounts}`
  }
}
