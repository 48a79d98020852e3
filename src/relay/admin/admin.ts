import type { IncomingMessage } from 'node:http'
import type { Logger } from 'pino'
import type { ApiDispatcher } from '../api/dispatcher.js'
import type { RelayConfig } from '../config/config.js'
import type { ExpectedTraffic } from '../config/expected-traffic.js'
import { cachedPerConfig } from '../config/reload.js'
import type { Relay } from '../core/relay.js'
import type { SurveyResult } from '../core/survey.js'
import type { Totals } from '../metrics/relay-metrics.js'
import type { Rejections } from '../transport/rejections.js'
import { type HttpHandler, respond } from '../transport/respond.js'
import { type ChannelCounts, nodeChannel } from './channel-detail.js'
import { type ChannelTotals, nodeChannels } from './channel-list.js'
import { FigureCollector } from './collector.js'
import { type ConnectionQuery, nodeConnection, nodeConnections } from './connection-list.js'
import type { ConnectionDetail, ConnectionRow, FigureSample } from './contract.js'
import { type Diagnostics, nodeDiagnostics } from './diagnostics.js'
import { FigureHistory, FigureRecorder, type RecordedFigures } from './figure-history.js'
import { AdminCall, forwardedHttps, guarded } from './guard.js'
import { type ChunkRequest, NodeRows, type RowChunk } from './listing.js'
import { LiveStreams } from './live.js'
import { LoopDelay, type NodeCounts, nodeCounts } from './node-figures.js'
import { servePage } from './page.js'
import { adminRoutes } from './routes.js'
import { SessionKeys, Sessions, type SessionUpdate } from './sessions.js'
import { type Attempt, SignInLimiter, signIn } from './sign-in.js'

declare module '../core/survey.js' {
  // The surveys of the operators' page. Every node handles them.
  interface Surveys {
    readonly adminFigures: {
      readonly params: null
      readonly result: { readonly counts: NodeCounts; readonly diagnostics: Diagnostics }
    }
    /** A node announces the figures that it has recorded. */
    readonly adminRecorded: { readonly params: RecordedFigures; readonly result: null }
    /** The recorded figures of all nodes, as far as the node has them. */
    readonly adminHistory: { readonly params: null; readonly result: readonly FigureSample[] }
    /** Time of the oldest of them. */
    readonly adminHistoryStart: { readonly params: null; readonly result: number | null }
    readonly adminChannel: { readonly params: string; readonly result: ChannelCounts }
    readonly adminChannels: { readonly params: ChunkRequest; readonly result: RowChunk<ChannelTotals> }
    readonly adminConnection: { readonly params: ConnectionQuery; readonly result: ConnectionDetail | null }
    readonly adminConnections: { readonly params: ChunkRequest; readonly result: RowChunk<ConnectionRow> }
    readonly adminSession: { readonly params: SessionUpdate; readonly result: null }
    /** A sign-in attempt at `node`. */
    readonly adminAttempt: {
      readonly params: { readonly node: string; readonly attempt: Attempt }
      readonly result: null
    }
  }
}

export interface AdminDependencies {
  readonly relay: Relay
  readonly dispatcher: ApiDispatcher
  readonly config: () => RelayConfig
  readonly configTimes: { readonly startedAt: number; reloadedAt: number | null }
  readonly expectedTraffic: readonly ExpectedTraffic[]
  readonly addressOf: (request: IncomingMessage) => string
  readonly totals: () => Totals
  readonly rejections: Rejections
  /** The name of this node on the page. */
  readonly nodeName: string
  /** Null for the memory engine. */
  readonly isEngineConnected: () => boolean | null
  /** Counts an unexpected error. */
  readonly unexpectedError: () => void
  /** The folder of the built page. */
  readonly pageFolder: string
  readonly log: Logger
}

export interface Admin {
  readonly handle: HttpHandler
  close(): void
}

