import type { ClientOptions } from '../core/options.js'

/** Which limit a connection was refused for, before anything was set up for it. */
export type Refusal = 'limit' | 'rate' | 'address'

/** Counts connections: in all, by address, and how fast new ones come. */
export class Admission {
  readonly #nowMs: () => number
  readonly #byAddress = new Map<string, number>()
  #total = 0
  #tokens = 0
  #filledAt = 0
  #isClosed = false

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs
  }

  /** Nobody else comes in. */
  close(): void {
    this.#isClosed = true
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  get total(): number {
    return this.#total
  }

  /** Null for those that may come in; they must `leave` when they go. */
  enter(address: string, limits: ClientOptions): Refusal | null {
    const { connectionLimit, connectionsPerAddress, connectionRateLimit } = limits
    if (this.#isClosed || (connectionLimit > 0 && this.#total >= connectionLimit)) return 'limit'
    const ofAddress = this.#byAddress.get(address) ?? 0
    if (connectionsPerAddress > 0 && ofAddress >= connectionsPerAddress) return 'address'
    if (connectionRateLimit > 0 && !this.#takeToken(connectionRateLimit)) return 'rate'
    this.#total++
    this.#byAddress.set(address, ofAddress + 1)
    return null
  }

  leave(address: string): void {
    this.#total--
    const ofAddress = (this.#byAddress.get(address) ?? 1) - 1
    if (ofAddress > 0) this.#byAddress.set(address, ofAddress)
    else this.#byAddress.delete(address)
  }

  /** A bucket that holds one second's worth, and fills as the second goes by. */
  #takeToken(perSecond: number): boolean {
    const nowMs = this.#nowMs()
    this.#tokens = Math.min(perSecond, this.#tokens + ((nowMs - this.#filledAt) / 1000) * perSecond)
    this.#filledAt = nowMs
    if (this.#tokens < 1) return false
    this.#tokens--
    return true
  }
}
