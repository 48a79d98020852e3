import type { KeyObject } from 'node:crypto'
import { checkTimes, secretKey, signedClaims } from '../shared/jwt.js'
import { ExpiredToken, InvalidToken } from '../shared/token-errors.js'
import type { Claims, TokenCheck } from './core/tokens.js'

// A token without an end is checked like one that ends late; whether it may have none is decided with its other claims.
const LATE_SECONDS = 9e10

/** Without a secret no token is good. */
export const tokenCheck = (secret: string): TokenCheck => {
  if (secret === '') return () => 'invalid'
  const key = secretKey(secret)
  return (token, nowMs) => check(token, key, nowMs)
}

const check = (token: string, key: KeyObject, nowMs: number): Claims | 'expired' | 'invalid' => {
  try {
    const claims = signedClaims(token, key)
    checkTimes(claims.exp === undefined ? { ...claims, exp: LATE_SECONDS } : claims, 'seconds', nowMs)
    return claims
  } catch (error) {
    if (error instanceof ExpiredToken) return 'expired'
    if (!(error instanceof InvalidToken)) throw error
    // Asked again later, the client's backend may have one that is.
    return error.reason === 'not-yet-valid' ? 'expired' : 'invalid'
  }
}
