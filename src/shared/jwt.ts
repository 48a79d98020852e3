import { isUtf8 } from 'node:buffer'
import { createHmac, createSecretKey, type KeyObject } from 'node:crypto'
import jwt from 'jsonwebtoken'
import { sameSecret } from './same-secret.js'
import { ExpiredToken, InvalidToken, type TokenClaims } from './token-errors.js'

/** Longer than any honest token, and short enough that decoding a hostile one costs nothing. */
export const MAX_TOKEN_LENGTH = 8192

/** `{"alg":"HS256","typ":"JWT"}`, as nearly every library writes it; known to be good. */
const USUAL_HEADER = 'eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9'

const THREE_PARTS = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$/

/** How far the issuer's clock may be ahead of ours. */
const CLOCK_SKEW_MS = 60_000

// 1e11 is the year 5138 in seconds and March 1973 in milliseconds: an expiry on the wrong side of it was written in the
// other unit, and would be good for 50 000 years or for none. The upper end is the same year in both.
const TIME_UNITS = {
  seconds: { ms: 1000, expiryFrom: Number.NEGATIVE_INFINITY, expiryBelow: 1e11 },
  milliseconds: { ms: 1, expiryFrom: 1e11, expiryBelow: 1e14 }
} as const

export interface SignOptions {
  readonly lifetimeSeconds: number
  readonly nowMs?: number
}

/** Made once, at start: given the text itself, jsonwebtoken first tries to read it as a public key, 40 times slower. */
export const secretKey = (text: string): KeyObject => {
  // An empty key is legal for the HMAC, and everybody knows it.
  if (text === '') throw new RangeError('a signing secret must not be empty')
  return createSecretKey(text, 'utf8')
}

/** An HS256 token; `iat` and `exp` are always ours, whatever the claims say. */
export const signJwt = (claims: Readonly<Record<string, unknown>>, key: KeyObject, options: SignOptions): string => {
  const iat = Math.floor((options.nowMs ?? Date.now()) / 1000)
  const exp = iat + checkLifetime(options.lifetimeSeconds)
  return jwt.sign({ ...claims, iat, exp }, key, { algorithm: 'HS256' })
}

/** The claims of a good token; throws `InvalidToken`, or `ExpiredToken` when nothing but the expiry is wrong. */
export const verifyJwt = (token: string, key: KeyObject, nowMs = Date.now()): TokenClaims =>
  checkTimes(signedClaims(token, key), 'seconds', nowMs)

/** The claims of a token that we signed, whatever its times; throws `InvalidToken`. */
export const signedClaims = (token: string, key: KeyObject): Record<string, unknown> => {
  if (token.length > MAX_TOKEN_LENGTH) throw new InvalidToken('too-long')
  if (!THREE_PARTS.test(token)) throw new InvalidToken('malformed')

  const [header = '', payload = ''] = token.split('.')
  if (header !== USUAL_HEADER) checkHeader(decodeObject(header, 'base64url'))
  const claims = decodeObject(payload, 'base64url')
  checkSignature(token, key)
  return claims
}

/** A JSON object from one part of a token, spelled in the one canonical way. */
export const decodeObject = (text: string, encoding: 'base64' | 'base64url'): Record<string, unknown> => {
  const bytes = Buffer.from(text, encoding)
  // Node's decoders skip what they do not understand and repair what is not UTF-8; we want neither.
  if (bytes.toString(encoding) !== text || !isUtf8(bytes)) throw new InvalidToken('malformed')

  const value = parseJson(bytes.toString())
  if (!isObject(value)) throw new InvalidToken('not-an-object')
  return value
}

/**
 * The rules about time, the same in every format but for the unit. The signature must have been checked before, and the
 * expiry is the last thing looked at: that is what makes the claims of an `ExpiredToken` believable.
 */
export const checkTimes = (
  claims: Readonly<Record<string, unknown>>,
  unit: keyof typeof TIME_UNITS,
  nowMs: number
): TokenClaims => {
  const { ms, expiryFrom, expiryBelow } = TIME_UNITS[unit]
  const { nbf, iat } = claims

  if (claims.exp === undefined) throw new InvalidToken('no-expiry')
  if (!hasNumericExpiry(claims)) throw new InvalidToken('bad-expiry')
  if (claims.exp < expiryFrom || claims.exp >= expiryBelow) throw new InvalidToken('wrong-expiry-unit')

  if (nbf !== undefined) {
    if (!isFiniteNumber(nbf) || nbf >= expiryBelow) throw new InvalidToken('bad-not-before')
    if (nbf * ms > nowMs + CLOCK_SKEW_MS) throw new InvalidToken('not-yet-valid')
  }
  if (iat !== undefined) {
    if (!isFiniteNumber(iat) || iat >= expiryBelow) throw new InvalidToken('bad-issued-at')
    if (iat * ms > nowMs + CLOCK_SKEW_MS) throw new InvalidToken('issued-in-future')
  }

  if (nowMs >= claims.exp * ms) throw new ExpiredToken(claims)
  return claims
}

/** Part of a second would make an expiry that every verifier refuses. */
export const checkLifetime = (seconds: number): number => {
  if (!Number.isSafeInteger(seconds) || seconds < 1) throw new RangeError('a lifetime is one whole second or more')
  return seconds
}

// `kid`, `jku`, `jwk` and their like are left unread: there is one key, and no token chooses it.
const checkHeader = (header: Record<string, unknown>): void => {
  if (header.alg !== 'HS256') throw new InvalidToken('bad-algorithm')
  const { typ = 'JWT' } = header
  // A media type, so its letter case means nothing (RFC 7515, 4.1.9).
  if (typeof typ !== 'string' || typ.toUpperCase() !== 'JWT') throw new InvalidToken('bad-header')
  // Both change what the token means, and jsonwebtoken passes over them.
  if (Object.hasOwn(header, 'crit') || Object.hasOwn(header, 'b64')) throw new InvalidToken('bad-header')
}

/** The text of signatures is compared, in constant time: no second spelling of the same bytes passes. */
const checkSignature = (token: string, key: KeyObject): void => {
  if (key.type !== 'secret') throw new InvalidToken('bad-signature')
  const dot = token.lastIndexOf('.')
  const signature = createHmac('sha256', key).update(token.slice(0, dot)).digest('base64url')
  // By hand, because jsonwebtoken parses header and payload once more: half of what a check costs.
  if (!sameSecret(signature, token.slice(dot + 1))) throw new InvalidToken('bad-signature')
}

const parseJson = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    // Without the cause: its message quotes the text, which may be somebody's claims.
    throw new InvalidToken('malformed')
  }
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** A fraction is allowed (RFC 7519, 2). */
const hasNumericExpiry = (claims: Readonly<Record<string, unknown>>): claims is TokenClaims =>
  Number.isFinite(claims.exp)

const isFiniteNumber = (value: unknown): value is number => Number.isFinite(value)
