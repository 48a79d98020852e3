import cookie from '@fastify/cookie'
import Fastify, {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyPluginCallback,
  type FastifyPluginOptions,
  type FastifyRegisterOptions,
  LogController
} from 'fastify'
import { keepAllHeaderLines } from '../shared/header-lines.js'
import { upgradeOptions } from '../shared/http-upgrade.js'
import { AddressSet } from '../shared/ip-address.js'
import { requestLogger } from '../shared/logger.js'
import { monotonicMs } from '../shared/monotonic.js'
import type { Tracer } from '../shared/tracing.js'
import type { AuditLog } from './audit/audit-log.js'
import type { GatewayConfig } from './config.js'
import { backendReachable } from './health/backend-health.js'
import { CookieSafeResponse } from './http/caching.js'
import { requestId } from './http/client-request.js'
import { connectionDrain } from './http/connection-drain.js'
import { clientErrorHandler, connectionErrors } from './http/connection-errors.js'
import { type DrainLimits, drainingResponse } from './http/draining-response.js'
import { expectContinue } from './http/expect-continue.js'
import type { OpenReplies } from './http/open-replies.js'
import { MAX_URL_LENGTH, originForm, tooManyHeaderLines } from './http/request-target.js'
import { slowClients } from './http/slow-clients.js'
import { tracing } from './http/tracing.js'
import { apiAuth } from './plugins/api-auth.js'
import { canonicalPath } from './plugins/canonical-path.js'
import { csrf } from './plugins/csrf.js'
import { errorHandling } from './plugins/error-handling.js'
import { loginLimit } from './plugins/login-limit.js'
import { pipelinedRequests } from './plugins/pipelined-requests.js'
import { requestContext } from './plugins/request-context.js'
import { requestLog, trackRejected } from './plugins/request-log.js'
import { type RoutesOptions, routes } from './plugins/routes.js'
import { securityHeaders } from './plugins/security-headers.js'
import { sessionExchange } from './plugins/session-exchange.js'
import { internalApi } from './revocation/internal-api.js'
import type { ForwardAuthOptions } from './routes/forward-auth.js'
import { type GatewayServices, openServices, type ServiceOptions } from './services.js'
import { appSignOut } from './session/app-sign-out.js'
import type { UpstreamWebSocketsOptions } from './upstream-routes/upstream-websockets.js'
import { upstreamConstraints } from './upstreams/route-constraint.js'
import { DEFAULT_UPSTREAM } from './upstreams/upstream-row.js'
import type { Upstreams } from './upstreams/upstreams.js'
import { LastingConnections } from './websockets/connections.js'
import { acceptUpgrades, type UpgradedConnections } from './websockets/upgrades.js'

type Step = (app: FastifyInstance, services: ChainServices) => PromiseLike<unknown>

interface ChainServices extends GatewayServices {
  readonly upgraded: UpgradedConnections
  readonly isStopping: () => boolean
}

/** A plugin, and the services that it uses as its options. */
const step =
  <Options extends FastifyPluginOptions>(
    plugin: FastifyPluginCallback<Options>,
    optionsOf: (services: ChainServices) => FastifyRegisterOptions<NoInfer<Options>>
  ): Step =>
  (app, services) =>
    app.register<Options>(plugin, optionsOf(services))

/**
 * The steps that every request passes, in this order. Each declares the step before it as a dependency, so that the gateway
 * does not start with another order.
 */
