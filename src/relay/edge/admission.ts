import type { MaybePromise } from '../core/maybe-promise.js'
import type { ClientOptions } from '../core/options.js'

/** Which limit a connection was refused for, before anything was set up for it. */
export type Refusal = 'limit' | 'rate' | 'address'

/** 0 is no limit. */
export type ConnectionLimits = Pick<ClientOptions, 'connectionLimit' | 'connectionsPerAddress' | 'connectionRateLimit'>

/** Counts connections: in all, by address, and how fast new ones come. */
export interface Admission {
  /** Null for those that may come in; they must `leave` when they go. */
  enter(address: string, limits: ConnectionLimits): MaybePromise<Refusal | null>
  leave(address: string): void
}

/** The counts themselves. */
export class CountedAdmission implements Admission {
  readonly #monotonicMs: () => number
  readonly #byAddress = new Map<string, number>()
  #total = 0
  #tokens = 0
  // The bucket is full at first.
  #filledAt = Number.NEGATIVE_INFINITY

  constructor(monotonicMs: () => number) {
    this.#monotonicMs = monotonicMs
  }

  enter(address: string, limits: ConnectionLimits): Refusal | null {
    const { connectionLimit, connectionsPerAddress, connectionRateLimit } = limits
    if (connectionLimit > 0 && this.#total >= connectionLimit) return 'limit'
    const ofAddress = this.#byAddress.get(address) ?? 0
    if (connectionsPerAddress > 0 && ofAddress >= connectionsPerAddress) return 'address'
    if (connectionRateLimit > 0 && !this.#takeToken(connectionRateLimit)) return 'rate'
    this.count(address)
    return null
  }

  /** One that is let in whatever the limits. */
  count(address: string): void {
    this.#total++
    this.#byAddress.set(address, (this.#byAddress.get(address) ?? 0) + 1)
  }

  leave(address: string): void {
    this.#total--
    const ofAddress = (this.#byAddress.get(address) ?? 1) - 1
    if (ofAddress > 0) this.#byAddress.set(address, ofAddress)
    else this.#byAddress.delete(address)
  }

  /** A bucket that holds one second's worth, and fills as the second goes by. */
  #takeToken(perSecond: number): boolean {
    const nowMs = this.#monotonicMs()
    this.#tokens = Math.min(perSecond, this.#tokens + ((nowMs - this.#filledAt) / 1000) * perSecond)
    this.#filledAt = nowMs
    if (this.#tokens < 1) return false
    this.#tokens--
    return true
  }
}
