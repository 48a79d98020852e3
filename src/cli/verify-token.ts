import { readFileSync } from 'node:fs'
import { type RelayConfig, relayConfig } from '../relay/config/config.js'
import {
  type Claims,
  claimsRejection,
  connectionClaims,
  hasEnded,
  subscriptionClaims,
  type TokenRejectionReason
} from '../relay/core/session/tokens.js'
import { decodeRelayToken, TokenChecks } from '../relay/token-check.js'
import { AppTokenVerifier, decodeClaims } from '../shared/app-token.js'
import { type Environment, isGiven, readSettings, SettingsError } from '../shared/env.js'
import { secretKey } from '../shared/jwt.js'
import { monotonicMs } from '../shared/monotonic.js'
import { secret } from '../shared/setting-kinds.js'
import { ExpiredToken, InvalidToken } from '../shared/token-errors.js'
import { CommandError } from './command.js'

export type TokenKind = 'connection token' | 'subscription token' | 'app token'

type Reason = TokenRejectionReason

/** The verdict of one of the servers about a token. */
export interface TokenVerdict {
  readonly kind: TokenKind
  /** Null if the server accepts it. */
  readonly reason: Reason | null
}

export interface VerifiedTokenReport {
  /** Verdicts for the kind that the token has, or for every kind that it could have if no signature matches. */
  readonly verdicts: readonly TokenVerdict[]
  /** Null if the token cannot be decoded. */
  readonly claims: Claims | null
  /** The unit of the times in the claims. */
  readonly msPerUnit: number
  /** Whether a signature matches, so that the claims come from the issuer. */
  readonly isSigned: boolean
}

const appSettings = {
  API_SECRET: secret({ about: 'verifies app tokens', fallback: null }),
  API_SECRET_PREVIOUS: secret({ about: 'verifies app tokens during a rotation', fallback: null })
}

/** Reasons that precede the verification of the signature, or result from it. */
const UNSIGNED: ReadonlySet<Reason | null> = new Set<Reason>([
  'too-long',
  'malformed',
  'not-an-object',
  'bad-algorithm',
  'bad-header',
  'bad-signature',
  'no-key-id',
  'unknown-key',
  'keys-unavailable'
])

/** Verifies a token as the servers of this environment do, except for revocations. Throws `CommandError`. */
export const verifyToken = async (
  token: string,
  environment: Environment,
  nowMs = Date.now()
): Promise<VerifiedTokenReport> => {
  const errors: string[] = []
  const checkApp = appCheck(environment, errors)
  const relay = relayOf(environment, errors)
  if (errors.length > 0) throw new CommandError(errors)
  const claims = claimsOf(token)
  const isLegacy = token.split('.').length === 2
  const verdicts: TokenVerdict[] = []
  if (relay !== null && !isLegacy) {
    const isSubscription = typeof claims?.channel === 'string' && claims.channel !== ''
    const reason = await (isSubscription ? subscriptionReason : connectionReason)(token, relay, nowMs)
    verdicts.push({ kind: isSubscription ? 'subscription token' : 'connection token', reason })
  }
  if (checkApp !== null) verdicts.push({ kind: 'app token', reason: checkApp(token, nowMs) })
  if (verdicts.length === 0) throw new CommandError(['API_SECRET, REALTIME_HMAC_SECRET or RELAY_CONFIG is required'])
  const signed = verdicts.filter(({ reason }) => !UNSIGNED.has(reason))
  return {
    verdicts: signed.length > 0 ? signed : verdicts,
    claims,
    msPerUnit: isLegacy ? 1 : 1000,
    isSigned: signed.length > 0
  }
}

const claimsOf = (token: string): Claims | null => {
  try {
    return decodeClaims(token)?.claims ?? decodeRelayToken(token).claims
  } catch (error) {
    if (error instanceof InvalidToken) return null
    throw error
  }
}

/** The check of the gateway; null without `API_SECRET`. */
const appCheck = (environment: Environment, errors: string[]) => {
  const { API_SECRET, API_SECRET_PREVIOUS } = readSettings(appSettings, environment, errors)
  if (API_SECRET === null) return null
  const keys = [API_SECRET, API_SECRET_PREVIOUS].filter((text) => text !== null).map(secretKey)
  return (token: string, nowMs: number): Reason | null => {
    try {
      new AppTokenVerifier(keys, { now: () => nowMs, cacheSize: 0 }).verify(token)
      return null
    } catch (error) {
      if (error instanceof ExpiredToken) return 'expired'
      if (error instanceof InvalidToken) return error.reason
      throw error
    }
  }
}

/** The relay's configuration; null if the environment has none. */
const relayOf = (environment: Environment, errors: string[]): RelayConfig | null => {
  if (!isGiven('REALTIME_HMAC_SECRET', environment) && !isGiven('RELAY_CONFIG', environment)) return null
  // Neither the strength of secrets nor the key of the publish API matters for a token.
  const withKey = {
    ...environment,
    NODE_ENV: 'development',
    ...(!isGiven('REALTIME_API_KEY', environment) && { REALTIME_API_KEY: '0123456789abcdef'.repeat(4) })
  }
  try {
    return relayConfig(withKey, (path) => readFileSync(path, 'utf8'))
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error
    errors.push(...error.errors)
    return null
  }
}

/** Why the relay would reject a connection with this token, as in `identify`. */
const connectionReason = async (
  token: string,
  { tokens, client }: RelayConfig,
  nowMs: number
): Promise<Reason | null> => {
  const checked = await signedClaims(token, tokens.connection, nowMs)
  if (typeof checked === 'string') return checked
  const claims = connectionClaims(checked, client.token)
  if (claims === null) return claimsRejection(checked, client.token)
  if (!client.insecure && hasEnded(checked, nowMs)) return 'expired'
  return claims.user === '' && client.disallowAnonymousConnectionTokens && !client.insecure ? 'no-user' : null
}

/** Why the relay would reject a subscription of the token's user to its channel, as in `checkSubscriptionToken`. */
const subscriptionReason = async (
  token: string,
  { tokens, client }: RelayConfig,
  nowMs: number
): Promise<Reason | null> => {
  const checked = await signedClaims(token, tokens.subscription, nowMs)
  if (typeof checked === 'string') return checked
  if (subscriptionClaims(checked, client.subscriptionToken) === null)
    return claimsRejection(checked, client.subscriptionToken)
  return hasEnded(checked, nowMs) ? 'expired' : null
}

const signedClaims = async (
  token: string,
  keys: RelayConfig['tokens']['connection'],
  nowMs: number
): Promise<Claims | Reason> => {
  let rejection: Reason = 'malformed'
  const check = new TokenChecks({ monotonicMs, log: { warn: () => undefined } }).build(keys)
  const checked = await check(token, nowMs, (reason) => {
    rejection = reason
  })
  return typeof checked === 'string' ? rejection : checked
}