export const CHAIN: readonly Step[] = [
  step(requestContext, () => ({})),
  step(requestLog, ({ openReplies, requestEnded }) => ({ openReplies, requestEnded })),
  step(pipelinedRequests, () => ({})),
  step(errorHandling, ({ sendError }) => ({ sendError })),
  step(securityHeaders, ({ headerTable }) => ({ headerTable })),
  // Before any rule reads the path.
  step(canonicalPath, ({ config, knownPaths, upstreams }) => ({
    knownPaths,
    upstreams,
    authPaths: config.routes.authPaths
  })),
  step(loginLimit, ({ config: { loginLimit, csrf, redis }, loginCounter, requestLimits, log }) => ({
    ...loginLimit,
    csrf,
    redis,
    counter: loginCounter,
    requestLimits,
    log
  })),
  step(csrf, ({ config, csrfTokens }) => ({ ...config.csrf, csrfTokens })),
  step(apiAuth, ({ config, access, tokens, revocations, cookies, audit, secretPaths, requestLimits, oidc }) => ({
    ...config.auth,
    access,
    tokens,
    revocable: revocations !== null,
    cookies,
    audit,
    secretPaths,
    requestLimits,
    oidc,
    origins: config.csrf
  })),
  step(sessionExchange, ({ exchange, oidc }) => ({ exchange, oidc })),
  step(routes, (services) => routesOptions(services))
]

/** The options of the last step, by the routes that use them. */
const routesOptions = (services: ChainServices): RoutesOptions => {
  const { config, log, metrics, access, declared, headerTable, backend, database, oidc, tokens, cookies } = services
  const { callBackend, csrfTokens, developmentKey, openReplies, requestEnded } = services
  const { isStopping, revocations, upstreams } = services
  const { csrf, limits, metricsAllow, publicHost, relay, webRoot } = config
  const webSockets = upstreams && webSocketOptions(services, upstreams)
  return {
    declared,
    access,
    unknownPaths: config.routes.unknownPaths,
    uploadBytes: limits.uploadBytes,
    hasApiDocs: config.apiDocs,
    forwarder: { backend, publicHost, headerTable, metrics: metrics.ofBackend(DEFAULT_UPSTREAM), log },
    upstreams: upstreams && {
      upstreams,
      forwarder: { publicHost, headerTable, log },
      metricsOf: (name) => metrics.ofBackend(name),
      providerToken: async (request) => oidc?.accessToken(request) ?? null,
      webSockets
    },
    session: {
      config,
      log,
      backend,
      callBackend,
      cookies,
      tokens,
      revocations,
      csrfTokens,
      signOut: appSignOut({
        tokens,
        revocations,
        closeWebSockets: (token) => webSockets?.connections.endSessions(token),
        log
      }),
      oidc
    },
    health: {
      isStopping,
      database,
      backend: backendReachable(backend),
      upstreams: new Map(
        upstreams?.rows.map(({ name, backend, paths: [path] }) => [name, backendReachable(backend, { path })])
      )
    },
    development: { cookies, tokens, developmentKey, origins: csrf },
    metrics: { metrics, allowed: new AddressSet(metricsAllow) },
    relayProxy: relay && {
      relay,
      bodyBytes: limits.bodyBytes,
      log,
      metrics,
      openReplies,
      requestEnded,
      csrf,
      upgraded: services.upgraded
    },
    cspReports: config.headers.mode === 'standard' ? null : { log, monotonicMs },
    forwardAuth: config.forwardAuth ? forwardAuthOptions(services) : null,
    oidc,
    webRoot
  }
}

const forwardAuthOptions = ({
  config,
  tokens,
  revocations,
  audit,
  secretPaths,
  oidc
}: ChainServices): ForwardAuthOptions => ({
  trusted: new AddressSet(config.trustedProxies),
  tokens,
  revocations,
  audit,
  secretPaths,
  publicOrigin: config.csrf.publicOrigin,
  hasSignIn: oidc !== null
})

/** Null if no row takes WebSockets. */
const webSocketOptions = (services: ChainServices, upstreams: Upstreams): UpstreamWebSocketsOptions | null => {
  if (!upstreams.rows.some(({ websocket }) => websocket)) return null
  const { config, log, metrics, tokens, revocations, oidc, openReplies, requestEnded, upgraded } = services
  const { limits, publicHost, webSockets } = config
  return {
    upstreams,
    connections: new LastingConnections(webSockets, log, 'backend'),
    maxWebSockets: webSockets.connections,
    maxMessageBytes: limits.bodyBytes,
    publicHost,
    tokens,
    revocations,
    metrics,
    log,
    openReplies,
    requestEnded,
    upgraded,
    providerSession: async (request) => oidc?.providerSession(request) ?? null
  }
}

