import { resolveChannel } from './channel-names.js'
import {
  DISCONNECT_CONNECTION_EXPIRED,
  Disconnect,
  ERROR_LIMIT_EXCEEDED,
  ReplyError,
  UNSUBSCRIBE_BY_SERVER
} from './codes.js'
import { extendExpiry } from './commands/connect.js'
import type { Position } from './engine.js'
import { globTest } from './nodes/glob.js'
import type { Client } from './session/client.js'
import type { RelayContext } from './session/context.js'
import type { ServerSubscription } from './session/tokens.js'
import { addSubscription, ReplySpace } from './subscribe/add-subscription.js'
import { TimeSlice } from './time-slice.js'

// A cluster is a set of relay nodes that share an engine. A node knows only its own connections, so operations on
// connections are sent to all nodes as surveys.

/** Parameters and result of each survey, by name. Both are JSON, because they are sent between processes. */
export interface Surveys {
  readonly info: { readonly params: null; readonly result: NodeInfo }
  /** One page of the channels that match a pattern, with their subscriber counts. */
  readonly channelPage: { readonly params: ChannelPageParams; readonly result: ChannelPage }
  readonly disconnect: { readonly params: DisconnectParams; readonly result: null }
  readonly unsubscribe: { readonly params: UnsubscribeParams; readonly result: null }
  readonly subscribe: { readonly params: SubscribeParams; readonly result: SurveyError | null }
  readonly refresh: { readonly params: RefreshParams; readonly result: null }
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

export type SurveyName = keyof Surveys
export type SurveyParams<Q extends SurveyName> = Surveys[Q]['params']
export type SurveyResult<Q extends SurveyName> = Surveys[Q]['result']

/** Surveys that change connections and must be applied by every node. */
export type ClusterCommand = 'disconnect' | 'unsubscribe' | 'subscribe' | 'refresh'

export interface ClusterCommandResult<C extends ClusterCommand> {
  /** Results of the nodes that have applied the command. */
  readonly results: readonly SurveyResult<C>[]
  /** Whether every live node has applied it. If not, the cluster retries until each node has applied it or has left. */
  readonly isConfirmed: boolean
}

export interface NodeResult<Q extends SurveyName> {
  readonly node: string
  readonly result: SurveyResult<Q>
}

export interface Cluster {
  /** Number of nodes, including this one. */
  readonly size: number
  /**
   * Called once, before any survey. From then on other nodes can survey this one. `missedCommands` is called if this node
   * was disconnected for so long that it has missed commands.
   */
  start(node: string, handlers: SurveyHandlers, missedCommands: () => void): Promise<void>
  /** Surveys every node, including this one. Nodes that fail or time out are omitted from the result. */
  survey<Q extends SurveyName>(survey: Q, params: SurveyParams<Q>): Promise<readonly NodeResult<Q>[]>
  /** Applies a command exactly once at every node, including this one. Fails if it cannot be applied anywhere. */
  apply<C extends ClusterCommand>(command: C, params: SurveyParams<C>): Promise<ClusterCommandResult<C>>
  /** Surveys one node; null if there is no such node or it does not respond. */
  surveyNode<Q extends SurveyName>(node: string, survey: Q, params: SurveyParams<Q>): Promise<SurveyResult<Q> | null>
  /** Whether the node has joined and not left. Such a node may still be too busy to respond to a survey. */
  hasNode(node: string): Promise<boolean>
  close(): Promise<void>
}

type SurveyHandler<Q extends SurveyName> = (params: SurveyParams<Q>) => SurveyResult<Q> | Promise<SurveyResult<Q>>

/** The surveys that this node can respond to. */
export class SurveyHandlers {
  readonly #handlers: { [Q in SurveyName]?: SurveyHandler<Q> } = {}

  set<Q extends SurveyName>(survey: Q, handler: SurveyHandler<Q>): void {
    const handlers: { [Name in Q]?: SurveyHandler<Name> } = this.#handlers
    handlers[survey] = handler
  }

