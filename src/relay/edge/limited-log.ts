import type { Log } from '../core/context.js'

const PERIOD_MS = 10_000

interface Period {
  /** Of the last one that was not logged. */
  facts: object
  unlogged: number
}

/**
 * Warnings that strangers can cause as often as they like: for each key one line at once, and then at most one in ten
 * seconds, for the last occurrence, with the number of those that were suppressed before it.
 */
export class LimitedLog {
  readonly #log: Pick<Log, 'warn'>
  readonly #periodMs: number
  readonly #periods = new Map<string, Period>()

  constructor(log: Pick<Log, 'warn'>, periodMs = PERIOD_MS) {
    this.#log = log
    this.#periodMs = periodMs
  }

  /** Keys are few, and never what somebody sent. */
  warn(key: string, facts: object, message: string): void {
    const period = this.#periods.get(key)
    if (period !== undefined) {
      period.unlogged += 1
      period.facts = facts
      return
    }
    this.#log.warn({ ...facts, suppressed: 0 }, message)
    this.#begin(key, message)
  }

  #begin(key: string, message: string): void {
    const period: Period = { facts: {}, unlogged: 0 }
    this.#periods.set(key, period)
    setTimeout(() => this.#end(key, period, message), this.#periodMs).unref()
  }

  #end(key: string, { facts, unlogged }: Period, message: string): void {
    this.#periods.delete(key)
    if (unlogged === 0) return
    this.#log.warn({ ...facts, suppressed: unlogged - 1 }, message)
    this.#begin(key, message)
  }
}
