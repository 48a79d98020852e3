import type { KeyObject } from 'node:crypto'
import { decodeObject, type SignOptions, signJwt, verifyJwt } from './jwt.js'
import { createLegacyToken, verifyLegacyToken } from './legacy-token.js'
import { ExpiredToken, InvalidToken, type TokenClaims } from './token-errors.js'

/** What the backend says about a user. It is signed, not checked: only the expiry has a known type. */
export interface AppClaims extends TokenClaims {
  readonly userId?: unknown
  readonly id?: unknown
  readonly sub?: unknown
  readonly email?: unknown
  readonly role?: unknown
  readonly permissions?: unknown
}

export interface VerifiedToken {
  /** Frozen to the bottom, because requests with the same token share them. */
  readonly claims: AppClaims
  /** The same unit whatever the format, unlike `claims.exp`. */
  readonly expiresAtMs: number
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
}

export const createAppToken = (
  claims: Readonly<Record<string, unknown>>,
  key: KeyObject,
  { format, ...options }: AppTokenOptions
): string => (format === 'jwt' ? signJwt(claims, key, options) : createLegacyToken(claims, key, options))

/** Verifies tokens of both formats, and remembers the good ones: a page sends the same token with every request. */
export class AppTokenVerifier {
  readonly #keys: readonly KeyObject[]
  readonly #cacheSize: number
  readonly #now: () => number
  readonly #verified = new Map<string, VerifiedToken>()
  readonly #ring: string[] = []
  #slot = 0

  /** With several keys, a token may be signed with any of them. */
  constructor(keys: KeyObject | readonly KeyObject[], { cacheSize = 10_000, now = Date.now }: VerifierOptions = {}) {
    this.#keys = [keys].flat()
    this.#cacheSize = cacheSize
    this.#now = now
  }

  /** Throws `InvalidToken` or `ExpiredToken`. */
  verify(token: string): VerifiedToken {
    const known = this.#verified.get(token)
    if (known === undefined) return this.#remember(token, this.#check(token))
    if (this.#now() < known.expiresAtMs) return known

    this.#verified.delete(token)
    throw new ExpiredToken(known.claims)
  }

  #check(token: string): VerifiedToken {
    const nowMs = this.#now()
    let fault = new InvalidToken('bad-signature')
    for (const key of this.#keys) {
      try {
        return verifyWith(key, token, nowMs)
      } catch (error) {
        // Only a wrong signature leaves open whether another key is the right one.
        if (!(error instanceof InvalidToken) || error.reason !== 'bad-signature') throw error
        fault = error
      }
    }
    throw fault
  }

  // A Map could name its oldest key itself, but steps over the hole of every deleted one to find it: 10 µs at 10 000
  // entries, and 0.1 µs with a ring of the keys in order. A ring's slot may name an entry that has expired and is gone.
  #remember(token: string, verified: VerifiedToken): VerifiedToken {
    if (this.#cacheSize === 0) return verified

    const oldest = this.#ring[this.#slot]
    if (oldest !== undefined) this.#verified.delete(oldest)

    // A copy, because a token cut out of a Cookie header keeps the whole header alive: 9 MB instead of 29 when full.
    const ownText = Buffer.from(token, 'latin1').toString('latin1')
    this.#verified.set(ownText, verified)
    this.#ring[this.#slot] = ownText
    this.#slot = (this.#slot + 1) % this.#cacheSize
    return verified
  }
}

const verifyWith = (key: KeyObject, token: string, nowMs: number): VerifiedToken => {
  switch (token.split('.', 4).length) {
    case 3: {
      const claims = verifyJwt(token, key, nowMs)
      return { claims: deepFreeze(claims), expiresAtMs: claims.exp * 1000 }
    }
    case 2: {
      const claims = verifyLegacyToken(token, key, nowMs)
      return { claims: deepFreeze(claims), expiresAtMs: claims.exp }
    }
    default:
      throw new InvalidToken('malformed')
  }
}

/** Exactly the text 'admin', and the token's own: a list that holds it, or an inherited value, is not a role. */
export const isAdmin = (claims: AppClaims): boolean => Object.hasOwn(claims, 'role') && claims.role === 'admin'

/** Who is acting, for audit lines and for the subject of a relay token. */
export const userDetails = (claims: AppClaims): UserDetails => ({
  id: idText(claims, 'userId') ?? idText(claims, 'id') ?? idText(claims, 'sub'),
  email: text(claims, 'email'),
  role: text(claims, 'role')
})

const idText = (claims: AppClaims, name: string): string | null => {
  const value = own(claims, name)
  // Past 2^53 two ids become one number, and one user another.
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
 * The claims of a token as they stand, for who got it from the issuer itself and needs its expiry; null where there is none.
 * Says nothing about the signature: to believe a token, verify it.
 */
export const decodeClaims = (token: string): VerifiedToken | null => {
  const parts = token.split('.')
  const standard = parts.length === 3
  if (!standard && parts.length !== 2) return null
  try {
    const claims = decodeObject(parts[standard ? 1 : 0] ?? '', standard ? 'base64url' : 'base64')
    const { exp } = claims
    if (typeof exp !== 'number' || !Number.isFinite(exp)) return null
    return { claims: { ...claims, exp }, expiresAtMs: standard ? exp * 1000 : exp }
  } catch {
    return null
  }
}
