import cookie from '@fastify/cookie'
import Fastify, {
  type FastifyBaseLogger,
  type FastifyError,
  type FastifyInstance,
  type FastifyReply,
  LogController
} from 'fastify'
import type { Logger } from 'pino'
import { AddressSet } from '../shared/address.js'
import { AppTokenVerifier } from '../shared/app-token.js'
import { secretKey } from '../shared/jwt.js'
import { withoutRedaction } from '../shared/logger.js'
import { isApiPath } from './access.js'
import { AuditLog } from './audit/audit-log.js'
import type { GatewayConfig } from './config.js'
import { Refusal, refusalBody, refusalOf } from './errors.js'
import { apiAuth } from './hooks/api-auth.js'
import { requireCanonicalPath } from './hooks/canonical-path.js'
import { csrf } from './hooks/csrf.js'
import { limitInFlight } from './hooks/in-flight.js'
import { rateLimit } from './hooks/rate-limit.js'
import { securityHeaders } from './hooks/security-headers.js'
import { type SessionExchange, sessionExchange } from './hooks/session-exchange.js'
import { answerExpectation, answerUnreadable, refusalHeaders } from './http-edge.js'
import { openBackend } from './proxy/backend.js'
import { forwarder } from './proxy/forward.js'
import { mountRoutes } from './proxy/mount.js'
import { decorateRequestContext } from './request-context.js'
import { requestId } from './request-id.js'
import { logRequests } from './request-log.js'
import { KnownPaths } from './request-path.js'
import { catchAll, FORWARDED_METHODS } from './routes/catch-all.js'
import { developmentRoutes } from './routes/development.js'
import { healthRoutes } from './routes/health.js'
import { routeTables } from './routes/index.js'
import { securityHeaderTable } from './security-header-table.js'
import { CsrfTokens } from './session/csrf-tokens.js'
import { SessionCookies } from './session/session-cookies.js'
import { sessionRoutes } from './session/session-routes.js'

export interface GatewayParts {
  readonly log: Logger
  /** Where an identity provider is configured. */
  readonly provider?: SessionExchange
}

export interface Gateway {
  readonly app: FastifyInstance
  readonly audit: AuditLog
}

export const buildGateway = async (config: GatewayConfig, { log, provider }: GatewayParts): Promise<Gateway> => {
  const headerTable = securityHeaderTable(config.headers)
  const audit = await AuditLog.open({ file: config.audit.file, logger: log })
  const backend = openBackend(config.backend)
  const tokens = new AppTokenVerifier(secretKey(config.apiSecret))
  const csrfTokens = new CsrfTokens(config.apiSecret)
  const cookies = new SessionCookies(config.cookies)
  const trusted = new AddressSet(config.trustedProxies)

  const app: FastifyInstance = Fastify({
    loggerInstance: log as FastifyBaseLogger,
    // One line per request is ours: see request-log.ts.
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: 'requestId' }),
    // A logger for each request costs 9 µs, and most requests never use theirs: the few lines name the request themselves.
    childLoggerFactory: (logger) => logger,
    genReqId: requestId,
    trustProxy: config.trustedProxies.length > 0 && ((address) => trusted.has(address)),
    bodyLimit: config.limits.bodyBytes,
    routerOptions: { maxParamLength: 512 },
    // A HEAD is forwarded as what it is.
    exposeHeadRoutes: false,
    // A request that arrives on an open connection while we close is still served, with all that belongs to an answer.
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    requestTimeout: 300_000,
    keepAliveTimeout: 72_000,
    http: { headersTimeout: 15_000, maxHeaderSize: 16 * 1024 },
    frameworkErrors: (error, request, reply) => {
      // The router refuses these before any hook runs.
      reply.headers(headerTable).header('x-request-id', request.id)
      refuse(error, reply)
    },
    clientErrorHandler: answerUnreadable(headerTable)
  })
  answerExpectation(app.server, headerTable)
  decorateRequestContext(app)
  await app.register(cookie, { hook: false })

  // The order is the contract: headers, limit, CSRF, authentication, exchange. A path with two readings meets no rule.
  securityHeaders(app, headerTable)
  requireCanonicalPath(app, new KnownPaths(routeTables.flatMap(({ rows }) => rows.map(({ path }) => path))))
  await rateLimit(app, config.loginLimit)
  csrf(app, config.csrf, csrfTokens)
  apiAuth(app, { config: config.auth, tokens, audit })
  sessionExchange(app, provider ?? null)
  limitInFlight(app, config.limits.inFlight)
  logRequests(app, withoutRedaction(log))

  app.setErrorHandler((error: FastifyError, _request, reply) => refuse(error, reply))
  app.setNotFoundHandler((request, reply) => refuse(notFound(request.path), reply))

  mountRoutes(app, routeTables, {
    forward: forwarder(backend, config.publicHost),
    local: sessionRoutes({ config, backend, cookies, tokens, csrfTokens }),
    uploadBytes: config.limits.uploadBytes
  })
  developmentRoutes(app, config, cookies)
  healthRoutes(app)
  catchAll(app, config, backend)

  app.addHook('onClose', async () => {
    await backend.pool.destroy()
    await audit.close()
  })
  return { app, audit }
}

/** The only place where a refusal becomes an answer; the parser's own are in `http-edge.ts`. */
const refuse = (error: unknown, reply: FastifyReply): void => {
  const refusal = refusalOf(error)
  const requestId = reply.request.id
  if (refusal.statusCode >= 500) {
    reply.log.error({ requestId, code: refusal.code, err: refusal.cause ?? refusal }, 'refused')
  }
  reply.code(refusal.statusCode).headers(refusalHeaders(refusal)).send(refusalBody(refusal, requestId))
}

// Every `/api/` path has a route for the methods that are forwarded: what ends here has another method.
const notFound = (path: string): Refusal =>
  isApiPath(path)
    ? new Refusal('METHOD_NOT_ALLOWED', { headers: { allow: FORWARDED_METHODS.join(', ') } })
    : new Refusal('NOT_FOUND')
