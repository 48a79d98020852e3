import type { Cluster, CommandResult, NodeResult, SurveyHandler } from './cluster.js'
import type { Position } from './engine.js'
import type { MaybePromise } from './maybe-promise.js'
import type { ServerSubscription } from './options.js'

// A cluster is a set of relay nodes that share an engine. A node knows only its own connections, so operations on
// connections are sent to all nodes as surveys.

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

/** Parameters and result of each survey, by name. */
export type SurveyTable<Name extends PropertyKey> = Readonly<
  Record<Name, { readonly params: unknown; readonly result: unknown }>
>

/** The surveys that this node can respond to. The core and the operators' page add theirs. */
export class SurveyHandlers implements SurveyHandler {
  readonly #handlers = new Map<string, (params: unknown) => unknown>()

  set(survey: string, handler: (params: unknown) => unknown): void {
    this.#handlers.set(survey, handler)
  }

  async handle(survey: string, params: unknown): Promise<unknown> {
    const handler = this.#handlers.get(survey)
    // A node with a newer version may send surveys that this version does not have.
    if (handler === undefined) throw new Error(`unknown survey ${survey}`)
    return handler(params)
  }
}

/**
 * The surveys of one table, with its types. Nodes handle a survey with the types of its table, so the messages have the same
 * types. The names of different tables must differ.
 */
export class Surveys<Table extends SurveyTable<keyof Table>> {
  readonly #cluster: Cluster
  readonly #handlers: SurveyHandlers

  constructor(cluster: Cluster, handlers: SurveyHandlers) {
    this.#cluster = cluster
    this.#handlers = handlers
  }

  /** Sets the handler of this node. */
  handle<Name extends keyof Table & string>(
    survey: Name,
    handler: (params: Table[Name]['params']) => MaybePromise<Table[Name]['result']>
  ): void {
    this.#handlers.set(survey, handler)
  }

  /** Surveys every node, including this one. Nodes that fail or time out are omitted from the result. */
  survey<Name extends keyof Table & string>(
    survey: Name,
    params: Table[Name]['params']
  ): Promise<readonly NodeResult<Table[Name]['result']>[]> {
    return this.#cluster.survey(survey, params)
  }

  /** Applies a command at every node, including this one. */
  apply<Name extends keyof Table & string>(
    command: Name,
    params: Table[Name]['params']
  ): Promise<CommandResult<Table[Name]['result']>> {
    return this.#cluster.apply(command, params)
  }

  /** Surveys one node; null if there is no such node or it does not respond. */
  surveyNode<Name extends keyof Table & string>(
    node: string,
    survey: Name,
    params: Table[Name]['params']
  ): Promise<Table[Name]['result'] | null> {
    return this.#cluster.surveyNode(node, survey, params)
  }
}

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
  readonly code: number
  readonly reason: string
}

export interface UnsubscribeParams {
  readonly target: UserSelector
  /** '' for all channels. */
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
