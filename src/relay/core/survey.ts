import { after, type MaybePromise, type Position, settleAll } from './broker.js'
import { globTest, type ResolvedChannel, resolveChannel } from './channels.js'
import type { Client } from './client.js'
import {
  DISCONNECT_CONNECTION_EXPIRED,
  Disconnect,
  ERROR_LIMIT_EXCEEDED,
  ReplyError,
  UNSUBSCRIBE_BY_SERVER
} from './codes.js'
import { extend } from './connect.js'
import { refreshPush, subscribePush } from './protocol.js'
import type { Relay, RelayContext } from './relay.js'
import { addSubscription, ReplyRoom, type SubscribeResult } from './subscription.js'
import { TimeSlice } from './time-slice.js'
import type { ServerSubscription } from './tokens.js'

// Relays that act as one. What is about connections is asked of all of them, because each one knows only its own.

/** By name: what can be asked, with what, and the answer of one node. All of it is JSON, because it may travel. */
export interface Surveys {
  readonly info: { readonly params: null; readonly answer: NodeInfo }
  /** How many clients listen to each channel whose name fits; one page of them. */
  readonly channelPage: { readonly params: ChannelPageParams; readonly answer: ChannelPage }
  readonly disconnect: { readonly params: DisconnectParams; readonly answer: null }
  readonly unsubscribe: { readonly params: UnsubscribeParams; readonly answer: null }
  /** Why it could not be done. */
  readonly subscribe: { readonly params: SubscribeParams; readonly answer: SurveyError | null }
  readonly refresh: { readonly params: RefreshParams; readonly answer: null }
  /** The connections of a user at this node. */
  readonly userClients: { readonly params: string; readonly answer: readonly string[] }
  /** What a client without a socket says; whether its session is here. */
  readonly emulate: { readonly params: { readonly session: string; readonly data: string }; readonly answer: boolean }
}

export type SurveyName = keyof Surveys
export type SurveyParams<Q extends SurveyName> = Surveys[Q]['params']
export type SurveyResult<Q extends SurveyName> = Surveys[Q]['answer']

/** Questions that change something for a user: every node has to apply them. */
export type Command = 'disconnect' | 'unsubscribe' | 'subscribe' | 'refresh'

export interface CommandResult<C extends Command> {
  /** Of the nodes that have applied it. */
  readonly answers: readonly SurveyResult<C>[]
  /** Every live node has applied it. If not, the fleet goes on until each of the others has, or is gone. */
  readonly isConfirmed: boolean
}

export interface NodeResult<Q extends SurveyName> {
  readonly node: string
  readonly answer: SurveyResult<Q>
}

export interface Cluster {
  /** How many nodes there are, this one included. */
  readonly size: number
  /**
   * Called once, before anything is asked. From then on the other nodes can ask this one. `missedCommands` is called when
   * this node was cut off for so long that commands are lost to it: it cannot know which of its clients they were about.
   */
  start(node: string, answers: SurveyHandlers, missedCommands: () => void): MaybePromise<void>
  /** Asks every node, this one too. One that fails or stays silent for too long is left out. */
  survey<Q extends SurveyName>(survey: Q, params: SurveyParams<Q>): MaybePromise<readonly NodeResult<Q>[]>
  /** Applies a command at every node, this one too, once at each. Fails where it cannot be applied anywhere. */
  apply<C extends Command>(command: C, params: SurveyParams<C>): MaybePromise<CommandResult<C>>
  /** Asks one node; null where there is no such node, or no answer. */
  surveyNode<Q extends SurveyName>(
    node: string,
    survey: Q,
    params: SurveyParams<Q>
  ): MaybePromise<SurveyResult<Q> | null>
  close(): MaybePromise<void>
}

type SurveyHandler<Q extends SurveyName> = (params: SurveyParams<Q>) => MaybePromise<SurveyResult<Q>>

