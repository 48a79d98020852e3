/** Work that may only take a share of the time: each piece of it has a price in milliseconds, and `burstMs` are free at first. */
export class Pace {
  readonly #burstMs: number
  #paidUntil = Number.NEGATIVE_INFINITY

  constructor(burstMs: number) {
    this.#burstMs = burstMs
  }

  /** Time until the next piece of work; 0 for now. */
  waitMs(nowMs: number): number {
    return Math.max(0, this.#paidUntil - this.#burstMs - nowMs)
  }

  spend(priceMs: number, nowMs: number): void {
    this.#paidUntil = Math.max(this.#paidUntil, nowMs) + priceMs
  }
}
