import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import type { Server } from 'node:http'
import { hostname } from 'node:os'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { Logger } from 'pino'
import { AddressSet } from '../shared/address.js'
import { monotonicMs as systemMonotonicMs } from '../shared/monotonic.js'
import { buildAdmin } from './admin/admin.js'
import { buildEngine } from './build-engine.js'
import type { RelayConfig } from './config.js'
import { conflator } from './core/conflate.js'
import { SHUTDOWN } from './core/disconnect.js'
import { Relay } from './core/relay.js'
import { type Admission, CountedAdmission } from './edge/admission.js'
import { Door } from './edge/door.js'
import { health } from './edge/health.js'
import { LimitedLog } from './edge/limited-log.js'
import { RelayMetrics } from './edge/metrics.js'
import { metricsRoute } from './edge/metrics-route.js'
import { Rejections } from './edge/rejections.js'
import { schemaFault } from './edge/schema-fault.js'
import { buildServer } from './edge/server.js'
import { Troubles } from './edge/troubles.js'
import type { Engine } from './engine/engine.js'
import { latest } from './latest.js'
import { replyHeadStart } from './reply-head-start.js'
import { tokenCheck } from './token-check.js'

const TICK_MS = 500
const SWEEP_MS = 10_000
/** A relay that shuts down closes so many clients a second, so that they do not all arrive elsewhere at once. */
const CLOSES_PER_SECOND = 500
const CLOSE_STEP_MS = 20

export interface RunningRelay {
  readonly relay: Relay
  readonly server: Server
  /** New rules for a relay that runs. */
  configure(config: RelayConfig): void
  /** Accepts nothing new, closes all clients over a while, and resolves when all are gone. */
  close(): Promise<void>
  /** Closes all clients and connections now. */
  cutOff(): void
}

export interface RelayAppParts {
  readonly log: Logger
  readonly version: string
  /** What operators know this node by. */
  readonly name?: string
  /** Without one it has the engine that its config says. */
  readonly engine?: Engine
  /** Who counts connections, where others count too. */
  readonly admission?: Admission
  /** How to read the numbers of all processes that share a port; it is given the way to this one's. */
  readonly metricsOfAll?: (own: () => Promise<string>) => () => Promise<string>
  readonly nowMs?: () => number
  readonly monotonicMs?: () => number
  /** Where the operators' page was built. */
  readonly adminPage?: string
}

/** `dist/relay-admin`, from `dist/src/relay`. */
const ADMIN_PAGE = fileURLToPath(new URL('../../relay-admin', import.meta.url))

/** All of the relay, not listening yet. */
export const buildRelay = async (initial: RelayConfig, parts: RelayAppParts): Promise<RunningRelay> => {
  const {
    log,
    version,
    name = 'relay',
    nowMs = Date.now,
    monotonicMs = systemMonotonicMs,
    adminPage = ADMIN_PAGE
  } = parts
  let config = initial
  const metrics: RelayMetrics = new RelayMetrics({
    version,
    stats: () => relay.stats(),
    nodes: () => engine.fleet.size,
    isEngineReady: () => engine.isReady
  })
  const engine: Engine = parts.engine ?? buildEngine(initial, { nowMs, monotonicMs, log, watch: metrics })
  const { broker, history, presence, fleet, userConnections } = engine
  const ownMetrics = (): Promise<string> => metrics.text()
  const readMetrics = parts.metricsOfAll?.(ownMetrics) ?? ownMetrics
  let metricsReaders = new AddressSet(initial.metricsAllow)
  const troubles = new Troubles({ nowMs, monotonicMs })
  const rejections = new Rejections(troubles, metrics, new LimitedLog(log))
  const current = (): RelayConfig => config
  const checkToken = latest(current, ({ client }) => tokenCheck(client.tokenHmacSecret, client.tokenHmacSecretPrevious))
  const checkSubscriptionToken = latest(current, ({ client }) =>
    tokenCheck(client.subscriptionTokenHmacSecret, client.subscriptionTokenHmacSecretPrevious)
  )
  const relay: Relay = new Relay(
    {
      broker,
      history,
      presence,
      fleet,
      userConnections,
      checkToken: (token, now, refused) => checkToken()(token, now, refused),
      checkSubscriptionToken: (token, now, refused) => checkSubscriptionToken()(token, now, refused),
      tokenRefused: (reason, address) => rejections.token(reason, address),
      nowMs,
      monotonicMs,
      random: Math.random,
      newId: randomUUID,
      schemaFault,
      afterReply: replyHeadStart(),
      atEndOfTurn: setImmediate,
      log,
      watch: metrics,
      name,
      version
    },
    initial,
    conflator
  )
  const door = new Door(initial, parts.admission ?? new CountedAdmission(monotonicMs), metrics, rejections)
  const configTimes = { startedAt: nowMs(), reloadedAt: null as number | null }
  const admin = buildAdmin({
    relay,
    config: current,
    configTimes,
    addressOf: (request) => door.addressOf(request),
    totals: () => metrics.totals(),
    troubles,
    // Nodes of several machines may all be called the same.
    nodeName: config.engine === 'redis' ? `${name} at ${hostname()} ${relay.context.node.slice(0, 4)}` : name,
    isEngineConnected: () => (config.engine === 'redis' ? engine.isReady : null),
    unexpectedError: () => metrics.unexpectedError('admin'),
    pageFolder: adminPage,
    log
  })
  await relay.start()
  const { server, drain } = buildServer({
    relay,
    door,
    config: current,
    log,
    watch: metrics,
    troubles,
    rejections,
    admin: admin.route,
    routes: {
      '/health': health(() => !door.isClosed && engine.isReady),
      '/metrics': metricsRoute(readMetrics, metrics.contentType, () => metricsReaders)
    }
  })
  const ticking = setInterval(() => relay.tick(), TICK_MS)
  const sweeping = setInterval(() => engine.sweep(), SWEEP_MS)
  // They keep no program alive that has nothing else to do.
  ticking.unref()
  sweeping.unref()

  return {
    relay,
    server,
    configure: (next) => {
      config = next
      configTimes.reloadedAt = nowMs()
      relay.configure(next)
      door.configure(next)
      metricsReaders = new AddressSet(next.metricsAllow)
    },
    close: async () => {
      door.close()
      admin.close()
      const closed = once(server, 'close')
      server.close()
      drain()
      await closeClients(relay, config.shutdownMs)
      await closed
      for (const timer of [ticking, sweeping]) clearInterval(timer)
      await fleet.close()
      await engine.close()
    },
    cutOff: () => {
      relay.endSome(Number.POSITIVE_INFINITY, SHUTDOWN)
      server.closeAllConnections()
    }
  }
}

/** Paced by the time that has passed, not by steps: a busy event loop must not leave clients without their close. */
const closeClients = async (relay: Relay, withinMs: number): Promise<void> => {
  const clients = relay.stats().clients
  const perMs = Math.max(clients / Math.max(withinMs, 1), CLOSES_PER_SECOND / 1000)
  const startedAt = performance.now()
  let closed = 0
  for (;;) {
    const due = Math.ceil((performance.now() - startedAt + CLOSE_STEP_MS) * perMs)
    if (relay.endSome(due - closed, SHUTDOWN) === 0) return
    closed = due
    await setTimeout(CLOSE_STEP_MS)
  }
}
