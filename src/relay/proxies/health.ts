import { type Clocks, wallTimeOf } from '../core/clocks.js'

/** How the calls of one proxy ended lately, for the operators' page. */
export interface ProxyHealth {
  /** Where the configuration file has the proxy. */
  readonly id: string
  /** Failed calls since the last successful one. */
  readonly failures: number
  /** Why the last failed call failed; '' if none failed. */
  readonly reason: string
  /** In milliseconds since 1970. */
  readonly lastFailure: number | null
}

/** Records how the calls of a proxy end. */
export class HealthRecord {
  readonly #id: string
  readonly #clocks: Clocks
  #failures = 0
  #reason = ''
  #failedAt: number | null = null

  constructor(id: string, clocks: Clocks) {
    this.#id = id
    this.#clocks = clocks
  }

  succeeded(): void {
    this.#failures = 0
  }

  failed(reason: string): void {
    this.#failures += 1
    this.#reason = reason
    this.#failedAt = this.#clocks.monotonicMs()
  }

  get current(): ProxyHealth {
    return {
      id: this.#id,
      failures: this.#failures,
      reason: this.#reason,
      lastFailure: this.#failedAt === null ? null : wallTimeOf(this.#failedAt, this.#clocks)
    }
  }
}
