import type { Clock } from '../../src/client/clock.js'

/** A clock that only moves when a test advances it, and then runs the due timers in order. */
export class FakeClock implements Clock {
  #nowMs: number
  #timers: { readonly atMs: number; readonly callback: () => void }[] = []

  constructor(nowMs = 1_763_200_000_000) {
    this.#nowMs = nowMs
  }

  now(): number {
    return this.#nowMs
  }

  after(delayMs: number, callback: () => void): () => void {
    const entry = { atMs: this.#nowMs + delayMs, callback }
    this.#timers.push(entry)
    return () => {
      this.#timers = this.#timers.filter((other) => other !== entry)
    }
  }

  get pendingTimers(): number {
    return this.#timers.length
  }

  advance(ms: number): void {
    const untilMs = this.#nowMs + ms
    for (;;) {
      const next = this.#timers.toSorted((one, other) => one.atMs - other.atMs)[0]
      if (next === undefined || next.atMs > untilMs) break
      this.#timers = this.#timers.filter((other) => other !== next)
      this.#nowMs = Math.max(this.#nowMs, next.atMs)
      next.callback()
    }
    this.#nowMs = untilMs
  }

  /** Advances the time without running timers, as when a computer sleeps. */
  sleep(ms: number): void {
    this.#nowMs += ms
  }
}
