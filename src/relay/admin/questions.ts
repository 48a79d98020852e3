import type { Attempt } from './attempts.js'
import type { ChannelTotals } from './channel-rows.js'
import type { ConnectionRow, Frame } from './contract.js'
import type { NodeCounts } from './figures.js'
import type { RowChunk, RowsWanted } from './row-source.js'
import type { SessionNews } from './sessions.js'
import type { Symptoms } from './symptoms.js'

declare module '../core/fleet.js' {
  // What the operators' page asks of every node.
  interface Questions {
    readonly adminFigures: {
      readonly params: null
      readonly answer: { readonly counts: NodeCounts; readonly symptoms: Symptoms }
    }
    readonly adminFrames: { readonly params: null; readonly answer: readonly Frame[] }
    readonly adminChannels: { readonly params: RowsWanted; readonly answer: RowChunk<ChannelTotals> }
    readonly adminConnections: { readonly params: RowsWanted; readonly answer: RowChunk<ConnectionRow> }
    readonly adminSession: { readonly params: SessionNews; readonly answer: null }
    /** Somebody tried to sign in at the node. */
    readonly adminAttempt: {
      readonly params: { readonly node: string; readonly attempt: Attempt }
      readonly answer: null
    }
  }
}
