import type { KeyObject } from 'node:crypto'
import { compactVerify } from 'jose'
import {
  checkTimes,
  type DecodedJwt,
  decodeJwt,
  type HmacAlgorithm,
  secretKey,
  signedClaims,
  verifyWithAnyKey
} from '../shared/jwt.js'
import { ExpiredToken, InvalidToken } from '../shared/token-errors.js'
import { ecdsaAlgorithm, type TokenKeys } from './config/token-options.js'
import type { CheckedToken, Claims, TokenCheck, TokenRejected } from './core/session/tokens.js'
import { type KeyLookup, KeysUnavailable, RemoteKeySet, type RemoteKeySetDependencies } from './jwks.js'

// Stands in for a missing `exp`. Whether a token may have no expiry is decided together with its other claims.
const FAR_FUTURE_SECONDS = 9e10

const HMAC_ALGORITHMS: readonly HmacAlgorithm[] = ['HS256', 'HS384', 'HS512']
const RSA_ALGORITHMS = ['RS256', 'RS384', 'RS512']
/** Two names of one algorithm: RFC 8037 and RFC 9864. */
const EDDSA_ALGORITHMS = ['EdDSA', 'Ed25519']
const JWKS_ALGORITHMS = [...RSA_ALGORITHMS, 'ES256', 'ES384', 'ES512', ...EDDSA_ALGORITHMS]

/** Builds token checks. Sets of remote keys are kept when the configuration is reloaded. */
export class TokenChecks {
  readonly #dependencies: RemoteKeySetDependencies
  readonly #keySets = new Map<string, RemoteKeySet>()

  constructor(dependencies: RemoteKeySetDependencies) {
    this.#dependencies = dependencies
  }

  /** HMAC is checked at once. Other algorithms are checked by the thread pool, if there are keys for them. */
  build(keys: TokenKeys): TokenCheck {
    const hmacKeys = hmacKeysOf(keys)
    const publicKeys = staticKeys(keys)
    const keySet = this.#keySet(keys.jwksEndpoint)
    const hasPublicKeys = publicKeys.length > 0 || keySet !== null
    return (token, nowMs, rejected) => {
      try {
        const decoded = decodeRelayToken(token)
        if (hasPublicKeys && !HMAC_ALGORITHMS.some((each) => each === decoded.header.alg))
          return checkWithPublicKeys(decoded, { publicKeys, keySet }, nowMs, rejected)
        return withinTimes(hmacClaims(decoded, hmacKeys(nowMs)), nowMs)
      } catch (error) {
        return failure(error, rejected)
      }
    }
  }

  #keySet(url: string | null): RemoteKeySet | null {
    if (url === null) return null
    const existing = this.#keySets.get(url)
    if (existing !== undefined) return existing
    const created = new RemoteKeySet(url, this.#dependencies)
    this.#keySets.set(url, created)
    // The first client does not have to wait.
    void created.load()
    return created
  }
}

const JSON_NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/

/** A token as Centrifugo reads it: it may have any type, a claim with null is absent, and a time may be a number as text. */
export const decodeRelayToken = (token: string): DecodedJwt => {
  const decoded = decodeJwt(token, 'any')
  const { claims } = decoded
  for (const name of Object.keys(claims)) if (claims[name] === null) delete claims[name]
  for (const name of ['exp', 'nbf', 'iat'] as const) {
    const time = claims[name]
    if (typeof time === 'string' && JSON_NUMBER.test(time)) claims[name] = Number(time)
  }
  return decoded
}

/** The secrets that are valid at a time. */
const hmacKeysOf = ({ hmacSecret, previousHmacSecret, previousValidUntilMs }: TokenKeys) => {
  const current = hmacSecret === null ? [] : [secretKey(hmacSecret)]
  const all = previousHmacSecret === null ? current : [...current, secretKey(previousHmacSecret)]
  return (nowMs: number): readonly KeyObject[] => (nowMs < previousValidUntilMs ? all : current)
}

