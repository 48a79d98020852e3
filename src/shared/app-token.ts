import type { KeyObject } from 'node:crypto'
import { decodeObject, type SignOptions, signJwt, verifyJwt, verifyWithAnyKey } from './jwt.js'
import { createLegacyToken, verifyLegacyToken } from './legacy-token.js'
import { ExpiredToken, InvalidToken, RevokedToken, type TokenClaims } from './token-errors.js'

/** Claims of the backend about a user. Only the type of the expiry is checked. */
export interface AppClaims extends TokenClaims {
  readonly userId?: unknown
  readonly id?: unknown
  readonly sub?: unknown
  readonly email?: unknown
  readonly role?: unknown
  readonly permissions?: unknown
}

export interface VerifiedToken {
  /** Deeply frozen, because requests with the same token share them. */
  readonly claims: AppClaims
  /** In milliseconds for both formats, unlike `claims.exp`. */
  readonly expiresAtMs: number
  /** Likewise; null without `iat`. */
  readonly issuedAtMs: number | null
}

/** Decides whether a valid token was revoked. */
export interface TokenRevocations {
  isRevoked(token: string, verified: VerifiedToken): boolean
}

export interface UserDetails {
  readonly id: string | null
  readonly email: string | null
  readonly role: string | null
}

export interface AppTokenOptions extends SignOptions {
  readonly format: 'jwt' | 'legacy'
}

export interface VerifierOptions {
  readonly cacheSize?: number
  readonly now?: () => number
  /** Null if tokens cannot be revoked. */
  readonly revocations?: TokenRevocations | null
}

export const createAppToken = (
  claims: Readonly<Record<string, unknown>>,
  key: KeyObject,
  { format, ...options }: AppTokenOptions
): string => (format === 'jwt' ? signJwt(claims, key, options) : createLegacyToken(claims, key, options))

/** Verifies tokens of both formats and caches valid ones: a browser sends the same token with every request. */
export class AppTokenVerifier {
  readonly #keys: readonly KeyObject[]
  readonly #cacheSize: number
  readonly #now: () => number
  readonly #revocations: TokenRevocations | null
  readonly #verified = new Map<string, VerifiedToken>()
  readonly #ring: string[] = []
  #slot = 0

  /** A token may be signed with any of the keys. */
  constructor(
    keys: KeyObject | readonly KeyObject[],
    { cacheSize = 10_000, now = Date.now, revocations = null }: VerifierOptions = {}
  ) {
    this.#keys = [keys].flat()
    this.#revocations = revocations
    this.#cacheSize = cacheSize
    this.#now = now
  }

  /** Throws `InvalidToken`, `ExpiredToken` or `RevokedToken`. */
  verify(token: string): VerifiedToken {
    const verified = this.#verify(token)
    if (this.#revocations?.isRevoked(token, verified)) throw new RevokedToken(verified.claims)
    return verified
  }

  #verify(token: string): VerifiedToken {
    const cached = this.#verified.get(token)
    if (cached === undefined) return this.#cache(token, this.#check(token))
    if (this.#now() < cached.expiresAtMs) return cached

    this.#verified.delete(token)
    throw new ExpiredToken(cached.claims)
  }

  #check(token: string): VerifiedToken {
    const nowMs = this.#now()
    return verifyWithAnyKey(this.#keys, (key) => verifyWith(key, token, nowMs))
  }

  // A ring of keys in insertion order: finding the oldest key of a Map takes 10 µs at 10 000 entries, because it skips
  // deleted entries. A slot may refer to an entry that has expired and was deleted. A BoundedMap that retains as many tokens
  // would need up to twice the memory.
  #cache(token: string, verified: VerifiedToken): VerifiedToken {
    if (this.#cacheSize === 0) return verified

    const oldest = this.#ring[this.#slot]
    if (oldest !== undefined) this.#verified.delete(oldest)

    // A copy: a substring of a Cookie header keeps the header in memory (29 MB instead of 9 MB for a full cache).
    const copy = Buffer.from(token, 'latin1').toString('latin1')
    this.#verified.set(copy, verified)
    this.#ring[this.#slot] = copy
    this.#slot = (this.#slot + 1) % this.#cacheSize
    return verified
  }
}

const verifyWith = (key: KeyObject, token: string, nowMs: number): VerifiedToken => {
  switch (token.split('.', 4).length) {
    case 3: {
      const claims = verifyJwt(token, key, nowMs)
      return { claims: deepFreeze(claims), expiresAtMs: claims.exp * 1000, issuedAtMs: issueTime(claims, 1000) }
    }
    case 2: {
      const claims = verifyLegacyToken(token, key, nowMs)
      return { claims: deepFreeze(claims), expiresAtMs: claims.exp, issuedAtMs: issueTime(claims, 1) }
    }
    default:
      throw new InvalidToken('malformed')
  }
}

const issueTime = ({ iat }: Readonly<Record<string, unknown>>, ms: number): number | null =>
  typeof iat === 'number' ? iat * ms : null

/** Exactly the string 'admin' in an own property. A list that contains it is not a role. */
export const isAdmin = (claims: AppClaims): boolean => Object.hasOwn(claims, 'role') && claims.role === 'admin'

/** The user of a request, for audit records and the subject of relay tokens. */
export const userDetails = (claims: AppClaims): UserDetails => ({
  id: idText(claims, 'userId') ?? idText(claims, 'id') ?? idText(claims, 'sub'),
  email: text(claims, 'email'),
  role: text(claims, 'role')
})

const idText = (claims: AppClaims, name: string): string | null => {
  const value = own(claims, name)
  // Above 2^53 different ids are parsed as the same number.
  return Number.isSafeInteger(value) ? String(value) : text(claims, name)
}

const text = (claims: AppClaims, name: string): string | null => {
  const value = own(claims, name)
  return typeof value === 'string' && value !== '' ? value : null
}

const own = (claims: AppClaims, name: string): unknown => (Object.hasOwn(claims, name) ? claims[name] : undefined)

const deepFreeze = <T extends object>(value: T): T => {
  for (const inner of Object.values(value)) {
    if (typeof inner === 'object' && inner !== null) deepFreeze(inner)
  }
  return Object.freeze(value)
}

/**
 * The claims of a token without verifying its signature, or null if it has no valid expiry. For tokens received directly
 * from the issuer.
 */
export const decodeClaims = (token: string): VerifiedToken | null => {
  const parts = token.split('.')
  const standard = parts.length === 3
  if (!standard && parts.length !== 2) return null
  try {
    const claims = decodeObject(parts[standard ? 1 : 0] ?? '', standard ? 'base64url' : 'base64')
    const { exp } = claims
    if (typeof exp !== 'number' || !Number.isFinite(exp)) return null
    const ms = standard ? 1000 : 1
    return { claims: { ...claims, exp }, expiresAtMs: exp * ms, issuedAtMs: issueTime(claims, ms) }
  } catch {
    return null
  }
}
