import type { FastifyRequest } from 'fastify'
import { type AppClaims, type AppTokenVerifier, userDetails } from '../../shared/app-token.js'
import { ExpiredToken, InvalidToken, RevokedToken } from '../../shared/token-errors.js'
import type { AuditLog } from '../audit/audit-log.js'
import { GatewayError, type GatewayErrorCode } from '../errors.js'
import type { SecretPaths } from '../http/secret-paths.js'
import { appTokenCookie } from './credentials.js'

/** Why a request is rejected. */
export interface Rejection {
  readonly code: GatewayErrorCode
  /** For the audit log; the client receives only the code. */
  readonly reason: string
  /** Only claims with a valid signature. */
  readonly claims: AppClaims | null
}

const REVOCATIONS_UNKNOWN: Rejection = { code: 'REVOCATIONS_UNKNOWN', reason: 'revocations-unknown', claims: null }

export interface RejectionOptions {
  readonly audit: AuditLog
  /** Which paths the audit log must not contain. */
  readonly secretPaths: SecretPaths
}

/**
 * Attaches the claims of a valid token, in every environment: of the cookie, or of the token that the session exchange has
 * obtained since. Returns the reason if it is not valid. Forward authentication uses it too.
 */
export const checkToken = (request: FastifyRequest, tokens: AppTokenVerifier): Rejection | null => {
  const { exchangedToken } = request
  const cookie = exchangedToken === null ? appTokenCookie(request) : ({ kind: 'token', token: exchangedToken } as const)
  if (cookie.kind === 'absent' || cookie.kind === 'unusable')
    return { code: 'UNAUTHENTICATED', reason: `token-${cookie.kind}`, claims: null }
  if (cookie.kind === 'unknown') return REVOCATIONS_UNKNOWN
  try {
    const { claims } = tokens.verify(cookie.token)
    if (cookie.kind === 'revoked') return { code: 'UNAUTHENTICATED', reason: 'token-revoked', claims }
    request.auth = claims
    return null
  } catch (error) {
    if (error instanceof GatewayError && error.code === REVOCATIONS_UNKNOWN.code) return REVOCATIONS_UNKNOWN
    if (error instanceof RevokedToken) return { code: 'UNAUTHENTICATED', reason: 'token-revoked', claims: error.claims }
    if (error instanceof ExpiredToken) return { code: 'TOKEN_EXPIRED', reason: 'token-expired', claims: error.claims }
    if (error instanceof InvalidToken) return { code: 'UNAUTHENTICATED', reason: `token-${error.reason}`, claims: null }
    throw error
  }
}

const isForbidden = (code: GatewayErrorCode): boolean => code === 'FORBIDDEN' || code === 'ORIGIN_REFUSED'

const headersOf = (code: GatewayErrorCode): Readonly<Record<string, string>> => {
  if (code === REVOCATIONS_UNKNOWN.code) return { 'retry-after': '1' }
  return isForbidden(code) ? {} : { 'www-authenticate': 'Bearer error="invalid_token"' }
}

/** Records the rejection in the audit log. Returns the error for the client. */
export const recordRejection = (
  request: FastifyRequest,
  { code, reason, claims }: Rejection,
  { audit, secretPaths }: RejectionOptions
): GatewayError => {
  const error = new GatewayError(code, { headers: headersOf(code) })
  // Not a decision about the client. The metrics count it.
  if (code === REVOCATIONS_UNKNOWN.code) return error
  audit.record({
    event: isForbidden(code) ? 'forbidden_access' : 'unauthorized_access',
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
