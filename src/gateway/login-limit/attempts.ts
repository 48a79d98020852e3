/** How often a key was seen in its window, this time included, and when the window ends. */
export interface Attempts {
  readonly current: number
  /** Milliseconds until the count starts anew. */
  readonly ttl: number
}
