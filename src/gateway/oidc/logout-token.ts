import { createRemoteJWKSet, customFetch, errors, type JWTPayload, jwtVerify } from 'jose'
import type { ProviderDiscovery, RelyingParty } from './client.js'
import { CLOCK_TOLERANCE_SECONDS, providerFetch } from './client.js'
import type { SessionName } from './cluster.js'
import type { OidcConfig } from './config.js'

/** The provider's word that somebody has signed out there. */
export interface LogoutToken {
  /** Whose sessions it ends. */
  readonly sessions: readonly SessionName[]
  readonly subject: string | null
  /** The token itself: it counts once. */
  readonly message: SessionName
}

/** Its message is for the log; whoever sent it learns only that it is not good. */
export class BadLogoutToken extends Error {}

const MAX_AGE_SECONDS = 5 * 60
const EVENT = 'http://schemas.openid.net/event/backchannel-logout'

// Those with a public key: with any other, whoever knows the client's secret could end sessions.
const ALGORITHMS = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519']

// The keys could not be had.
const WITHOUT_KEYS: ReadonlySet<string> = new Set(['ERR_JOSE_GENERIC', 'ERR_JWKS_TIMEOUT', 'ERR_JWKS_INVALID'])

/**
 * Reads a logout token. Throws `BadLogoutToken` for what is none of this provider, or none for us, and anything else where
 * nothing can be said of it at the moment: then the provider should send it again.
 */
export const logoutTokenReader = ({ clientId }: OidcConfig, discovery: ProviderDiscovery) => {
  // Asks for the keys again where a token names one that it does not know, every half minute at most.
  const keySets = new WeakMap<RelyingParty, ReturnType<typeof createRemoteJWKSet>>()

  return async (token: string): Promise<LogoutToken> => {
    const provider = await discovery.current()
    if (provider?.keysUrl == null) throw new Error('the identity provider is not known')
    const keys = keySets.get(provider) ?? createRemoteJWKSet(provider.keysUrl, { [customFetch]: providerFetch })
    keySets.set(provider, keys)
    try {
      const { payload } = await jwtVerify(token, keys, {
        issuer: provider.issuer,
        audience: clientId,
        algorithms: ALGORITHMS,
        clockTolerance: CLOCK_TOLERANCE_SECONDS,
        maxTokenAge: MAX_AGE_SECONDS,
        requiredClaims: ['iat', 'jti']
      })
      return contentOf(payload)
    } catch (error) {
      if (error instanceof BadLogoutToken) throw error
      if (error instanceof errors.JOSEError && !WITHOUT_KEYS.has(error.code)) throw new BadLogoutToken(error.code)
      throw new Error("the provider's keys cannot be had", { cause: error })
    }
  }
}

/** Throws for a good token that is something else, such as an ID token. */
const contentOf = ({ sub, sid, jti, events, nonce }: JWTPayload): LogoutToken => {
  const event = (events as Record<string, unknown> | null | undefined)?.[EVENT]
  if (typeof event !== 'object' || event === null || nonce !== undefined) throw new BadLogoutToken('no logout token')
  if (typeof jti !== 'string') throw new BadLogoutToken('no name of its own')
  const sessions = sessionsNamed(sid, sub)
  if (sessions.length === 0) throw new BadLogoutToken('names neither a session nor a subject')
  return { sessions, subject: sub ?? null, message: { kind: 'message', value: jti } }
}

/** One session at the provider where the token names it, else all of the person. */
const sessionsNamed = (sid: unknown, sub: unknown): SessionName[] => [
  ...(isName(sid) ? [{ kind: 'providerSession', value: sid } as const] : []),
  ...(isName(sub) ? [{ kind: isName(sid) ? 'unnamedOfSubject' : 'subject', value: sub } as const] : [])
]

const isName = (value: unknown): value is string => typeof value === 'string' && value !== ''
