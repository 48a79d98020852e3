import type { Position } from '../core/broker.js'

const REMEMBERED_MS = 5 * 60 * 1000
/** A publisher that makes up keys faster than they run out pushes out the oldest. */
const MAX_RESULTS = 100_000

interface Result {
  readonly position: Position
  readonly expiresAt: number
}

/**
 * Where publications with an idempotency key went, for as long as the same key must not publish again. `nowMs` is the
 * monotonic clock throughout.
 */
export class RecentResults {
  // In the order in which they were made, which is the order in which they run out.
  readonly #results = new Map<string, Result>()

  get(channel: string, key: string, nowMs: number): Position | undefined {
    const result = this.#results.get(nameOf(channel, key))
    return result !== undefined && nowMs < result.expiresAt ? result.position : undefined
  }

  set(channel: string, key: string, position: Position, nowMs: number): void {
    const name = nameOf(channel, key)
    this.#results.delete(name)
    this.#results.set(name, { position, expiresAt: nowMs + REMEMBERED_MS })
    if (this.#results.size > MAX_RESULTS) this.#results.delete(this.#results.keys().next().value as string)
  }

  sweep(nowMs: number): void {
    for (const [name, { expiresAt }] of this.#results) {
      if (expiresAt > nowMs) return
      this.#results.delete(name)
    }
  }
}

// A length in front, so that no channel and key can be read as another channel with another key.
const nameOf = (channel: string, key: string): string => `${channel.length}:${channel}${key}`
