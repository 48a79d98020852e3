import { createHmac, type KeyObject, timingSafeEqual } from 'node:crypto'
import { checkLifetime, checkTimes, decodeObject, MAX_TOKEN_LENGTH, type SignOptions } from './jwt.js'
import { InvalidToken, type TokenClaims } from './token-errors.js'

// Checked before decoding: Node's hex decoder silently stops at the first invalid character.
const TWO_PARTS = /^[A-Za-z0-9+/]+={0,2}\.[0-9a-f]{64}$/

/** A token in the backend's format `base64(JSON).hex(HMAC-SHA256)`. `iat` and `exp` are overwritten, in milliseconds. */
export const createLegacyToken = (
  claims: Readonly<Record<string, unknown>>,
  key: KeyObject,
  options: SignOptions
): string => {
  const iat = Math.floor(options.nowMs ?? Date.now())
  const exp = iat + checkLifetime(options.lifetimeSeconds) * 1000
  const data = Buffer.from(JSON.stringify({ ...claims, iat, exp })).toString('base64')
  return `${data}.${hmac(data, key).toString('hex')}`
}

/** The claims of a valid token. Throws `InvalidToken`, or `ExpiredToken` if only the expiry is wrong. */
export const verifyLegacyToken = (token: string, key: KeyObject, nowMs = Date.now()): TokenClaims => {
  if (token.length > MAX_TOKEN_LENGTH) throw new InvalidToken('too-long')
  if (!TWO_PARTS.test(token)) throw new InvalidToken('malformed')

  const [data = '', signature = ''] = token.split('.')
  // Both have 32 bytes, so the comparison cannot throw.
  if (!timingSafeEqual(Buffer.from(signature, 'hex'), hmac(data, key))) throw new InvalidToken('bad-signature')
  return checkTimes(decodeObject(data, 'base64'), 'milliseconds', nowMs)
}

/** Over the base64 text, not over the decoded bytes. */
const hmac = (data: string, key: KeyObject): Buffer => createHmac('sha256', key).update(data).digest()
