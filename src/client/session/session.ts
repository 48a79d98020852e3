import { documentCookies } from '../browser.js'
import { cookieValue } from '../cookie-value.js'
import { Listeners } from '../listeners.js'
import { backendPermissions } from './backend-permissions.js'
import { type SessionState, SIGNED_OUT, sessionState } from './session-state.js'

export interface SessionOptions {
  /** The cookies that scripts can read, as `document.cookie` has them. */
  readonly cookies?: () => string
  readonly nowMs?: () => number
  /** Asks `/api/auth/backend-me`, for permissions that did not fit into a cookie. */
  readonly askBackend: () => Promise<unknown>
}

const COOKIES = ['auth_user', 'auth_permissions', 'auth_token_expiry'] as const

/** Who is signed in and what they may be offered. Browsers do not say when a cookie changes: `refresh` looks. */
export class Session {
  readonly #cookies: () => string
  readonly #nowMs: () => number
  readonly #askBackend: () => Promise<unknown>
  readonly #listeners = new Listeners<SessionState>()
  #seen = ''
  #state: SessionState
  #asking: Promise<SessionState> | null = null

  constructor({ cookies = documentCookies, nowMs = Date.now, askBackend }: SessionOptions) {
    this.#cookies = cookies
    this.#nowMs = nowMs
    this.#askBackend = askBackend
    const text = cookies()
    this.#seen = relevant(text)
    this.#state = sessionState(text, nowMs())
  }

  /** As of the last look; the same object until something changes. */
  get state(): SessionState {
    return this.#state
  }

  /** Told of every change. The answer takes the listener off again. */
  onChange(listener: (state: SessionState) => void): () => void {
    return this.#listeners.add(listener)
  }

  /** Looks at the cookies. Cheap enough to be called after every answer and before every navigation. */
  refresh(): SessionState {
    const text = this.#cookies()
    const seen = relevant(text)
    const { expiresAtMs } = this.#state
    const hasEnded = expiresAtMs !== null && expiresAtMs <= this.#nowMs()
    if (seen === this.#seen && !hasEnded) return this.#state
    this.#seen = seen
    this.#asking = null
    this.#become(sessionState(text, this.#nowMs()))
    return this.#state
  }

  /** Somebody has signed in: it counts, also where its cookies say what they said of a session that was over. */
  begin(): SessionState {
    this.#seen = ''
    return this.refresh()
  }

  /** It is over, whatever its cookies say: there is none until they say something else. */
  end(): void {
    this.#asking = null
    if (this.#state.isSignedIn) this.#become(SIGNED_OUT)
  }

  /** The session with its permissions, asked of the backend where the cookie has none. Rejects when it cannot be asked. */
  complete(): Promise<SessionState> {
    const state = this.refresh()
    if (state.permissions !== null) return Promise.resolve(state)
    this.#asking ??= this.#completed(this.#seen).finally(() => {
      this.#asking = null
    })
    return this.#asking
  }

  async #completed(seen: string): Promise<SessionState> {
    const permissions = backendPermissions(await this.#askBackend()) ?? []
    this.refresh()
    // Somebody else may have signed in meanwhile: these are not their permissions.
    if (this.#seen !== seen) return this.complete()
    if (this.#state.permissions === null) this.#become({ ...this.#state, permissions })
    return this.#state
  }

  #become(state: SessionState): void {
    this.#state = state
    this.#listeners.tell(state)
  }
}

/** All that a session is read from, as one text to compare. */
const relevant = (cookies: string): string => JSON.stringify(COOKIES.map((name) => cookieValue(cookies, name)))
