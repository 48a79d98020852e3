import { createSecretKey, randomBytes } from 'node:crypto'
import cookie from '@fastify/cookie'
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import Fastify, {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyPluginCallback,
  LogController
} from 'fastify'
import type { Logger } from 'pino'
import { AppTokenVerifier } from '../shared/app-token.js'
import { keepAllHeaderLines } from '../shared/header-lines.js'
import { upgradeOptions } from '../shared/http-upgrade.js'
import { AddressSet } from '../shared/ip-address.js'
import { secretKey } from '../shared/jwt.js'
import { requestLogger } from '../shared/logger.js'
import { monotonicMs as systemMonotonicMs } from '../shared/monotonic.js'
import type { Tracer } from '../shared/tracing.js'
import { AccessRules } from './access.js'
import { API_DOCS_PATHS } from './api-docs/api-docs.js'
import { AuditLog } from './audit/audit-log.js'
import type { GatewayConfig } from './config.js'
import {
  checkedTables,
  configuredRoutes,
  type DeclaredRoutes,
  publicOperations
} from './custom-routes/custom-routes.js'
import type { GatewayErrorCode } from './errors.js'
import type { DatabaseHealth } from './health/database-health.js'
import { CookieSafeResponse } from './http/caching.js'
import { requestId } from './http/client-request.js'
import { clientErrorHandler, connectionErrors } from './http/connection-errors.js'
import { type DrainLimits, drainingResponse } from './http/draining-response.js'
import { errorSender } from './http/error-sender.js'
import { expectContinue } from './http/expect-continue.js'
import { KnownPaths } from './http/known-paths.js'
import { OpenReplies } from './http/open-replies.js'
import { MAX_URL_LENGTH, originForm, tooManyHeaderLines } from './http/request-target.js'
import { slowClients } from './http/slow-clients.js'
import { tracing } from './http/tracing.js'
import { MemoryLoginCounter } from './login-limit/login-counter.js'
import { GatewayMetrics } from './metrics.js'
import { OIDC_PATHS } from './oidc/config.js'
import type { SessionExchange } from './oidc/exchange.js'
import { apiAuth } from './plugins/api-auth.js'
import { canonicalPath } from './plugins/canonical-path.js'
import { csrf } from './plugins/csrf.js'
import { errorHandling } from './plugins/error-handling.js'
import { loginLimit } from './plugins/login-limit.js'
import { pipelinedRequests } from './plugins/pipelined-requests.js'
import { requestContext } from './plugins/request-context.js'
import { recordRequests, requestLog, trackRejected } from './plugins/request-log.js'
import { routes } from './plugins/routes.js'
import { securityHeaders, securityHeaderTable } from './plugins/security-headers.js'
import { sessionExchange } from './plugins/session-exchange.js'
import { openBackend } from './proxy/backend-pool.js'
import type { RedisTimeouts } from './redis-connection.js'
import { isRelayUpgrade } from './relay-proxy/relay-upgrades.js'
import { pathTemplate, type RouteTable } from './routes/tables/declare.js'
import { SessionCookies } from './session/app-session.js'
import { CsrfTokens } from './session/csrf-tokens.js'

/**
 * The steps that every request passes, in this order. Each declares the step before it as a dependency, so that the gateway
 * does not start with another order.
 */
export const CHAIN: readonly FastifyPluginCallback<GatewayServices>[] = [
  requestContext,
  requestLog,
  pipelinedRequests,
  errorHandling,
  securityHeaders,
  canonicalPath, // before any rule reads the path
  loginLimit,
  csrf,
  apiAuth,
  sessionExchange,
  routes
]

export interface GatewayParts {
  readonly log: Logger
  /** Replaces the configured routes. */
  readonly routes?: readonly RouteTable[]
  /** Replaces the exchange with the configured identity provider. */
  readonly exchange?: SessionExchange
  /** The clock of provider sessions, in milliseconds since 1970. */
  readonly now?: () => number
  readonly monotonicMs?: () => number
  readonly redisTimeouts?: RedisTimeouts
  /** Null if tracing is disabled. */
  readonly tracer?: Tracer | null
  /** For tests of the order. */
  readonly chain?: typeof CHAIN
}

export interface Gateway {
  readonly app: FastifyInstance
  readonly audit: AuditLog
  readonly openReplies: OpenReplies
  /** Fails the health checks and ends each keep-alive connection with its next response. */
  announceShutdown(): void
}

export const buildGatewayApp = async (
  config: GatewayConfig,
  { chain = CHAIN, tracer = null, ...parts }: GatewayParts
): Promise<Gateway> => {
  let isStopping = false
  const services = { ...(await openServices(config, parts)), isStopping: () => isStopping }
  const { audit, backend, database, openReplies, headerTable, sendError } = services

  const loggerInstance: FastifyBaseLogger = requestLogger(parts.log)
  const app = Fastify({
    ...serverOptions(config),
    loggerInstance,
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: 'requestId' }),
    // The router rejects these requests before any hook runs.
    frameworkErrors: (error, request, reply) => {
      trackRejected(reply, services)
      // Their bodies and framing have not been checked either.
      reply.headers(headerTable).headers({ 'x-request-id': request.id, connection: 'close' })
      sendError(tooManyHeaderLines(request.raw) ?? error, reply)
    },
    clientErrorHandler: clientErrorHandler(services)
  }).withTypeProvider<TypeBoxTypeProvider>()
  keepAllHeaderLines(app.server)

  // Without its hooks: `session/cookies.ts` parses only the cookies that a step reads.
  await app.register(cookie, { hook: false })
  await app.register(connectionErrors, services)
  // Before the chain, so that rejected requests have a span too.
  if (tracer !== null) await app.register(tracing, { tracer })
  await app.register(expectContinue)
  for (const step of chain) await app.register(step, services)
  await app.register(slowClients, services)

  app.addHook('onClose', async () => {
    await openReplies.closed()
    await Promise.all([backend.destroy(), database?.close()])
    await audit.close()
  })
  return {
    app,
    audit,
    openReplies,
    announceShutdown: () => {
      isStopping = true
      app.server.prependListener('request', (_request, response) => response.setHeader('connection', 'close'))
    }
  }
}

