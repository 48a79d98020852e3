import { randomBytes } from 'node:crypto'
import type { SerializeOptions } from '@fastify/cookie'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { cookieOptions, cookieValues, setCookie } from '../session/cookies.js'
import type { Identity } from './identity.js'
import type { Sealer } from './sealer.js'

/** That somebody has signed in at the provider with this browser. */
export interface ProviderSession extends Identity {
  readonly id: string
  /** When they signed in, in milliseconds since 1970. */
  readonly startedAt: number
}

/** Without a request for this long it has ended. */
export const IDLE_SECONDS = 2 * 60 * 60

/** Then the provider is asked again, however busy the browser was. */
export const ABSOLUTE_SECONDS = 24 * 60 * 60

/** How old a cookie may become before it is renewed: each would be sealed anew with every request. */
const RENEW_AFTER_SECONDS = 5 * 60

const REMEMBERED = 2_000

export interface ProviderSessionsOptions {
  readonly sealer: Sealer
  readonly cookies: { readonly secure: boolean }
  readonly now: () => number
}

interface Opened {
  readonly session: ProviderSession
  readonly sealedAt: number
  readonly endsAt: number
}

/** Provider sessions, each sealed in a cookie of its browser. No token of the provider is in there. */
export class ProviderSessions {
  readonly cookieName: string
  readonly #options: SerializeOptions
  readonly #sealer: Sealer
  readonly #now: () => number
  // What a page asks for comes in many requests with the same cookie. In the order of insertion, the oldest goes first.
  readonly #opened = new Map<string, Opened>()

  constructor({ sealer, cookies, now }: ProviderSessionsOptions) {
    // The prefix keeps neighbouring hosts from planting one; browsers take it with Secure only.
    this.cookieName = cookies.secure ? '__Host-oidc_session' : 'oidc_session'
    this.#options = { ...cookieOptions(cookies), httpOnly: true }
    this.#sealer = sealer
    this.#now = now
  }

  async start(reply: FastifyReply, identity: Identity): Promise<ProviderSession> {
    const session = { ...identity, id: randomBytes(16).toString('base64url'), startedAt: this.#now() }
    await this.save(reply, session)
    return session
  }

  /** Puts it on the reply, with a new idle time. */
  async save(reply: FastifyReply, session: ProviderSession): Promise<void> {
    const lifetimeSeconds = Math.min(IDLE_SECONDS, this.#secondsLeft(session))
    if (lifetimeSeconds <= 0) return this.clear(reply)
    const sealed = await this.#sealer.seal({ ...session, sealedAt: this.#now() }, lifetimeSeconds)
    setCookie(reply, this.cookieName, sealed, { ...this.#options, maxAge: lifetimeSeconds })
  }

  clear(reply: FastifyReply): void {
    setCookie(reply, this.cookieName, '', { ...this.#options, maxAge: 0 })
  }

  /** Null where the browser holds none, or none that is good. */
  async of(request: FastifyRequest): Promise<ProviderSession | null> {
    return (await this.#open(request))?.session ?? null
  }

  isCarriedBy(request: FastifyRequest): boolean {
    return cookieValues(request.headers.cookie, this.cookieName).length > 0
  }

  /** Somebody is there: the idle time begins anew. */
  async renew(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const opened = await this.#open(request)
    if (opened === null || this.#now() - opened.sealedAt < RENEW_AFTER_SECONDS * 1000) return
    await this.save(reply, opened.session)
  }

  async #open(request: FastifyRequest): Promise<Opened | null> {
    const [sealed, another] = cookieValues(request.headers.cookie, this.cookieName)
    if (!sealed || another !== undefined) return null
    const known = this.#opened.get(sealed)
    if (known !== undefined) return known.endsAt > this.#now() ? known : null

    const content = (await this.#sealer.open(sealed)) as (ProviderSession & { sealedAt: number; exp: number }) | null
    // What opens was sealed here, so it has the shape that it was sealed with.
    if (content === null || this.#secondsLeft(content) <= 0) return null
    const { id, subject, email, name, groups, providerSession, startedAt, sealedAt, exp } = content
    const session = { id, subject, email, name, groups, providerSession, startedAt }
    const opened = { session, sealedAt, endsAt: exp * 1000 }
    if (this.#opened.size >= REMEMBERED) this.#opened.delete(this.#opened.keys().next().value as string)
    this.#opened.set(sealed, opened)
    return opened
  }

  #secondsLeft({ startedAt }: ProviderSession): number {
    return Math.floor((startedAt - this.#now()) / 1000) + ABSOLUTE_SECONDS
  }
}
