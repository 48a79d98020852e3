import { createHash, hkdfSync, randomBytes } from 'node:crypto'
import type { SerializeOptions } from '@fastify/cookie'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { EncryptJWT, errors, type JWTPayload, jwtDecrypt } from 'jose'
import type { Logger } from 'pino'
import { type SessionCookies, sessionCookie } from '../session/app-session.js'
import { cookieOptions, cookieValues, setCookie } from '../session/cookies.js'
import { faultOf, type ProviderDiscovery, type ProviderTokens, providerFaultOf } from './client.js'
import { type Identity, identityOf } from './identity.js'
import type { SessionMemory } from './session-memory.js'

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

interface SealingKey {
  readonly id: string
  readonly key: Uint8Array
}

export interface SealerOptions {
  /** The first seals; all of them open, so that a new secret can be put in front of the old one. */
  readonly secrets: readonly string[]
  /** Keeps what was sealed for one purpose from being shown for another. */
  readonly purpose: string
  readonly now: () => number
  /** Longer texts are not looked at. */
  readonly maxCharacters?: number
}

/** Browsers drop a cookie of this size, so whoever sends one did not get it from here. */
const MAX_COOKIE_CHARACTERS = 4096

/** Makes texts that only gateways with the same secret can read or make: encrypted JWTs, with an end inside. */
export class Sealer {
  readonly #keys: readonly SealingKey[]
  readonly #purpose: string
  readonly #now: () => number
  readonly #maxCharacters: number

  constructor({ secrets, purpose, now, maxCharacters = MAX_COOKIE_CHARACTERS }: SealerOptions) {
    this.#keys = secrets.map((secret) => sealingKey(secret, purpose))
    this.#purpose = purpose
    this.#now = now
    this.#maxCharacters = maxCharacters
  }

  async seal(content: Readonly<Record<string, unknown>>, lifetimeSeconds: number): Promise<string> {
    const { id, key } = this.#keys[0] as SealingKey
    return new EncryptJWT(content as JWTPayload)
      .setProtectedHeader({ alg: 'dir', enc: 'A256GCM', kid: id })
      .setAudience(this.#purpose)
      .setExpirationTime(Math.floor(this.#now() / 1000) + lifetimeSeconds)
      .encrypt(key)
  }

  /** What was sealed, or null for everything else: tampered with, cut, too old, sealed with a secret that is gone. */
  async open(sealed: string): Promise<Readonly<Record<string, unknown>> | null> {
    if (sealed.length > this.#maxCharacters) return null
    try {
      const { payload } = await jwtDecrypt(sealed, ({ kid }) => this.#keyWith(kid), {
        audience: this.#purpose,
        keyManagementAlgorithms: ['dir'],
        contentEncryptionAlgorithms: ['A256GCM'],
        requiredClaims: ['exp'],
        currentDate: new Date(this.#now())
      })
      return payload
    } catch (error) {
      if (error instanceof errors.JOSEError) return null
      throw error
    }
  }

  #keyWith(id: unknown): Uint8Array {
    const found = this.#keys.find((key) => key.id === id)
    if (found === undefined) throw new errors.JWEDecryptionFailed('sealed with a secret that is not here')
    return found.key
  }
}

const sealingKey = (secret: string, purpose: string): SealingKey => {
  const key = new Uint8Array(hkdfSync('sha256', secret, '', `gatehouse ${purpose} v1`, 32))
  // Says which key it was, and nothing about it.
  const id = createHash('sha256').update(key).digest('base64url').slice(0, 8)
  return { id, key }
}

export interface SessionRefreshParts {
  readonly log: Logger
  readonly memory: SessionMemory
  readonly discovery: ProviderDiscovery
  readonly groupsClaim: string
  readonly now: () => number
}

/** What the provider says of a person now: something else than before, that it no longer vouches for them, or nothing. */
export type News = Identity | 'ended' | null

/** Asks the provider where its tokens have run out and can be had anew. Never throws: no answer is no news. */
export const sessionRefresh = (parts: SessionRefreshParts) => {
  const { memory, now, log } = parts

  return async (session: ProviderSession, requestId: string): Promise<News> => {
    const tokens = await memory.tokensOf(session.id)
    if (tokens?.refreshToken == null || tokens.expiresAt > now()) return null
    const news = await ask(parts, session, tokens, tokens.refreshToken).catch((error) => {
      log.warn({ requestId, subject: session.subject, provider: faultOf(error) }, 'provider tokens were not refreshed')
      // A provider that is away has not said no: what it said before counts until the session ends.
      return providerFaultOf(error) === 'used' ? 'ended' : null
    })
    if (news === 'ended')
      await memory
        .end({ kind: 'id', value: session.id })
        .catch((error) => log.warn({ requestId, err: error }, 'other gateways were not told'))
    return news
  }
}

const ask = async (
  { memory, discovery, groupsClaim }: SessionRefreshParts,
  session: ProviderSession,
  tokens: ProviderTokens,
  refreshToken: string
): Promise<News> => {
  const provider = await discovery.current()
  if (provider === null) return null
  const granted = await provider.refresh(tokens, refreshToken, session.subject)
  await memory.keepTokens(session.id, granted.tokens)
  const { identity, fault } = identityOf(await granted.claims(), groupsClaim)
  if (fault === 'unconfirmed-email') return 'ended'
  // An answer without claims is no news. The session at the provider stays the one that it was.
  return identity === null ? null : { ...identity, providerSession: session.providerSession }
}

export interface SessionWatchParts {
  readonly sessions: ProviderSessions
  readonly memory: SessionMemory
  readonly cookies: SessionCookies
  readonly log: Logger
}

/**
 * After the exchange, for who has an app session already: being there keeps the provider session from running out, and a
 * provider session that was ended takes the app session along that came from it.
 */
export const watchProviderSessions = (app: FastifyInstance, parts: SessionWatchParts): void => {
  const { sessions, memory, cookies, log } = parts

  app.addHook('onRequest', (request, reply, done) => {
    if (sessionCookie(request).kind === 'absent' || !sessions.isCarriedBy(request)) done()
    else look(request, reply).then(() => done(), done)
  })

  const look = async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    const session = await sessions.of(request)
    if (session === null) return sessions.clear(reply)
    if (!memory.hasEnded(session)) return sessions.renew(request, reply)
    log.info({ requestId: request.id, subject: session.subject }, 'a session was used after it had been ended')
    sessions.clear(reply)
    if (isFromProvider(request)) endAppSession(request, reply)
  }

  /** The request goes on as one without a token. */
  const endAppSession = (request: FastifyRequest, reply: FastifyReply): void => {
    cookies.clear(reply)
    request.sessionCookie = { kind: 'unusable' }
    request.auth = null
  }
}

/** Whether the app session of this browser came from the provider, as far as its own cookies say. */
export const isFromProvider = ({ headers }: FastifyRequest): boolean =>
  cookieValues(headers.cookie, 'auth_via_oidc').length > 0
