import { createHmac, hkdfSync, randomBytes } from 'node:crypto'
import { sameSecret } from '../../shared/same-secret.js'
import type { Clocks } from '../core/clocks.js'
import { type BackgroundDependencies, runInBackground } from '../core/session/context.js'

/** The content of a session cookie. */
export interface SessionClaims {
  readonly id: string
  /** The cookie was set over https and has the Secure attribute. */
  readonly isSecure: boolean
  /** In milliseconds since 1970. */
  readonly startedAt: number
  readonly activeAt: number
}

const COOKIE_PATTERN = /^v1\.([A-Za-z0-9_-]{22})\.([sp])\.([0-9a-z]{1,10})\.([0-9a-z]{1,10})\.([A-Za-z0-9_-]{43})$/
const ID_BYTES = 16

/**
 * Signs session cookies. The keys are derived from the password and the key of the publish API, which all nodes share: a
 * session is valid at every node and after a restart, but not at another relay or after one of the two has changed.
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

  /** Null if the cookie is malformed or has a wrong signature. */
  read(cookie: string): SessionClaims | null {
    const [, id = '', kind, startedAt = '', activeAt = '', signature = ''] = COOKIE_PATTERN.exec(cookie) ?? []
    if (signature === '') return null
    if (!sameSecret(signature, mac(this.#session, cookie.slice(0, cookie.lastIndexOf('.'))))) return null
    return {
      id,
      isSecure: kind === 's',
      startedAt: Number.parseInt(startedAt, 36),
      activeAt: Number.parseInt(activeAt, 36)
    }
  }

  /** The CSRF token of a session. */
  csrfToken(id: string): string {
    return mac(this.#csrf, id)
  }
}

const mac = (key: Uint8Array, text: string): string => createHmac('sha256', key).update(text).digest('base64url')

export const IDLE_MS = 30 * 60 * 1000
const MAX_AGE_MS = 12 * 60 * 60 * 1000
/** A cookie is renewed at this age, not with every request. */
const RENEW_MS = 60 * 1000
/** Tolerance for the clocks of other nodes. */
const SKEW_MS = 60 * 1000

/** A change of a session, sent to all nodes. */
export interface SessionUpdate {
  readonly id: string
  /** Null if the session has ended. */
  readonly activeAt: number | null
}

/** Cookies contain wall-clock times, because every node reads them. */
export interface SessionsDependencies extends Clocks {
  readonly keys: () => SessionKeys
  /** Sends an update to the other nodes. */
  readonly announce: (update: SessionUpdate) => Promise<unknown>
  readonly background: BackgroundDependencies
}

/**
 * Validates sessions. The cookie contains the start and the last activity, so any node can check it. Only changes after a
 * cookie was issued are stored: that the session has ended, or that a newer cookie exists.
 */
export class Sessions {
  readonly #dependencies: SessionsDependencies
  /** Last activity, or null after the end. Contains signed sessions only, so its size is limited by sign-ins. */
  readonly #updates = new Map<string, { activeAt: number | null; readonly expiresAt: number }>()

  constructor(dependencies: SessionsDependencies) {
    this.#dependencies = dependencies
  }

  start(isSecure: boolean): SessionClaims {
    const nowMs = this.#dependencies.nowMs()
    return { id: randomBytes(ID_BYTES).toString('base64url'), isSecure, startedAt: nowMs, activeAt: nowMs }
  }

  /** Null if the cookie is invalid or expired, or its session has ended. */
  read(cookie: string): SessionClaims | null {
    const claims = this.#dependencies.keys().read(cookie)
    return claims !== null && this.#isAlive(claims) ? claims : null
  }

  /** Records activity. Returns the claims of a new cookie when the old one is due for renewal. */
  touch(claims: SessionClaims): SessionClaims | null {
    const activeAt = this.#dependencies.nowMs()
    if (activeAt - claims.activeAt < RENEW_MS) return null
    const update = { id: claims.id, activeAt }
    this.apply(update)
    const { announce, background } = this.#dependencies
    runInBackground(background, () => announce(update))
    return { ...claims, activeAt }
  }

  /** Resolves when all nodes have been notified. */
  async end({ id }: SessionClaims): Promise<void> {
    const update = { id, activeAt: null }
    this.apply(update)
    await this.#dependencies.announce(update)
  }

  /** Applies an update of this or another node. */
  apply({ id, activeAt }: SessionUpdate): void {
    const nowMs = this.#dependencies.monotonicMs()
    for (const [each, { expiresAt }] of this.#updates) if (expiresAt <= nowMs) this.#updates.delete(each)
    const known = this.#updates.get(id)
    // A late activity update does not revive an ended session.
    if (known?.activeAt === null) return
    this.#updates.delete(id)
    // After that time all cookies of the session have expired.
    this.#updates.set(id, { activeAt, expiresAt: nowMs + IDLE_MS + SKEW_MS })
  }

  #isAlive({ id, startedAt, activeAt }: SessionClaims): boolean {
    const nowMs = this.#dependencies.nowMs()
    const known = this.#updates.get(id)
    if (known?.activeAt === null) return false
    const lastActive = Math.max(activeAt, known?.activeAt ?? 0)
    const isPossible = startedAt <= activeAt && lastActive <= nowMs + SKEW_MS
    return isPossible && nowMs - lastActive < IDLE_MS && nowMs - startedAt < MAX_AGE_MS
  }
}
