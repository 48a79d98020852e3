import type { ProviderTokens } from './client.js'
import { EndedSessions, keyOf, type SessionName } from './cluster.js'
import { ABSOLUTE_SECONDS, type ProviderSession } from './session.js'

/** What is known of provider sessions beside their cookies. */
export interface SessionMemory {
  /** Tokens of the provider, for as long as the session can live. */
  keepTokens(sessionId: string, tokens: ProviderTokens): Promise<void>
  tokensOf(sessionId: string): Promise<ProviderTokens | null>

  /** Ends sessions before their time. Rejects where other gateways could not be told; here they have ended all the same. */
  end(name: SessionName): Promise<void>
  /** Asked for every request of a session, so it may ask nobody else. */
  hasEnded(session: ProviderSession): boolean
  /** Whether the end of this very name was told. */
  knows(name: SessionName): boolean

  /** Does the work once, however many ask for it with this key at the same time or just after. */
  once<Result>(key: string, work: () => Promise<Result>): Promise<Result>
  close(): void
}

const MAX_KEPT_TOKENS = 10_000

/** How long a result is handed to those that come late: requests that were sent before the first answer was back. */
export const LATE_MS = 10_000

const MAX_RESULTS = 10_000

interface Flight {
  readonly result: Promise<unknown>
  /** Until when it is handed out; null while it is under way. */
  until: number | null
}

/** For a gateway that is alone. All of it is bounded, and gone with the process: then claims stay as they were. */
export class LocalSessionMemory implements SessionMemory {
  readonly ended: EndedSessions
  readonly #now: () => number
  readonly #monotonicMs: () => number
  readonly #tokens = new Map<string, { readonly tokens: ProviderTokens; readonly until: number }>()
  readonly #flights = new Map<string, Flight>()

  /** Ends are told to other gateways, so they have wall-clock times; everything else is an interval of this process. */
  constructor(now: () => number, monotonicMs: () => number) {
    this.#now = now
    this.#monotonicMs = monotonicMs
    this.ended = new EndedSessions(now)
  }

  async keepTokens(sessionId: string, tokens: ProviderTokens): Promise<void> {
    const known = this.#tokens.get(sessionId)
    this.#tokens.delete(sessionId)
    const until = known?.until ?? this.#monotonicMs() + ABSOLUTE_SECONDS * 1000
    this.#tokens.set(sessionId, { tokens, until })
    for (const [id, kept] of this.#tokens) {
      if (this.#tokens.size <= MAX_KEPT_TOKENS && kept.until > this.#monotonicMs()) return
      this.#tokens.delete(id)
    }
  }

  async tokensOf(sessionId: string): Promise<ProviderTokens | null> {
    const kept = this.#tokens.get(sessionId)
    return kept !== undefined && kept.until > this.#monotonicMs() ? kept.tokens : null
  }

  async end(name: SessionName): Promise<void> {
    this.ended.note({ key: keyOf(name), at: this.#now() })
    if (name.kind === 'id') this.#tokens.delete(name.value)
  }

  hasEnded(session: ProviderSession): boolean {
    return this.ended.has(session)
  }

  knows(name: SessionName): boolean {
    return this.ended.knows(name)
  }

  once<Result>(key: string, work: () => Promise<Result>): Promise<Result> {
    const under = this.#flights.get(key)
    // A key always belongs to the same kind of work.
    if (under !== undefined && (under.until ?? Number.POSITIVE_INFINITY) > this.#monotonicMs())
      return under.result as Promise<Result>

    const result = work()
    const flight: Flight = { result, until: null }
    this.#flights.delete(key)
    this.#flights.set(key, flight)
    result.then(
      () => {
        flight.until = this.#monotonicMs() + LATE_MS
        this.#forgetResults()
      },
      () => void (this.#flights.get(key) === flight && this.#flights.delete(key))
    )
    return result
  }

  close(): void {
    this.#tokens.clear()
    this.#flights.clear()
  }

  #forgetResults(): void {
    for (const [key, { until }] of this.#flights) {
      if (until === null) continue
      if (this.#flights.size <= MAX_RESULTS && until > this.#monotonicMs()) return
      this.#flights.delete(key)
    }
  }
}
