import { isObject } from '../../../shared/is-object.js'
import type { RejectionReason } from '../../../shared/token-errors.js'
import { jsonFromBytes } from '../codec/json.js'
import type { MaybePromise } from '../maybe-promise.js'
import { type ClaimRules, NO_OVERRIDE, type Override, type ServerSubscription, type TextPattern } from '../options.js'

// Interpretation of token claims. The signature was verified before.

export type Claims = Readonly<Record<string, unknown>>

/** `unavailable`: the keys could not be loaded, so the token cannot be checked now. The client may try again. */
export type CheckedToken = Claims | 'expired' | 'invalid' | 'unavailable'

/** Reasons of rejected tokens, for logs and metrics: those of the token check, and those of the core. */
export type TokenRejectionReason =
  | RejectionReason
  | 'expired'
  | 'revoked'
  | 'invalidations-unknown'
  | 'keys-unavailable'
  | 'missing'
  | 'bad-claims'
  | 'no-user'
  | 'other-user'
  | 'other-client'
  | 'other-channel'

export type TokenRejected = (reason: TokenRejectionReason) => void

/** Verifies signature and times. `rejected` is called if there are no claims. */
export type TokenCheck = (token: string, nowMs: number, rejected: TokenRejected) => MaybePromise<CheckedToken>

export interface ConnectionClaims {
  /** '' for an anonymous user. */
  readonly user: string
  /** Seconds since 1970, possibly with a fraction; 0 for never. */
  readonly expiresAt: number
  readonly info: string | null
  /** JSON text for requests to the backend. */
  readonly meta: string | null
  readonly subscriptions: ReadonlyMap<string, ServerSubscription>
}

export interface SubscriptionClaims extends ServerSubscription {
  readonly user: string
  readonly channel: string
  /** Client id; '' for any. */
  readonly client: string
  readonly expiresAt: number
}

const NO_TOKEN_CHANNELS: ReadonlyMap<string, ServerSubscription> = new Map()
const PLAIN: ServerSubscription = { info: null, data: null, override: NO_OVERRIDE }

/** Null if a claim is invalid. */
export const connectionClaims = (claims: Claims, rules: ClaimRules): ConnectionClaims | null => {
  const { exp, channel } = claims
  const user = userOf(claims, rules)
  if (user === null || !isFor(claims, rules)) return null
  // A subscription token is not valid for a connection.
  if (channel !== undefined && channel !== '') return null
  if (rules.expiryRequired && exp === undefined) return null
  const info = jsonClaim(claims, 'info')
  const subscriptions = serverSubscriptions(claims)
  const expiresAt = expiry(claims)
  if (info === undefined || subscriptions === null || expiresAt === null) return null
  const { meta = null } = claims
  return { user, expiresAt, info, meta: meta === null ? null : JSON.stringify(meta), subscriptions }
}

export const subscriptionClaims = (claims: Claims, rules: ClaimRules): SubscriptionClaims | null => {
  const { channel, client = '', exp } = claims
  const user = userOf(claims, rules)
  if (user === null || typeof channel !== 'string' || channel === '' || typeof client !== 'string') return null
  if (!isFor(claims, rules) || (rules.expiryRequired && exp === undefined)) return null
  const subscription = subscriptionOptions(claims)
  const expiresAt = expiry(claims)
  if (subscription === null || expiresAt === null) return null
  return { ...subscription, user, channel, client, expiresAt }
}

/** Why these claims are not valid. */
export const claimsRejection = ({ exp }: Claims, { expiryRequired }: ClaimRules): TokenRejectionReason =>
  expiryRequired && exp === undefined ? 'no-expiry' : 'bad-claims'

/** Why a token of another user is rejected: it may have no user at all. */
export const userRejection = ({ user }: ConnectionClaims | SubscriptionClaims): TokenRejectionReason =>
  user === '' ? 'no-user' : 'other-user'

/** '' if the claim is missing; null if it is not a user id. */
export const userOf = (claims: Claims, { userIdClaim }: ClaimRules): string | null => {
  const user = Object.hasOwn(claims, userIdClaim) ? claims[userIdClaim] : ''
  if (typeof user === 'string') return user
  // Numbers are common in claims of other systems. Above 2^53 different ids would be the same number.
  return userIdClaim !== 'sub' && Number.isSafeInteger(user) ? String(user) : null
}

