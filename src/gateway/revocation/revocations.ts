import { createHash } from 'node:crypto'

/** A revocation as gateways exchange it. */
export interface Revocation {
  readonly key: string
  /** Applies to sessions and tokens from this time or before, in milliseconds since 1970. */
  readonly at: number
}

/** A short key that reveals nothing about the user. The kinds are part of the keys that gateways of different versions exchange. */
export const revocationKey = (kind: string, value: string): string =>
  `${kind}:${createHash('sha256').update(value).digest('base64url')}`

const MAX_REVOCATIONS = 100_000

/**
 * The revocations that this gateway knows. A response may set a cookie again that another one has cleared, so they are kept
 * until the cookies and tokens have expired. The oldest entries are removed when there are too many.
 */
export class Revocations {
  readonly #maxEntries: number
  // In insertion order, which is approximately the order of expiry.
  readonly #times = new Map<string, number>()

  constructor(maxEntries = MAX_REVOCATIONS) {
    this.#maxEntries = maxEntries
  }

  get size(): number {
    return this.#times.size
  }

  /** Whether the revocation is new. */
  add({ key, at }: Revocation): boolean {
    if (at <= this.timeOf(key)) return false
    if (this.#times.size >= this.#maxEntries) this.#removeOldest()
    this.#times.delete(key)
    this.#times.set(key, at)
    return true
  }

  has(key: string): boolean {
    return this.#times.has(key)
  }

  /** Before every time if there is no revocation. */
  timeOf(key: string): number {
    return this.#times.get(key) ?? Number.NEGATIVE_INFINITY
  }

  since(time: number): Revocation[] {
    const revocations: Revocation[] = []
    for (const [key, at] of this.#times) if (at >= time) revocations.push({ key, at })
    return revocations
  }

  removeBefore(time: number): void {
    for (const [key, at] of this.#times) if (at < time) this.#times.delete(key)
  }

  /**
   * Removes a hundredth at once: a Map is slow to iterate from a start at which entries were deleted. A `BoundedMap` would remove
   * half of the revocations, and a removed revocation no longer applies.
   */
  #removeOldest(): void {
    for (const key of [...this.#times.keys()].slice(0, Math.ceil(this.#maxEntries / 100))) this.#times.delete(key)
  }
}
