import type { AuthUser } from '../../../schemas/session.js'

/** A user of the fake backend. Omitted details are null in the session. */
export interface FakeUser extends Partial<Omit<AuthUser, 'userId'>> {
  readonly userId: string | number
  readonly permissions?: readonly string[]
}

interface Cookie {
  readonly value: string
  /** Not visible to scripts. */
  readonly httpOnly: boolean
  readonly expiresAtMs: number
}

const CSRF_SECONDS = 24 * 60 * 60
const SESSION_COOKIES = ['auth_token', 'auth_user', 'auth_permissions', 'auth_token_expiry', 'csrf_token'] as const

/** The cookies of the one browser that uses the fake gateway, and the session in them. */
export class FakeCookies {
  readonly #cookies = new Map<string, Cookie>()
  readonly #nowMs: () => number
  #user: FakeUser | null = null

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs
  }

  /** The user of a session that has not expired. */
  get user(): FakeUser | null {
    return this.get('auth_token') === null ? null : this.#user
  }

  /** As `document.cookie` returns them. */
  readable(): string {
    return [...this.#cookies]
      .filter(([name, { httpOnly }]) => !httpOnly && this.get(name) !== null)
      .map(([name, { value }]) => `${name}=${encodeURIComponent(value)}`)
      .join('; ')
  }

  get(name: string): string | null {
    const cookie = this.#cookies.get(name)
    return cookie === undefined || cookie.expiresAtMs <= this.#nowMs() ? null : cookie.value
  }

  /** Sets the cookies that the gateway sets after a login. */
  signIn(user: FakeUser, seconds: number): void {
    const { userId, email = null, displayName = null, role = null, permissions = [] } = user
    const expiresAtMs = this.#nowMs() + seconds * 1000
    const values = {
      auth_user: JSON.stringify({ userId, email, displayName, role } satisfies AuthUser),
      auth_token_expiry: String(expiresAtMs),
      auth_permissions: JSON.stringify(permissions)
    }
    this.#user = user
    this.#cookies.set('auth_token', { value: `token-of-${userId}`, httpOnly: true, expiresAtMs })
    for (const [name, value] of Object.entries(values)) this.#cookies.set(name, { value, httpOnly: false, expiresAtMs })
  }

  signOut(): void {
    this.#user = null
    for (const name of SESSION_COOKIES) this.#cookies.delete(name)
  }

  /** The current CSRF token, or a new one. */
  csrfToken(): string {
    const value = this.get('csrf_token') ?? `csrf-${Math.random().toString(36).slice(2)}`
    this.#cookies.set('csrf_token', { value, httpOnly: false, expiresAtMs: this.#nowMs() + CSRF_SECONDS * 1000 })
    return value
  }
}
