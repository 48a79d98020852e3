import type { Log } from '../../shared/log.js'
import type { MaybePromise } from './maybe-promise.js'
import type { ChannelState, HistoryOptions, MapStorageOptions } from './options.js'
import type { NewPublication, Payload, Position, Publication, Published } from './publication.js'

/** A channel of `publishToMany`. */
export interface PublishTarget {
  readonly channel: string
  readonly options: HistoryOptions
}

export type JoinOrLeave = 'join' | 'leave'

/** Receives what the engine delivers for the channels of this node, in order per channel. */
export interface Delivery {
  publication(channel: string, publication: Publication, epoch: string): void
  joinOrLeave(channel: string, kind: JoinOrLeave, info: string): void
  /** Publications may have been lost. The position of the channel is then compared with its history. */
  mayHaveMissed(channel: string): void
  /** Delivered positions of this node's channels, so that an engine can detect data loss after a restart. */
  positions(): Iterable<readonly [channel: string, position: Position]>
}

/** Carries publications between relay nodes, in order per channel. */
export interface Broker {
  /** Called once, before anything else. */
  start(delivery: Delivery): Promise<void>
  /** Returns, or resolves, when deliveries are active; clients receive their subscribe reply only after that. */
  subscribe(channel: string): MaybePromise<void>
  /** Some deliveries may still follow; the core ignores those of channels without subscribers. */
  unsubscribe(channel: string): Promise<void>
  /** Whether deliveries of a subscribed channel are active; false while the connection that carries them is down. */
  isDelivering(channel: string): boolean
  /**
   * Position of the publication or of the earlier one with the same key; `NO_POSITION` without history. The memory engine
   * publishes synchronously, and everything from publish to delivery continues without a promise if it can (`after`), because
   * that costs less.
   */
  publish(channel: string, publication: NewPublication, options: HistoryOptions): MaybePromise<Published>
  /**
   * Publishes to many channels, with one outcome per channel in the same order. Remote engines implement it, so that the
   * publication is transferred once. Must not block the event loop.
   */
  publishToMany?(
    targets: readonly PublishTarget[],
    publication: NewPublication
  ): Promise<readonly (Published | EngineError)[]>
  /** Delivered to the subscribed nodes, and not stored. */
  joinOrLeave(channel: string, kind: JoinOrLeave, info: string): Promise<void>
  close(): Promise<void>
}

export interface HistoryRange {
  /** Start after this position; null for the beginning, or the end with `reverse`. */
  readonly since: Position | null
  /** Maximum number of publications; 0 for none, negative for all. */
  readonly limit: number
  readonly reverse: boolean
  /** The channel has subscribers that rely on its position, also if it has never had a publication. */
  readonly isSubscribed?: true
}

export interface HistoryPage extends Position {
  readonly publications: readonly Publication[]
}

/** A page of the history of a channel, as an engine returns it. */
export interface RetainedPage extends HistoryPage {
  /** Offset of the oldest publication in the history, whether the page contains it or not; `offset + 1` if there is none. */
  readonly oldest: number
}

/** TTL of a position without publications. Position checks of its subscribers renew it. */
export const UNUSED_POSITION_TTL_MS = 10 * 60 * 1000

/**
 * Recent publications. A channel has an epoch before its first publication, so that its first subscriber has a position. Nothing is
 * stored for it then, because clients can invent names: such channels share an epoch, which no channel uses again after its
 * position has expired. Only positions that subscribers rely on are stored.
 */
export interface History {
  read(channel: string, range: HistoryRange, options: HistoryOptions): MaybePromise<RetainedPage>
  remove(channel: string): Promise<void>
}

/** `if_new`: only if the key is not in the map; `if_exists`: only if it is. */
export type KeyMode = 'if_new' | 'if_exists'

/** A write to a map. */
export interface MapWrite {
  readonly key: string
  readonly data: Payload
  readonly info: string | null
  readonly tags: string | null
  readonly delta: boolean
  readonly idempotencyKey: string
  /** Suppressed unless it is higher than the last one of the key; 0 for none. */
  readonly version: number
  readonly versionEpoch: string
  /** Null: in any case. */
  readonly keyMode: KeyMode | null
  /** A write that `if_new` suppresses restarts the TTL of the key nevertheless. */
  readonly renews: boolean
  readonly trace?: string
}

export interface MapRemoval {
  readonly key: string
  readonly idempotencyKey: string
}

export type MapSuppression = 'idempotency' | 'version' | 'key_exists' | 'key_not_found'

/** Position of a change of a map; `NO_POSITION` in an ephemeral map. */
export interface MapChanged extends Position {
  readonly suppressedBy: MapSuppression | null
}

