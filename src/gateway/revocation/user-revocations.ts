import type { Logger } from 'pino'
import {
  type AppClaims,
  decodeClaims,
  type TokenRevocations,
  userDetails,
  type VerifiedToken
} from '../../shared/app-token.js'
import { GatewayError } from '../errors.js'
import type { RedisConfig } from '../redis-connection.js'
import type { RedisRevocations } from './redis-revocations.js'
import { type Revocation, Revocations, revocationKey } from './revocations.js'

/** Beyond it further revocations are rejected: dropping an old one would make its tokens valid again. */
const MAX_REVOCATIONS = 200_000
/** The part of them that users can cause: sign-outs, and sign-ins after a revocation. */
const MAX_OF_USERS = MAX_REVOCATIONS / 2

const REDIS_PREFIX = 'gatehouse:revoked:'

/** The target of a revocation: all sessions of a user, or one session. */
export interface RevocationTarget {
  readonly kind: 'user' | 'session'
  readonly value: string
}

/** A sign-in at the backend. */
export interface SignIn {
  readonly token: string
  /** When the request was sent, in milliseconds since 1970. Absent if it is not known. */
  readonly requestedAtMs?: number | undefined
}

export interface UserRevocationsOptions {
  /** App tokens that were issued longer ago are rejected, and revocations are kept this long. */
  readonly maxTokenAgeMs: number
  readonly now: () => number
}

interface TokenKeys {
  readonly user: string | null
  readonly session: string | null
}

/**
 * Revoked users, sessions and tokens: app tokens from the time of the revocation or before are not accepted. Checks are local.
 * With Redis all gateways share the revocations; until they were loaded once, no token is accepted.
 */
export class UserRevocations implements TokenRevocations {
  readonly #revocations = new Revocations(Number.POSITIVE_INFINITY)
  readonly #maxTokenAgeMs: number
  readonly #now: () => number
  readonly #listeners = new Set<() => void>()
  #shared: RedisRevocations | null = null
  #close: () => void = () => undefined
  // Verified claims are cached, so each token is hashed once.
  readonly #keys = new WeakMap<AppClaims, TokenKeys>()
  readonly #signOutKeys = new WeakMap<AppClaims, string>()

  constructor({ maxTokenAgeMs, now }: UserRevocationsOptions) {
    this.#maxTokenAgeMs = maxTokenAgeMs
    this.#now = now
  }

