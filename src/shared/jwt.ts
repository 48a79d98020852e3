import { isUtf8 } from 'node:buffer'
import { createHmac, createSecretKey, type KeyObject, timingSafeEqual } from 'node:crypto'
import jwt from 'jsonwebtoken'
import { isObject } from './is-object.js'
import { ExpiredToken, InvalidToken, type TokenClaims } from './token-errors.js'

// jsonwebtoken signs tokens. Verifying is done here with `node:crypto`, because everything else that a verifier decides is
// checked here anyway: the length of a token, its canonical base64url and UTF-8 form, `alg`, `crit`, `b64` and `typ` in the
// header, a payload that is an object, a required expiry in the right unit, and the times, by the same rules as those of
// legacy tokens. `jwt.verify` would decode and parse the same token again, for twice the CPU time (decision 15).

/** Tokens are much shorter. The limit bounds the cost of decoding a hostile one. */
export const MAX_TOKEN_LENGTH = 8192

/** The base64url form of `{"alg":"HS256","typ":"JWT"}`, which nearly every library writes and which is known to be valid. */
const COMMON_HEADER = 'eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9'
const HS256_HEADER = Object.freeze({ alg: 'HS256', typ: 'JWT' })

/** Media types of JSON web tokens and of access tokens (RFC 9068), which identity providers issue. */
const TYPES: ReadonlySet<string> = new Set(['JWT', 'AT+JWT', 'APPLICATION/AT+JWT'])

const THREE_PARTS = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$/

/** How far the issuer's clock may be ahead of ours. */
const CLOCK_SKEW_MS = 60_000

// 1e11 is the year 5138 in seconds and March 1973 in milliseconds. An expiry on the wrong side of it has the wrong unit,
// and would be valid for 50 000 years or not at all. The upper bound is the same year in both units.
const TIME_UNITS = {
  seconds: { ms: 1000, expiryFrom: Number.NEGATIVE_INFINITY, expiryBelow: 1e11 },
  milliseconds: { ms: 1, expiryFrom: 1e11, expiryBelow: 1e14 }
} as const

export interface SignOptions {
  readonly lifetimeSeconds: number
  readonly nowMs?: number
}

/** Create the key once, at start. With a string, jsonwebtoken first tries to parse a public key on each signature. */
export const secretKey = (text: string): KeyObject => {
  // An empty HMAC key is legal, but anybody could sign with it.
  if (text === '') throw new RangeError('a signing secret must not be empty')
  return createSecretKey(text, 'utf8')
}

/** An HS256 token. `iat` and `exp` of the claims are overwritten. */
export const signJwt = (claims: Readonly<Record<string, unknown>>, key: KeyObject, options: SignOptions): string => {
  const iat = Math.floor((options.nowMs ?? Date.now()) / 1000)
  const exp = iat + checkLifetime(options.lifetimeSeconds)
  return jwt.sign({ ...claims, iat, exp }, key, { algorithm: 'HS256' })
}

/** The claims of a valid token. Throws `InvalidToken`, or `ExpiredToken` if only the expiry is wrong. */
export const verifyJwt = (token: string, key: KeyObject, nowMs = Date.now()): TokenClaims =>
  checkTimes(signedClaims(decodeJwt(token), key), 'seconds', nowMs)

export type HmacAlgorithm = 'HS256' | 'HS384' | 'HS512'

const HS256_ONLY: readonly HmacAlgorithm[] = ['HS256']

/** The claims of a decoded token with a valid signature, regardless of its times. Throws `InvalidToken`. */
export const signedClaims = (
  { token, header, claims }: DecodedJwt,
  key: KeyObject,
  algorithms = HS256_ONLY
): Record<string, unknown> => {
  const algorithm = algorithms.find((each) => each === header.alg)
  if (algorithm === undefined) throw new InvalidToken('bad-algorithm')
  verifySignature(token, key, algorithm)
  return claims
}

/** Verifies with one key after another until the signature matches. Throws the error of the last one if none matches. */
export const verifyWithAnyKey = <Result>(keys: readonly KeyObject[], verify: (key: KeyObject) => Result): Result => {
  // Not created in advance: the stack trace of an error costs as much as the signature.
  let failure: InvalidToken | null = null
  for (const key of keys) {
    try {
      return verify(key)
    } catch (error) {
      // Only after a wrong signature another key can be the right one.
      if (!(error instanceof InvalidToken) || error.reason !== 'bad-signature') throw error
      failure = error
    }
  }
  throw failure ?? new InvalidToken('bad-signature')
}