/** A range of the entries of a map, in an order of keys that the engine chooses. */
export interface StateRange {
  /** Start after this key; '' for the beginning. */
  readonly after: string
  /** Maximum number of entries; 0 for none, negative for all. */
  readonly limit: number
}

/** Entries of a map and its position, read together. The offset of an entry is that of its last write. */
export interface StatePage extends Position {
  readonly entries: readonly Publication[]
  /** The key after which the next page starts; '' if this page is the last. */
  readonly next: string
}

export const MAP_EXPIRY_INTERVAL_MS = 500

/** The keys that a call of `Maps.expire` has removed. */
export interface ExpiredKeys {
  readonly keys: number
  /** Time from the oldest deadline to its removal; 0 if no key has expired. */
  readonly lagMs: number
}

/**
 * A keyed state per channel. Every change (a write, a removal, an expiry) is one step for all nodes: conditions, offset, state,
 * stream and delivery. Checked in this order, before the offset moves: idempotency key, version, `keyMode`. A suppressed change
 * takes no offset and is not delivered. Changes are delivered as publications of the channel, through `Broker.subscribe`.
 */
export interface Maps {
  /** Resolves with `full` if the write would add a key to a map that has `maxKeys`. */
  write(channel: string, write: MapWrite, options: MapStorageOptions): MaybePromise<MapChanged | 'full'>
  /** Suppressed as `key_not_found` if the key is not in the map. */
  removeKey(channel: string, removal: MapRemoval, options: MapStorageOptions): MaybePromise<MapChanged>
  /** Assigns an epoch to a map that has none. Shows an expired key until its removal was delivered. */
  readState(channel: string, range: StateRange, options: MapStorageOptions): Promise<StatePage>
  /** Null if the key is not in the map. */
  readKey(channel: string, key: string, options: MapStorageOptions): Promise<Publication | null>
  /** The changes after a position. An ephemeral map has none. */
  readStream(channel: string, range: HistoryRange, options: MapStorageOptions): Promise<RetainedPage>
  count(channel: string, options: MapStorageOptions): Promise<number>
  /** Removes entries and stream without a delivery. The next use begins a new epoch. */
  clear(channel: string, options: MapStorageOptions): Promise<void>
  /** Removes expired keys, each once for all nodes, in bounded work. Called every `MAP_EXPIRY_INTERVAL_MS`. */
  expire(): Promise<ExpiredKeys>
}

/** The clients on each channel, across all nodes. */
export interface Presence {
  /** `info` is JSON text. */
  add(channel: string, client: string, user: string, info: string): Promise<void>
  remove(channel: string, client: string): Promise<void>
  /** Client info as JSON text, by client id. */
  read(channel: string): Promise<ReadonlyMap<string, string>>
  count(channel: string): Promise<{ readonly clients: number; readonly users: number }>
}

/** A connection of a user, at any node. */
export interface UserConnection {
  readonly user: string
  readonly node: string
  readonly client: string
}

/** Connections of each user at all nodes, counted for `user_connection_limit`. */
export interface UserConnections {
  /**
   * Counts the connection and returns null. If the user has reached the limit, nothing is counted and the connections are
   * returned that may be stale because their node could not remove them.
   */
  add(connection: UserConnection, limit: number): MaybePromise<readonly UserConnection[] | null>
  remove(connection: UserConnection): Promise<void>
}

/** A token bucket: `rate` tokens per interval, and as many at once. Buckets of a name have the same rate and interval. */
export interface Bucket {
  readonly name: string
  readonly rate: number
  readonly intervalMs: number
}

/** Token buckets of each user at all nodes, for limits of commands by user. */
export interface UserRates {
  /**
   * Takes one token from each bucket of the user, or none and returns false if one of them is empty, in one step for all nodes.
   * Never fails: while the engine is unavailable or slow, each node counts alone. The number of buckets is bounded; one that was
   * forgotten counts as full. The memory engine takes tokens synchronously.
   */
  take(user: string, buckets: readonly Bucket[]): MaybePromise<boolean>
}

/** Runs the surveys and commands of other nodes at this node. Rejects a name that this version does not have. */
export interface SurveyHandler {
  handle(survey: string, params: unknown): Promise<unknown>
}

export interface NodeResult<Result = unknown> {
  readonly node: string
  readonly result: Result
}

export interface CommandResult<Result = unknown> {
  /** Results of the nodes that have applied the command. */
  readonly results: readonly Result[]
  /** Whether every live node has applied it. If not, the cluster retries until each node has applied it or has left. */
  readonly isConfirmed: boolean
}

/**
 * The nodes that share the engine. It carries surveys and commands between them: a name, parameters and a result, both JSON.
 * The core gives them types (`surveys.ts`).
 */
