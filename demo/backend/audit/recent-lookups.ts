/** A page that shows a position requests it every few seconds; one entry in this time is enough. */
const AGAIN_AFTER_MS = 15 * 60_000

/** Which user has looked at what in the last minutes, so that the audit log has one entry for it. */
export class RecentLookups {
  /** Times in milliseconds, in the order of insertion. */
  readonly #seen = new Map<string, number>()

  isNew(key: string, nowMs: number): boolean {
    for (const [old, atMs] of this.#seen) {
      if (nowMs - atMs < AGAIN_AFTER_MS) break
      this.#seen.delete(old)
    }
    if (this.#seen.has(key)) return false
    this.#seen.set(key, nowMs)
    return true
  }

  forget(key: string): void {
    this.#seen.delete(key)
  }
}
