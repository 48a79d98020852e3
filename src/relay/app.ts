import { type KeyObject, randomBytes, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import type { Server } from 'node:http'
import { hostname } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { Logger } from 'pino'
import { AddressSet } from '../shared/address.js'
import { checkTimes, secretKey, signedClaims } from '../shared/jwt.js'
import { monotonicMs as systemMonotonicMs } from '../shared/monotonic.js'
import { ExpiredToken, InvalidToken } from '../shared/token-errors.js'
import { buildAdmin } from './admin/admin.js'
import { schemaError } from './api/request.js'
import type { RelayConfig } from './config/config.js'
import { cachedPerConfig } from './config/reload.js'
import type { Clocks } from './core/clocks.js'
import { DISCONNECT_SHUTDOWN } from './core/codes.js'
import { conflator } from './core/conflation.js'
import { Relay } from './core/relay.js'
import type { Claims, TokenCheck } from './core/tokens.js'
import type { Engine, EngineDependencies } from './engine/engine.js'
import { memoryEngine } from './engine/memory.js'
import { buildRedisEngine } from './engine/redis/build.js'
import { RelayMetrics } from './metrics/metrics.js'
import { ClientAdmission, type ConnectionCounter, LocalConnectionCounter } from './transport/admission.js'
import { LimitedLog, RecentRejections, Rejections } from './transport/rejections.js'
import { buildServer, health, metricsRoute } from './transport/server.js'

/** The name of a stream that is made anew. */
export const newEpoch = (): string => randomBytes(4).toString('hex')

/** The engine that the operator chose. */
export const buildEngine = (
  { engine, redisUrl, redisPrefix, presenceTtlMs }: RelayConfig,
  parts: EngineDependencies & Clocks
): Engine =>
  engine === 'redis' && redisUrl !== null
    ? buildRedisEngine({ url: redisUrl, prefix: redisPrefix, presenceTtlMs }, parts)
    : memoryEngine({ nowMs: parts.nowMs, monotonicMs: parts.monotonicMs, newEpoch })

// A token without an end is checked like one that ends late; whether it may have none is decided with its other claims.
const LATE_SECONDS = 9e10

/** Without a secret no token is good. Tokens of `previous` are accepted. */
export const tokenCheck = (secret: string, previous: string | null = null): TokenCheck => {
  if (secret === '') {
    return (_token, _nowMs, refused) => {
      refused('no-secret')
      return 'invalid'
    }
  }
  const keys = [secret, previous].filter((each) => each !== null).map(secretKey)
  return (token, nowMs, refused) => check(token, keys, nowMs, refused)
}

const check = (
  token: string,
  keys: readonly KeyObject[],
  nowMs: number,
  refused: (reason: string) => void
): Claims | 'expired' | 'invalid' => {
  try {
    const claims = claimsSignedByAny(token, keys)
    checkTimes(claims.exp === undefined ? { ...claims, exp: LATE_SECONDS } : claims, 'seconds', nowMs)
    return claims
  } catch (error) {
    if (error instanceof ExpiredToken) {
      refused('expired')
      return 'expired'
    }
    if (!(error instanceof InvalidToken)) throw error
    refused(error.reason)
    // The clocks differ, which passes: the client receives the error after which it asks for a new token and tries again.
    return error.reason === 'not-yet-valid' || error.reason === 'issued-in-future' ? 'expired' : 'invalid'
  }
}

const claimsSignedByAny = (token: string, keys: readonly KeyObject[]): Claims => {
  let fault = new InvalidToken('bad-signature')
  for (const key of keys) {
    try {
      return signedClaims(token, key)
    } catch (error) {
      // Only a wrong signature leaves open whether another key is the right one.
      if (!(error instanceof InvalidToken) || error.reason !== 'bad-signature') throw error
      fault = error
    }
  }
  throw fault
}

/** Longer than a client takes to read a reply, and too short for anybody to see. */
const REPLY_DELAY_MS = 5

/** Tasks of one turn of the event loop share a timer; each runs when its reply has been on its way for a while. */
export const delayPushAfterReply = (): ((task: () => void) => void) => {
  let ofThisTurn: (() => void)[] | null = null
  return (task) => {
    if (ofThisTurn !== null) {
      ofThisTurn.push(task)
      return
    }
    const tasks = [task]
    ofThisTurn = tasks
    setImmediate(() => {
      ofThisTurn = null
    })
    const run = (): void => {
      for (const each of tasks) each()
    }
    // A loop that was held up for longer still looks at its sockets once before the task.
    setTimeout(() => setImmediate(run), REPLY_DELAY_MS)
  }
}

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
  closeConnections(): void
}

