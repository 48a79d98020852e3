import type { Position } from './broker.js'
import type { MaybePromise } from './maybe-promise.js'
import type { ServerSubscription } from './tokens.js'

// Relays that act as one. What is about connections is asked of all of them, because each one knows only its own.

/** By name: what can be asked, with what, and the answer of one node. All of it is JSON, because it may travel. */
export interface Questions {
  readonly info: { readonly params: null; readonly answer: NodeInfo }
  /** How many clients listen to each channel whose name fits; one page of them. */
  readonly channelPage: { readonly params: ChannelPageParams; readonly answer: ChannelPage }
  readonly disconnect: { readonly params: DisconnectParams; readonly answer: null }
  readonly unsubscribe: { readonly params: UnsubscribeParams; readonly answer: null }
  /** Why it could not be done. */
  readonly subscribe: { readonly params: SubscribeParams; readonly answer: Refused | null }
  readonly refresh: { readonly params: RefreshParams; readonly answer: null }
  /** The connections of a user at this node. */
  readonly userClients: { readonly params: string; readonly answer: readonly string[] }
  /** What a client without a socket says; whether its session is here. */
  readonly emulate: { readonly params: { readonly session: string; readonly data: string }; readonly answer: boolean }
}

export type Question = keyof Questions
export type Params<Q extends Question> = Questions[Q]['params']
export type Answer<Q extends Question> = Questions[Q]['answer']

/** Questions that change something for a user: every node has to apply them. */
export type Command = 'disconnect' | 'unsubscribe' | 'subscribe' | 'refresh'

export interface CommandResult<C extends Command> {
  /** Of the nodes that have applied it. */
  readonly answers: readonly Answer<C>[]
  /** Every live node has applied it. If not, the fleet goes on until each of the others has, or is gone. */
  readonly isConfirmed: boolean
}

export interface NodeAnswer<Q extends Question> {
  readonly node: string
  readonly answer: Answer<Q>
}

export interface Fleet {
  /** How many nodes there are, this one included. */
  readonly size: number
  /**
   * Called once, before anything is asked. From then on the other nodes can ask this one. `missedCommands` is called when
   * this node was cut off for so long that commands are lost to it: it cannot know which of its clients they were about.
   */
  start(node: string, answers: Answers, missedCommands: () => void): MaybePromise<void>
  /** Asks every node, this one too. One that fails or stays silent for too long is left out. */
  ask<Q extends Question>(question: Q, params: Params<Q>): MaybePromise<readonly NodeAnswer<Q>[]>
  /** Applies a command at every node, this one too, once at each. Fails where it cannot be applied anywhere. */
  apply<C extends Command>(command: C, params: Params<C>): MaybePromise<CommandResult<C>>
  /** Asks one node; null where there is no such node, or no answer. */
  askOne<Q extends Question>(node: string, question: Q, params: Params<Q>): MaybePromise<Answer<Q> | null>
  close(): MaybePromise<void>
}

type Answerer<Q extends Question> = (params: Params<Q>) => MaybePromise<Answer<Q>>

/** What this node answers to. Parts of the relay put in what they know. */
export class Answers {
  readonly #answerers = new Map<Question, (params: never) => unknown>()

  set<Q extends Question>(question: Q, answerer: Answerer<Q>): void {
    this.#answerers.set(question, answerer)
  }

  to<Q extends Question>(question: Q, params: Params<Q>): MaybePromise<Answer<Q>> {
    const answerer = this.#answerers.get(question) as Answerer<Q> | undefined
    // Another version of the relay may ask what this one does not know.
    if (answerer === undefined) throw new Error(`no answer to ${question}`)
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

export interface Whom {
  /** '' is the user without a name, not everybody. */
  readonly user: string
  /** '' for all of the user's connections. */
  readonly client: string
  readonly session: string
}

export interface DisconnectParams {
  readonly whom: Whom
  /** Clients that stay. */
  readonly spared: readonly string[]
  readonly code: number
  readonly reason: string
}

export interface UnsubscribeParams {
  readonly whom: Whom
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
  readonly whom: Whom
  readonly subscription: ServerSubscribe
}

export interface ServerRefresh {
  readonly isExpired: boolean
  /** In seconds; 0 for never. */
  readonly expiresAt: number
  readonly info: string | null
}

export interface RefreshParams {
  readonly whom: Whom
  readonly refresh: ServerRefresh
}

export interface Refused {
  readonly code: number
  readonly message: string
  readonly temporary: boolean
}