const isFor = ({ aud, iss }: Claims, { audience, issuer }: ClaimRules): boolean => {
  const audiences: readonly unknown[] = Array.isArray(aud) ? aud : [aud]
  if (audience !== null && !audiences.some((each) => matches(each, audience))) return false
  return issuer === null || matches(iss, issuer)
}

const matches = (value: unknown, rule: string | TextPattern): boolean =>
  typeof rule === 'string' ? value === rule : typeof value === 'string' && rule.test(value)

/** `expire_at` overrides `exp` as the expiry of the connection. */
const expiry = ({ exp = 0, expire_at: expireAt }: Claims): number | null => {
  const at = expireAt === undefined ? exp : expireAt
  if (typeof at !== 'number' || !Number.isFinite(at)) return null
  return Math.max(at, 0)
}

/** Whether the `expire_at` of a valid token is in the past. */
export const hasEnded = ({ expire_at: expireAt }: Claims, nowMs: number): boolean =>
  typeof expireAt === 'number' && expireAt > 0 && expireAt * 1000 <= nowMs

const serverSubscriptions = ({ channels, subs }: Claims): ReadonlyMap<string, ServerSubscription> | null => {
  if (isObject(subs)) {
    const subscriptions = new Map<string, ServerSubscription>()
    for (const [channel, options] of Object.entries(subs)) {
      const subscription = options === null ? PLAIN : isObject(options) ? subscriptionOptions(options) : null
      if (subscription === null) return null
      subscriptions.set(channel, subscription)
    }
    return subscriptions
  }
  if (subs !== undefined && subs !== null) return null
  if (channels === undefined || channels === null) return NO_TOKEN_CHANNELS
  if (!Array.isArray(channels) || !channels.every((channel) => typeof channel === 'string')) return null
  return new Map(channels.map((channel: string) => [channel, PLAIN]))
}

const subscriptionOptions = (claims: Claims): ServerSubscription | null => {
  const info = jsonClaim(claims, 'info')
  const data = jsonClaim(claims, 'data')
  const override = readOverride(claims.override)
  return info === undefined || data === undefined || override === null ? null : { info, data, override }
}

const OVERRIDES = {
  presence: 'presence',
  join_leave: 'joinLeave',
  force_push_join_leave: 'forcePushJoinLeave',
  force_recovery: 'forceRecovery',
  force_positioning: 'forcePositioning'
} as const satisfies Record<string, keyof Override>

export const readOverride = (value: unknown): Override | null => {
  if (value === undefined || value === null) return NO_OVERRIDE
  if (!isObject(value)) return null
  const override: { -readonly [Name in keyof Override]: boolean } = {}
  for (const [name, option] of Object.entries(OVERRIDES)) {
    const setting = value[name]
    if (setting === undefined || setting === null) continue
    if (!isObject(setting)) return null
    const { value: isOn } = setting
    if (isOn !== undefined && isOn !== null && typeof isOn !== 'boolean') return null
    override[option] = isOn ?? false
  }
  return override
}

/** JSON text of `info` or of the base64 variant `b64info`; undefined if it is not JSON. */
const jsonClaim = (claims: Claims, name: 'info' | 'data'): string | null | undefined => {
  const encoded = claims[`b64${name}`]
  const value = claims[name]
  if (typeof encoded === 'string' && encoded !== '') return jsonFromBase64(encoded)
  if (encoded !== undefined && encoded !== null && encoded !== '') return undefined
  return value === undefined || value === null ? null : JSON.stringify(value)
}

const jsonFromBase64 = (encoded: string): string | undefined =>
  jsonFromBytes(Buffer.from(encoded, 'base64')) ?? undefined

/** Reports the rejected tokens of a client. */
export const tokenRejection =
  ({ context, transport }: TokenHolder): TokenRejected =>
  (reason) =>
    context.tokenRejected(reason, transport.address)

interface TokenHolder {
  readonly context: { readonly tokenRejected: (reason: TokenRejectionReason, address: string) => void }
  readonly transport: { readonly address: string }
}
