import { Revocations, revocationKey } from '../revocation/revocations.js'
import type { ProviderTokens } from './provider-client.js'
import { MAX_SESSION_SECONDS, type ProviderSession } from './provider-session-cookie.js'

/** Server-side state of provider sessions: tokens, revocations and single-flight work. */
export interface ProviderSessionStore {
  /** Stores the provider's tokens for the maximum lifetime of a session. */
  saveTokens(sessionId: string, tokens: ProviderTokens): Promise<void>
  loadTokens(sessionId: string): Promise<ProviderTokens | null>

  /**
   * Revokes sessions on this gateway at once. Rejects if the other gateways could not be notified yet; the store repeats
   * that while this gateway runs.
   */
  revoke(selector: ProviderSessionSelector): Promise<void>
  /** Synchronous and local, because it runs for every request with a provider session. */
  isRevoked(session: ProviderSession): boolean
  /** Whether exactly this selector was revoked. Detects replayed logout tokens. */
  hasRevocation(selector: ProviderSessionSelector): boolean

  /** Runs the work once for all concurrent callers with this key, and for `RESULT_REUSE_MS` after it succeeded. */
  runOnce<Result>(key: string, work: () => Promise<Result>): Promise<Result>
  close(): void
}

/** Selects the provider sessions that a revocation applies to. */
export type ProviderSessionSelector =
  | { readonly kind: 'id'; readonly value: string }
  /** All sessions with this `sid` of the provider. */
  | { readonly kind: 'sid'; readonly value: string }
  /** All sessions of a subject, or only those without a `sid`. */
  | { readonly kind: 'subject' | 'unnamedOfSubject'; readonly value: string }
  /** The `jti` of a logout token: it selects no session, and marks the token as used. */
  | { readonly kind: 'message'; readonly value: string }

/**
 * The key of a revocation of these sessions. The kinds are part of the keys that gateways of different versions exchange
 * through Redis, in which a `sid` has always had the kind `providerSession`.
 */
export const selectorKey = ({ kind, value }: ProviderSessionSelector): string =>
  revocationKey(kind === 'sid' ? 'providerSession' : kind, value)

const includes = (revocations: Revocations, { id, sid, subject, startedAt }: ProviderSession): boolean => {
  if (revocations.size === 0) return false
  const selectors: readonly ProviderSessionSelector[] = [
    { kind: 'id', value: id },
    { kind: 'subject', value: subject },
    sid === null ? { kind: 'unnamedOfSubject', value: subject } : { kind: 'sid', value: sid }
  ]
  return selectors.some((selector) => startedAt <= revocations.timeOf(selectorKey(selector)))
}

const MAX_TOKEN_ENTRIES = 10_000

/** How long a result is reused: requests sent before the first response arrived still carry the old cookies. */
export const RESULT_REUSE_MS = 10_000

const MAX_RESULTS = 10_000

interface Flight {
  readonly result: Promise<unknown>
  /** Null while the work is running. */
  reusableUntil: number | null
}

/** Session store of a single gateway. It is bounded, and empty after a restart: sessions then keep their last claims. */
export class MemoryProviderSessionStore implements ProviderSessionStore {
  readonly revocations = new Revocations()
  readonly #now: () => number
  readonly #monotonicMs: () => number
  readonly #isRevokedElsewhere: (session: ProviderSession) => boolean
  // Neither is a BoundedMap, which evicts half of its entries at once: tokens of valid sessions stay while there is space, and
  // work that is running always stays. Both change only with sign-ins and renewals, so finding the oldest entry may be slow.
  readonly #tokens = new Map<string, { readonly tokens: ProviderTokens; readonly expiresAt: number }>()
  readonly #flights = new Map<string, Flight>()

  /**
   * Revocations are exchanged between gateways and need wall-clock times; intervals use the monotonic clock.
   * `isRevokedElsewhere`: whether the session was revoked by other means than `revoke`.
   */
  constructor(
    now: () => number,
    monotonicMs: () => number,
    isRevokedElsewhere: (session: ProviderSession) => boolean = () => false
  ) {
    this.#now = now
    this.#monotonicMs = monotonicMs
    this.#isRevokedElsewhere = isRevokedElsewhere
  }

  async saveTokens(sessionId: string, tokens: ProviderTokens): Promise<void> {
    const expiresAt = this.#tokens.get(sessionId)?.expiresAt ?? this.#monotonicMs() + MAX_SESSION_SECONDS * 1000
    this.#tokens.delete(sessionId)
    this.#tokens.set(sessionId, { tokens, expiresAt })
    for (const [id, entry] of this.#tokens) {
      if (this.#tokens.size <= MAX_TOKEN_ENTRIES && entry.expiresAt > this.#monotonicMs()) return
      this.#tokens.delete(id)
    }
  }

  async loadTokens(sessionId: string): Promise<ProviderTokens | null> {
    const entry = this.#tokens.get(sessionId)
    return entry !== undefined && entry.expiresAt > this.#monotonicMs() ? entry.tokens : null
  }

  async revoke(selector: ProviderSessionSelector): Promise<void> {
    this.revocations.add({ key: selectorKey(selector), at: this.#now() })
    if (selector.kind === 'id') this.#tokens.delete(selector.value)
  }

  isRevoked(session: ProviderSession): boolean {
    return includes(this.revocations, session) || this.#isRevokedElsewhere(session)
  }

  hasRevocation(selector: ProviderSessionSelector): boolean {
    return this.revocations.has(selectorKey(selector))
  }

  runOnce<Result>(key: string, work: () => Promise<Result>): Promise<Result> {
    const existing = this.#flights.get(key)
    if (existing !== undefined && (existing.reusableUntil ?? Number.POSITIVE_INFINITY) > this.#monotonicMs())
      // Callers use a key for one kind of work only, so the stored promise has this type.
      return existing.result as Promise<Result>

    const result = work()
    const flight: Flight = { result, reusableUntil: null }
    this.#flights.delete(key)
    this.#flights.set(key, flight)
    result.then(
      () => {
        flight.reusableUntil = this.#monotonicMs() + RESULT_REUSE_MS
        this.#removeExpiredResults()
      },
      () => {
        if (this.#flights.get(key) === flight) this.#flights.delete(key)
      }
    )
    return result
  }

  close(): void {
    this.#tokens.clear()
    this.#flights.clear()
  }

  #removeExpiredResults(): void {
    for (const [key, { reusableUntil }] of this.#flights) {
      if (reusableUntil === null) continue
      if (this.#flights.size <= MAX_RESULTS && reusableUntil > this.#monotonicMs()) return
      this.#flights.delete(key)
    }
  }
}
