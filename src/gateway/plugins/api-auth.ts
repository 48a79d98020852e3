import type { FastifyInstance, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import type { AccessLevel } from '../../shared/access-level.js'
import { type AppTokenVerifier, isAdmin } from '../../shared/app-token.js'
import { type Access, type AccessRules, isApiPath, MUTATING_METHODS } from '../access.js'
import type { AuditLog } from '../audit/audit-log.js'
import type { SecretPaths } from '../http/secret-paths.js'
import { checkToken, type Denial, rejection } from '../session/token-check.js'

export interface ApiAuthOptions {
  /** False outside production: every request continues. */
  readonly enforced: boolean
  readonly access: AccessRules
  readonly tokens: AppTokenVerifier
  readonly audit: AuditLog
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

/** Requires a verified token where the path and method need one. Only the cookie counts, never a header. */
export const apiAuth = fp<ApiAuthOptions>(
  async (app, { enforced, access: rules, tokens, audit, secretPaths, oidc }) => {
    // Before the token is checked: the token of a revoked session is no token.
    oidc?.addRevocationHook(app)
    app.addHook('onRequest', (request, _reply, done) => {
      if (!isApiPath(request.path)) return done()
      // The requested path decides, because a parameter of the route may stand for a part of a strict or admin path.
      const access = rules.accessOf(request.path, request.routeOptions.config.access)
      const denial = checkToken(request, tokens) ?? checkRole(request, access)
      if (denial === null || !enforced || !isChecked(request, access)) return done()
      done(rejection(request, denial, { audit, secretPaths }))
    })
  },
  { name: 'api-auth', fastify: '5.x', dependencies: ['csrf'] }
)

const isChecked = ({ method }: FastifyRequest, access: Access): boolean =>
  access === 'mutations' ? MUTATING_METHODS.has(method) : access !== 'public'

const checkRole = ({ auth }: FastifyRequest, access: Access): Denial | null =>
  access === 'admin' && auth !== null && !isAdmin(auth)
    ? { code: 'FORBIDDEN', reason: 'not-admin', claims: auth }
    : null
