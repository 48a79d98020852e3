import type { KeyObject } from 'node:crypto'
import { checkTimes, secretKey, signedClaims } from '../shared/jwt.js'
import { ExpiredToken, InvalidToken } from '../shared/token-errors.js'
import type { Claims, TokenCheck } from './core/tokens.js'

// A token without an end is checked like one that ends late; whether it may have none is decided with its other claims.
const LATE_SECONDS = 9e10

/** Without a secret no token is good. `refused` is told in a word why one was not. */
export const tokenCheck = (secret: string, refused: (why: string) => void = () => undefined): TokenCheck => {
  if (secret === '') return () => 'invalid'
  const key = secretKey(secret)
  return (token, nowMs) => check(token, key, nowMs, refused)
}

const check = (
  token: string,
  key: KeyObject,
  nowMs: number,
  refused: (why: string) => void
): Claims | 'expired' | 'invalid' => {
  try {
    const claims = signedClaims(token, key)
    checkTimes(claims.exp === undefined ? { ...claims, exp: LATE_SECONDS } : claims, 'seconds', nowMs)
    return claims
  } catch (error) {
    if (error instanceof ExpiredToken) {
      refused('expired')
      return 'expired'
    }
    if (!(error instanceof InvalidToken)) throw error
    refused(error.reason)
    // Asked again later, the client's backend may have one that is.
    return error.reason === 'not-yet-valid' ? 'expired' : 'invalid'
  }
}