/** A decoded token whose signature has not been verified. */
export interface DecodedJwt {
  readonly token: string
  readonly header: Readonly<Record<string, unknown>>
  readonly claims: Record<string, unknown>
}

/** Which values `typ` in the header may have: media types of tokens, or any text. */
type AcceptedTypes = 'token' | 'any'

/** Checks length, spelling and header of a token, but not its signature. Throws `InvalidToken`. */
export const decodeJwt = (token: string, types: AcceptedTypes = 'token'): DecodedJwt => {
  if (token.length > MAX_TOKEN_LENGTH) throw new InvalidToken('too-long')
  if (!THREE_PARTS.test(token)) throw new InvalidToken('malformed')

  const [headerText = '', payload = ''] = token.split('.')
  const header = headerText === COMMON_HEADER ? HS256_HEADER : checkHeader(decodeObject(headerText, 'base64url'), types)
  return { token, header, claims: decodeObject(payload, 'base64url') }
}

/** Decodes a JSON object from one part of a token, which must have its canonical spelling. */
export const decodeObject = (text: string, encoding: 'base64' | 'base64url'): Record<string, unknown> => {
  const bytes = Buffer.from(text, encoding)
  // Node's decoders skip invalid characters and replace invalid UTF-8. Such tokens are rejected instead.
  if (bytes.toString(encoding) !== text || !isUtf8(bytes)) throw new InvalidToken('malformed')

  const value = parseJson(bytes.toString())
  if (!isObject(value)) throw new InvalidToken('not-an-object')
  return value
}

/**
 * Checks `exp`, `nbf` and `iat`; token formats differ only in the unit. Call it after the signature is verified. The expiry
 * is checked last, so that the claims of an `ExpiredToken` can be trusted.
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

/** Only whole seconds: other verifiers may reject an expiry with a fraction. */
export const checkLifetime = (seconds: number): number => {
  if (!Number.isSafeInteger(seconds) || seconds < 1)
    throw new RangeError('a lifetime must be a whole number of seconds, at least 1')
  return seconds
}

// `jku`, `jwk`, `x5u` and similar fields are ignored: a token cannot supply its own key.
const checkHeader = (header: Record<string, unknown>, types: AcceptedTypes): Record<string, unknown> => {
  const { alg, typ = 'JWT' } = header
  if (typeof alg !== 'string') throw new InvalidToken('bad-algorithm')
  if (!isAcceptedType(typ, types)) throw new InvalidToken('bad-header')
  // Both change the meaning of the token, and jsonwebtoken ignores them.
  if (Object.hasOwn(header, 'crit') || Object.hasOwn(header, 'b64')) throw new InvalidToken('bad-header')
  return header
}

/** A media type is case-insensitive (RFC 7515, 4.1.9). */
const isAcceptedType = (type: unknown, types: AcceptedTypes): boolean =>
  types === 'any'
    ? type === null || typeof type === 'string'
    : typeof type === 'string' && TYPES.has(type.toUpperCase())

const DIGESTS = { HS256: 'sha256', HS384: 'sha384', HS512: 'sha512' } as const

const verifySignature = (token: string, key: KeyObject, algorithm: HmacAlgorithm): void => {
  // With a public key as the secret of an HMAC, anybody could sign.
  if (key.type !== 'secret') throw new InvalidToken('bad-signature')
  const signatureAt = token.lastIndexOf('.') + 1
  const expected = createHmac(DIGESTS[algorithm], key)
    .update(token.slice(0, signatureAt - 1))
    .digest('base64url')
  // Both are ASCII. Comparing the text also rejects signatures that are not in their canonical base64url form.
  const isSame =
    token.length - signatureAt === expected.length &&
    timingSafeEqual(Buffer.from(token.slice(signatureAt), 'latin1'), Buffer.from(expected, 'latin1'))
  if (!isSame) throw new InvalidToken('bad-signature')
}

const parseJson = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    // Without the cause: its message quotes the text, which may contain personal data.
    throw new InvalidToken('malformed')
  }
}

/** Fractions are allowed (RFC 7519, 2). */
const hasNumericExpiry = (claims: Readonly<Record<string, unknown>>): claims is TokenClaims =>
  Number.isFinite(claims.exp)

const isFiniteNumber = (value: unknown): value is number => Number.isFinite(value)
