import type { KeyObject } from 'node:crypto'
import { checkTimes, secretKey, signedClaims } from '../shared/jwt.js'
import { ExpiredToken, InvalidToken } from '../shared/token-errors.js'
import type { Claims, TokenCheck } from './core/tokens.js'

// Stands in for a missing `exp`. Whether a token may have no expiry is decided together with its other claims.
const FAR_FUTURE_SECONDS = 9e10

/** Verifies relay tokens. Without a secret every token is invalid. Tokens signed with `previous` are accepted. */
export const tokenCheck = (secret: string, previous: string | null = null): TokenCheck => {
  if (secret === '') {
    return (_token, _nowMs, rejected) => {
      rejected('no-secret')
      return 'invalid'
    }
  }
  const keys = [secret, previous].filter((each) => each !== null).map(secretKey)
  return (token, nowMs, rejected) => check(token, keys, nowMs, rejected)
}

const check = (
  token: string,
  keys: readonly KeyObject[],
  nowMs: number,
  rejected: (reason: string) => void
): Claims | 'expired' | 'invalid' => {
  try {
    const claims = verifyWithAny(token, keys)
    checkTimes(claims.exp === undefined ? { ...claims, exp: FAR_FUTURE_SECONDS } : claims, 'seconds', nowMs)
    return claims
  } catch (error) {
    if (error instanceof ExpiredToken) {
      rejected('expired')
      return 'expired'
    }
    if (!(error instanceof InvalidToken)) throw error
    rejected(error.reason)
    // The backend's clock is ahead, which is temporary: "expired" makes the client request a new token and retry.
    return error.reason === 'not-yet-valid' || error.reason === 'issued-in-future' ? 'expired' : 'invalid'
  }
}

const verifyWithAny = (token: string, keys: readonly KeyObject[]): Claims => {
  let failure = new InvalidToken('bad-signature')
  for (const key of keys) {
    try {
      return signedClaims(token, key)
    } catch (error) {
      // Only after a wrong signature another key can be the right one.
      if (!(error instanceof InvalidToken) || error.reason !== 'bad-signature') throw error
      failure = error
    }
  }
  throw failure
}