export interface GatewayParts extends ServiceOptions {
  /** Null if tracing is disabled. */
  readonly tracer?: Tracer | null
  /** For tests of the order. */
  readonly chain?: typeof CHAIN
}

export interface Gateway {
  readonly app: FastifyInstance
  /** The server of the internal API, which listens separately; null if it is not configured. It closes with `app`. */
  readonly internal: FastifyInstance | null
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
  const services = await openServices(config, parts)
  const { audit, backend, upstreams, countError, database, headerTable, openReplies, sendError } = services
  const { revocations, requestLimits } = services

  const loggerInstance: FastifyBaseLogger = requestLogger(parts.log)
  const app = Fastify({
    ...serverOptions(config, services),
    loggerInstance,
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: 'requestId' }),
    // The router rejects these requests before any hook runs.
    frameworkErrors: (error, request, reply) => {
      trackRejected(reply, services)
      // Their bodies and framing have not been checked either.
      reply.headers(headerTable).headers({ 'x-request-id': request.id, connection: 'close' })
      sendError(tooManyHeaderLines(request.raw) ?? error, reply)
    },
    clientErrorHandler: clientErrorHandler({ headerTable, openReplies, countError })
  })
  keepAllHeaderLines(app.server)

  // Without its hooks: `session/cookies.ts` parses only the cookies that a step reads.
  await app.register(cookie, { hook: false })
  await app.register(connectionErrors, { headerTable, openReplies, countError })
  // Before the chain, so that rejected requests have a span too.
  if (tracer !== null) await app.register(tracing, { tracer })
  await app.register(expectContinue)
  const upgraded = services.isUpgrade === null ? new WeakMap() : acceptUpgrades(app, openReplies, services.isUpgrade)
  for (const register of chain) await register(app, { ...services, upgraded, isStopping: () => isStopping })
  await app.register(slowClients, { ...config.clientRate, openReplies, sendError })
  await app.register(connectionDrain, { openReplies })

  const internal = openInternalApi(services, parts.now)
  app.addHook('onClose', async () => {
    await internal?.close()
    await openReplies.closed()
    revocations?.close()
    requestLimits?.close()
    const backends = [backend, ...(upstreams?.rows.map((row) => row.backend) ?? [])]
    await Promise.all([...backends.map((each) => each.destroy()), database?.close()])
    await audit.close()
  })
  return {
    app,
    internal,
    audit,
    openReplies,
    announceShutdown: () => {
      isStopping = true
      app.server.prependListener('request', (_request, response) => response.setHeader('connection', 'close'))
    }
  }
}

const openInternalApi = (
  { config: { revocation }, revocations, audit, sendError, log }: GatewayServices,
  now = Date.now
): FastifyInstance | null =>
  revocation === null || revocations === null
    ? null
    : internalApi({ config: revocation, revocations, audit, sendError, log, now })

/** Twice the size of the largest body, so that the response also reaches clients that send a body a little too large. */
const drainLimits = ({ limits, clientRate }: GatewayConfig): DrainLimits => ({
  maxBytes: 2 * Math.max(limits.bodyBytes, limits.uploadBytes),
  maxMs: clientRate.windowMs
})

const serverOptions = (
  config: GatewayConfig,
  { upstreams, isUpgrade }: Pick<GatewayServices, 'upstreams' | 'isUpgrade'>
) => {
  const trusted = new AddressSet(config.trustedProxies)
  return {
    genReqId: requestId,
    rewriteUrl: originForm,
    trustProxy: config.trustedProxies.length > 0 && ((address: string) => trusted.has(address)),
    bodyLimit: config.limits.bodyBytes,
    // As long as a complete URL: a request with a longer parameter would match the catch-all and bypass validation.
    routerOptions: {
      maxParamLength: MAX_URL_LENGTH,
      ...(upstreams !== null && { constraints: upstreamConstraints(upstreams.selector) })
    },
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
      ...(isUpgrade !== null && upgradeOptions(isUpgrade))
    }
  } as const
}
