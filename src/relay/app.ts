import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import type { Server } from 'node:http'
import { hostname } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { Logger } from 'pino'
import { AddressSet } from '../shared/ip-address.js'
import { monotonicMs as systemMonotonicMs } from '../shared/monotonic.js'
import type { Tracer } from '../shared/tracing.js'
import { buildAdmin } from './admin/admin.js'
import { ApiDispatcher } from './api/dispatcher.js'
import { apiRoutes, publishApi } from './api/publish-api.js'
import { deliverySpans } from './api/publish-span.js'
import { schemaError } from './api/request.js'
import { buildEngine } from './build-engine.js'
import type { RelayConfig } from './config/config.js'
import { EXPECTED_TRAFFIC } from './config/expected-traffic.js'
import { cachedPerConfig } from './config/reload.js'
import { DISCONNECT_SHUTDOWN } from './core/codes.js'
import type { Engine } from './core/engine.js'
import { longestSilences } from './core/fan-out/channel-silence.js'
import { conflator } from './core/merging/keyed-list.js'
import { Relay } from './core/relay.js'
import { CLOSES_PER_SECOND } from './core/session/paced-close.js'
import { delayPushAfterReply } from './delay-push-after-reply.js'
import { DeliveryProbe, deliveryRoute, PROBE_TIMINGS, type ProbeTimings } from './delivery-probe.js'
import { measuredCluster } from './metrics/measured-cluster.js'
import { RelayMetrics } from './metrics/relay-metrics.js'
import { TokenChecks } from './token-check.js'
import { ClientAdmission, type ConnectionCounter, LocalConnectionCounter } from './transport/admission.js'
import { clientRoutes } from './transport/client-routes.js'
import { RateLimitedLog, Rejections } from './transport/rejections.js'
import { RequestErrors } from './transport/respond.js'
import { buildServer, healthRoute, metricsRoute, type Routes, routesIf } from './transport/server.js'

export interface RelayAppDependencies {
  readonly log: Logger
  readonly version: string
  /** The node's name on the operators' page. */
  readonly name?: string
  /** By default the engine that the configuration selects. */
  readonly engine?: Engine
  /** By default connections are counted in this process. */
  readonly admission?: ConnectionCounter
  /** Given a reader of this process's metrics, returns a reader for the metrics of all processes that share the port. */
  readonly metricsOfAll?: (own: () => Promise<string>) => () => Promise<string>
  /** Resolves when all connections are closed. Needed if the server does not accept its connections itself. */
  readonly connectionsClosed?: () => Promise<void>
  readonly nowMs?: () => number
  readonly monotonicMs?: () => number
  /** Runs a task after a time, and returns a function that cancels it. */
  readonly setTimer?: (task: () => void, ms: number) => () => void
  /** The folder of the built operators' page. */
  readonly adminPage?: string
  readonly probeTimings?: ProbeTimings
  /** False for a relay that does not last as long as the process. */
  readonly hasProcessMetrics?: boolean
  /** Null if tracing is disabled. */
  readonly tracer?: Tracer | null
}

export interface RunningRelay {
  readonly relay: Relay
  readonly server: Server
  /** The server of the internal listener; null if it is not configured. */
  readonly internalServer: Server | null
  /** Applies a new configuration. */
  configure(config: RelayConfig): void
  /** Fails the health check and ends each HTTP connection with its next response. Clients and requests are still served. */
  announceShutdown(): void
  /** Stops accepting clients and requests, closes all clients at a limited rate, and resolves when all are closed. */
  close(): Promise<void>
  /** Closes all clients and connections at once. */
  closeConnections(): void
}

/** `dist/relay-admin`, from `dist/src/relay`. */
const ADMIN_PAGE = fileURLToPath(new URL('../../relay-admin', import.meta.url))
const TICK_MS = 500
const SWEEP_MS = 10_000