/** Without a secret every token is invalid. */
const hmacClaims = (decoded: DecodedJwt, keys: readonly KeyObject[]): Claims => {
  if (keys.length === 0) throw new InvalidToken('bad-algorithm')
  return verifyWithAnyKey(keys, (key) => signedClaims(decoded, key, HMAC_ALGORITHMS))
}

interface PublicKey {
  readonly key: KeyObject
  readonly algorithms: readonly string[]
}

interface PublicKeys {
  readonly publicKeys: readonly PublicKey[]
  readonly keySet: RemoteKeySet | null
}

const staticKeys = ({ rsaPublicKey, ecdsaPublicKey, eddsaPublicKey }: TokenKeys): readonly PublicKey[] => {
  const keys: PublicKey[] = []
  if (rsaPublicKey !== null) keys.push({ key: rsaPublicKey, algorithms: RSA_ALGORITHMS })
  if (eddsaPublicKey !== null) keys.push({ key: eddsaPublicKey, algorithms: EDDSA_ALGORITHMS })
  const algorithm = ecdsaAlgorithm(ecdsaPublicKey?.asymmetricKeyDetails?.namedCurve)
  if (ecdsaPublicKey !== null && algorithm !== null) keys.push({ key: ecdsaPublicKey, algorithms: [algorithm] })
  return keys
}

const checkWithPublicKeys = async (
  { token, header, claims }: DecodedJwt,
  keys: PublicKeys,
  nowMs: number,
  rejected: TokenRejected
): Promise<CheckedToken> => {
  try {
    await verifySignature(token, header, keys)
    return withinTimes(claims, nowMs)
  } catch (error) {
    return failure(error, rejected)
  }
}

/** Each key is used for its own algorithms only: a token cannot choose how a key is used. */
const verifySignature = async (
  token: string,
  { alg, kid }: DecodedJwt['header'],
  { publicKeys, keySet }: PublicKeys
): Promise<void> => {
  const suitable = publicKeys.find(({ algorithms }) => algorithms.some((each) => each === alg))
  if (suitable !== undefined && (await isSigned(token, suitable.key, suitable.algorithms))) return
  if (keySet === null || !JWKS_ALGORITHMS.some((each) => each === alg))
    throw new InvalidToken(suitable === undefined ? 'bad-algorithm' : 'bad-signature')
  if (typeof kid !== 'string' || kid === '') throw new InvalidToken('no-key-id')
  const key = await keySet.find(kid)
  if (key === null) throw new InvalidToken('unknown-key')
  if (!(await isSigned(token, key, JWKS_ALGORITHMS))) throw new InvalidToken('bad-signature')
}

const isSigned = async (token: string, key: KeyObject | KeyLookup, algorithms: readonly string[]): Promise<boolean> => {
  try {
    await compactVerify(token, key, { algorithms: [...algorithms] })
    return true
  } catch {
    // A wrong signature, another algorithm than the key's, or a malformed key in the key set.
    return false
  }
}

const withinTimes = (claims: Claims, nowMs: number): Claims => {
  checkTimes(claims.exp === undefined ? { ...claims, exp: FAR_FUTURE_SECONDS } : claims, 'seconds', nowMs)
  return claims
}

const failure = (error: unknown, rejected: TokenRejected): 'expired' | 'invalid' | 'unavailable' => {
  if (error instanceof KeysUnavailable) {
    rejected(error.reason)
    return 'unavailable'
  }
  if (error instanceof ExpiredToken) {
    rejected('expired')
    return 'expired'
  }
  if (!(error instanceof InvalidToken)) throw error
  rejected(error.reason)
  // The backend's clock is ahead, which is temporary: "expired" makes the client request a new token and retry.
  return error.reason === 'not-yet-valid' || error.reason === 'issued-in-future' ? 'expired' : 'invalid'
}
