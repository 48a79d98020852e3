/** Counts events, and computes their rate over the last window. Times are monotonic. */
export class RecentRate {
  readonly #windowMs: number
  #windowStart = 0
  #count = 0
  #previousCount = 0

  constructor(windowMs: number) {
    this.#windowMs = windowMs
  }

  add(nowMs: number): void {
    this.#advanceWindow(nowMs)
    this.#count++
  }

  /** The current window and the overlapping part of the previous one. */
  perSecond(nowMs: number): number {
    this.#advanceWindow(nowMs)
    const share = 1 - (nowMs - this.#windowStart) / this.#windowMs
    return (this.#count + this.#previousCount * share) / (this.#windowMs / 1000)
  }

  #advanceWindow(nowMs: number): void {
    const windows = Math.floor((nowMs - this.#windowStart) / this.#windowMs)
    if (windows === 0) return
    this.#previousCount = windows === 1 ? this.#count : 0
    this.#count = 0
    this.#windowStart = nowMs - ((nowMs - this.#windowStart) % this.#windowMs)
  }
}
