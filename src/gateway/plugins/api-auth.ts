import type { FastifyInstance, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import type { AccessLevel } from '../../shared/access-level.js'
import { type AppClaims, type AppTokenVerifier, isAdmin, userDetails } from '../../shared/app-token.js'
import { ExpiredToken, InvalidToken } from '../../shared/token-errors.js'
import { type Access, type AccessRules, MUTATING_METHODS } from '../access.js'
import type { AuditLog } from '../audit/audit-log.js'
import { GatewayError, type GatewayErrorCode } from '../errors.js'
import { foreignPageTest, type OriginRules } from '../http/request-origin.js'
import type { SecretPaths } from '../http/secret-paths.js'
import { appTokenCookie } from '../session/credentials.js'
import { isForBackend, isWebSocketRequest } from '../upstreams/upstream.js'

export interface ApiAuthOptions {
  /** False outside production: every request continues. */
  readonly enforced: boolean
  readonly access: AccessRules
  readonly tokens: AppTokenVerifier
  readonly audit: AuditLog
  /** For WebSockets, which browsers open from foreign pages too. */
  readonly origins: OriginRules
  /** Which paths the audit log must not contain. */
  readonly secretPaths: SecretPaths
  /** Null if no identity provider is configured. */
  readonly oidc: { addRevocationHook(app: FastifyInstance): void } | null
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The access level that the route states. */
    access?: AccessLevel
  }
}

interface Denial {
  readonly code: GatewayErrorCode
  /** For the audit log; the client receives only the code. */
  readonly reason: string
  /** Only claims with a valid signature. */
  readonly claims: AppClaims | null
}

/** Requires a verified token where the path and method need one. Only the cookie counts, never a header. */
export const apiAuth = fp<ApiAuthOptions>(
  async (app, { enforced, access: rules, tokens, audit, secretPaths, oidc, origins }) => {
    const isFromForeignPage = foreignPageTest(origins)
    // Before the token is checked: the token of a revoked session is no token.
    oidc?.addRevocationHook(app)
    app.addHook('onRequest', (request, _reply, done) => {
      if (!isForBackend(request)) return done()
      if (enforced && isWebSocketRequest(request) && isFromForeignPage(request))
        return done(reject(request, FOREIGN_PAGE, { audit, secretPaths }))
      // The requested path decides, because a parameter of the route may stand for a part of a strict or admin path.
      const access = (request.upstream?.access ?? rules).accessOf(request.path, request.routeOptions.config.access)
      const denial = checkToken(request, tokens) ?? checkRole(request, access)
      if (denial === null || !enforced || !isChecked(request, access)) return done()
      done(reject(request, denial, { audit, secretPaths }))
    })
  },
  { name: 'api-auth', fastify: '5.x', dependencies: ['csrf'] }
)

const FOREIGN_PAGE: Denial = { code: 'ORIGIN_REFUSED', reason: 'foreign-origin', claims: null }

/** Attaches the claims of a valid token, on every path and in every environment. Returns the reason if it is not valid. */
const checkToken = (request: FastifyRequest, tokens: AppTokenVerifier): Denial | null => {
  const cookie = appTokenCookie(request)
  if (cookie.kind === 'absent' || cookie.kind === 'unusable')
    return { code: 'UNAUTHENTICATED', reason: `token-${cookie.kind}`, claims: null }
  try {
    const { claims } = tokens.verify(cookie.token)
    if (cookie.kind === 'revoked') return { code: 'UNAUTHENTICATED', reason: 'token-revoked', claims }
    request.auth = claims
    return null
  } catch (error) {
    if (error instanceof ExpiredToken) return { code: 'TOKEN_EXPIRED', reason: 'token-expired', claims: error.claims }
    if (error instanceof InvalidToken) return { code: 'UNAUTHENTICATED', reason: `token-${error.reason}`, claims: null }
    throw error
  }
}

const reject = (
  request: FastifyRequest,
  { code, reason, claims }: Denial,
  { audit, secretPaths }: Pick<ApiAuthOptions, 'audit' | 'secretPaths'>
): GatewayError => {
  const isForbidden = code === 'FORBIDDEN' || code === 'ORIGIN_REFUSED'
  const headers = isForbidden ? {} : { 'www-authenticate': 'Bearer error="invalid_token"' }
  const error = new GatewayError(code, { headers })
  audit.record({
    event: isForbidden ? 'forbidden_access' : 'unauthorized_access',
    ip: request.clientAddress,
    resource: secretPaths.masked(request.path),
    method: request.method,
    status: error.statusCode,
    reason,
    user: claims === null ? null : userDetails(claims),
    requestId: request.id,
    userAgent: request.headers['user-agent'] ?? null
  })
  return error
}

/** A WebSocket counts as a write request. */
const isChecked = (request: FastifyRequest, access: Access): boolean =>
  access === 'mutations' ? MUTATING_METHODS.has(request.method) || isWebSocketRequest(request) : access !== 'public'

const checkRole = ({ auth }: FastifyRequest, access: Access): Denial | null =>
  access === 'admin' && auth !== null && !isAdmin(auth)
    ? { code: 'FORBIDDEN', reason: 'not-admin', claims: auth }
    : null