/** The operators' page: `/admin` and everything below it. Without a password these paths do not exist. */
export const buildAdmin = (dependencies: AdminDependencies): Admin => {
  const { relay, config, expectedTraffic, log } = dependencies
  const { cluster, node } = relay
  const { nowMs, monotonicMs } = relay.clocks
  const keys = cachedPerConfig(
    config,
    // With `insecure` the API key is random in every process and cannot be used as a shared secret.
    ({ adminPassword, api }) => new SessionKeys(adminPassword ?? '', api.insecure ? '' : api.key)
  )
  const isForwardedHttps = cachedPerConfig(config, ({ trustedProxies }) => forwardedHttps(trustedProxies))
  const limiter = new SignInLimiter(monotonicMs)
  const sessions = new Sessions({
    keys,
    nowMs,
    monotonicMs,
    announce: (update) => cluster.survey('adminSession', update)
  })
  const history = new FigureHistory()
  const collector = new FigureCollector({ cluster, history, expectedTraffic, nowMs, log })
  const streams = new LiveStreams(relay, sessions, collector)
  const surveyHandlers = addSurveyHandlers(dependencies, sessions, limiter, history)
  const recorder = startRecorder(dependencies, history)

  const page = servePage(dependencies.pageFolder)
  const routes = adminRoutes({
    ...dependencies,
    keys,
    sessions,
    streams,
    signIn: signIn({
      sessions,
      keys,
      password: () => config().adminPassword ?? '',
      limiter,
      isForwardedHttps: (request) => isForwardedHttps()(request),
      announce: (attempt) => void cluster.survey('adminAttempt', { node, attempt }),
      log
    })
  })
  const api = guarded(routes, { sessions, keys })

  const fail = (call: AdminCall, error: unknown): void => {
    dependencies.unexpectedError()
    log.error({ err: error }, 'admin request failed')
    if (call.response.headersSent) call.response.destroy()
    else call.reject(500, 'INTERNAL', 'Internal error. See the log of the relay.')
  }

  return {
    handle: (request, response, path) => {
      if (config().adminPassword === null) {
        request.resume()
        respond(response, 404)
        return
      }
      const call = new AdminCall(request, response, dependencies.addressOf(request))
      const handled = path.startsWith('/admin/api/') ? api(call, path) : page(call, path)
      if (handled instanceof Promise) handled.catch((error) => fail(call, error))
    },
    close: () => {
      streams.close()
      collector.stop()
      recorder.stop()
      surveyHandlers.close()
    }
  }
}

/** Coarser than for an open page, because it is always on. */
const RECORDED_LOOP_DELAY = { resolutionMs: 50, unusedMs: 30_000 }

const startRecorder = (dependencies: AdminDependencies, history: FigureHistory): { stop(): void } => {
  const { relay, config, nodeName, totals, log } = dependencies
  const { cluster, node } = relay
  const { nowMs } = relay.clocks
  const loopDelay = new LoopDelay(RECORDED_LOOP_DELAY)
  const onError = (error: unknown): void => log.error({ err: error }, 'admin figures not recorded')
  const recorder = new FigureRecorder({
    node,
    counts: () => nodeCounts(relay, nodeName, totals(), loopDelay),
    isEnabled: () => config().adminPassword !== null,
    nowMs,
    onRecorded: (recorded) => {
      history.add(recorded, nowMs())
      if (cluster.size > 1) cluster.survey('adminRecorded', recorded).catch(onError)
    },
    onError
  })
  recorder.start()
  return {
    stop: () => {
      recorder.stop()
      loopDelay.stop()
    }
  }
}

const FIGURES_CACHE_MS = 500
const LIVE_LOOP_DELAY = { resolutionMs: 20, unusedMs: 5000 }

/** Adds this node's handlers for the surveys of all nodes. */
const addSurveyHandlers = (
  dependencies: AdminDependencies,
  sessions: Sessions,
  limiter: SignInLimiter,
  history: FigureHistory
): { close(): void } => {
  const { relay, nodeName, totals } = dependencies
  const { surveyHandlers } = relay
  const { nowMs, monotonicMs } = relay.clocks
  const startedAt = monotonicMs()
  const loopDelay = new LoopDelay(LIVE_LOOP_DELAY)
  const channels = new NodeRows(({ search }) => nodeChannels(relay, search), monotonicMs)
  const connections = new NodeRows((filter) => nodeConnections(relay, nodeName, filter), monotonicMs)
  let figures: SurveyResult<'adminFigures'> | null = null
  surveyHandlers.set('adminFigures', () => {
    // Pages at several nodes survey within the same second.
    if (figures !== null && monotonicMs() - figures.counts.atMs < FIGURES_CACHE_MS) return figures
    figures = {
      counts: nodeCounts(relay, nodeName, totals(), loopDelay),
      diagnostics: nodeDiagnostics({ ...dependencies, startedAt })
    }
    return figures
  })
  surveyHandlers.set('adminRecorded', (recorded) => {
    history.add(recorded, nowMs())
    return null
  })
  surveyHandlers.set('adminHistory', () => history.samples(nowMs()))
  surveyHandlers.set('adminHistoryStart', () => history.oldest(nowMs()))
  surveyHandlers.set('adminChannel', (name) => nodeChannel(relay, name))
  surveyHandlers.set('adminConnection', (query) => nodeConnection(relay, nodeName, query))
  surveyHandlers.set('adminChannels', (request) => channels.chunk(request))
  surveyHandlers.set('adminConnections', (request) => connections.chunk(request))
  surveyHandlers.set('adminSession', (update) => {
    sessions.apply(update)
    return null
  })
  surveyHandlers.set('adminAttempt', ({ node, attempt }) => {
    if (node !== relay.node) limiter.count(attempt)
    return null
  })
  return {
    close: () => {
      loopDelay.stop()
      channels.close()
      connections.close()
    }
  }
}
