import type { FastifyInstance, FastifyRequest } from 'fastify'
import { type AppClaims, type AppTokenVerifier, isAdmin, userDetails } from '../../shared/app-token.js'
import { ExpiredToken, InvalidToken } from '../../shared/token-errors.js'
import { type Access, accessOf, isApiPath, MUTATING_METHODS } from '../access.js'
import type { AuditLog } from '../audit.js'
import type { GatewayConfig } from '../config.js'
import { GatewayError, type GatewayErrorCode } from '../errors.js'
import { sessionCookie } from '../session/credentials.js'
import { withoutPathSecret } from './request-log.js'

export interface ApiAuthParts {
  readonly config: GatewayConfig['auth']
  readonly tokens: AppTokenVerifier
  readonly audit: AuditLog
}

interface Denial {
  readonly code: GatewayErrorCode
  /** For the audit log; the caller learns only the code. */
  readonly reason: string
  /** Only ever claims whose signature was good. */
  readonly claims: AppClaims | null
}

/** Fourth: a verified token where the path and method ask for one. Only the cookie counts, never a header. */
export const apiAuth = (app: FastifyInstance, { config, tokens, audit }: ApiAuthParts): void => {
  app.addHook('onRequest', (request, _reply, done) => {
    if (!isApiPath(request.path)) return done()
    const access = accessOf(request.path)
    const denial = checkToken(request) ?? checkRole(request, access)
    if (denial === null || !config.enforced || !isChecked(request, access)) return done()
    done(deny(request, denial))
  })

  /** Attaches the claims of a good token, on every path and in every environment; says what is wrong with another. */
  const checkToken = (request: FastifyRequest): Denial | null => {
    const cookie = sessionCookie(request)
    if (cookie.kind !== 'token') return { code: 'UNAUTHENTICATED', reason: `token-${cookie.kind}`, claims: null }
    try {
      request.auth = tokens.verify(cookie.token).claims
      return null
    } catch (error) {
      if (error instanceof ExpiredToken) return { code: 'TOKEN_EXPIRED', reason: 'token-expired', claims: error.claims }
      if (error instanceof InvalidToken)
        return { code: 'UNAUTHENTICATED', reason: `token-${error.reason}`, claims: null }
      throw error
    }
  }

  const deny = (request: FastifyRequest, { code, reason, claims }: Denial): GatewayError => {
    const headers = code === 'FORBIDDEN' ? {} : { 'www-authenticate': 'Bearer error="invalid_token"' }
    const gatewayError = new GatewayError(code, { headers })
    audit.record({
      event: code === 'FORBIDDEN' ? 'forbidden_access' : 'unauthorized_access',
      ip: request.clientAddress,
      resource: withoutPathSecret(request.path),
      method: request.method,
      status: gatewayError.statusCode,
      reason,
      user: claims === null ? null : userDetails(claims),
      requestId: request.id,
      userAgent: request.headers['user-agent'] ?? null
    })
    return gatewayError
  }
}

const isChecked = ({ method }: FastifyRequest, access: Access): boolean =>
  access === 'mutations' ? MUTATING_METHODS.has(method) : access !== 'public'

const checkRole = ({ auth }: FastifyRequest, access: Access): Denial | null =>
  access === 'admin' && auth !== null && !isAdmin(auth)
    ? { code: 'FORBIDDEN', reason: 'not-admin', claims: auth }
    : null
