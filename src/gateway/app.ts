import { createSecretKey, randomBytes } from 'node:crypto'
import cookie from '@fastify/cookie'
import Fastify, { type FastifyError, type FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import packageFile from '../../package.json' with { type: 'json' }
import { AddressSet } from '../shared/address.js'
import { AppTokenVerifier } from '../shared/app-token.js'
import { keepAllHeaderLines } from '../shared/header-lines.js'
import { secretKey } from '../shared/jwt.js'
import { withoutRedaction } from '../shared/logger.js'
import { monotonicMs as systemMonotonicMs } from '../shared/monotonic.js'
import { openApiDocument } from './api-docs/openapi.js'
import { API_DOCS_PATHS, apiDocs } from './api-docs/routes.js'
import { AuditLog } from './audit.js'
import type { GatewayConfig } from './config.js'
import { GatewayError, type GatewayErrorCode } from './errors.js'
import { backendReachable, healthRoutes } from './health.js'
import type { DatabaseHealth } from './health-database.js'
import { MemoryLoginCounter } from './login-counter.js'
import { backendMetrics, countRequests, GatewayMetrics } from './metrics.js'
import { OIDC_PATHS } from './oidc/config.js'
import type { SessionExchange } from './oidc/exchange.js'
import { apiAuth } from './plugins/api-auth.js'
import { KnownPaths, MAX_URL_LENGTH, originForm, requireCanonicalPath } from './plugins/canonical-path.js'
import { csrf } from './plugins/csrf.js'
import { answerExpectation, answerUnreadable, errorSender, rejectTunnels } from './plugins/error-handling.js'
import { expectContinue } from './plugins/expect-continue.js'
import { loginLimit } from './plugins/login-limit.js'
import { answerWatch, logRequests } from './plugins/request-log.js'
import { securityHeaders, securityHeaderTable } from './plugins/security-headers.js'
import { sessionExchange } from './plugins/session-exchange.js'
import { endSlowClients, OpenReplies } from './plugins/slow-clients.js'
import { openBackend } from './proxy/backend.js'
import { createForwarder } from './proxy/forward.js'
import { beginRequest, decorateRequestContext, requestId, tooManyHeaderLines } from './request-context.js'
import { catchAll } from './routes/catch-all.js'
import type { RouteTable } from './routes/declare.js'
import { developmentRoutes } from './routes/development.js'
import { routeTables } from './routes/index.js'
import { metricsRoute } from './routes/metrics.js'
import { mountRoutes } from './routes/mount.js'
import { sessionRoutes } from './routes/session.js'
import { SessionCookies } from './session/app-session.js'
import { CsrfTokens } from './session/csrf-tokens.js'

export interface GatewayParts {
  readonly log: Logger
  /** In place of the identity provider that is configured. */
  readonly provider?: SessionExchange
  /** What provider sessions take for the time, in milliseconds since 1970. */
  readonly now?: () => number
  readonly monotonicMs?: () => number
  /** For tests: how long a Redis command may take. */
  readonly redisCommandTimeoutMs?: number
}

export interface Gateway {
  readonly app: FastifyInstance
  readonly audit: AuditLog
  readonly openReplies: OpenReplies
}

/** What is not configured is not loaded either: libraries for services that nobody uses would be half of its memory. */
export const buildGateway = async (
  config: GatewayConfig,
  { log, provider, now = Date.now, monotonicMs = systemMonotonicMs, redisCommandTimeoutMs }: GatewayParts
): Promise<Gateway> => {
  const headerTable = securityHeaderTable(config.headers)
  const audit = await AuditLog.open({ file: config.audit.file, logger: log })
  const backend = openBackend(config.backend)
  const database = config.databaseUrl === null ? null : await databaseHealth(config.databaseUrl)
  // Made for this process: tokens of the development login must be worth nothing at any other gateway.
  const developmentKey = config.production ? null : createSecretKey(randomBytes(32))
  const apiSecrets = [config.apiSecret, config.apiSecretPrevious].filter((secret) => secret !== null)
  const apiKeys = apiSecrets.map(secretKey)
  const tokens = new AppTokenVerifier(developmentKey === null ? apiKeys : [...apiKeys, developmentKey])
  const csrfTokens = new CsrfTokens(config.apiSecret, Date.now, config.apiSecretPrevious)
  const cookies = new SessionCookies(config.cookies)
  const loginCounter = new MemoryLoginCounter({ windowMs: config.loginLimit.windowMs })
  const metrics = new GatewayMetrics({
    loginKeys: () => loginCounter.size,
    inFlight: () => backend.capacity.inFlight,
    auditFallback: () => audit.fallback,
    auditDropped: () => audit.dropped
  })
  const oidc =
    config.oidc === null
      ? null
      : await (await import('./oidc/oidc.js')).openOidc({
          config: config.oidc,
          cookieConfig: config.cookies,
          log,
          backend,
          cookies,
          tokens,
          now,
          monotonicMs,
          redisCommandTimeoutMs,
          count: (result) => metrics.exchanged(result)
        })
  const countError = (code: GatewayErrorCode): void => metrics.rejected(code)
  const sendError = errorSender(countError, log)
  const openReplies = new OpenReplies()
  const watch = answerWatch([logRequests(withoutRedaction(log)), countRequests(metrics)], openReplies)

  const app: FastifyInstance = Fastify({
    ...serverOptions(config),
    frameworkErrors: (error, request, reply) => {
      // The router refuses these before any hook runs.
      beginRequest(request, reply, watch)
      reply.headers(headerTable).header('x-request-id', request.id)
      sendError(tooManyHeaderLines(request) ?? error, reply)
    },
    clientErrorHandler: answerUnreadable(headerTable, openReplies, countError)
  })
  keepAllHeaderLines(app.server)
  answerExpectation(app.server, headerTable, countError)
  rejectTunnels(app.server, headerTable, openReplies, countError)
  await app.register(cookie, { hook: false })
  decorateRequestContext(app, watch)
  expectContinue(app)
  const stopRateChecks = endSlowClients(openReplies, config.clientRate, sendError)

  // The order is the contract: headers, limit, CSRF, authentication, exchange. A path with two readings meets no rule.
  securityHeaders(app, headerTable)
  const paths = [...declaredPaths(routeTables), '/api/dev-login', ...API_DOCS_PATHS, ...OIDC_PATHS]
  requireCanonicalPath(app, new KnownPaths(paths))
  await loginLimit(app, { config: config.loginLimit, counter: loginCounter, log, redisCommandTimeoutMs })
  csrf(app, config.csrf, csrfTokens)
  apiAuth(app, { config: config.auth, tokens, audit })
  sessionExchange(app, provider ?? oidc?.exchange ?? null)
  oidc?.addSessionHook(app)

  app.setErrorHandler((error: FastifyError, _request, reply) => sendError(error, reply))
  // Every `/api/` path has a route for each method that is served, so these are paths outside `/api/`.
  app.setNotFoundHandler((_request, reply) => sendError(new GatewayError('NOT_FOUND'), reply))

  const proxyMetrics = backendMetrics(metrics)
  const forward = createForwarder({ backend, publicHost: config.publicHost, headerTable, metrics: proxyMetrics, log })
  mountRoutes(app, routeTables, {
    forward,
    local: new Map([
      ...sessionRoutes({ config, log, backend, metrics: proxyMetrics, cookies, tokens, csrfTokens, provider: oidc }),
      ...healthRoutes({ database, backend: backendReachable(backend) })
    ]),
    uploadBytes: config.limits.uploadBytes
  })
  apiDocs(app, config.apiDocs ? openApiDocument(routeTables, packageFile) : null)
  developmentRoutes(app, { cookies, tokens, key: developmentKey })
  oidc?.addRoutes(app)
  metricsRoute(app, metrics, new AddressSet(config.metricsAllow))
  catchAll(app, config, backend, forward)
  if (config.webRoot !== null) await (await import('./static.js')).webRoot(app, config.webRoot)

  app.addHook('onClose', async () => {
    stopRateChecks()
    await Promise.all([backend.destroy(), database?.close()])
    await audit.close()
  })
  return { app, audit, openReplies }
}

const databaseHealth = async (url: string): Promise<DatabaseHealth> =>
  new (await import('./health-database.js')).DatabaseHealth(url)

const serverOptions = (config: GatewayConfig) => {
  const trusted = new AddressSet(config.trustedProxies)
  return {
    // Whoever has something to say is given the log. The framework's would cost a logger and two listeners per request.
    logger: false,
    genReqId: requestId,
    rewriteUrl: originForm,
    trustProxy: config.trustedProxies.length > 0 && ((address: string) => trusted.has(address)),
    bodyLimit: config.limits.bodyBytes,
    // As long as a whole address: a parameter that the router finds too long would fall through to the catch-all, unchecked.
    routerOptions: { maxParamLength: MAX_URL_LENGTH },
    // A HEAD is forwarded as what it is.
    exposeHeadRoutes: false,
    // A request that arrives on an open connection while we close is still served, with all that belongs to an answer.
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    requestTimeout: 300_000,
    keepAliveTimeout: 72_000,
    // Who sends no Host is refused by us: an answer of Node's own would carry none of our headers.
    http: { headersTimeout: 15_000, maxHeaderSize: 16 * 1024, requireHostHeader: false }
  } as const
}

const declaredPaths = (tables: readonly RouteTable[]): string[] =>
  tables.flatMap(({ rows }) => rows.map(({ path }) => path))
