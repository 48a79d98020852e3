import { hostname } from 'node:os'
import type { Logger } from 'pino'
import { AddressSet } from '../shared/ip-address.js'
import type { Tracer } from '../shared/tracing.js'
import { type Admin, buildAdmin } from './admin/admin.js'
import { ApiDispatcher } from './api/dispatcher.js'
import { apiRoutes, serverApi } from './api/server-api.js'
import type { RelayCore } from './build-core.js'
import type { RelayConfig } from './config/config.js'
import { expectedTraffic } from './config/expected-traffic.js'
import { cachedPerConfig } from './config/reload.js'
import { type DeliveryProbe, deliveryRoute } from './delivery-probe.js'
import { ClientAdmission, type ConnectionCounter } from './transport/admission.js'
import { clientRoutes } from './transport/client-routes.js'
import { type HttpHandler, RequestErrors } from './transport/respond.js'
import { buildServer, healthRoute, metricsRoute, type RelayServer, type Routes, routesIf } from './transport/server.js'

export interface HandlerDependencies extends RelayCore {
  /** The current configuration; replaced by a reload. */
  readonly config: () => RelayConfig
  readonly configTimes: { readonly startedAt: number; reloadedAt: number | null }
  readonly connectionCounter: ConnectionCounter
  /** The node's name. */
  readonly name: string
  /** The folder of the built operators' page. */
  readonly adminPage: string
  readonly log: Logger
  readonly tracer: Tracer | null
}

export interface Handlers {
  readonly admission: ClientAdmission
  readonly api: HttpHandler
  readonly admin: Admin
}

/** Builds API and operators' page. The page adds surveys, so this precedes the start of the relay. */
export const buildHandlers = (dependencies: HandlerDependencies): Handlers => {
  const { config, configTimes, relay, engine, metrics, rejections, eventProxies, webhooks, name, log, tracer } =
    dependencies
  const admission = new ClientAdmission(config(), dependencies.connectionCounter, metrics, rejections)
  const dispatcher = new ApiDispatcher(relay, metrics, log)
  const api = serverApi({
    dispatcher,
    config: () => config().api,
    isDraining: () => admission.isClosed,
    keyRejected: (reason, request) => rejections.apiKey(reason, admission.addressOf(request)),
    failed: (error, traceId) => {
      metrics.unexpectedError('api')
      log.error({ err: error, source: 'api', ...(traceId !== null && { traceId }) }, 'request failed')
    },
    tracer
  })
  const admin = buildAdmin({
    relay,
    dispatcher,
    config,
    configTimes,
    expectedTraffic: () => expectedTraffic(config().channels),
    addressOf: (request) => admission.addressOf(request),
    totals: () => metrics.totals(),
    rejections,
    // Nodes on different machines may have the same name.
    nodeName:
      engine.isShared && config().nodeName === null ? `${name} at ${hostname()} ${relay.node.slice(0, 4)}` : name,
    isEngineConnected: () => (engine.isShared ? engine.isReady : null),
    proxies: () => eventProxies.statuses,
    waitingEvents: () => webhooks.countWaiting(),
    unexpectedError: () => metrics.unexpectedError('admin'),
    pageFolder: dependencies.adminPage,
    log
  })
  return { admission, api, admin }
}

export interface HttpDependencies extends HandlerDependencies, Handlers {
  readonly probe: DeliveryProbe
  /** Reads the metrics in the text format of Prometheus. */
  readonly readMetrics: () => Promise<string>
  readonly isStopping: () => boolean
}

export interface Servers {
  readonly external: RelayServer
  /** Null if the internal listener is not configured. */
  readonly internal: RelayServer | null
}

/** Builds the servers, not listening yet. With an internal listener, the routes that are not for clients are there. */
export const buildServers = (dependencies: HttpDependencies): Servers => {
  const { config, relay, metrics, rejections, admission, api, admin, log } = dependencies
  const errors = new RequestErrors(log, metrics)
  const responded = (path: string, method: string, status: number): void => metrics.httpResponded(path, method, status)
  const clients = clientRoutes({ relay, errors, admission, rejections, config })
  const methodRoutes = apiRoutes(api)
  const adminRoutes: Routes = { '/admin': admin.handle, '/admin/*': admin.handle }
  const monitoring = monitoringRoutes(dependencies)
  const isInternal = config().internalListen !== null
  const external = buildServer({
    errors,
    responded,
    routes: {
      ...clients.routes,
      ...routesIf(() => !isInternal || config().api.isExternal, methodRoutes),
      ...routesIf(() => !isInternal || config().isAdminExternal, adminRoutes),
      ...(isInternal ? {} : monitoring)
    },
    upgrades: clients.upgrades
  })
  if (!isInternal) return { external, internal: null }
  const internal = buildServer({
    errors,
    responded,
    routes: {
      ...routesIf(() => !config().api.isExternal, methodRoutes),
      ...routesIf(() => !config().isAdminExternal, adminRoutes),
      ...monitoring
    },
    upgrades: {}
  })
  return { external, internal }
}

const monitoringRoutes = ({ config, engine, metrics, probe, readMetrics, isStopping }: HttpDependencies): Routes => {
  const metricsReaders = cachedPerConfig(config, ({ metricsAllow }) => new AddressSet(metricsAllow))
  return {
    ...routesIf(() => config().endpoints.health, {
      '/health': healthRoute(() => !isStopping() && engine.isReady),
      '/health/delivery': deliveryRoute(probe)
    }),
    ...routesIf(() => config().endpoints.metrics, {
      '/metrics': metricsRoute(readMetrics, metrics.contentType, metricsReaders)
    })
  }
}
