import { randomBytes } from 'node:crypto'
import type { SerializeOptions } from '@fastify/cookie'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { BoundedMap } from '../../shared/bounded-map.js'
import { cookieOptions, cookieValues, setCookie } from '../session/cookies.js'
import type { Identity } from './identity.js'
import { DEFAULT_PROVIDER } from './providers-file.js'
import type { Sealer } from './sealer.js'

/** A browser's sign-in at the identity provider. */
export interface ProviderSession extends Identity {
  readonly id: string
  /** The id of the provider. Subjects and `sid`s of different providers are unrelated. */
  readonly provider: string
  /** In milliseconds since 1970. */
  readonly startedAt: number
}

/** A session without requests expires after this time. */
const MAX_IDLE_SECONDS = 2 * 60 * 60

/** Every session expires after this time, and the user signs in at the provider again. */
export const MAX_SESSION_SECONDS = 24 * 60 * 60

/** The cookie's age at which it is renewed. Renewing on every request would encrypt a new cookie each time. */
const RENEW_AFTER_SECONDS = 5 * 60

/** Between 2,000 and 3,999 of the newest cookies are cached. To decrypt one costs about 0.1 ms. */
const MIN_CACHED_COOKIES = 2_000

export interface ProviderSessionCookieOptions {
  readonly sealer: Sealer
  readonly cookies: { readonly secure: boolean }
  /** Ids of the configured providers. */
  readonly providers: ReadonlySet<string>
  readonly now: () => number
}

/** The encrypted content of the cookie. Cookies of versions without several providers have no `provider`. */
type StoredSession = Omit<ProviderSession, 'provider'> & { readonly provider?: string; readonly sealedAt: number }

/** The decrypted content of the cookie. */
interface CookieContent {
  readonly session: ProviderSession
  readonly sealedAt: number
  readonly expiresAt: number
}

/** Reads and writes the cookie that contains a provider session, encrypted. It contains no token of the provider. */
export class ProviderSessionCookie {
  readonly cookieName: string
  readonly #options: SerializeOptions
  readonly #sealer: Sealer
  readonly #providers: ReadonlySet<string>
  readonly #now: () => number
  // A browser sends the same cookie with every request.
  readonly #cache = new BoundedMap<string, CookieContent>(MIN_CACHED_COOKIES)

  constructor({ sealer, cookies, providers, now }: ProviderSessionCookieOptions) {
    // The prefix prevents sibling hosts from setting the cookie. Browsers accept it only with Secure.
    this.cookieName = cookies.secure ? '__Host-oidc_session' : 'oidc_session'
    this.#options = { ...cookieOptions(cookies), httpOnly: true }
    this.#sealer = sealer
    this.#providers = providers
    this.#now = now
  }

  async start(reply: FastifyReply, provider: string, identity: Identity): Promise<ProviderSession> {
    const session = { ...identity, provider, id: randomBytes(16).toString('base64url'), startedAt: this.#now() }
    await this.save(reply, session)
    return session
  }

  /** Sets the cookie on the reply and restarts the idle time. */
  async save(reply: FastifyReply, session: ProviderSession): Promise<void> {
    const lifetimeSeconds = Math.min(MAX_IDLE_SECONDS, this.#secondsLeft(session.startedAt))
    if (lifetimeSeconds <= 0) return this.clear(reply)
    const sealed = await this.#sealer.seal({ ...session, sealedAt: this.#now() }, lifetimeSeconds)
    setCookie(reply, this.cookieName, sealed, { ...this.#options, maxAge: lifetimeSeconds })
  }

  clear(reply: FastifyReply): void {
    setCookie(reply, this.cookieName, '', { ...this.#options, maxAge: 0 })
  }

  /** Null if the request has no valid session cookie, or one of a provider that is no longer configured. */
  async read(request: FastifyRequest): Promise<ProviderSession | null> {
    return (await this.#readCookie(request))?.session ?? null
  }

  isPresent(request: FastifyRequest): boolean {
    return cookieValues(request.headers.cookie, this.cookieName).length > 0
  }

  /** Restarts the idle time where the cookie is old enough. */
  async renew(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const content = await this.#readCookie(request)
    if (content === null || this.#now() - content.sealedAt < RENEW_AFTER_SECONDS * 1000) return
    await this.save(reply, content.session)
  }

  async #readCookie(request: FastifyRequest): Promise<CookieContent | null> {
    const [sealed, conflicting] = cookieValues(request.headers.cookie, this.cookieName)
    if (!sealed || conflicting !== undefined) return null
    const cached = this.#cache.get(sealed)
    if (cached !== undefined) return cached.expiresAt > this.#now() ? cached : null

    // Only `save` seals content for this purpose, so what decrypts has this shape.
    const opened = (await this.#sealer.open(sealed)) as (StoredSession & { exp: number }) | null
    if (opened === null || this.#secondsLeft(opened.startedAt) <= 0) return null
    const { id, provider = DEFAULT_PROVIDER, subject, email, name, groups, sid, startedAt, sealedAt, exp } = opened
    if (!this.#providers.has(provider)) return null
    // Cookies of version 0.1.0 have another name for it.
    const session = { id, provider, subject, email, name, groups, sid: sid ?? null, startedAt }
    const content = { session, sealedAt, expiresAt: exp * 1000 }
    this.#cache.set(sealed, content)
    return content
  }

  #secondsLeft(startedAt: number): number {
    return Math.floor((startedAt - this.#now()) / 1000) + MAX_SESSION_SECONDS
  }
}

/** Whether the browser's app session came from the provider, according to its unsigned marker cookie. */
export const isFromProvider = ({ headers }: FastifyRequest): boolean =>
  cookieValues(headers.cookie, 'auth_via_oidc').length > 0