  async handle<Q extends SurveyName>(survey: Q, params: SurveyParams<Q>): Promise<SurveyResult<Q>> {
    const handlers: { [Name in Q]?: SurveyHandler<Name> } = this.#handlers
    const handler = handlers[survey]
    // A node with a newer version may send surveys that this version does not have.
    if (handler === undefined) throw new Error(`unknown survey ${survey}`)
    return handler(params)
  }
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
  readonly metrics: { readonly interval: number; readonly items: Readonly<Record<string, number>> }
  readonly process: { readonly cpu: number; readonly rss: number }
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

/** Handlers for the surveys of the core, which act on the connections of this node. */
export const nodeSurveyHandlers = (context: RelayContext, stats: () => NodeStats): SurveyHandlers => {
  const handlers = new SurveyHandlers()
  handlers.set('info', () => nodeInfo(context, stats()))
  handlers.set('channelPage', (params) => channelPage(context, params))
  handlers.set('disconnect', (params) => disconnectLocal(context, params))
  handlers.set('unsubscribe', (params) => unsubscribeLocal(context, params))
  handlers.set('subscribe', (params) => subscribeLocal(context, params))
  handlers.set('refresh', (params) => refreshLocal(context, params))
  handlers.set('userClients', (user) => context.clients.ofUser(user).map(({ id }) => id))
  handlers.set('emulate', ({ session, data, encoding }) => {
    const client = context.sessions.get(session)
    client?.handleFrame(encoding === undefined ? data : Buffer.from(data, encoding))
    return client !== undefined
  })
  return handlers
}

const selectClients = ({ clients }: RelayContext, { user, client, session }: UserSelector): readonly Client[] =>
  clients
    .ofUser(user)
    .filter((each) => each.state === 'live' && (client === '' || each.id === client))
    .filter((each) => session === '' || each.session === session)

const disconnectLocal = (context: RelayContext, { target, whitelist, code, reason }: DisconnectParams): null => {
  const disconnect = new Disconnect(code, reason)
  // A set, because both the list and the connections of the user can be long.
  const spared = new Set(whitelist)
  for (const client of selectClients(context, target)) {
    if (!spared.has(client.id)) client.close(disconnect)
  }
  return null
}

const unsubscribeLocal = (context: RelayContext, { target, channel }: UnsubscribeParams): null => {
  for (const client of selectClients(context, target)) {
    client.closeOnError(() => {
      for (const subscription of [...client.subscriptions.values()]) {
        if (channel === '' || subscription.channel.name === channel) {
          client.endSubscription(subscription, UNSUBSCRIBE_BY_SERVER)
        }
      }
    })
  }
  return null
}

/**
 * Subscribes all matching connections, or none if the engine fails: clients are notified after all subscriptions have succeeded.
 * If a connection cannot have the channel, the others are subscribed and the error is returned, on whichever nodes they are.
 */
const subscribeLocal = async (
  context: RelayContext,
  { target, subscription }: SubscribeParams
): Promise<ReplyError | null> => {
  const { channel } = subscription
  const { channelLimit } = context.clientOptions
  const resolved = resolveChannel(channel, context.channelRules)
  if (resolved instanceof ReplyError) return resolved
  const clients = selectClients(context, target).filter(({ subscriptions }) => !subscriptions.has(channel))
  if (channelLimit > 0 && clients.some(({ subscriptions }) => subscriptions.size >= channelLimit))
    return ERROR_LIMIT_EXCEEDED
  const outcomes = await Promise.allSettled(
    clients.map((client) =>
      addSubscription(client, {
        ...subscription,
        resolved,
        isServerSide: true,
        expiresAt: subscription.expiresAt * 1000,
        positioned: false,
        recoverable: false,
        joinLeave: false,
        delta: false,
        filter: null,
        rate: null,
        failsUnrecovered: false,
        replySpace: new ReplySpace(client)
      })
    )
  )
  const failed = outcomes.find((outcome) => outcome.status === 'rejected')
  for (const [index, client] of clients.entries()) {
    const outcome = outcomes[index]
    if (outcome?.status !== 'fulfilled') continue
    client.closeOnError(() => {
      const { value } = outcome
      if (value instanceof Disconnect) client.close(value)
      if (!('activate' in value) || client.isClosed) return
      if (failed !== undefined) {
        value.undo()
        return
      }
      client.push({ kind: 'subscribe', channel, subscribe: value.reply }, resolved.namespace)
      // The push has no field for recovered publications.
      for (const pub of value.reply.publications)
        client.push({ kind: 'pub', channel, pub }, resolved.namespace, value.hasSnapshot)
      value.activate()
    })
  }
  if (failed !== undefined) throw failed.reason
  return rejectionIn(outcomes)
}

const rejectionIn = (outcomes: readonly PromiseSettledResult<unknown>[]): ReplyError | null => {
  for (const outcome of outcomes)
    if (outcome.status === 'fulfilled' && outcome.value instanceof ReplyError) return outcome.value
  return null
}

const refreshLocal = (context: RelayContext, { target, refresh }: RefreshParams): null => {
  const { isExpired, expiresAt, info } = refresh
  // An expiry in the past closes the connection at once, without the grace period for refreshing clients.
  const isPast = expiresAt > 0 && expiresAt * 1000 <= context.nowMs()
  for (const client of selectClients(context, target)) {
    if (isExpired || isPast) {
      client.close(DISCONNECT_CONNECTION_EXPIRED)
      continue
    }
    client.closeOnError(() => {
      if (info !== null) client.info = info
      client.push({ kind: 'refresh', refresh: extendExpiry(client, expiresAt) }, '')
    })
  }
  return null
}

/** Limits the size of one message between nodes. */
const CHANNELS_PER_PAGE = 5000

/** Pages follow the sequence numbers of the channels, so a channel that stays open is on exactly one page. */
const channelPage = async (
  { hub, monotonicMs }: RelayContext,
  { pattern, after }: ChannelPageParams
): Promise<ChannelPage> => {
  const matches = pattern === '' ? () => true : (globTest(pattern) ?? (() => false))
  const slice = new TimeSlice(monotonicMs)
  const channels: [name: string, clients: number][] = []
  for (const { sequence, name, size } of hub.channels.values()) {
    if (slice.isOverAfterStep) await slice.next()
    // A channel that only an operator observes is open without subscribers.
    if (size === 0 || sequence <= after || !matches(name)) continue
    channels.push([name, size])
    if (channels.length === CHANNELS_PER_PAGE) return { channels, next: sequence }
  }
  return { channels, next: null }
}

interface NodeStats {
  readonly clients: number
  readonly users: number
  readonly channels: number
  readonly subscriptions: number
}

const nodeInfo = (context: RelayContext, { clients, users, channels, subscriptions }: NodeStats): NodeInfo => {
  const { uptimeSeconds, memoryBytes } = context.processStats()
  return {
    uid: context.node,
    name: context.name,
    version: context.version,
    num_clients: clients,
    num_users: users,
    num_subs: subscriptions,
    num_channels: channels,
    uptime: Math.floor(uptimeSeconds),
    metrics: { interval: 0, items: {} },
    process: { cpu: 0, rss: memoryBytes }
  }
}
