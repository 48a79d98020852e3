import type { AdminSurveys } from './admin-surveys.js'
import { nodeChannel, nodeChannels } from './channel-list.js'
import { nodeConnection, nodeConnections } from './connection-list.js'
import type { ChannelRow, ConnectionRow } from './contract.js'
import type { AdminDependencies } from './dependencies.js'
import { nodeDiagnostics } from './diagnostics.js'
import type { FigureHistory } from './figure-history.js'
import { ListCache, type RowList } from './listing.js'
import { LoopDelay, type LoopDelayOptions, type NodeCounts, nodeCounts } from './node-figures.js'
import type { Sessions } from './sessions.js'
import type { SignInLimiter } from './sign-in.js'

/** Several nodes survey at about the same time: counts are shared for `sharedMs`. */
interface CountsOptions extends LoopDelayOptions {
  readonly sharedMs: number
}

const LIVE: CountsOptions = { resolutionMs: 20, unusedMs: 5000, sharedMs: 500 }
/** Coarser, because it is always on, and shared for longer, because the clocks of the nodes differ. */
const RECORDED: CountsOptions = { resolutionMs: 50, unusedMs: 30_000, sharedMs: 2500 }

const countsSource = ({ relay, nodeName, totals }: AdminDependencies, { sharedMs, ...options }: CountsOptions) => {
  const loopDelay = new LoopDelay(options)
  let latest: NodeCounts | null = null
  return {
    read: (): NodeCounts => {
      if (latest === null || relay.clocks.monotonicMs() - latest.atMs >= sharedMs)
        latest = nodeCounts(relay, nodeName, totals(), loopDelay)
      return latest
    },
    stop: () => loopDelay.stop()
  }
}

export interface SurveyHandlerDependencies extends AdminDependencies {
  readonly sessions: Sessions
  readonly limiter: SignInLimiter
  readonly history: FigureHistory
}

/** Adds this node's handlers for the surveys of all nodes. */
export const addSurveyHandlers = (
  surveys: AdminSurveys,
  dependencies: SurveyHandlerDependencies
): { close(): void } => {
  const { relay, nodeName, sessions, limiter, history } = dependencies
  const { monotonicMs } = relay.clocks
  const startedAt = monotonicMs()
  const recorded = countsSource(dependencies, RECORDED)
  const live = countsSource(dependencies, LIVE)
  const channels = new ListCache<RowList<ChannelRow>>(monotonicMs)
  const connections = new ListCache<RowList<ConnectionRow>>(monotonicMs)

  surveys.handle('adminCounts', () => recorded.read())
  surveys.handle('adminFigures', () => ({
    counts: live.read(),
    diagnostics: nodeDiagnostics({ ...dependencies, startedAt })
  }))
  surveys.handle('adminHistory', () => history.samples)
  surveys.handle('adminHistoryStart', () => history.oldest)
  surveys.handle('adminProxies', () => dependencies.proxies())
  surveys.handle('adminChannelList', (query) => channels.get(query, () => nodeChannels(relay, query)))
  surveys.handle('adminChannelRows', (names) => names.map((name) => nodeChannel(relay, name)))
  surveys.handle('adminConnection', (query) => nodeConnection(relay, nodeName, query))
  surveys.handle('adminConnectionList', (query) =>
    connections.get(query, () => nodeConnections(relay, nodeName, query))
  )
  surveys.handle('adminSession', (update) => {
    sessions.apply(update)
    return null
  })
  surveys.handle('adminAttempt', ({ node, attempt }) => {
    if (node !== relay.node) limiter.count(attempt)
    return null
  })
  return {
    close: () => {
      recorded.stop()
      live.stop()
    }
  }
}
