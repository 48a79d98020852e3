import type { FastifyRequest } from 'fastify'
import { type AppClaims, type AppTokenVerifier, userDetails } from '../../shared/app-token.js'
import { ExpiredToken, InvalidToken } from '../../shared/token-errors.js'
import type { AuditLog } from '../audit/audit-log.js'
import { GatewayError, type GatewayErrorCode } from '../errors.js'
import type { SecretPaths } from '../http/secret-paths.js'
import { appTokenCookie } from './credentials.js'

/** Why a request is rejected. */
export interface Denial {
  readonly code: GatewayErrorCode
  /** For the audit log; the client receives only the code. */
  readonly reason: string
  /** Only claims with a valid signature. */
  readonly claims: AppClaims | null
}

export interface RejectionOptions {
  readonly audit: AuditLog
  /** Which paths the audit log must not contain. */
  readonly secretPaths: SecretPaths
}

/**
 * Attaches the claims of a valid token, in every environment: of the cookie, or of the token that the session exchange has
 * obtained since. Returns the reason if it is not valid. Forward authentication uses it too.
 */
export const checkToken = (request: FastifyRequest, tokens: AppTokenVerifier): Denial | null => {
  const { exchangedToken } = request
  const cookie = exchangedToken === null ? appTokenCookie(request) : ({ kind: 'token', token: exchangedToken } as const)
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

/** Records the rejection in the audit log. */
export const rejection = (
  request: FastifyRequest,
  { code, reason, claims }: Denial,
  { audit, secretPaths }: RejectionOptions
): GatewayError => {
  const headers = code === 'FORBIDDEN' ? {} : { 'www-authenticate': 'Bearer error="invalid_token"' }
  const error = new GatewayError(code, { headers })
  audit.record({
    event: code === 'FORBIDDEN' ? 'forbidden_access' : 'unauthorized_access',
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
