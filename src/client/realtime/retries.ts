import { backoffMs } from '../backoff.js'
import type { Clock } from '../clock.js'

/** A success that lasts shorter does not reset the delay, so that a client that is always disconnected does not retry at once. */
const STABLE_MS = 20_000

interface Attempts {
  failures: number
  succeededAtMs: number | null
  cancel: () => void
}

/** Delays the next attempt at something that failed, by name: longer after every failure. */
export class Retries {
  readonly #attempts = new Map<string, Attempts>()
  readonly #clock: Clock
  readonly #random: () => number

  constructor(clock: Clock, random: () => number = Math.random) {
    this.#clock = clock
    this.#random = random
  }

  succeeded(name: string): void {
    const attempts = this.#attempts.get(name)
    if (attempts) attempts.succeededAtMs = this.#clock.now()
  }

  later(name: string, attempt: () => void): void {
    const { failures, succeededAtMs, cancel } = this.#attempts.get(name) ?? NONE
    cancel()
    const isStable = succeededAtMs !== null && this.#clock.now() - succeededAtMs >= STABLE_MS
    const failed = isStable ? 1 : failures + 1
    this.#attempts.set(name, {
      failures: failed,
      succeededAtMs: null,
      cancel: this.#clock.after(backoffMs(failed, { random: this.#random }), attempt)
    })
  }

  /** Cancels all attempts and forgets all failures. */
  clear(): void {
    for (const { cancel } of this.#attempts.values()) cancel()
    this.#attempts.clear()
  }
}

const NONE: Attempts = { failures: 0, succeededAtMs: null, cancel: () => undefined }
