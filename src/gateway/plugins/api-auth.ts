import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import type { AccessLevel } from '../../shared/access-level.js'
import { type AppTokenVerifier, isAdmin } from '../../shared/app-token.js'
import { RevokedToken } from '../../shared/token-errors.js'
import { type Access, type AccessRules, WRITE_METHODS } from '../access.js'
import type { AuditLog } from '../audit/audit-log.js'
import { GatewayError } from '../errors.js'
import { foreignPageTest, type OriginRules } from '../http/request-origin.js'
import type { SecretPaths } from '../http/secret-paths.js'
import type { RequestLimits } from '../limits/request-limits.js'
import type { AppSessionCookies } from '../session/app-session.js'
import { appTokenCookie, bearerToken } from '../session/credentials.js'
import { checkToken, type Rejection, recordRejection } from '../session/token-check.js'
import { isForBackend, isWebSocketRequest } from '../upstreams/upstream.js'

export interface ApiAuthOptions {
  /** False outside production: every request continues, except for WebSockets of foreign pages. */
  readonly enforced: boolean
  readonly access: AccessRules
  readonly tokens: AppTokenVerifier
  /** Whether tokens can be revoked. */
  readonly revocable: boolean
  readonly cookies: Pick<AppSessionCookies, 'clear'>
  readonly audit: AuditLog
  /** For WebSockets, which browsers open from foreign pages too. */
  readonly origins: OriginRules
  /** Which paths the audit log must not contain. */
  readonly secretPaths: SecretPaths
  /** Null if no limits are configured. */
  readonly requestLimits: Pick<RequestLimits, 'addUserHook'> | null
  /** Null if no identity provider is configured. */
  readonly oidc: { addRevocationHook(app: FastifyInstance): void } | null
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The access level that the route states. */
    access?: AccessLevel
  }
}

/** Requires a verified token where the path and method need one. Only the cookie counts, never a header. */
export const apiAuth = fp<ApiAuthOptions>(
  async (app, options) => {
    const { enforced, access: rules, tokens, revocable, cookies, audit, secretPaths, requestLimits, oidc } = options
    const isFromForeignPage = foreignPageTest(options.origins)
    // Before the token is checked: the token of a revoked session is no token.
    oidc?.addRevocationHook(app)
    app.addHook('onRequest', (request, reply, done) => {
      if (!isForBackend(request)) return done()
      if (isWebSocketRequest(request) && isFromForeignPage(request))
        return done(recordRejection(request, FOREIGN_PAGE, { audit, secretPaths }))
      if (revocable) removeRevokedToken(request, reply, { tokens, cookies })
      // The requested path decides, because a parameter of the route may stand for a part of a strict or admin path.
      const access = (request.upstream?.access ?? rules).accessOf(request.path, request.routeOptions.config.access)
      const rejection = checkToken(request, tokens) ?? checkRole(request, access)
      if (rejection === null || !enforced || !isChecked(request, access, rejection)) return done()
      done(recordRejection(request, rejection, { audit, secretPaths }))
    })
    // The user is known now.
    requestLimits?.addUserHook(app)
  },
  { name: 'api-auth', fastify: '5.x', dependencies: ['csrf'] }
)

const FOREIGN_PAGE: Rejection = { code: 'ORIGIN_REFUSED', reason: 'foreign-origin', claims: null }

/**
 * A revoked token is not forwarded, neither from the cookie nor from a Bearer header. A request that needs no token continues
 * without one. A Bearer token of another issuer is left to the backend.
 */
const removeRevokedToken = (
  request: FastifyRequest,
  reply: FastifyReply,
  { tokens, cookies }: Pick<ApiAuthOptions, 'tokens' | 'cookies'>
): void => {
  const cookie = appTokenCookie(request)
  const token = cookie.kind === 'token' ? cookie.token : cookie.kind === 'absent' ? bearerToken(request) : null
  if (token === null) return
  try {
    tokens.verify(token)
  } catch (error) {
    if (error instanceof GatewayError) request.appTokenCookie = { kind: 'unknown', token }
    if (!(error instanceof RevokedToken)) return
    request.appTokenCookie = { kind: 'revoked', token }
    if (cookie.kind === 'token') cookies.clear(reply)
  }
}

/**
 * A token that cannot be checked is rejected wherever it could be used, also for reads whose access the backend decides. A
 * WebSocket counts as a write request.
 */
const isChecked = (request: FastifyRequest, access: Access, { code }: Rejection): boolean =>
  access === 'write' && code !== 'REVOCATIONS_UNKNOWN'
    ? WRITE_METHODS.has(request.method) || isWebSocketRequest(request)
    : access !== 'public'

const checkRole = ({ auth }: FastifyRequest, access: Access): Rejection | null =>
  access === 'admin' && auth !== null && !isAdmin(auth)
    ? { code: 'FORBIDDEN', reason: 'not-admin', claims: auth }
    : null
