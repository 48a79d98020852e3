import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import type { AppTokenVerifier } from '../../shared/app-token.js'
import type { GatewayConfig } from '../config.js'
import { GatewayError } from '../errors.js'
import { LOGIN_PATH } from '../oidc/config.js'
import type { Backend, BackendMetrics } from '../proxy/backend.js'
import { type BackendResponse, createBackendCall } from '../proxy/backend-call.js'
import { isNoContent } from '../proxy/forward.js'
import { headersObject } from '../proxy/response-headers.js'
import { isClosed } from '../request-context.js'
import type { LocalHandler } from '../routes/mount.js'
import type { SessionCookies } from './app-session.js'
import { isRefusal, readLoginAnswer, type Session, startSession } from './app-session.js'
import { cookieOptions, cookieValues, setCookie } from './cookies.js'
import type { CsrfTokens } from './csrf-tokens.js'

type ProviderStep = (request: FastifyRequest, reply: FastifyReply) => Promise<void>

export interface SessionRouteParts {
  readonly config: GatewayConfig
  readonly log: Logger
  readonly backend: Backend
  readonly metrics: BackendMetrics
  readonly cookies: SessionCookies
  readonly tokens: AppTokenVerifier
  readonly csrfTokens: CsrfTokens
  /** Whose sessions end with a logout too, and where somebody signs in with a password in their place. */
  readonly provider: Record<'logout' | 'replaced', ProviderStep> | null
}

/** The routes of `/api/auth/` that are more than forwarded, because they make and end sessions. */
export const sessionRoutes = (parts: SessionRouteParts): ReadonlyMap<string, LocalHandler> => {
  const { backend, metrics, config } = parts
  const ask = createBackendCall({ backend, metrics, publicHost: config.publicHost })

  const login: LocalHandler = async (request, reply, body) => {
    rejectExchangeFields([...Object.keys(request.body as object), ...queryNames(request)])
    const answer = await ask(reply, body)
    const session = isSuccess(answer) ? sessionIn(answer, request) : null
    if (session !== null && startSession(parts, reply, session)) await parts.provider?.replaced(request, reply)
    const omit = session !== null && config.loginBodyToken === 'omit'
    return passOn(reply, omit ? { ...answer, body: withoutToken(answer.body) } : answer)
  }

  const sessionIn = (answer: BackendResponse, { id: requestId }: FastifyRequest): Session | null => {
    const json = jsonOf(answer)
    const { session, missing } = readLoginAnswer(json, Date.now())
    // A backend may refuse a login with status 200.
    if (session === null && !isRefusal(json))
      parts.log.warn({ requestId, status: answer.status, missing }, 'login response without a session')
    return session
  }

  const logout: LocalHandler = async (request, reply, body) => {
    // Signed out here whatever the backend says, or whether it says anything.
    parts.cookies.clear(reply)
    reply.header('cache-control', 'no-store')
    await parts.provider?.logout(request, reply)
    try {
      return passOn(reply, await ask(reply, body))
    } catch (error) {
      if (isClosed(reply.raw)) throw error
      parts.log.warn({ requestId: request.id, err: error }, 'the backend was not told of a logout')
      return { success: true }
    }
  }

  return new Map([
    ['POST /api/auth/login', login],
    ['POST /api/auth/backend-login', login],
    ['POST /api/auth/logout', logout],
    ['GET /api/auth/csrf-token', csrfToken(parts)],
    ['GET /api/auth/providers', providers(parts)]
  ])
}

// A login that carries these needs no password: it is the gateway's own, for somebody whom the identity provider vouched for.
const EXCHANGE_FIELDS: ReadonlySet<string> = new Set(['okta', 'groups'])

/** The schema refuses them as they are written; some backends do not mind how they are written. */
const rejectExchangeFields = (names: readonly string[]): void => {
  const details = names
    .filter((name) => EXCHANGE_FIELDS.has(name.trim().toLowerCase()))
    .map((name) => ({ path: `/${name}`, message: 'is not allowed here' }))
  if (details.length > 0) throw new GatewayError('VALIDATION_FAILED', { details })
}

/** Some backends read the query and the body as one. */
const queryNames = ({ raw }: FastifyRequest): string[] => [
  ...new URLSearchParams((raw.url ?? '').split('?').slice(1).join('?')).keys()
]

const csrfToken = ({ config, csrfTokens }: SessionRouteParts): LocalHandler => {
  const options = { ...cookieOptions(config.cookies), maxAge: csrfTokens.lifetimeSeconds }
  return (request, reply) => {
    // The same token again while it is good, so that tabs do not take each other's away.
    const [held, another] = cookieValues(request.headers.cookie, 'csrf_token')
    const token = held !== undefined && another === undefined && csrfTokens.isGood(held) ? held : csrfTokens.issue()
    setCookie(reply, 'csrf_token', token, options)
    return reply.header('cache-control', 'no-store').send({ success: true, csrfToken: token })
  }
}

/** For login pages: that there is a provider, and where one goes; which it is they learn there. */
const providers = ({ provider }: SessionRouteParts): LocalHandler => {
  const data = provider === null ? [] : [{ name: 'oidc', loginAt: LOGIN_PATH }]
  return (_request, reply) => reply.header('cache-control', 'no-store').send({ success: true, data })
}

const passOn = (reply: FastifyReply, { status, headers, body }: BackendResponse): FastifyReply => {
  // Sessions are nobody else's, whatever the backend says about keeping its answer.
  reply.header('cache-control', 'no-store')
  for (const [name, value] of Object.entries(headersObject(headers))) {
    // What was said here since the backend was asked stands too.
    if (name !== 'content-length' && !reply.hasHeader(name)) reply.header(name, value)
  }
  return body.length === 0 && isNoContent(status, 'POST')
    ? reply.code(204).removeHeader('content-type').send()
    : reply.code(status).send(body)
}

const isSuccess = ({ status }: Pick<BackendResponse, 'status'>): boolean => status >= 200 && status < 300

const jsonOf = ({ body }: BackendResponse): unknown => {
  try {
    return JSON.parse(body.toString())
  } catch {
    return null
  }
}

/** Only called for a body that was read as a session before. */
const withoutToken = (body: Buffer): Buffer => {
  const { data, ...rest } = JSON.parse(body.toString())
  const { token: _token, ...others } = data
  return Buffer.from(JSON.stringify({ ...rest, data: others }))
}
