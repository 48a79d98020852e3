import type { Relay } from '../core/relay.js'
import { Surveys } from '../core/surveys.js'
import type { ProxyStatus } from '../proxies/health.js'
import type {
  ChannelRow,
  ChannelSort,
  ConnectionDetail,
  ConnectionRow,
  ConnectionSort,
  FigureSample,
  SubscriptionSort
} from './contract.js'
import type { Diagnostics } from './diagnostics.js'
import type { ListQuery, PageQuery, RowList } from './listing.js'
import type { NodeCounts } from './node-figures.js'
import type { SessionUpdate } from './sessions.js'

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
  readonly adminProxies: Survey<null, readonly ProxyStatus[]>
  readonly adminChannelList: Survey<ListQuery<ChannelSort>, RowList<ChannelRow>>
  readonly adminChannelRows: Survey<readonly string[], readonly ChannelRow[]>
  readonly adminConnection: Survey<ConnectionQuery, ConnectionDetail | null>
  readonly adminConnectionList: Survey<ListQuery<ConnectionSort>, RowList<ConnectionRow>>
  readonly adminSession: Survey<SessionUpdate, null>
  /** A sign-in attempt at `node`. */
  readonly adminAttempt: Survey<{ readonly node: string; readonly attempt: Attempt }, null>
}

export type AdminSurveys = Surveys<AdminSurveyTable>

export const adminSurveys = ({ cluster, surveyHandlers }: Relay): AdminSurveys =>
  new Surveys<AdminSurveyTable>(cluster, surveyHandlers)

/** Selects one connection and a page of its channels. */
export interface ConnectionQuery extends PageQuery<SubscriptionSort> {
  readonly client: string
}

/** A sign-in attempt. */
export interface Attempt {
  /** The client's address, or its /64 network for IPv6. */
  readonly network: string
  readonly isSuccessful: boolean
}