/** What this node answers to. Parts of the relay put in what they know. */
export class SurveyHandlers {
  readonly #answerers = new Map<SurveyName, (params: never) => unknown>()

  set<Q extends SurveyName>(survey: Q, answerer: SurveyHandler<Q>): void {
    this.#answerers.set(survey, answerer)
  }

  handle<Q extends SurveyName>(survey: Q, params: SurveyParams<Q>): MaybePromise<SurveyResult<Q>> {
    const answerer = this.#answerers.get(survey) as SurveyHandler<Q> | undefined
    // Another version of the relay may ask what this one does not know.
    if (answerer === undefined) throw new Error(`no answer to ${survey}`)
    return answerer(params)
  }
}

/** What the operator's tools show of one node, in the names that they know. */
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
  /** '' for all channels. */
  readonly pattern: string
  /** The `next` of the page before; 0 for the first page. */
  readonly after: number
}

export interface ChannelPage {
  readonly channels: readonly (readonly [name: string, clients: number])[]
  /** Null where this is the last page. */
  readonly next: number | null
}

export interface UserSelector {
  /** '' is the user without a name, not everybody. */
  readonly user: string
  /** '' for all of the user's connections. */
  readonly client: string
  readonly session: string
}

export interface DisconnectParams {
  readonly target: UserSelector
  /** Clients that stay. */
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
  /** In seconds; 0 for never. */
  readonly expiresAt: number
  readonly recover: Position | null
}

export interface SubscribeParams {
  readonly target: UserSelector
  readonly subscription: ServerSubscribe
}

