import { documentCookies } from '../browser.js'
import { cookieValue } from '../cookie-value.js'
import { Listeners } from '../listeners.js'
import { backendPermissions } from './backend-permissions.js'
import { type SessionState, SIGNED_OUT, sessionState } from './session-state.js'

export interface SessionOptions {
  /** Returns the cookies that scripts can read, as `document.cookie` does. */
  readonly cookies?: () => string
  readonly nowMs?: () => number
  /** Requests `/api/auth/backend-me`, for permissions that do not fit into a cookie. */
  readonly fetchUser: () => Promise<unknown>
}

const COOKIES = ['auth_user', 'auth_permissions', 'auth_token_expiry'] as const

/** The current user and permissions. Browsers do not report cookie changes, so `refresh` reads the cookies again. */
export class Session {
  readonly #cookies: () => string
  readonly #nowMs: () => number
  readonly #fetchUser: () => Promise<unknown>
  readonly #listeners = new Listeners<SessionState>()
  #cookieText = ''
  #state: SessionState
  #pending: Promise<SessionState> | null = null

  constructor({ cookies = documentCookies, nowMs = Date.now, fetchUser }: SessionOptions) {
    this.#cookies = cookies
    this.#nowMs = nowMs
    this.#fetchUser = fetchUser
    const text = cookies()
    this.#cookieText = sessionCookies(text)
    this.#state = sessionState(text, nowMs())
  }

  /** As of the last `refresh`; the same object until something changes. */
  get state(): SessionState {
    return this.#state
  }

  /** Called on every change. Returns a function that removes the listener. */
  onChange(listener: (state: SessionState) => void): () => void {
    return this.#listeners.add(listener)
  }

  /** Reads the cookies. Cheap enough for every response and navigation. */
  refresh(): SessionState {
    const text = this.#cookies()
    const cookieText = sessionCookies(text)
    const { expiresAtMs } = this.#state
    const hasEnded = expiresAtMs !== null && expiresAtMs <= this.#nowMs()
    if (cookieText === this.#cookieText && !hasEnded) return this.#state
    this.#cookieText = cookieText
    this.#pending = null
    this.#setState(sessionState(text, this.#nowMs()))
    return this.#state
  }

  /** After a login: starts a session even if the cookies equal those of an ended one. */
  begin(): SessionState {
    this.#cookieText = ''
    return this.refresh()
  }

  /** Ends the session until the cookies change. */
  end(): void {
    this.#pending = null
    if (this.#state.isSignedIn) this.#setState(SIGNED_OUT)
  }

  /** The session with permissions, which are requested from the backend if the cookie has none. Rejects if that fails. */
  complete(): Promise<SessionState> {
    const state = this.refresh()
    if (state.permissions !== null) return Promise.resolve(state)
    this.#pending ??= this.#fetchPermissions(this.#cookieText).finally(() => {
      this.#pending = null
    })
    return this.#pending
  }

  async #fetchPermissions(cookieText: string): Promise<SessionState> {
    const permissions = backendPermissions(await this.#fetchUser()) ?? []
    this.refresh()
    // Another user may have signed in meanwhile.
    if (this.#cookieText !== cookieText) return this.complete()
    if (this.#state.permissions === null) this.#setState({ ...this.#state, permissions })
    return this.#state
  }

  #setState(state: SessionState): void {
    this.#state = state
    this.#listeners.emit(state)
  }
}

/** The values of the session cookies as one text to compare. */
const sessionCookies = (cookies: string): string => JSON.stringify(COOKIES.map((name) => cookieValue(cookies, name)))