export interface Cluster {
  /** Number of nodes, including this one. */
  readonly size: number
  /**
   * Called once, before any survey. From then on other nodes can survey this one. `missedCommands` is called if this node
   * was disconnected for so long that it has missed commands.
   */
  start(node: string, handler: SurveyHandler, missedCommands: () => void): Promise<void>
  /** Surveys every node, including this one. Nodes that fail or time out are omitted from the result. */
  survey(survey: string, params: unknown): Promise<readonly NodeResult[]>
  /** Applies a command exactly once at every node, including this one. Fails if it cannot be applied anywhere. */
  apply(command: string, params: unknown): Promise<CommandResult>
  /** Surveys one node; null if there is no such node or it does not respond. */
  surveyNode(node: string, survey: string, params: unknown): Promise<unknown>
  /** Whether the node has joined and not left. Such a node may still be too busy to respond to a survey. */
  hasNode(node: string): Promise<boolean>
  close(): Promise<void>
}

/** A channel received its first subscriber, or has been without subscribers for some time. */
export interface ChannelStateEvent {
  /** The same each time the event is taken. */
  readonly id: string
  readonly channel: string
  readonly type: ChannelState
  /** Wall-clock time. */
  readonly timeMs: number
}

export interface ChannelStateRules {
  /** The names of all proxies that receive events. */
  readonly proxies: ReadonlySet<string>
  /** The proxy that receives the events of a channel; null if the channel has none. */
  proxyOf(channel: string): string | null
  /** How long a channel must be without subscribers before it counts as vacated. */
  readonly vacatedDelayMs: number
}

export interface TakenStateEvents {
  readonly events: readonly ChannelStateEvent[]
  /** Time until the next event may be due; infinite if none is known. */
  readonly nextMs: number
}

/**
 * Events about channels that become occupied or vacated, according to the presence of all nodes together.
 *
 * - The types of the events of a channel alternate. The next event exists once the last one has been confirmed.
 * - An event is taken by one caller. It is due again, with the same id, after it was released or its lease has ended.
 * - A change that is undone before its event was first taken leaves no event, so there is at most one event per channel.
 */
export interface ChannelStates {
  /** Null if no channel has events. Applies to existing subscriptions too. */
  configure(rules: ChannelStateRules | null): void
  /** Takes up to `limit` events of the proxy that are due. */
  take(proxy: string, limit: number, leaseMs: number): Promise<TakenStateEvents>
  /** The backend has received the events. */
  confirm(proxy: string, events: readonly ChannelStateEvent[]): Promise<void>
  /** The backend has not accepted the events; they are due again. */
  release(proxy: string, events: readonly ChannelStateEvent[]): Promise<void>
  /** Number of events of the proxy that are due and not taken. With Redis also channels that are due to be checked again. */
  countDue(proxy: string): Promise<number>
  /** `listener` is called if an event of the proxy may be due before the `nextMs` that `take` returned. */
  onDue(listener: (proxy: string) => void): void
}

export const ENGINE_SWEEP_MS = 10_000

/** Stores publications and presence, and connects a relay with the other nodes of its cluster. */
export interface Engine {
  readonly broker: Broker
  readonly history: History
  readonly maps: Maps
  readonly presence: Presence
  readonly cluster: Cluster
  readonly userConnections: UserConnections
  readonly userRates: UserRates
  readonly channelStates: ChannelStates
  /** Whether relays on several machines can share it. It is then reached over the network, which can fail. */
  readonly isShared: boolean
  /** False while the engine cannot be used; `/health` is 503 then. */
  readonly isReady: boolean
  /** One channel on each server of the engine, for delivery probes. All names begin with `name`. */
  probeChannels(name: string): readonly ProbeChannel[]
  /** Called every `ENGINE_SWEEP_MS`. Removes expired data. */
  sweep(): void
  close(): Promise<void>
}

export interface ProbeChannel {
  readonly channel: string
  /** Address of the server that has the channel; null if the engine is in the relay's own processes. */
  readonly server: string | null
}

export interface EngineDependencies {
  readonly nowMs: () => number
  readonly log: Log
  readonly metrics: EngineMetrics
}

/** Counters of an engine. */
export interface EngineMetrics {
  /** The connection to the engine was lost. */
  engineLost(): void
  /** The engine replied with an error. */
  engineError(): void
  /** A message arrived that no relay has sent. */
  engineMalformedMessage(): void
  /** A command was counted for limits by user by this process alone, because the engine was unavailable or slow. */
  userRateCountedLocally(): void
  /** Work that nothing waits for has failed for an unexpected reason. */
  unexpectedError(source: 'background'): void
}

/** A failure of the engine, for example a lost connection. The engine logs it itself; callers reply with error 100. */
export class EngineError extends Error {
  override readonly name: string = 'EngineError'
}
