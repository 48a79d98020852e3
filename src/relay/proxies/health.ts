import { type Clocks, wallTimeOf } from '../core/clocks.js'
import { RecentRate } from '../core/recent-rate.js'

/** How the calls of one proxy ended lately, for the operators' page. */
export interface ProxyHealth {
  /** Where the configuration file has the proxy. */
  readonly id: string
  /** Per second, over the last minute. */
  readonly callsPerSecond: number
  readonly failedPerSecond: number
  /** Failed calls since the last successful one. */
  readonly failures: number
  /** Why the last failed call failed; '' if none failed. */
  readonly reason: string
  /** In milliseconds since 1970. */
  readonly lastFailure: number | null
}

/** The health of a proxy and its load. */
export interface ProxyStatus extends ProxyHealth {
  /** The name by which namespaces select it; `default` if it has none. */
  readonly name: string
  /** The events that it is asked about; `state` for webhooks. */
  readonly events: readonly string[]
  /** Requests under way. */
  readonly inFlight: number
  /** Calls that wait for a connection. */
  readonly queued: number
}

const WINDOW_MS = 60_000

/** Records how the calls of a proxy end. */
export class HealthRecord {
  readonly #id: string
  readonly #clocks: Clocks
  readonly #calls = new RecentRate(WINDOW_MS)
  readonly #failed = new RecentRate(WINDOW_MS)
  #failures = 0
  #reason = ''
  #failedAt: number | null = null

  constructor(id: string, clocks: Clocks) {
    this.#id = id
    this.#clocks = clocks
  }

  succeeded(): void {
    this.#calls.add(this.#clocks.monotonicMs())
    this.#failures = 0
  }

  failed(reason: string): void {
    const now = this.#clocks.monotonicMs()
    this.#calls.add(now)
    this.#failed.add(now)
    this.#failures += 1
    this.#reason = reason
    this.#failedAt = now
  }

  get current(): ProxyHealth {
    const now = this.#clocks.monotonicMs()
    return {
      id: this.#id,
      callsPerSecond: this.#calls.perSecond(now),
      failedPerSecond: this.#failed.perSecond(now),
      failures: this.#failures,
      reason: this.#reason,
      lastFailure: this.#failedAt === null ? null : wallTimeOf(this.#failedAt, this.#clocks)
    }
  }
}
