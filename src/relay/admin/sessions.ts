import { createHmac, hkdfSync, randomBytes } from 'node:crypto'
import { sameSecret } from '../../shared/same-secret.js'
import type { MaybePromise } from '../core/broker.js'
import type { Clocks } from '../core/clocks.js'

/** What a session's cookie says. */
export interface SessionClaims {
  readonly id: string
  /** The browser came over https, and must not send the cookie over anything else. */
  readonly isSecure: boolean
  /** In milliseconds since 1970. */
  readonly startedAt: number
  readonly activeAt: number
}

const SHAPE = /^v1\.([A-Za-z0-9_-]{22})\.([sp])\.([0-9a-z]{1,10})\.([0-9a-z]{1,10})\.([A-Za-z0-9_-]{43})$/
const ID_BYTES = 16

export const newSessionId = (): string => randomBytes(ID_BYTES).toString('base64url')

/**
 * Signs sessions. The key comes from the password and the key of the publish API, which all nodes share: a session that one
 * node began is good at every other and after a restart, and at no other relay, nor after either of the two has changed.
 */
export class SessionKeys {
  readonly #session: Uint8Array
  readonly #csrf: Uint8Array

  constructor(password: string, relaySecret: string) {
    const key = (purpose: string): Uint8Array =>
      new Uint8Array(hkdfSync('sha256', password, relaySecret, `gatehouse relay admin ${purpose} v1`, 32))
    this.#session = key('session')
    this.#csrf = key('csrf')
  }

  sign({ id, isSecure, startedAt, activeAt }: SessionClaims): string {
    const text = `v1.${id}.${isSecure ? 's' : 'p'}.${startedAt.toString(36)}.${activeAt.toString(36)}`
    return `${text}.${mac(this.#session, text)}`
  }

  /** Null for what was not signed with this key. */
  read(cookie: string): SessionClaims | null {
    const [, id = '', kind, startedAt = '', activeAt = '', signature = ''] = SHAPE.exec(cookie) ?? []
    if (signature === '') return null
    if (!sameSecret(signature, mac(this.#session, cookie.slice(0, cookie.lastIndexOf('.'))))) return null
    return {
      id,
      isSecure: kind === 's',
      startedAt: Number.parseInt(startedAt, 36),
      activeAt: Number.parseInt(activeAt, 36)
    }
  }

  /** What a page of this session puts into its header, and no other page can know. */
  csrfToken(id: string): string {
    return mac(this.#csrf, id)
  }
}

const mac = (key: Uint8Array, text: string): string => createHmac('sha256', key).update(text).digest('base64url')

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
