const FIRST_MS = 100
const LONGEST_MS = 30_000
/** Who has lived so long did not die of how it was started. */
const SETTLED_MS = 60_000

/** How long to wait before what has ended is started again: twice as long each time, until it stays. */
export class Backoff {
  #nextMs = FIRST_MS

  afterLiving(ms: number): number {
    if (ms >= SETTLED_MS) this.#nextMs = FIRST_MS
    const delayMs = this.#nextMs
    this.#nextMs = Math.min(delayMs * 2, LONGEST_MS)
    return delayMs
  }
}
