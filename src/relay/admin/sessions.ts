import type { Clocks } from '../core/clocks.js'
import type { MaybePromise } from '../core/maybe-promise.js'
import { newSessionId, type SessionClaims, type SessionKeys } from './session-keys.js'

export const IDLE_MS = 30 * 60 * 1000
const LONGEST_MS = 12 * 60 * 60 * 1000
/** A cookie is written anew when it is so old: not with each of a page's requests. */
const RENEW_MS = 60 * 1000
/** Another node's clock may be a little ahead. */
const SKEW_MS = 60 * 1000

/** What nodes tell each other of a session. */
export interface SessionNews {
  readonly id: string
  /** Null: it has ended. */
  readonly activeAt: number | null
}

/** The times in a cookie are wall-clock times, because every node reads it. */
export interface SessionsParts extends Clocks {
  readonly keys: () => SessionKeys
  /** Tells the other nodes, who may be asked next. */
  readonly tell: (news: SessionNews) => MaybePromise<unknown>
}

/**
 * Who is signed in. The cookie itself says since when and when something was last asked, so any node can tell whether it is
 * still good. Kept here is only what a cookie cannot say: that the session has ended, and that a newer cookie is about.
 */
export class Sessions {
  readonly #parts: SessionsParts
  /** When something was last asked, or null once ended. Only for sessions that were signed, so nobody can fill it. */
  readonly #known = new Map<string, { activeAt: number | null; readonly forgetAt: number }>()

  constructor(parts: SessionsParts) {
    this.#parts = parts
  }

  begin(isSecure: boolean): SessionClaims {
    const nowMs = this.#parts.nowMs()
    return { id: newSessionId(), isSecure, startedAt: nowMs, activeAt: nowMs }
  }

  /** Null where the cookie is not ours, too old, or its session has ended. */
  read(cookie: string): SessionClaims | null {
    const claims = this.#parts.keys().read(cookie)
    return claims !== null && this.#isAlive(claims) ? claims : null
  }

  /** The session did something. The claims for its new cookie, where that is worth one. */
  touch(claims: SessionClaims): SessionClaims | null {
    const activeAt = this.#parts.nowMs()
    if (activeAt - claims.activeAt < RENEW_MS) return null
    const news = { id: claims.id, activeAt }
    this.hear(news)
    void this.#parts.tell(news)
    return { ...claims, activeAt }
  }

  /** Done when all nodes have heard of it. */
  async end({ id }: SessionClaims): Promise<void> {
    const news = { id, activeAt: null }
    this.hear(news)
    await this.#parts.tell(news)
  }

  /** From this node or another one. */
  hear({ id, activeAt }: SessionNews): void {
    const nowMs = this.#parts.monotonicMs()
    for (const [each, { forgetAt }] of this.#known) if (forgetAt <= nowMs) this.#known.delete(each)
    const known = this.#known.get(id)
    // An ended session stays so, whatever was still on its way.
    if (known?.activeAt === null) return
    this.#known.delete(id)
    // After that no cookie of it is good anyway.
    this.#known.set(id, { activeAt, forgetAt: nowMs + IDLE_MS + SKEW_MS })
  }

  #isAlive({ id, startedAt, activeAt }: SessionClaims): boolean {
    const nowMs = this.#parts.nowMs()
    const known = this.#known.get(id)
    if (known?.activeAt === null) return false
    const lastActive = Math.max(activeAt, known?.activeAt ?? 0)
    const isPossible = startedAt <= activeAt && lastActive <= nowMs + SKEW_MS
    return isPossible && nowMs - lastActive < IDLE_MS && nowMs - startedAt < LONGEST_MS
  }
}