export interface ServerRefresh {
  readonly isExpired: boolean
  /** In seconds; 0 for never. */
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

// What the operator's backend can do to the connections that a user has at this node.

const connectionsOf = ({ clients }: RelayContext, { user, client, session }: UserSelector): readonly Client[] =>
  clients
    .ofUser(user)
    .filter((each) => each.state === 'live' && (client === '' || each.id === client))
    .filter((each) => session === '' || each.session === session)

export const disconnectUser = (
  context: RelayContext,
  { target, whitelist: spared, code, reason }: DisconnectParams
): void => {
  const disconnect = new Disconnect(code, reason)
  // A set: both the list and the user's connections may be long.
  const staying = new Set(spared)
  for (const client of connectionsOf(context, target)) {
    if (!staying.has(client.id)) client.close(disconnect)
  }
}

/** From all channels where none is named. */
export const unsubscribeUser = (context: RelayContext, { target, channel }: UnsubscribeParams): void => {
  for (const client of connectionsOf(context, target)) {
    client.contain(() => {
      for (const subscription of [...client.subscriptions.values()]) {
        if (channel === '' || subscription.channel.name === channel) {
          client.loseSubscription(subscription, UNSUBSCRIBE_BY_SERVER)
        }
      }
    })
  }
}

/** Puts all connections of a user on a channel, or none of them: clients are told when all have joined. */
export const subscribeUser = (
  context: RelayContext,
  { target, subscription }: SubscribeParams
): MaybePromise<ReplyError | null> => {
  const { channel } = subscription
  const { channelLimit } = context.clientOptions
  const kind = resolveChannel(channel, context.channelRules)
  if (kind instanceof ReplyError) return kind
  const joining = connectionsOf(context, target).filter(({ subscriptions }) => !subscriptions.has(channel))
  if (channelLimit > 0 && joining.some(({ subscriptions }) => subscriptions.size >= channelLimit))
    return ERROR_LIMIT_EXCEEDED
  const join = (client: Client): MaybePromise<SubscribeResult | ReplyError | Disconnect> =>
    addSubscription(client, {
      ...subscription,
      kind,
      isServerSide: true,
      hasToken: false,
      expiresAt: subscription.expiresAt * 1000,
      positioned: false,
      recoverable: false,
      joinLeave: false,
      delta: false,
      failsUnrecovered: false,
      room: new ReplyRoom(client)
    })
  return after(settleAll(joining.map((client) => () => join(client))), (outcomes) => {
    const failed = outcomes.find((outcome) => outcome.status === 'rejected')
    for (const [index, client] of joining.entries()) {
      const outcome = outcomes[index]
      if (outcome?.status !== 'fulfilled') continue
      client.contain(() => conclude(client, channel, kind, outcome.value, failed === undefined))
    }
    if (failed !== undefined) throw failed.reason
    return null
  })
}

const conclude = (
  client: Client,
  channel: string,
  { namespace }: ResolvedChannel,
  outcome: SubscribeResult | ReplyError | Disconnect,
  hasSucceeded: boolean
): void => {
  if (outcome instanceof Disconnect) client.close(outcome)
  if (!('activate' in outcome) || client.isClosed) return
  if (!hasSucceeded) {
    outcome.undo()
    return
  }
  client.push(subscribePush(channel, outcome.result), 'push_subscribe', namespace)
  outcome.activate()
}

/** A time that has passed means at once, not after the time that a client has to refresh by itself. */
const isPast = (expiresAt: number, nowMs: number): boolean => expiresAt > 0 && expiresAt * 1000 <= nowMs

export const refreshUser = (context: RelayContext, { target, refresh }: RefreshParams): void => {
  const { isExpired, expiresAt, info } = refresh
  const endsNow = isExpired || isPast(expiresAt, context.nowMs())
  for (const client of connectionsOf(context, target)) {
    if (endsNow) {
      client.close(DISCONNECT_CONNECTION_EXPIRED)
      continue
    }
    client.contain(() => {
      if (info !== null) client.info = info
      client.push(refreshPush(extend(client, expiresAt)), 'push_refresh', '')
    })
  }
}

/** What a node says of its own connections to the fleet. */
export const nodeSurveyHandlers = (relay: Relay): SurveyHandlers => {
  const { context } = relay
  const answers = new SurveyHandlers()
  answers.set('info', () => nodeInfo(relay))
  answers.set('channelPage', (params) => channelPage(context, params))
  answers.set('disconnect', (params) => {
    disconnectUser(context, params)
    return null
  })
  answers.set('unsubscribe', (params) => {
    unsubscribeUser(context, params)
    return null
  })
  answers.set('subscribe', (params) => subscribeUser(context, params))
  answers.set('refresh', (params) => {
    refreshUser(context, params)
    return null
  })
  answers.set('userClients', (user) => context.clients.ofUser(user).map(({ id: client }) => client))
  answers.set('emulate', ({ session, data }) => {
    const client = context.sessions.get(session)
    client?.commands?.receive(data)
    return client !== undefined
  })
  return answers
}

/** A page is one message between nodes, which neither of them may be busy with for long. */
const CHANNELS_PER_PAGE = 5000

/** Channels are numbered as they come, so a channel that is there all the time is on exactly one page. */
const channelPage = async ({ hub }: RelayContext, { pattern, after }: ChannelPageParams): Promise<ChannelPage> => {
  const fits = pattern === '' ? () => true : globTest(pattern)
  const slice = new TimeSlice()
  const channels: [name: string, clients: number][] = []
  for (const { number, name, size } of hub.channels.values()) {
    if (slice.isOverAfterStep) await slice.next()
    if (number <= after || !fits(name)) continue
    channels.push([name, size])
    if (channels.length === CHANNELS_PER_PAGE) return { channels, next: number }
  }
  return { channels, next: null }
}

const nodeInfo = (relay: Relay): NodeInfo => {
  const { clients, users, channels, subscriptions } = relay.stats()
  return {
    uid: relay.context.node,
    name: relay.context.name,
    version: relay.context.version,
    num_clients: clients,
    num_users: users,
    num_subs: subscriptions,
    num_channels: channels,
    uptime: Math.floor(process.uptime()),
    metrics: { interval: 0, items: {} },
    process: { cpu: 0, rss: process.memoryUsage.rss() }
  }
}
