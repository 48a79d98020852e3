import { once } from 'node:events'
import type { Server } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { Logger } from 'pino'
import { monotonicMs as systemMonotonicMs } from '../shared/monotonic.js'
import type { Tracer } from '../shared/tracing.js'
import { buildCore, type RelayCore } from './build-core.js'
import { buildHandlers, buildServers, type HandlerDependencies } from './build-http.js'
import type { RelayConfig } from './config/config.js'
import { DISCONNECT_SHUTDOWN } from './core/codes.js'
import { ENGINE_SWEEP_MS, type Engine, MAP_EXPIRY_INTERVAL_MS } from './core/engine.js'
import type { Relay } from './core/relay.js'
import { CLOSES_PER_SECOND } from './core/session/paced-close.js'
import { DeliveryProbe, PROBE_TIMINGS, type ProbeTimings } from './delivery-probe.js'
import { type ConnectionCounter, LocalConnectionCounter } from './transport/admission.js'
import type { RelayServer } from './transport/server.js'

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
  /** Resolves when all connections are closed. Null or missing if the server accepts its connections itself. */
  readonly connectionsClosed?: () => Promise<void> | null
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

/** Builds the complete relay, not listening yet. */
export const buildRelayApp = async (
  initial: RelayConfig,
  dependencies: RelayAppDependencies
): Promise<RunningRelay> => {
  const {
    name = initial.nodeName ?? 'relay',
    nowMs = Date.now,
    monotonicMs = systemMonotonicMs,
    adminPage = ADMIN_PAGE,
    admission: connectionCounter = new LocalConnectionCounter(monotonicMs),
    probeTimings: timings = PROBE_TIMINGS,
    hasProcessMetrics = true,
    tracer = null,
    log
  } = dependencies
  let config = initial
  let isStopping = false
  const configTimes: HandlerDependencies['configTimes'] = { startedAt: nowMs(), reloadedAt: null }
  const { version, engine, setTimer } = dependencies
  const options = { config: () => config, log, version, name, nowMs, monotonicMs, engine, setTimer }
  const core = await buildCore({ ...options, hasProcessMetrics, tracer })
  const { relay, metrics } = core
  const parts = { ...options, ...core, configTimes, connectionCounter, adminPage, tracer }
  const handlers = buildHandlers(parts)
  await relay.start()
  core.webhooks.configure(config)
  const probe = new DeliveryProbe({ relay, engine: core.engine, metrics, log, timings })
  const readMetrics = dependencies.metricsOfAll?.(() => metrics.json()) ?? ((): Promise<string> => metrics.text())
  const servers = buildServers({ ...parts, ...handlers, probe, readMetrics, isStopping: () => isStopping })
  const all = servers.internal === null ? [servers.external] : [servers.external, servers.internal]
  const timers = [
    setInterval(() => relay.tick(), TICK_MS).unref(),
    setInterval(() => core.engine.sweep(), ENGINE_SWEEP_MS).unref(),
    setInterval(() => void relay.maps.expire(), MAP_EXPIRY_INTERVAL_MS).unref()
  ]
  const announceShutdown = (): void => {
    isStopping = true
    for (const server of all) server.announceShutdown()
  }
  return {
    relay,
    server: servers.external.server,
    internalServer: servers.internal?.server ?? null,
    configure: (next) => {
      config = next
      configTimes.reloadedAt = nowMs()
      core.configure(next)
      handlers.admission.configure(next)
    },
    announceShutdown,
    close: async () => {
      announceShutdown()
      handlers.admission.close()
      handlers.admin.close()
      const startedAt = monotonicMs()
      if (core.eventProxies.hasCalls) await settleCalls(core.eventProxies, config.shutdownMs)
      const remainingMs = Math.max(0, config.shutdownMs - (monotonicMs() - startedAt))
      await closeServers(all, relay, remainingMs, dependencies.connectionsClosed)
      for (const timer of timers) clearInterval(timer)
      probe.close()
      await core.close()
      await tracer?.close()
    },
    closeConnections: () => {
      relay.closeClients(Number.POSITIVE_INFINITY, DISCONNECT_SHUTDOWN)
      for (const { server } of all) server.closeAllConnections()
    }
  }
}

/** Lets the backend answer the clients that wait for it, within the time of the shutdown. */
const settleCalls = async (eventProxies: RelayCore['eventProxies'], withinMs: number): Promise<void> => {
  const abort = new AbortController()
  await Promise.race([
    eventProxies.settled(),
    delay(withinMs, undefined, { signal: abort.signal }).catch(() => undefined)
  ])
  abort.abort()
}

/** Closes the listeners and all clients. Resolves when no connection is left. */
const closeServers = async (
  servers: readonly RelayServer[],
  relay: Relay,
  withinMs: number,
  connectionsClosed?: () => Promise<void> | null
): Promise<void> => {
  const serversClosed = Promise.all(servers.map(({ server }) => once(server, 'close')))
  for (const { server, drain } of servers) {
    server.close()
    drain()
  }
  await closeClients(relay, withinMs)
  await (connectionsClosed?.() ?? serversClosed)
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
