import type { KeyObject } from 'node:crypto'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { type AppClaims, type AppTokenVerifier, createAppToken } from '../../shared/app-token.js'
import { isObject } from '../../shared/is-object.js'
import { GatewayError } from '../errors.js'
import { foreignPageTest, type OriginRules } from '../http/request-origin.js'
import { acceptJsonOnly } from '../proxy/json-body.js'
import type { AppSessionCookies } from '../session/app-session.js'
import { appTokenCookie } from '../session/credentials.js'
import { readLoginResponse } from '../session/login-response.js'
import { rejectedRoute } from './mount-routes.js'

const LIFETIME_SECONDS = 8 * 60 * 60

const FORM = 'application/x-www-form-urlencoded'

const STUB_USER = { userId: 'dev', email: 'dev@localhost', displayName: 'Developer', role: 'admin' }

export interface DevelopmentRoutesOptions {
  readonly cookies: AppSessionCookies
  readonly tokens: AppTokenVerifier
  /** Signs the tokens of the development login; null in production. */
  readonly developmentKey: KeyObject | null
  readonly origins: OriginRules
}

/**
 * Stub routes for development without a backend and without hardware, at their own paths and under `/api`. They are not
 * registered in production.
 */
export const developmentRoutes = (
  app: FastifyInstance,
  { cookies, tokens, developmentKey: key, origins }: DevelopmentRoutesOptions
): void => {
  if (key === null) {
    rejectDevelopmentLogin(app)
    return
  }

  const login = (request: FastifyRequest, reply: FastifyReply): FastifyReply => {
    const user = { ...STUB_USER, ...emailIn(request.body) }
    const token = createAppToken(user, key, { format: 'jwt', lifetimeSeconds: LIFETIME_SECONDS })
    const answer = { success: true, data: { token, user, expiresIn: LIFETIME_SECONDS } }
    const { session } = readLoginResponse(answer, Date.now())
    if (session !== null) cookies.set(reply, session)
    return reply.header('cache-control', 'no-store').send(answer)
  }

  // The chain verifies tokens under `/api/` only.
  const signedIn = (request: FastifyRequest): AppClaims | null => {
    const cookie = appTokenCookie(request)
    if (cookie.kind !== 'token') return null
    try {
      return tokens.verify(cookie.token).claims
    } catch {
      return null
    }
  }

  app.register(async (scope) => {
    acceptJsonOnly(scope)
    // The login form of a page without scripts.
    scope.addContentTypeParser(FORM, { parseAs: 'string' }, (_request, body, done) =>
      done(null, Object.fromEntries(new URLSearchParams(String(body))))
    )
    const isFromForeignPage = foreignPageTest(origins)
    // The chain checks the origin of requests under `/api/` only.
    const onRequest = async (request: FastifyRequest): Promise<void> => {
      if (isFromForeignPage(request)) throw new GatewayError('ORIGIN_REFUSED')
    }
    for (const prefix of ['', '/api']) {
      scope.post(`${prefix}/dev-login`, { onRequest }, login)
      scope.get(`${prefix}/dev-user`, (request, reply) =>
        reply.send({ success: true, data: userOf(signedIn(request)) })
      )
      scope.get(`${prefix}/ble/scan`, (_request, reply) =>
        reply.send({ success: true, data: { scanning: false, adapter: null, devices: 0 } })
      )
      scope.get(`${prefix}/ble/status`, (_request, reply) => reply.send({ success: true, data: { devices: [] } }))
    }
  })
}

/** All credentials are accepted. The e-mail address is used, so that several developers can be told apart. */
const emailIn = (body: unknown): { email: string } | undefined => {
  const email = isObject(body) ? body.email : undefined
  return typeof email === 'string' && email !== '' ? { email } : undefined
}

const userOf = (auth: AppClaims | null) =>
  auth === null
    ? STUB_USER
    : {
        userId: auth.userId ?? null,
        email: auth.email ?? null,
        displayName: auth.displayName ?? null,
        role: auth.role ?? null
      }

/** The auth step does not check these paths, so in production they must not reach the backend either. */
const rejectDevelopmentLogin = (app: FastifyInstance): void => {
  for (const url of ['/dev-login', '/api/dev-login', '/api/dev-login/*']) {
    rejectedRoute(app, app.supportedMethods, url, () => new GatewayError('NOT_FOUND'))
  }
}
