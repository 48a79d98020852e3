import { createHmac, randomBytes } from 'node:crypto'
import { monotonicMs } from '../../shared/monotonic.js'

/** The attempts of a key in its current window, this one included. */
export interface LoginCount {
  readonly current: number
  /** Milliseconds until the window ends. */
  readonly ttl: number
}

/** Counts login attempts per key in fixed windows, which start with a key's first attempt. */
export interface LoginCounter {
  increment(key: string): LoginCount | Promise<LoginCount>
  close(): void
}

const SWEEP_MS = 5 * 60_000

export interface MemoryLoginCounterOptions {
  readonly windowMs: number
  /** The number of keys with a count of their own. */
  readonly maxKeys?: number
  /** The number of counts that further keys share. */
  readonly sharedCounts?: number
  /** Must be monotonic, because windows have to end in the order in which they started. */
  readonly now?: () => number
}

interface Window {
  attempts: number
  readonly endsAt: number
}

/**
 * Counts login attempts in memory. Memory is bounded, and no count is dropped before its window ends: when an attack has
 * filled the table, further keys share a set of counts, chosen by a keyed hash that an attacker cannot predict. A new
 * client is limited too early only if an attacker happens to use the same shared count.
 */
export class MemoryLoginCounter implements LoginCounter {
  // All windows have the same length, so insertion order is the order in which they end.
  readonly #windows = new Map<string, Window>()
  readonly #windowMs: number
  readonly #maxKeys: number
  readonly #sharedCounts: number
  readonly #now: () => number
  readonly #hashKey = randomBytes(32)
  readonly #sweepTimer: NodeJS.Timeout

  constructor({ windowMs, maxKeys = 100_000, sharedCounts = 4096, now = monotonicMs }: MemoryLoginCounterOptions) {
    this.#windowMs = windowMs
    this.#maxKeys = maxKeys
    this.#sharedCounts = sharedCounts
    this.#now = now
    this.#sweepTimer = setInterval(() => this.sweep(), SWEEP_MS).unref()
  }

  /** The number of counts in use. */
  get size(): number {
    return this.#windows.size
  }

  increment(key: string): LoginCount {
    const now = this.#now()
    this.sweep()
    const own = this.#windows.get(key)
    if (own !== undefined) return countAttempt(own, now)

    // Checked even if there is space again: a key that was counted in a shared window must not start a new one.
    const sharedKey = this.#sharedKey(key)
    const shared = this.#windows.get(sharedKey)
    if (shared !== undefined) return countAttempt(shared, now)
    return this.#startWindow(this.#windows.size < this.#maxKeys ? key : sharedKey, now)
  }

  /** Removes the windows that have ended. */
  sweep(): void {
    const now = this.#now()
    for (const [key, { endsAt }] of this.#windows) {
      if (endsAt > now) return
      this.#windows.delete(key)
    }
  }

  close(): void {
    clearInterval(this.#sweepTimer)
    this.#windows.clear()
  }

  #startWindow(key: string, now: number): LoginCount {
    this.#windows.set(key, { attempts: 1, endsAt: now + this.#windowMs })
    return { current: 1, ttl: this.#windowMs }
  }

  /** Contains a space, so it cannot be equal to an address. */
  #sharedKey(key: string): string {
    const hash = createHmac('sha256', this.#hashKey).update(key).digest().readUInt32BE(0)
    return `shared ${hash % this.#sharedCounts}`
  }
}

const countAttempt = (window: Window, now: number): LoginCount => {
  window.attempts += 1
  return { current: window.attempts, ttl: window.endsAt - now }
}
