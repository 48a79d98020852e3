import { createHash } from 'node:crypto'
import { ABSOLUTE_SECONDS, type ProviderSession } from './provider-session.js'

/** By what a session is known to whoever ends it. */
export type SessionName =
  | { readonly kind: 'id'; readonly value: string }
  /** All that belong to one session at the provider. */
  | { readonly kind: 'providerSession'; readonly value: string }
  /** All of one person; or only those of which the provider never said to which session there they belong. */
  | { readonly kind: 'subject' | 'unnamedOfSubject'; readonly value: string }
  /** A message that ended sessions, and must not do so twice. */
  | { readonly kind: 'message'; readonly value: string }

/** An end as gateways tell each other of it. */
export interface SessionEnd {
  readonly key: string
  /** Those that started up to then have ended; in milliseconds since 1970. */
  readonly at: number
}

const MAX_KEPT = 100_000

/**
 * Which sessions have ended though their cookies are still good: a cookie that was cleared in one answer may be set once
 * more by another that was on its way. Known for as long as such a cookie could live.
 */
export class EndedSessions {
  // In the order in which they were noted, which is nearly that in which they can be forgotten.
  readonly #ends = new Map<string, number>()
  readonly #now: () => number

  constructor(now: () => number) {
    this.#now = now
  }

  note({ key, at }: SessionEnd): void {
    this.#forgetOld()
    const known = this.#ends.get(key) ?? 0
    this.#ends.delete(key)
    this.#ends.set(key, Math.max(known, at))
  }

  has({ id, providerSession, subject, startedAt }: ProviderSession): boolean {
    if (this.#ends.size === 0) return false
    const names: readonly SessionName[] = [
      { kind: 'id', value: id },
      { kind: 'subject', value: subject },
      providerSession === null
        ? { kind: 'unnamedOfSubject', value: subject }
        : { kind: 'providerSession', value: providerSession }
    ]
    return names.some((name) => startedAt <= (this.#ends.get(keyOf(name)) ?? -1))
  }

  knows(name: SessionName): boolean {
    return this.#ends.has(keyOf(name))
  }

  #forgetOld(): void {
    for (const [key, at] of this.#ends) {
      if (this.#ends.size < MAX_KEPT && at > this.#now() - ABSOLUTE_SECONDS * 1000) return
      this.#ends.delete(key)
    }
  }
}

/** Short, and says nothing about anybody. */
export const keyOf = ({ kind, value }: SessionName): string =>
  `${kind}:${createHash('sha256').update(value).digest('base64url')}`