interface GatewayServices extends Awaited<ReturnType<typeof openServices>> {
  readonly isStopping: () => boolean
}

/** Libraries for services that are not configured are not loaded: they would double the memory of the process. */
const openServices = async (
  config: GatewayConfig,
  {
    log,
    routes,
    exchange,
    now = Date.now,
    monotonicMs = systemMonotonicMs,
    redisTimeouts
  }: Omit<GatewayParts, 'chain' | 'tracer'>
) => {
  const access = new AccessRules(config.access)
  const declared = routes === undefined ? await configuredRoutes(config) : checkedTables(routes)
  for (const { location, message } of declared.warnings) log.warn({ location }, message)
  const operations = publicOperations(declared, access)
  if (operations.length > 0) log.warn({ operations }, 'public operations of the OpenAPI document')
  const audit = await AuditLog.open({ file: config.audit.file, logger: log })
  const backend = openBackend(config.backend)
  const loginCounter = new MemoryLoginCounter({ windowMs: config.loginLimit.windowMs })
  const metrics = new GatewayMetrics({
    loginKeys: () => loginCounter.size,
    inFlight: () => backend.capacity.inFlight,
    auditFallback: () => audit.fallback,
    auditDropped: () => audit.dropped
  })
  // Generated at start: other gateways must not accept tokens of this gateway's development login.
  const developmentKey = config.production ? null : createSecretKey(randomBytes(32))
  const apiSecrets = [config.apiSecret, config.apiSecretPrevious].filter((secret) => secret !== null)
  const apiKeys = apiSecrets.map(secretKey)
  const tokens = new AppTokenVerifier(developmentKey === null ? apiKeys : [...apiKeys, developmentKey])
  const cookies = new SessionCookies(config.cookies)
  const countError = (code: GatewayErrorCode): void => metrics.rejected(code)
  const requestEnded = recordRequests(metrics)
  const oidc =
    config.oidc === null
      ? null
      : await (await import('./oidc/oidc.js')).openOidc({
          config: config.oidc,
          cookieConfig: config.cookies,
          loginFields: config.loginFields,
          log,
          backend,
          cookies,
          tokens,
          now,
          monotonicMs,
          redisTimeouts,
          count: (result) => metrics.exchanged(result)
        })

  return {
    access,
    config,
    log,
    audit,
    backend,
    cookies,
    countError,
    csrfTokens: new CsrfTokens(config.apiSecret, Date.now, config.apiSecretPrevious),
    database: config.databaseUrl === null ? null : await openDatabaseHealth(config.databaseUrl),
    developmentKey,
    exchange: exchange ?? oidc?.exchange ?? null,
    headerTable: await securityHeaderTable(config.headers),
    knownPaths: new KnownPaths(declaredPaths(declared), access.protectedPaths),
    loginCounter,
    metrics,
    oidc,
    openReplies: new OpenReplies((reply) => requestEnded(reply, true)),
    redisTimeouts,
    requestEnded,
    sendError: errorSender(countError),
    declared,
    tokens
  }
}

const openDatabaseHealth = async (url: string): Promise<DatabaseHealth> =>
  new (await import('./health/database-health.js')).DatabaseHealth(url)

const declaredPaths = ({ tables, description }: DeclaredRoutes): string[] => [
  ...tables.flatMap(({ rows }) => rows.map(({ path }) => pathTemplate(path))),
  ...(description?.paths.map(({ template }) => template) ?? []),
  '/api/dev-login',
  ...API_DOCS_PATHS,
  ...OIDC_PATHS
]

/** Twice the size of the largest body, so that the response also reaches clients that send a body a little too large. */
const drainLimits = ({ limits, clientRate }: GatewayConfig): DrainLimits => ({
  maxBytes: 2 * Math.max(limits.bodyBytes, limits.uploadBytes),
  maxMs: clientRate.windowMs
})

const serverOptions = (config: GatewayConfig) => {
  const trusted = new AddressSet(config.trustedProxies)
  return {
    genReqId: requestId,
    rewriteUrl: originForm,
    trustProxy: config.trustedProxies.length > 0 && ((address: string) => trusted.has(address)),
    bodyLimit: config.limits.bodyBytes,
    // As long as a complete URL: a request with a longer parameter would match the catch-all and bypass validation.
    routerOptions: { maxParamLength: MAX_URL_LENGTH },
    // HEAD is forwarded as HEAD.
    exposeHeadRoutes: false,
    // A request that arrives on an open connection during shutdown is still served.
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    requestTimeout: 300_000,
    keepAliveTimeout: 72_000,
    // The chain rejects requests without Host: an error response of Node would not have our headers.
    http: {
      headersTimeout: 15_000,
      maxHeaderSize: 16 * 1024,
      requireHostHeader: false,
      ServerResponse: drainingResponse(CookieSafeResponse, drainLimits(config)),
      ...(config.relay !== null && upgradeOptions(isRelayUpgrade))
    }
  } as const
}
