export const WINDOW_MS = 15 * 60 * 1000
export const PER_ADDRESS = 5
export const OVERALL = 100
/** So many addresses are remembered as those of operators. */
const MAX_TRUSTED = 100

/** One to sign in. */
export interface Attempt {
  /** Where it came from. */
  readonly network: string
  readonly isRight: boolean
}

/**
 * Failed attempts to sign in. Where strangers have used up what all addresses have together, those from which somebody has
 * signed in before still have their own: nobody can lock the operators out from elsewhere.
 */
export class Attempts {
  readonly #monotonicMs: () => number
  /** In order. No longer than the limits allow, so there is nothing that a stranger could fill. */
  #failures: { readonly address: string; readonly at: number }[] = []
  readonly #trusted = new Set<string>()

  constructor(monotonicMs: () => number) {
    this.#monotonicMs = monotonicMs
  }

  /** Milliseconds to wait; 0 for an address that may try now. */
  waitMs(address: string): number {
    const nowMs = this.#monotonicMs()
    this.#failures = this.#failures.filter(({ at }) => nowMs - at < WINDOW_MS)
    const own = this.#failures.filter((failure) => failure.address === address)
    const ownWait = waitOf(own, PER_ADDRESS, nowMs)
    if (ownWait > 0 || this.#trusted.has(address)) return ownWait
    return waitOf(
      this.#failures.filter((failure) => !this.#trusted.has(failure.address)),
      OVERALL,
      nowMs
    )
  }

  /** Made at this node or another one. */
  count({ network, isRight }: Attempt): void {
    if (isRight) this.#succeeded(network)
    else if (this.waitMs(network) === 0) this.#failures.push({ address: network, at: this.#monotonicMs() })
  }

  #succeeded(address: string): void {
    this.#failures = this.#failures.filter((failure) => failure.address !== address)
    this.#trusted.delete(address)
    this.#trusted.add(address)
    if (this.#trusted.size > MAX_TRUSTED) this.#trusted.delete(this.#trusted.values().next().value as string)
  }
}

/** Until the oldest of the last `limit` failures has run out. */
const waitOf = (failures: readonly { readonly at: number }[], limit: number, nowMs: number): number => {
  const oldest = failures.at(-limit)
  return oldest === undefined ? 0 : oldest.at + WINDOW_MS - nowMs
}