  /** Shares the revocations through Redis. Resolves when they are loaded, or when Redis is known to be unavailable. */
  async share(redis: RedisConfig, log: Logger): Promise<void> {
    const { RedisConnection } = await import('../redis-connection.js')
    const { RedisRevocations } = await import('./redis-revocations.js')
    const connection = new RedisConnection({
      redis,
      log,
      messages: {
        down: 'Redis unavailable, revocations of other instances unknown',
        up: 'Redis available, revocations shared by all instances'
      }
    })
    const shared = new RedisRevocations({
      connection,
      prefix: REDIS_PREFIX,
      revocations: this.#revocations,
      ttlMs: this.#maxTokenAgeMs,
      now: this.#now,
      added: () => this.#notify()
    })
    this.#shared = shared
    this.#close = () => {
      shared.close()
      connection.close()
    }
    await shared.ready()
  }

  /** The number of revocations, of sign-outs, and of sign-ins after them. */
  get size(): number {
    return this.#revocations.size
  }

  /** False while Redis has not been reached since the start. */
  get isKnown(): boolean {
    return this.#shared?.isLoaded ?? true
  }

  /** Throws `REVOCATIONS_UNKNOWN` while they are not known. */
  requireKnown(): void {
    if (!this.isKnown) throw new GatewayError('REVOCATIONS_UNKNOWN', { headers: { 'retry-after': '1' } })
  }

  /** False while revocations of other gateways do not arrive. */
  get isShared(): boolean {
    return this.#shared?.isConnected ?? false
  }

  /** Calls the listener after each change, so that open connections can be checked again. */
  onChange(listener: () => void): void {
    this.#listeners.add(listener)
  }

  /** Applies here at once. Rejects if the other gateways could not be notified yet, which is repeated while this one runs. */
  async revoke({ kind, value }: RevocationTarget, issuedBeforeMs: number): Promise<void> {
    this.#revocations.removeBefore(this.#now() - this.#maxTokenAgeMs)
    if (this.#revocations.size >= MAX_REVOCATIONS) throw new GatewayError('OVERLOADED')
    await this.#add({ key: revocationKey(kind, value), at: issuedBeforeMs })
  }

  /** Throws `REVOCATIONS_UNKNOWN` while the revocations are not known. */
  isRevoked(token: string, verified: VerifiedToken): boolean {
    this.requireKnown()
    const { issuedAtMs, expiresAtMs } = verified
    const now = this.#now()
    // A revocation of such a token may have been removed already.
    if (issuedAtMs === null ? expiresAtMs > now + this.#maxTokenAgeMs : issuedAtMs < now - this.#maxTokenAgeMs)
      return true
    if (this.#revocations.size === 0) return false
    if (this.#isFromBeforeRevocation(verified) && !this.#revocations.has(signInKey(token))) return true
    return this.#isSignedOut(token, verified)
  }

  /**
   * Rejects one token until it expires, after a logout with it. Rejects if the other gateways could not be notified yet, which
   * is repeated while this one runs.
   */
  async signedOut(token: string, expiresAtMs: number): Promise<void> {
    const now = this.#now()
    if (this.#revocations.size >= MAX_OF_USERS) this.#revocations.removeBefore(now - this.#maxTokenAgeMs)
    if (this.#revocations.size >= MAX_OF_USERS) throw new GatewayError('OVERLOADED')
    // Entries are removed `maxTokenAgeMs` after their time: this one when the token expires.
    await this.#add({ key: signOutKey(token), at: Math.min(now, expiresAtMs - this.#maxTokenAgeMs) })
  }

  /** Whether a provider session was revoked, by its `sid` or its id at the gateway. */
  endsSession({
    id,
    sid,
    startedAt
  }: {
    readonly id: string
    readonly sid: string | null
    readonly startedAt: number
  }): boolean {
    if (this.#revocations.size === 0) return false
    return [id, sid].some(
      (value) => value !== null && startedAt <= this.#revocations.timeOf(revocationKey('session', value))
    )
  }

  /** Whether a session that started at this time ended with a revocation of the token's user. */
  endsSessionOfUser(token: string, startedAt: number): boolean {
    const decoded = decodeClaims(token)
    return decoded !== null && startedAt <= this.#timeFor(decoded.claims)
  }

  /**
   * A token from the second of the revocation, or without `iat`, is valid if its user has signed in for it after the
   * revocation. The other gateways are informed before the browser gets the token.
   */
  async signedIn({ token, requestedAtMs }: SignIn): Promise<void> {
    await this.#signedInAgain(token)
    const decoded = decodeClaims(token)
    if (decoded === null || requestedAtMs === undefined || !this.#isFromBeforeRevocation(decoded)) return
    const revokedAt = this.#timeFor(decoded.claims)
    const isOlder = decoded.issuedAtMs !== null && decoded.issuedAtMs < Math.floor(revokedAt / 1000) * 1000
    if (isOlder || requestedAtMs <= revokedAt || this.#revocations.size >= MAX_OF_USERS) return
    await this.#add({ key: signInKey(token), at: this.#now() })
  }

  close(): void {
    this.#close()
  }

  /** A backend without `jti` issues the same token again if the user signs out and in within a second. */
  async #signedInAgain(token: string): Promise<void> {
    const at = this.#revocations.timeOf(signOutKey(token))
    if (at !== Number.NEGATIVE_INFINITY) await this.#add({ key: againKey(token), at })
  }

  #isFromBeforeRevocation({ claims, issuedAtMs }: VerifiedToken): boolean {
    const revokedAt = this.#timeFor(claims)
    return revokedAt !== Number.NEGATIVE_INFINITY && (issuedAtMs ?? revokedAt) <= revokedAt
  }

  #isSignedOut(token: string, { claims }: VerifiedToken): boolean {
    const key = this.#signOutKeys.get(claims) ?? signOutKey(token)
    this.#signOutKeys.set(claims, key)
    return this.#revocations.has(key) && !this.#revocations.has(againKey(token))
  }

  #timeFor(claims: AppClaims): number {
    const { user, session } = this.#keysOf(claims)
    const times = [user, session].map((key) =>
      key === null ? Number.NEGATIVE_INFINITY : this.#revocations.timeOf(key)
    )
    return Math.max(...times)
  }

  #keysOf(claims: AppClaims): TokenKeys {
    const existing = this.#keys.get(claims)
    if (existing !== undefined) return existing
    const { id } = userDetails(claims)
    const session = sessionOf(claims)
    const keys = {
      user: id === null ? null : revocationKey('user', id),
      session: session === null ? null : revocationKey('session', session)
    }
    this.#keys.set(claims, keys)
    return keys
  }

  async #add(revocation: Revocation): Promise<void> {
    if (this.#revocations.add(revocation)) this.#notify()
    await this.#shared?.publish(revocation, null)
  }

  #notify(): void {
    for (const listener of this.#listeners) listener()
  }
}

/** The session that a token names: its `sid`, else its `jti`. */
const sessionOf = (claims: AppClaims): string | null => {
  for (const name of ['sid', 'jti']) {
    const value = Object.hasOwn(claims, name) ? claims[name] : null
    if (typeof value === 'string' && value !== '') return value
  }
  return null
}

/** Marks a token as one of a sign-in after the revocation of its user. */
const signInKey = (token: string): string => revocationKey('signIn', token)

/** Marks a token as one whose user has signed out. */
const signOutKey = (token: string): string => revocationKey('signOut', token)

/** Marks it as one that the backend has issued again since. */
const againKey = (token: string): string => revocationKey('again', token)
