import { createHmac, type KeyObject, timingSafeEqual } from 'node:crypto'
import { checkLifetime, checkTimes, decodeObject, MAX_TOKEN_LENGTH, type SignOptions } from './jwt.js'
import { InvalidToken, type TokenClaims } from './token-errors.js'

// Checked before anything is decoded: Node's hex decoder stops at the first bad character without a word.
const TWO_PARTS = /^[A-Za-z0-9+/]+={0,2}\.[0-9a-f]{64}$/

/** The backend's own format, `base64(JSON).hex(HMAC-SHA256)`: `iat` and `exp` are ours, in milliseconds. */
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

/** The claims of a good token; throws `InvalidToken`, or `ExpiredToken` when nothing but the expiry is wrong. */
export const verifyLegacyToken = (token: string, key: KeyObject, nowMs = Date.now()): TokenClaims => {
  if (token.length > MAX_TOKEN_LENGTH) throw new InvalidToken('too-long')
  if (!TWO_PARTS.test(token)) throw new InvalidToken('malformed')

  const [data = '', signature = ''] = token.split('.')
  // Both are 32 bytes, the first by its form, so the comparison cannot throw.
  if (!timingSafeEqual(Buffer.from(signature, 'hex'), hmac(data, key))) throw new InvalidToken('bad-signature')
  return checkTimes(decodeObject(data, 'base64'), 'milliseconds', nowMs)
}

/** Over the text as it travels, not over the bytes it stands for. */
const hmac = (data: string, key: KeyObject): Buffer => createHmac('sha256', key).update(data).digest()
