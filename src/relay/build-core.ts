import { randomUUID } from 'node:crypto'
import type { Logger } from 'pino'
import type { Tracer } from '../shared/tracing.js'
import { deliverySpans } from './api/publish-span.js'
import { schemaError } from './api/request.js'
import { buildEngine } from './build-engine.js'
import type { RelayConfig } from './config/config.js'
import { cachedPerConfig } from './config/reload.js'
import type { Clocks } from './core/clocks.js'
import type { Cluster, Engine } from './core/engine.js'
import { longestSilences } from './core/fan-out/channel-silence.js'
import { conflator } from './core/merging/keyed-list.js'
import { Relay } from './core/relay.js'
import type { TokenCheck } from './core/session/tokens.js'
import { delayPushAfterReply } from './delay-push-after-reply.js'
import { measuredCluster } from './metrics/measured-cluster.js'
import { RelayMetrics } from './metrics/relay-metrics.js'
import { HttpEventProxies } from './proxies/http-event-proxies.js'
import { TokenChecks } from './token-check.js'
import { RateLimitedLog, Rejections } from './transport/rejections.js'
import { Webhooks } from './webhooks/webhooks.js'

export interface CoreDependencies extends Clocks {
  /** The current configuration; replaced by a reload. */
  readonly config: () => RelayConfig
  readonly log: Logger
  readonly version: string
  readonly name: string
  /** Undefined for the engine that the configuration selects. */
  readonly engine: Engine | undefined
  /** Undefined for the timers of the process. */
  readonly setTimer: ((task: () => void, ms: number) => () => void) | undefined
  readonly hasProcessMetrics: boolean
  readonly tracer: Tracer | null
}

/** The relay without its servers. */
export interface RelayCore {
  readonly relay: Relay
  readonly engine: Engine
  readonly cluster: Cluster
  readonly metrics: RelayMetrics
  readonly rejections: Rejections
  readonly eventProxies: HttpEventProxies
  readonly webhooks: Webhooks
  /** Applies a new configuration. */
  configure(config: RelayConfig): void
  /** After all clients were closed. */
  close(): Promise<void>
}

/** Builds engine, metrics and relay. The relay is not started yet. */
export const buildCore = async (dependencies: CoreDependencies): Promise<RelayCore> => {
  const { config, log, version, name, nowMs, monotonicMs, hasProcessMetrics, tracer } = dependencies
  const metrics: RelayMetrics = new RelayMetrics({
    version,
    stats: () => relay.stats(),
    nodes: () => engine.cluster.size,
    isEngineReady: () => engine.isReady,
    hasProcessMetrics,
    silences: () => longestSilences(relay.openChannels.values(), monotonicMs())
  })
  const engine: Engine =
    dependencies.engine ?? (await buildEngine(config().engine, { nowMs, monotonicMs, log, metrics }))
  if (engine.isShared) metrics.addSharedEngine()
  metrics.configure(config())
  const cluster = measuredCluster(engine.cluster, monotonicMs, metrics)
  const limitedLog = new RateLimitedLog(log)
  const rejections = new Rejections(metrics, limitedLog, { nowMs, monotonicMs })
  const eventProxies = new HttpEventProxies(config().proxies, { nowMs, monotonicMs, metrics, log: limitedLog, tracer })
  const setTimer = dependencies.setTimer ?? systemTimer
  const webhooks = new Webhooks({
    states: engine.channelStates,
    send: (proxy, body) => eventProxies.sendStates(proxy, body),
    setTimer,
    log
  })
  const relay: Relay = new Relay(
    {
      ...storageOf(engine),
      cluster,
      eventProxies,
      ...tokenChecks(dependencies),
      tokenRejected: (reason, address) => rejections.token(reason, address),
      limitReached: (limit, who) => rejections.limit(limit, who),
      nowMs,
      monotonicMs,
      ...systemFunctions(),
      setTimer,
      log,
      metrics,
      traceDelivery: tracer === null ? null : deliverySpans(tracer),
      name,
      version
    },
    config()
  )
  return {
    relay,
    engine,
    cluster,
    metrics,
    rejections,
    eventProxies,
    webhooks,
    configure: (next) => {
      eventProxies.configure(next.proxies)
      webhooks.configure(next)
      relay.configure(next)
      metrics.configure(next)
    },
    close: async () => {
      await webhooks.close()
      eventProxies.close()
      await cluster.close()
      await engine.close()
    }
  }
}

/** The parts of the engine that the relay uses by itself. */
const storageOf = ({ broker, history, maps, presence, userConnections, userRates }: Engine) => ({
  broker,
  history,
  maps,
  presence,
  userConnections,
  userRates
})

const tokenChecks = ({
  config,
  monotonicMs,
  log
}: CoreDependencies): { readonly checkToken: TokenCheck; readonly checkSubscriptionToken: TokenCheck } => {
  const checks = new TokenChecks({ monotonicMs, log })
  const connection = cachedPerConfig(config, ({ tokens }) => checks.build(tokens.connection))
  const subscription = cachedPerConfig(config, ({ tokens }) => checks.build(tokens.subscription))
  return {
    checkToken: (token, now, rejected) => connection()(token, now, rejected),
    checkSubscriptionToken: (token, now, rejected) => subscription()(token, now, rejected)
  }
}

/** Functions of Node.js and of other folders that the core needs. They share no state. */
const systemFunctions = () => ({
  random: Math.random,
  newId: randomUUID,
  schemaError,
  conflator,
  delayPushAfterReply: delayPushAfterReply(),
  atEndOfTurn: setImmediate,
  processStats: () => ({ uptimeSeconds: process.uptime(), memoryBytes: process.memoryUsage.rss() })
})

const systemTimer = (task: () => void, ms: number): (() => void) => {
  const timer = setTimeout(task, ms).unref()
  return () => clearTimeout(timer)
}
