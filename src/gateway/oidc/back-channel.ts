import type { FastifyInstance } from 'fastify'
import { createRemoteJWKSet, customFetch, errors, type JWTPayload, jwtVerify } from 'jose'
import { GatewayError } from '../errors.js'
import type { ProviderConfig } from './config.js'
import type { IdentityProvider } from './identity-providers.js'
import { CLOCK_TOLERANCE_SECONDS, type ProviderDiscovery, providerFetch, type RelyingParty } from './provider-client.js'
import type { ProviderSessionSelector } from './provider-session-store.js'

// OpenID Connect Back-Channel Logout 1.0: the provider posts a signed logout token when a user signs out there.

const MAX_BODY_BYTES = 16 * 1024

/** Registers `POST /auth/oidc/<id>/backchannel-logout`. It ends sessions of this provider only. */
export const addBackChannelLogout = (app: FastifyInstance, provider: IdentityProvider): void => {
  const { config, paths, discovery, store, log } = provider
  const verify = logoutTokenVerifier(config, discovery)

  const revokeSessions = async (token: string, requestId: string): Promise<void> => {
    const { sessions, subject, tokenId } = await verify(token)
    if (store.hasRevocation(tokenId)) throw new InvalidLogoutToken('used before')
    // At the same time, so that all sessions end here even if the other gateways cannot be notified.
    await Promise.all(sessions.map((selector) => store.revoke(selector)))
    // Last, so that the provider can repeat the request if the other gateways could not be notified.
    await store.revoke(tokenId)
    log.info({ requestId, subject }, 'provider session ended by back-channel logout')
  }

  app.register(async (scope) => {
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser(
      'application/x-www-form-urlencoded',
      { parseAs: 'string', bodyLimit: MAX_BODY_BYTES },
      (_request, body, done) => done(null, new URLSearchParams(String(body)))
    )
    scope.post(paths.backChannel, { bodyLimit: MAX_BODY_BYTES }, async (request, reply) => {
      const { body } = request
      const [token, duplicate] = body instanceof URLSearchParams ? body.getAll('logout_token') : []
      if (token === undefined || duplicate !== undefined) throw logoutTokenError('is required, once')
      try {
        await revokeSessions(token, request.id)
      } catch (error) {
        if (!(error instanceof InvalidLogoutToken)) throw new GatewayError('INTERNAL', { cause: error })
        log.warn({ requestId: request.id, reason: error.message }, 'invalid logout token')
        throw logoutTokenError('is not a valid logout token')
      }
      return reply.header('cache-control', 'no-store').send({ success: true })
    })
  })
}

const logoutTokenError = (message: string): GatewayError =>
  new GatewayError('VALIDATION_FAILED', { details: [{ path: '/logout_token', message }] })

/** The verified content of a logout token. */
interface LogoutToken {
  readonly sessions: readonly ProviderSessionSelector[]
  readonly subject: string | null
  /** The `jti`: a token is accepted once. */
  readonly tokenId: ProviderSessionSelector
}

/** The message goes to the log; the response only says that the token is invalid. */
class InvalidLogoutToken extends Error {}

const MAX_AGE_SECONDS = 5 * 60
const LOGOUT_EVENT = 'http://schemas.openid.net/event/backchannel-logout'

// Public-key algorithms only: with a symmetric one, everyone with the client secret could end sessions.
const ALGORITHMS = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519']

// Codes of jose for keys that could not be fetched.
const JWKS_FETCH_ERRORS: ReadonlySet<string> = new Set(['ERR_JOSE_GENERIC', 'ERR_JWKS_TIMEOUT', 'ERR_JWKS_INVALID'])

/**
 * Verifies logout tokens. Throws `InvalidLogoutToken` for an invalid token, and any other error if the token cannot be
 * verified at the moment, so that the provider sends it again.
 */
const logoutTokenVerifier = ({ clientId }: ProviderConfig, discovery: ProviderDiscovery) => {
  // jose fetches the keys again for an unknown key id, at most every 30 s.
  const keySets = new WeakMap<RelyingParty, ReturnType<typeof createRemoteJWKSet>>()

  return async (token: string): Promise<LogoutToken> => {
    const provider = await discovery.current()
    if (provider?.jwksUrl == null) throw new Error('the identity provider has not been discovered')
    const keys = keySets.get(provider) ?? createRemoteJWKSet(provider.jwksUrl, { [customFetch]: providerFetch })
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
      return readClaims(payload)
    } catch (error) {
      if (error instanceof InvalidLogoutToken) throw error
      if (error instanceof errors.JOSEError && !JWKS_FETCH_ERRORS.has(error.code))
        throw new InvalidLogoutToken(error.code)
      throw new Error("cannot fetch the provider's keys", { cause: error })
    }
  }
}

/** Rejects other valid tokens of the provider, such as ID tokens. */
const readClaims = ({ sub, sid, jti, events, nonce }: JWTPayload): LogoutToken => {
  if (!hasLogoutEvent(events) || nonce !== undefined) throw new InvalidLogoutToken('not a logout token')
  if (typeof jti !== 'string') throw new InvalidLogoutToken('no jti')
  const sessions = selectorsOf(sid, sub)
  if (sessions.length === 0) throw new InvalidLogoutToken('neither sid nor sub')
  return { sessions, subject: sub ?? null, tokenId: { kind: 'message', value: jti } }
}

const hasLogoutEvent = (events: unknown): boolean => {
  if (typeof events !== 'object' || events === null) return false
  const event: unknown = Reflect.get(events, LOGOUT_EVENT)
  return typeof event === 'object' && event !== null
}

/** With a `sid`: that session, and the subject's sessions whose `sid` is not known. Without: all sessions of the subject. */
const selectorsOf = (sid: unknown, sub: unknown): ProviderSessionSelector[] => [
  ...(isNonEmptyString(sid) ? [{ kind: 'sid', value: sid } as const] : []),
  ...(isNonEmptyString(sub)
    ? [{ kind: isNonEmptyString(sid) ? 'unnamedOfSubject' : 'subject', value: sub } as const]
    : [])
]

const isNonEmptyString = (value: unknown): value is string => typeof value === 'string' && value !== ''
