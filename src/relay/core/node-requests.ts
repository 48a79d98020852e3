import type { ServerSubscription } from './options.js'
import type { Position } from './publication.js'

/** Parameters and result of each survey of the core, by name. Both are JSON, because they are sent between processes. */
export interface CoreSurveys {
  readonly info: { readonly params: null; readonly result: NodeInfo }
  /** One page of the channels that match a pattern, with their subscriber counts. */
  readonly channelPage: { readonly params: ChannelPageParams; readonly result: ChannelPage }
  readonly disconnect: { readonly params: DisconnectParams; readonly result: null }
  readonly unsubscribe: { readonly params: UnsubscribeParams; readonly result: null }
  readonly subscribe: { readonly params: SubscribeParams; readonly result: SurveyError | null }
  readonly refresh: { readonly params: RefreshParams; readonly result: null }
  readonly invalidateTokens: { readonly params: TokenInvalidation; readonly result: null }
  /** Ids of the user's connections at the node. */
  readonly userClients: { readonly params: string; readonly result: readonly string[] }
  /** Passes a frame to a client of an emulated transport; false if the node does not have the session. */
  readonly emulate: { readonly params: EmulateParams; readonly result: boolean }
}

export interface EmulateParams {
  readonly session: string
  /** The frame: text, or base64 for protobuf. */
  readonly data: string
  readonly encoding?: 'base64'
}

/** Surveys that change connections and must be applied by every node. */
export type ClusterCommand = 'disconnect' | 'unsubscribe' | 'subscribe' | 'refresh' | 'invalidateTokens'

/** The tokens of a user that were issued at this time or before are invalid. */
export interface TokenInvalidation {
  readonly user: string
  /** Only subscription tokens of this channel; '' for all tokens. */
  readonly channel: string
  /** Seconds since 1970. */
  readonly issuedBefore: number
  /** Wall-clock time in milliseconds after which no such token is valid anyway. */
  readonly expiresAt: number
}

/** Statistics of a node, with the field names of the Centrifugo API. */
export interface NodeInfo {
  readonly uid: string
  readonly name: string
  readonly version: string
  readonly num_clients: number
  readonly num_users: number
  readonly num_subs: number
  readonly num_channels: number
  readonly uptime: number
  readonly process: { readonly rss: number }
}

export interface ChannelPageParams {
  /** A glob; '' matches all channels. */
  readonly pattern: string
  /** `next` of the previous page; 0 for the first page. */
  readonly after: number
}

export interface ChannelPage {
  readonly channels: readonly (readonly [name: string, clients: number])[]
  /** Null for the last page. */
  readonly next: number | null
}

export interface UserSelector {
  /** '' is the anonymous user, not all users. */
  readonly user: string
  /** Client id; '' for all connections of the user. */
  readonly client: string
  /** Session id; '' for all connections of the user. */
  readonly session: string
}

export interface DisconnectParams {
  readonly target: UserSelector
  /** Client ids that stay connected. */
  readonly whitelist: readonly string[]
  /** Only connections before this one; absent for all. A node may receive the command late. */
  readonly earlierThan?: ConnectionOrder
  readonly code: number
  readonly reason: string
}

/** The place of a connection among those of its user. */
export interface ConnectionOrder {
  /** Milliseconds since 1970. */
  readonly connectedAt: number
  readonly client: string
}

export interface UnsubscribeParams {
  readonly target: UserSelector
  readonly channel: string
}

export interface ServerSubscribe extends ServerSubscription {
  readonly channel: string
  /** Seconds since 1970; 0 for never. */
  readonly expiresAt: number
  readonly recover: Position | null
}

export interface SubscribeParams {
  readonly target: UserSelector
  readonly subscription: ServerSubscribe
}

export interface ServerRefresh {
  readonly isExpired: boolean
  /** Seconds since 1970; 0 for never. */
  readonly expiresAt: number
  readonly info: string | null
}

export interface RefreshParams {
  readonly target: UserSelector
  readonly refresh: ServerRefresh
}

export interface SurveyError {
  readonly code: number
  readonly message: string
  readonly temporary: boolean
}