export interface RelayAppDependencies {
  readonly log: Logger
  readonly version: string
  /** What operators know this node by. */
  readonly name?: string
  /** Without one it has the engine that its config says. */
  readonly engine?: Engine
  /** Who counts connections, where others count too. */
  readonly admission?: ConnectionCounter
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
export const buildRelay = async (initial: RelayConfig, parts: RelayAppDependencies): Promise<RunningRelay> => {
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
    nodes: () => engine.cluster.size,
    isEngineReady: () => engine.isReady
  })
  const engine: Engine = parts.engine ?? buildEngine(initial, { nowMs, monotonicMs, log, metrics })
  const { broker, history, presence, cluster, userConnections } = engine
  const ownMetrics = (): Promise<string> => metrics.text()
  const readMetrics = parts.metricsOfAll?.(ownMetrics) ?? ownMetrics
  let metricsReaders = new AddressSet(initial.metricsAllow)
  const recentRejections = new RecentRejections({ nowMs, monotonicMs })
  const rejections = new Rejections(recentRejections, metrics, new LimitedLog(log))
  const current = (): RelayConfig => config
  const checkToken = cachedPerConfig(current, ({ client }) =>
    tokenCheck(client.tokenHmacSecret, client.tokenHmacSecretPrevious)
  )
  const checkSubscriptionToken = cachedPerConfig(current, ({ client }) =>
    tokenCheck(client.subscriptionTokenHmacSecret, client.subscriptionTokenHmacSecretPrevious)
  )
  const relay: Relay = new Relay(
    {
      broker,
      history,
      presence,
      cluster,
      userConnections,
      checkToken: (token, now, refused) => checkToken()(token, now, refused),
      checkSubscriptionToken: (token, now, refused) => checkSubscriptionToken()(token, now, refused),
      tokenRejected: (reason, address) => rejections.token(reason, address),
      nowMs,
      monotonicMs,
      random: Math.random,
      newId: randomUUID,
      schemaError,
      delayPushAfterReply: delayPushAfterReply(),
      atEndOfTurn: setImmediate,
      log,
      metrics,
      name,
      version
    },
    initial,
    conflator
  )
  const admission = new ClientAdmission(
    initial,
    parts.admission ?? new LocalConnectionCounter(monotonicMs),
    metrics,
    rejections
  )
  const configTimes = { startedAt: nowMs(), reloadedAt: null as number | null }
  const admin = buildAdmin({
    relay,
    config: current,
    configTimes,
    addressOf: (request) => admission.addressOf(request),
    totals: () => metrics.totals(),
    troubles: recentRejections,
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
    door: admission,
    config: current,
    log,
    watch: metrics,
    troubles: recentRejections,
    rejections,
    admin: admin.route,
    routes: {
      '/health': health(() => !admission.isClosed && engine.isReady),
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
      admission.configure(next)
      metricsReaders = new AddressSet(next.metricsAllow)
    },
    close: async () => {
      admission.close()
      admin.close()
      const closed = once(server, 'close')
      server.close()
      drain()
      await closeClients(relay, config.shutdownMs)
      await closed
      for (const timer of [ticking, sweeping]) clearInterval(timer)
      await cluster.close()
      await engine.close()
    },
    closeConnections: () => {
      relay.endSome(Number.POSITIVE_INFINITY, DISCONNECT_SHUTDOWN)
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
    if (relay.endSome(due - closed, DISCONNECT_SHUTDOWN) === 0) return
    closed = due
    await delay(CLOSE_STEP_MS)
  }
}
