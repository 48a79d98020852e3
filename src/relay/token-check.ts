import type { KeyObject } from 'node:crypto'
import { checkTimes, secretKey, signedClaims } from '../shared/jwt.js'
import { ExpiredToken, InvalidToken } from '../shared/token-errors.js'
import type { Claims, TokenCheck } from './core/tokens.js'

// A token without an end is checked like one that ends late; whether it may have none is decided with its other claims.
const LATE_SECONDS = 9e10

/** Without a secret no token is good. Tokens of `previous` are accepted. */
export const tokenCheck = (secret: string, previous: string | null = null): TokenCheck => {
  if (secret === '') {
    return (_token, _nowMs, refused) => {
      refused('no-secret')
      return 'invalid'
    }
  }
  const keys = [secret, previous].filter((each) => each !== null).map(secretKey)
  return (token, nowMs, refused) => check(token, keys, nowMs, refused)
}

const check = (
  token: string,
  keys: readonly KeyObject[],
  nowMs: number,
  refused: (reason: string) => void
): Claims | 'expired' | 'invalid' => {
  try {
    const claims = claimsSignedByAny(token, keys)
    checkTimes(claims.exp === undefined ? { ...claims, exp: LATE_SECONDS } : claims, 'seconds', nowMs)
    return claims
  } catch (error) {
    if (error instanceof ExpiredToken) {
      refused('expired')
      return 'expired'
    }
    if (!(error instanceof InvalidToken)) throw error
    refused(error.reason)
    // The clocks differ, which passes: the client receives the error after which it asks for a new token and tries again.
    return error.reason === 'not-yet-valid' || error.reason === 'issued-in-future' ? 'expired' : 'invalid'
  }
}

const claimsSignedByAny = (token: string, keys: readonly KeyObject[]): Claims => {
  let fault = new InvalidToken('bad-signature')
  for (const key of keys) {
    try {
      return signedClaims(token, key)
    } catch (error) {
      // Only a wrong signature leaves open whether another key is the right one.
      if (!(error instanceof InvalidToken) || error.reason !== 'bad-signature') throw error
      fault = error
    }
  }
  throw fault
}
