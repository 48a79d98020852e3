import { BoundedMap } from '../../shared/bounded-map.js'
import type { Bucket } from '../core/engine.js'
import { TokenBuckets } from '../core/token-buckets.js'

const UNSUCCESSFUL: Bucket = { name: 'unsuccessful', rate: 1000, intervalMs: 10_000 }
const TEXT = `${UNSUCCESSFUL.rate} unsuccessful requests to /emulation in ${UNSUCCESSFUL.intervalMs / 1000} s`
/** At least this number of addresses are in memory. */
const MIN_ADDRESSES = 10_000

/**
 * Limits the requests to `/emulation` of each address that are under way or have found no session. These requests need no token,
 * and each one is a message to the node that it names.
 */
export class EmulationLimit {
  readonly #buckets = new TokenBuckets(new BoundedMap<string, number>(MIN_ADDRESSES))
  readonly #monotonicMs: () => number
  readonly #reached: (limit: string, who: string) => void

  /** `reached` is called for each rejected request. */
  constructor(monotonicMs: () => number, reached: (limit: string, who: string) => void) {
    this.#monotonicMs = monotonicMs
    this.#reached = reached
  }

  /** Whether the address may make another request. */
  start(address: string): boolean {
    if (this.#buckets.take([UNSUCCESSFUL], this.#monotonicMs(), address)) return true
    this.#reached(TEXT, `address ${address}`)
    return false
  }

  /** The request has found its session, and does not count any more. */
  succeeded(address: string): void {
    this.#buckets.putBack([UNSUCCESSFUL], address)
  }
}
