import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import type { AppTokenVerifier } from '../../shared/app-token.js'
import { jsonOrUndefined } from '../../shared/json-or-undefined.js'
import type { GatewayConfig } from '../config.js'
import { isClosed } from '../http/response-close.js'
import type { Oidc } from '../oidc/oidc.js'
import { type BackendResponse, type CallBackend, forwardedCall } from '../proxy/backend-call.js'
import type { Backend } from '../proxy/backend-pool.js'
import { isNoContent } from '../proxy/forward.js'
import { jsonBody } from '../proxy/json-body.js'
import { browserResponseHeaders, headersObject } from '../proxy/response-headers.js'
import {
  type AppSession,
  type AppSessionCookies,
  type StartAppSessionOptions,
  startAppSession
} from '../session/app-session.js'
import type { AppSignOut } from '../session/app-sign-out.js'
import { cookieOptions, cookieValues, setCookie } from '../session/cookies.js'
import { hasCredentials, isAnonymous } from '../session/credentials.js'
import type { CsrfTokens } from '../session/csrf-tokens.js'
import { checkLoginFields } from '../session/login-request.js'
import { isRejectedLogin, readLoginResponse, withoutCopies, withoutLoginToken } from '../session/login-response.js'
import type { LocalHandler } from './mount-routes.js'

export interface SessionRouteOptions {
  readonly config: Pick<
    GatewayConfig,
    'publicHost' | 'loginBodyToken' | 'loginFields' | 'loginRequestFields' | 'cookies'
  >
  readonly log: Logger
  readonly backend: Backend
  readonly callBackend: CallBackend
  readonly cookies: AppSessionCookies
  readonly tokens: AppTokenVerifier
  readonly revocations: StartAppSessionOptions['revocations']
  readonly csrfTokens: CsrfTokens
  readonly signOut: AppSignOut
  /** Ends provider sessions at a logout, and at a password login that replaces them. */
  readonly oidc: Pick<Oidc, 'choices' | 'onLogout' | 'onPasswordLogin'> | null
}

/** The handlers of the `/api/auth/` routes that start and end sessions. */
export const sessionRoutes = (options: SessionRouteOptions): ReadonlyMap<string, LocalHandler> => {
  const { config, backend } = options
  const callBackend = (reply: FastifyReply, anonymous: boolean): Promise<BackendResponse> =>
    options.callBackend(forwardedCall(reply, jsonBody(reply.request), { publicHost: config.publicHost, anonymous }))

  const login: LocalHandler = async (request, reply) => {
    checkLoginFields(request, config.loginRequestFields)
    const requestedAtMs = Date.now()
    const response = await callBackend(reply, false)
    const session = isSuccess(response) ? sessionIn(response, request) : null
    if (session !== null && (await startAppSession(options, reply, { ...session, requestedAtMs })))
      await options.oidc?.onPasswordLogin(request, reply)
    const isKept = session === null || config.loginBodyToken === 'keep'
    return passOn(reply, backend, isKept ? response : withoutToken(response, session.token))
  }

  const withoutToken = ({ status, headers, body }: BackendResponse, token: string): BackendResponse => ({
    status,
    // Some backends send it as `Authorization` too.
    headers: headers.filter((_part, index) => {
      const value = String(headers[index - (index % 2) + 1])
      return withoutCopies(value, token) === value
    }),
    body: Buffer.from(withoutLoginToken(body.toString(), config.loginFields, token))
  })

  const sessionIn = (response: BackendResponse, { id: requestId }: FastifyRequest): AppSession | null => {
    const json = jsonOf(response)
    const { session, missing } = readLoginResponse(json, Date.now(), config.loginFields)
    // A backend may reject a login with status 200.
    if (session === null && !isRejectedLogin(json))
      options.log.warn({ requestId, status: response.status, missing }, 'login response without a session')
    return session
  }

  const logout: LocalHandler = async (request, reply) => {
    // The browser is signed out even if the backend fails.
    options.cookies.clear(reply)
    await options.signOut(request)
    await options.oidc?.onLogout(request, reply)
    try {
      // No limit of attempts bounds logouts.
      return passOn(reply, backend, await callBackend(reply, isAnonymous(request)))
    } catch (error) {
      if (isClosed(reply.raw)) throw error
      options.log.warn({ requestId: request.id, err: error }, 'backend logout failed')
      return { success: true }
    }
  }

  return new Map([
    ['POST /api/auth/login', login],
    ['POST /api/auth/backend-login', login],
    ['POST /api/auth/logout', logout],
    ['GET /api/auth/csrf-token', csrfToken(options)],
    ['GET /api/auth/providers', providers(options)]
  ])
}

const csrfToken = ({ config, csrfTokens }: SessionRouteOptions): LocalHandler => {
  const options = { ...cookieOptions(config.cookies), maxAge: csrfTokens.lifetimeSeconds }
  return (request, reply) => {
    // A valid token is kept, so that tabs do not invalidate each other's.
    const [existing, conflicting] = cookieValues(request.headers.cookie, 'csrf_token')
    const isReusable = existing !== undefined && conflicting === undefined && csrfTokens.isValid(existing)
    const token = isReusable ? existing : csrfTokens.issue()
    setCookie(reply, 'csrf_token', token, options)
    return reply.send({ success: true, csrfToken: token })
  }
}

/** For login pages: where the sign-in at each provider starts. The only provider is not named. */
const providers = ({ oidc }: SessionRouteOptions): LocalHandler => {
  const data = oidc?.choices ?? []
  return (_request, reply) => reply.header('cache-control', 'no-store').send({ success: true, data })
}

const passOn = (reply: FastifyReply, backend: Backend, { status, headers, body }: BackendResponse): FastifyReply => {
  // Session responses are private. Caching headers of the backend are ignored.
  reply.header('cache-control', 'no-store')
  const passed = browserResponseHeaders(headers, backend, reply.getHeaders(), hasCredentials(reply.request))
  for (const [name, value] of Object.entries(headersObject(passed)))
    if (name !== 'content-length') reply.header(name, value)
  return body.length === 0 && isNoContent(status, 'POST')
    ? reply.code(204).removeHeader('content-type').send()
    : reply.code(status).send(body)
}

const isSuccess = ({ status }: Pick<BackendResponse, 'status'>): boolean => status >= 200 && status < 300

const jsonOf = ({ body }: BackendResponse): unknown => jsonOrUndefined(body.toString())