/** Builds the complete relay, not listening yet. */
export const buildRelayApp = async (
  initial: RelayConfig,
  dependencies: RelayAppDependencies
): Promise<RunningRelay> => {
  const {
    log,
    version,
    name = initial.nodeName ?? 'relay',
    nowMs = Date.now,
    monotonicMs = systemMonotonicMs,
    adminPage = ADMIN_PAGE,
    probeTimings = PROBE_TIMINGS,
    hasProcessMetrics = true,
    tracer = null
  } = dependencies
  let config = initial
  const currentConfig = (): RelayConfig => config

  const metrics: RelayMetrics = new RelayMetrics({
    version,
    stats: () => relay.stats(),
    nodes: () => engine.cluster.size,
    isEngineReady: () => engine.isReady,
    hasProcessMetrics,
    silences: () => longestSilences(relay.openChannels.values(), monotonicMs())
  })
  const engine: Engine = dependencies.engine ?? (await buildEngine(initial, { nowMs, monotonicMs, log, metrics }))
  if (engine.isShared) metrics.addSharedEngine()
  metrics.configure(initial)
  const { broker, history, presence, userConnections } = engine
  const cluster = measuredCluster(engine.cluster, monotonicMs, (op, seconds) => metrics.surveyed(op, seconds))

  const rejections = new Rejections(metrics, new RateLimitedLog(log), { nowMs, monotonicMs })
  const tokenChecks = new TokenChecks({ monotonicMs, log })
  const checkToken = cachedPerConfig(currentConfig, ({ tokens }) => tokenChecks.build(tokens.connection))
  const checkSubscriptionToken = cachedPerConfig(currentConfig, ({ tokens }) => tokenChecks.build(tokens.subscription))
  const relay: Relay = new Relay(
    {
      broker,
      history,
      presence,
      cluster,
      userConnections,
      checkToken: (token, now, rejected) => checkToken()(token, now, rejected),
      checkSubscriptionToken: (token, now, rejected) => checkSubscriptionToken()(token, now, rejected),
      tokenRejected: (reason, address) => rejections.token(reason, address),
      nowMs,
      monotonicMs,
      random: Math.random,
      newId: randomUUID,
      schemaError,
      conflator,
      delayPushAfterReply: delayPushAfterReply(),
      atEndOfTurn: setImmediate,
      setTimer: dependencies.setTimer ?? systemTimer,
      processStats: () => ({ uptimeSeconds: process.uptime(), memoryBytes: process.memoryUsage.rss() }),
      log,
      metrics,
      traceDelivery: tracer === null ? null : deliverySpans(tracer),
      name,
      version
    },
    initial
  )

  const connectionCounter = dependencies.admission ?? new LocalConnectionCounter(monotonicMs)
  const admission = new ClientAdmission(initial, connectionCounter, metrics, rejections)
  const dispatcher = new ApiDispatcher(relay, metrics, log)
  const api = publishApi({
    dispatcher,
    config: () => config.api,
    isDraining: () => admission.isClosed,
    keyRejected: (reason, request) => rejections.apiKey(reason, admission.addressOf(request)),
    failed: (error, traceId) => {
      metrics.unexpectedError('api')
      log.error({ err: error, source: 'api', ...(traceId !== null && { traceId }) }, 'request failed')
    },
    tracer
  })
  const configTimes: { startedAt: number; reloadedAt: number | null } = { startedAt: nowMs(), reloadedAt: null }
  const admin = buildAdmin({
    relay,
    dispatcher,
    config: currentConfig,
    configTimes,
    expectedTraffic: EXPECTED_TRAFFIC,
    addressOf: (request) => admission.addressOf(request),
    totals: () => metrics.totals(),
    rejections,
    // Nodes on different machines may have the same name.
    nodeName: engine.isShared && config.nodeName === null ? `${name} at ${hostname()} ${relay.node.slice(0, 4)}` : name,
    isEngineConnected: () => (engine.isShared ? engine.isReady : null),
    unexpectedError: () => metrics.unexpectedError('admin'),
    pageFolder: adminPage,
    log
  })
  let isStopping = false
  let metricsReaders = new AddressSet(initial.metricsAllow)
  const readMetrics = dependencies.metricsOfAll?.(() => metrics.json()) ?? ((): Promise<string> => metrics.text())

  await relay.start()
  const probe = new DeliveryProbe({ relay, engine, metrics, log, timings: probeTimings })
  const errors = new RequestErrors(log, metrics)
  const responded = (path: string, method: string, status: number): void => metrics.httpResponded(path, method, status)
  const clients = clientRoutes({ relay, errors, admission, rejections, config: currentConfig })
  const methodRoutes = apiRoutes(api)
  const adminRoutes: Routes = { '/admin': admin.handle, '/admin/*': admin.handle }
  const monitoringRoutes: Routes = {
    ...routesIf(() => config.endpoints.health, {
      '/health': healthRoute(() => !isStopping && engine.isReady),
      '/health/delivery': deliveryRoute(probe)
    }),
    ...routesIf(() => config.endpoints.metrics, {
      '/metrics': metricsRoute(readMetrics, metrics.contentType, () => metricsReaders)
    })
  }
  const isInternal = initial.internalListen !== null
  const external = buildServer({
    errors,
    responded,
    routes: {
      ...clients.routes,
      ...routesIf(() => !isInternal || config.api.isExternal, methodRoutes),
      ...routesIf(() => !isInternal || config.isAdminExternal, adminRoutes),
      ...(isInternal ? {} : monitoringRoutes)
    },
    upgrades: clients.upgrades
  })
  const internal = isInternal
    ? buildServer({
        errors,
        responded,
        routes: {
          ...routesIf(() => !config.api.isExternal, methodRoutes),
          ...routesIf(() => !config.isAdminExternal, adminRoutes),
          ...monitoringRoutes
        },
        upgrades: {}
      })
    : null
  const servers = internal === null ? [external] : [external, internal]
  const ticking = setInterval(() => relay.tick(), TICK_MS).unref()
  const sweeping = setInterval(() => engine.sweep(), SWEEP_MS).unref()

  const announceShutdown = (): void => {
    isStopping = true
    for (const server of servers) server.announceShutdown()
  }

  return {
    relay,
    server: external.server,
    internalServer: internal?.server ?? null,
    configure: (next) => {
      config = next
      configTimes.reloadedAt = nowMs()
      relay.configure(next)
      admission.configure(next)
      metrics.configure(next)
      metricsReaders = new AddressSet(next.metricsAllow)
    },
    announceShutdown,
    close: async () => {
      announceShutdown()
      admission.close()
      admin.close()
      const serversClosed = Promise.all(servers.map(({ server }) => once(server, 'close')))
      for (const { server, drain } of servers) {
        server.close()
        drain()
      }
      await closeClients(relay, config.shutdownMs)
      await (dependencies.connectionsClosed?.() ?? serversClosed)
      clearInterval(ticking)
      clearInterval(sweeping)
      probe.close()
      await cluster.close()
      await engine.close()
      await tracer?.close()
    },
    closeConnections: () => {
      relay.closeClients(Number.POSITIVE_INFINITY, DISCONNECT_SHUTDOWN)
      for (const { server } of servers) server.closeAllConnections()
    }
  }
}

const systemTimer = (task: () => void, ms: number): (() => void) => {
  const timer = setTimeout(task, ms).unref()
  return () => clearTimeout(timer)
}

const CLOSE_STEP_MS = 20

/** Paced by elapsed time rather than by steps, so that a busy event loop does not leave clients without a close frame. */
const closeClients = async (relay: Relay, withinMs: number): Promise<void> => {
  const clients = relay.stats().clients
  const perMs = Math.max(clients / Math.max(withinMs, 1), CLOSES_PER_SECOND / 1000)
  const startedAt = performance.now()
  let closed = 0
  for (;;) {
    const due = Math.ceil((performance.now() - startedAt + CLOSE_STEP_MS) * perMs)
    if (relay.closeClients(due - closed, DISCONNECT_SHUTDOWN) === 0) return
    closed = due
    await delay(CLOSE_STEP_MS)
  }
}
