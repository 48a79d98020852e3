import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { createRemoteJWKSet, errors, type JWTPayload, jwtVerify } from 'jose'
import type { Logger } from 'pino'
import { Refusal } from '../errors.js'
import type { SessionName } from './ended-sessions.js'
import type { OidcConfig } from './oidc-config.js'
import type { ProviderDiscovery } from './provider-discovery.js'
import { CLOCK_TOLERANCE_SECONDS, type RelyingParty } from './relying-party.js'
import type { SessionMemory } from './session-memory.js'

export interface BackChannelLogoutParts {
  readonly log: Logger
  readonly config: OidcConfig
  readonly discovery: ProviderDiscovery
  readonly memory: SessionMemory
}

const BODY_BYTES = 16 * 1024
const MAX_AGE_SECONDS = 5 * 60
const EVENT = 'http://schemas.openid.net/event/backchannel-logout'

// Those with a public key: with any other, whoever knows the client's secret could end sessions.
const ALGORITHMS = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519']

// The keys could not be had, so nothing is known of the token: the provider should say it again.
const WITHOUT_KEYS: ReadonlySet<string> = new Set(['ERR_JOSE_GENERIC', 'ERR_JWKS_TIMEOUT', 'ERR_JWKS_INVALID'])

/** The provider's own word that somebody has signed out there, which comes without their browser. */
export const backChannelLogout = (app: FastifyInstance, path: string, parts: BackChannelLogoutParts): void => {
  const { log, memory } = parts
  const verify = verifier(parts)

  app.register(async (scope) => {
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser(
      'application/x-www-form-urlencoded',
      { parseAs: 'string', bodyLimit: BODY_BYTES },
      (_request, body, done) => done(null, new URLSearchParams(String(body)))
    )
    scope.post(path, { bodyLimit: BODY_BYTES }, async (request: FastifyRequest, reply: FastifyReply) => {
      const [token, another] = (request.body as URLSearchParams | undefined)?.getAll('logout_token') ?? []
      if (token === undefined || another !== undefined) throw refusal('is required, once')
      const claims = await verify(token)
      for (const name of namesIn(claims)) await memory.end(name)
      log.info({ requestId: request.id, subject: claims.sub }, 'the provider has ended a session')
      return reply.header('cache-control', 'no-store').send({ success: true })
    })
  })
}

const verifier = ({ config, discovery, log }: BackChannelLogoutParts) => {
  // Asks for the keys again where a token names one that it does not know, every half minute at most.
  const keySets = new WeakMap<RelyingParty, ReturnType<typeof createRemoteJWKSet>>()

  return async (token: string): Promise<JWTPayload> => {
    const provider = await discovery.current()
    if (provider?.keysUrl == null)
      throw new Refusal('INTERNAL', { cause: new Error('the identity provider is not known') })
    const keys = keySets.get(provider) ?? createRemoteJWKSet(provider.keysUrl)
    keySets.set(provider, keys)
    try {
      const { payload } = await jwtVerify(token, keys, {
        issuer: provider.issuer,
        audience: config.clientId,
        algorithms: ALGORITHMS,
        clockTolerance: CLOCK_TOLERANCE_SECONDS,
        maxTokenAge: MAX_AGE_SECONDS,
        requiredClaims: ['iat']
      })
      return payload
    } catch (error) {
      if (!(error instanceof errors.JOSEError) || WITHOUT_KEYS.has(error.code))
        throw new Refusal('INTERNAL', { cause: error })
      log.warn({ code: error.code }, 'a logout token was refused')
      throw refusal('is not a logout token of the provider')
    }
  }
}

/** Whose sessions a logout token ends. Throws for one that is something else, such as an ID token. */
const namesIn = ({ sub, sid, events, nonce }: JWTPayload): SessionName[] => {
  const event = (events as Record<string, unknown> | undefined)?.[EVENT]
  if (typeof event !== 'object' || event === null || nonce !== undefined) throw refusal('is not a logout token')
  if (typeof sid === 'string') return [{ kind: 'providerSession', value: sid }]
  if (typeof sub === 'string') return [{ kind: 'subject', value: sub }]
  throw refusal('names neither a session nor a subject')
}

const refusal = (message: string): Refusal =>
  new Refusal('VALIDATION_FAILED', { details: [{ path: '/logout_token', message }] })
