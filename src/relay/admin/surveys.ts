import type { SurveyResult } from '../core/survey.js'
import type { AdminParts } from './admin.js'
import { type ChannelTotals, nodeChannels } from './channels.js'
import { nodeConnections } from './connections.js'
import type { ConnectionRow, Frame } from './contract.js'
import { type Diagnostics, nodeDiagnostics } from './diagnostics.js'
import { LoopDelay, type NodeCounts, nodeCounts } from './figures.js'
import { type RowChunk, RowSource, type RowsWanted } from './listing.js'
import type { SessionNews, Sessions } from './sessions.js'
import type { Attempt, Attempts } from './sign-in.js'
import type { SnapshotCollector } from './snapshots.js'

declare module '../core/survey.js' {
  // What the operators' page asks of every node.
  interface Surveys {
    readonly adminFigures: {
      readonly params: null
      readonly result: { readonly counts: NodeCounts; readonly symptoms: Diagnostics }
    }
    readonly adminFrames: { readonly params: null; readonly result: readonly Frame[] }
    readonly adminChannels: { readonly params: RowsWanted; readonly result: RowChunk<ChannelTotals> }
    readonly adminConnections: { readonly params: RowsWanted; readonly result: RowChunk<ConnectionRow> }
    readonly adminSession: { readonly params: SessionNews; readonly result: null }
    /** Somebody tried to sign in at the node. */
    readonly adminAttempt: {
      readonly params: { readonly node: string; readonly attempt: Attempt }
      readonly result: null
    }
  }
}

export interface AdminSurveyDependencies
  extends Pick<AdminParts, 'relay' | 'nodeName' | 'totals' | 'rejections' | 'isEngineConnected'> {
  readonly sessions: Sessions
  readonly attempts: Attempts
  readonly gatherer: SnapshotCollector
}

const SAME_SECOND_MS = 500

/** What this node tells the pages of all nodes. Nothing is measured or kept before somebody asks. */
export const adminSurveyHandlers = (parts: AdminSurveyDependencies) => {
  const { relay, nodeName, totals, sessions, attempts, gatherer } = parts
  const { surveyHandlers } = relay
  const { monotonicMs } = relay.clocks
  const startedAt = monotonicMs()
  const delay = new LoopDelay()
  const channels = new RowSource((search) => nodeChannels(relay, search), monotonicMs)
  const connections = new RowSource((search) => nodeConnections(relay, nodeName, search), monotonicMs)
  let figures: SurveyResult<'adminFigures'> | null = null
  surveyHandlers.set('adminFigures', () => {
    // Operators at several nodes ask for the same second.
    if (figures !== null && monotonicMs() - figures.counts.atMs < SAME_SECOND_MS) return figures
    figures = {
      counts: nodeCounts(relay, nodeName, totals(), delay),
      symptoms: nodeDiagnostics({ ...parts, startedAt })
    }
    return figures
  })
  surveyHandlers.set('adminFrames', () => gatherer.frames())
  surveyHandlers.set('adminChannels', (wanted) => channels.chunk(wanted))
  surveyHandlers.set('adminConnections', (wanted) => connections.chunk(wanted))
  surveyHandlers.set('adminSession', (news) => {
    sessions.hear(news)
    return null
  })
  surveyHandlers.set('adminAttempt', ({ node, attempt }) => {
    if (node !== relay.node) attempts.count(attempt)
    return null
  })
  return {
    close: () => {
      delay.stop()
      channels.close()
      connections.close()
    }
  }
}
