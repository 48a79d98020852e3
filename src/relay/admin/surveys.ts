import type { Relay } from '../core/relay.js'
import { SurveyExtension } from '../core/survey-extension.js'
import type { AdminDependencies } from './admin.js'
import { nodeChannel, nodeChannels } from './channel-list.js'
import { type ConnectionQuery, nodeConnection, nodeConnections } from './connection-list.js'
import type {
  ChannelRow,
  ChannelSort,
  ConnectionDetail,
  ConnectionRow,
  ConnectionSort,
  FigureSample
} from './contract.js'
import { type Diagnostics, nodeDiagnostics } from './diagnostics.js'
import type { FigureHistory } from './figure-history.js'
import { ListCache, type ListQuery, type RowList } from './listing.js'
import { LoopDelay, type LoopDelayOptions, type NodeCounts, nodeCounts } from './node-figures.js'
import type { Sessions, SessionUpdate } from './sessions.js'
import type { Attempt, SignInLimiter } from './sign-in.js'

interface Survey<Params, Result> {
  readonly params: Params
  readonly result: Result
}

/** The surveys of the operators' page. Every node handles them. */
interface AdminSurveyTable {
  /** The counts of a node for the recorded figures. */
  readonly adminCounts: Survey<null, NodeCounts>
  /** Counts and diagnostics of a node for the open pages. */
  readonly adminFigures: Survey<null, { readonly counts: NodeCounts; readonly diagnostics: Diagnostics }>
  /** The recorded figures of all nodes, as far as the node has them. */
  readonly adminHistory: Survey<null, readonly FigureSample[]>
  /** Time of the oldest of them. */
  readonly adminHistoryStart: Survey<null, number | null>
  readonly adminChannelList: Survey<ListQuery<ChannelSort>, RowList<ChannelRow>>
  readonly adminChannelRows: Survey<readonly string[], readonly ChannelRow[]>
  readonly adminConnection: Survey<ConnectionQuery, ConnectionDetail | null>
  readonly adminConnectionList: Survey<ListQuery<ConnectionSort>, RowList<ConnectionRow>>
  readonly adminSession: Survey<SessionUpdate, null>
  /** A sign-in attempt at `node`. */
  readonly adminAttempt: Survey<{ readonly node: string; readonly attempt: Attempt }, null>
}

export type AdminSurveys = SurveyExtension<AdminSurveyTable>

export const adminSurveys = ({ cluster, surveyHandlers }: Relay): AdminSurveys =>
  new SurveyExtension<AdminSurveyTable>(cluster, surveyHandlers)

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

export interface HandlerDependencies extends AdminDependencies {
  readonly sessions: Sessions
  readonly limiter: SignInLimiter
  readonly history: FigureHistory
}

/** Adds this node's handlers for the surveys of all nodes. */
export const addSurveyHandlers = (surveys: AdminSurveys, dependencies: HandlerDependencies): { close(): void } => {
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
