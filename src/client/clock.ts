/** The library's clock, which tests replace. */
export interface Clock {
  /** Milliseconds since 1970. */
  now(): number
  /** Calls back once after the delay. Returns a function that cancels the call. */
  after(delayMs: number, callback: () => void): () => void
}

export const systemClock: Clock = {
  now: () => Date.now(),
  after: (delayMs, callback) => {
    const timer = setTimeout(callback, delayMs)
    return () => clearTimeout(timer)
  }
}
