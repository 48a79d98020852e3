import { type ResolvedChannel, resolveChannel } from './channel-names.js'
import { type Clocks, readClocks } from './clocks.js'
import type { ClientTransport } from './codec/transport.js'
import { DISCONNECT_INSUFFICIENT_STATE, type Disconnect, ReplyError } from './codes.js'
import { CommandQueue } from './commands/command-queue.js'
import { UnidirectionalConnect } from './commands/unidirectional-connect.js'
import { type Cluster, EngineError, type HistoryPage } from './engine.js'
import type { ChannelObserver } from './fan-out/channel.js'
import { DeltaPatches } from './fan-out/delta.js'
import { Hub, type OpenChannel } from './fan-out/hub.js'
import { RecoveryCache } from './fan-out/recovery-cache.js'
import { StatePages } from './fan-out/state-pages.js'
import { PresenceMaps } from './maps/presence-maps.js'
import { RelayMaps } from './maps/relay-maps.js'
import type { MaybePromise } from './maybe-promise.js'
import type {
  ClusterCommand,
  CoreSurveys,
  DisconnectParams,
  NodeInfo,
  RefreshParams,
  SubscribeParams,
  TokenInvalidation,
  UnsubscribeParams
} from './node-requests.js'
import { countSubscribers } from './nodes/subscriber-counts.js'
import { handleCoreSurveys } from './nodes/survey-handlers.js'
import type { ChannelRules, ClientOptions, RpcRules } from './options.js'
import type { HistoryCommand } from './protocol.js'
import type { NewPublication, Publication, Published } from './publication.js'
import { type BroadcastOutcome, broadcast } from './publish/broadcast.js'
import { cachedSchemaCheck, publishToChannel, type SchemaCheck } from './publish/publish.js'
import { PublishActivity } from './publish/publish-activity.js'
import { Client } from './session/client.js'
import { type RelayContext, type RelayDependencies, runInBackground } from './session/context.js'
import { PacedClose } from './session/paced-close.js'
import { ConnectionRegistry } from './session/registry.js'
import { withTokenInvalidations } from './session/token-invalidations.js'
import { countEarlierConnections } from './session/user-connection-limit.js'
import {
  type ChannelContent,
  countPresence,
  observeChannel,
  type PresenceCount,
  readChannel,
  readChannelHistory,
  readPresence,
  readStoredPublication,
  removeChannelHistory
} from './subscribe/channel-reads.js'
import { checkPositions } from './subscribe/position-checks.js'
import { SurveyHandlers, Surveys } from './surveys.js'
import { type TimeSlice, TurnQueue } from './time-slice.js'

export interface RelayRules {
  readonly client: ClientOptions
  readonly channels: ChannelRules
  readonly rpc: RpcRules
}

export interface RelayStats {
  readonly clients: number
  readonly users: number
  readonly channels: number
  readonly subscriptions: number
}

/** A relay node. Transports, API and operators' page use its methods; everything behind it is private to the core. */
export class Relay {
  readonly #context: RelayContext
  /** Clients that have to reconnect, because this node missed commands. */
  readonly #reconnecting = new PacedClose(DISCONNECT_INSUFFICIENT_STATE)
  /** Handlers for surveys of other nodes. The operators' page adds its own. */
  readonly surveyHandlers = new SurveyHandlers()
  readonly maps: RelayMaps

  constructor(dependencies: RelayDependencies, { client, channels, rpc }: RelayRules, patches = new DeltaPatches()) {
    const context: RelayContext = {
      ...dependencies,
      ...withTokenInvalidations(dependencies, () => context.clientOptions),
      clientOptions: client,
      channelRules: channels,
      rpcRules: rpc,
      hub: new Hub(dependencies, patches),
      patches,
      presenceMaps: new PresenceMaps(() => context),
      recoveryCache: new RecoveryCache(),
      statePages: new StatePages(),
      interrupted: new TurnQueue(dependencies.atEndOfTurn, dependencies.monotonicMs),
      activity: new PublishActivity(),
      clients: new ConnectionRegistry<Client>(),
      sessions: new Map(),
      surveys: new Surveys<CoreSurveys>(dependencies.cluster, this.surveyHandlers),
      node: dependencies.newId()
    }
    this.#context = context
    this.maps = new RelayMaps(context)
    context.hub.maxLagMs = client.positionMaxTimeLagMs
    handleCoreSurveys(context, () => this.stats())
  }

  async start(): Promise<void> {
    const { broker, hub, cluster, node, tokenInvalidations } = this.#context
    // It is unknown which clients the missed commands were for, so all clients reconnect and their tokens are checked again.
    const missedCommands = (): void => {
      void tokenInvalidations.load()
      this.#reconnecting.start(this.clients, this.#context.monotonicMs())
    }
    await broker.start(hub)
    await cluster.start(node, this.surveyHandlers, missedCommands)
    // After the start of the cluster, so that no invalidation is missed in between.
    await tokenInvalidations.load()
  }

  /** Unique id of this node. */
  get node(): string {
    return this.#context.node
  }

  get version(): string {
    return this.#context.version
  }

  get clocks(): Clocks {
    return this.#context
  }

  get cluster(): Cluster {
    return this.#context.cluster
  }

  get clientOptions(): ClientOptions {
    return this.#context.clientOptions
  }

  get channelRules(): ChannelRules {
    return this.#context.channelRules
  }

  /** All connections of this node. The order changes when a connection is closed. */
  get clients(): readonly Client[] {
    return this.#context.clients.all
  }

  /** Lower-case names of the request headers that connections keep, for proxies and for their user. */
  get requestHeaderNames(): readonly string[] {
    const { eventProxies, clientOptions } = this.#context
    const { userIdHeader } = clientOptions
    return userIdHeader === null ? eventProxies.requestHeaderNames : [...eventProxies.requestHeaderNames, userIdHeader]
  }

  get openChannels(): ReadonlyMap<string, OpenChannel> {
    return this.#context.hub.channels
  }

  /** Times and rates of the publications that were published through this node. */
  get activity(): PublishActivity {
    return this.#context.activity
  }

  /** Adds a client that has just opened a transport. */
  connect(transport: ClientTransport): Client {
    return new Client(this.#context, transport, (client) => new CommandQueue(client))
  }

  /**
   * Adds a client that only receives. Its first frame is the connect request; later frames are ignored. `bearerToken` is used
   * if the request contains no token.
   */
  connectUnidirectional(transport: ClientTransport, bearerToken: string): Client {
    return new Client(this.#context, transport, (client) => new UnidirectionalConnect(client, bearerToken))
  }

  /** Processes a frame of an emulated transport at the node that holds the session. Returns false if there is no such session. */
  async handleSessionFrame(node: string, session: string, frame: string | Buffer): Promise<boolean> {
    const params: CoreSurveys['emulate']['params'] =
      typeof frame === 'string'
        ? { session, data: frame }
        : { session, data: frame.toString('base64'), encoding: 'base64' }
    return (await this.#context.surveys.surveyNode(node, 'emulate', params)) === true
  }

  publish(
    channel: string,
    publication: NewPublication,
    schemaCheck?: SchemaCheck
  ): MaybePromise<Published | ReplyError> {
    const resolved = resolveChannel(channel, this.#context.channelRules)
    return resolved instanceof ReplyError
      ? resolved
      : publishToChannel(this.#context, resolved, channel, publication, schemaCheck)
  }

  /** For several `publish` calls with the same publication: each schema is checked only once. */
  schemaCheck(publication: NewPublication): SchemaCheck {
    return cachedSchemaCheck(this.#context, publication)
  }

  /** Publishes to many channels in time slices. Outcomes are in the order of the channels. */
  broadcast(
    channels: readonly string[],
    publication: NewPublication,
    slice: TimeSlice
  ): Promise<readonly BroadcastOutcome[]> {
    return broadcast(this.#context, channels, publication, slice)
  }

  /** Subscribes the matching connections at all nodes. */
  async subscribeUser(params: SubscribeParams): Promise<ReplyError | null> {
    for (const error of await this.#applyEverywhere('subscribe', params)) {
      if (error !== null) return new ReplyError(error.code, error.message, error.temporary)
    }
    return null
  }

  async unsubscribeUser(params: UnsubscribeParams): Promise<ReplyError | null> {
    const resolved = resolveChannel(params.channel, this.#context.channelRules)
    if (resolved instanceof ReplyError) return resolved
    await this.#applyEverywhere('unsubscribe', params)
    return null
  }

  async disconnectUser(params: DisconnectParams): Promise<void> {
    await this.#applyEverywhere('disconnect', params)
  }

  async refreshUser(params: RefreshParams): Promise<void> {
    await this.#applyEverywhere('refresh', params)
  }

  /** Rejects the user's tokens from this time (in seconds) or before, and closes the connections; with a channel, its subscriptions. */
  async invalidateTokens(user: string, channel: string, issuedBefore: number): Promise<ReplyError | null> {
    const stored = await this.#context.tokenInvalidations.store(user, channel, issuedBefore)
    if (!(stored instanceof ReplyError)) await this.#applyEverywhere('invalidateTokens', stored)
    return stored instanceof ReplyError ? stored : null
  }

  /** The invalidated tokens of all users. Each node has all of them. */
  get tokenInvalidations(): readonly TokenInvalidation[] {
    return this.#context.tokenInvalidations.current
  }

  /** False while this node cannot read them. */
  get areInvalidationsKnown(): boolean {
    return this.#context.tokenInvalidations.areKnown
  }

  /** Throws an `EngineError` unless every live node has confirmed. The cluster then continues until all have applied it. */
  async #applyEverywhere<C extends ClusterCommand>(
    command: C,
    params: CoreSurveys[C]['params']
  ): Promise<readonly CoreSurveys[C]['result'][]> {
    const { results, isConfirmed } = await this.#context.surveys.apply(command, params)
    if (!isConfirmed) throw new EngineError('not every node has confirmed')
    return results
  }

  /** Client info as JSON text, by client id. */
  presence(channel: string): Promise<ReadonlyMap<string, string> | ReplyError> {
    return readPresence(this.#context, channel)
  }

  presenceStats(channel: string): Promise<PresenceCount | ReplyError> {
    return countPresence(this.#context, channel)
  }

  history(command: HistoryCommand): Promise<HistoryPage | ReplyError> {
    return readChannelHistory(this.#context, command)
  }

  removeHistory(channel: string): Promise<ReplyError | null> {
    return removeChannelHistory(this.#context, channel)
  }

  /** Subscriber counts of all nodes, by channel. `pattern` is a glob; '' matches all. */
  channels(pattern: string, slice: TimeSlice): Promise<ReadonlyMap<string, number>> {
    return countSubscribers(this.#context, pattern, slice)
  }

  /** Statistics of all nodes. */
  async info(): Promise<readonly NodeInfo[]> {
    return (await this.#context.surveys.survey('info', null)).map(({ result }) => result)
  }

  /** Newest publications and presence of a channel, without access checks or metrics. */
  readChannel(channel: string, resolved: ResolvedChannel, limit: number): Promise<ChannelContent> {
    return readChannel(this.#context, channel, resolved, limit)
  }

  /** The publication at an offset of the history, without access checks or metrics; null if it is not there. */
  readPublication(channel: string, resolved: ResolvedChannel, offset: number): Promise<Publication | null> {
    return readStoredPublication(this.#context, channel, resolved, offset)
  }

  /** Passes the publications of a channel to the observer until the returned function is called. Null for an invalid name. */
  observeChannel(name: string, observer: ChannelObserver): (() => void) | null {
    return observeChannel(this.#context, name, observer)
  }

  /** Passes the publications of an internal channel to the observer; null stops that. The channel is not listed anywhere. */
  observeInternal(channel: string, observer: ChannelObserver | null): void {
    this.#context.hub.observeInternal(channel, observer)
  }

  /** Applies changed rules to all connections and channels. What was negotiated with a client does not change. */
  configure({ client, channels, rpc }: RelayRules): void {
    const context = this.#context
    const isLimitNew = context.clientOptions.userConnectionLimit === 0 && client.userConnectionLimit > 0
    context.clientOptions = client
    context.hub.maxLagMs = client.positionMaxTimeLagMs
    context.channelRules = channels
    context.rpcRules = rpc
    if (isLimitNew) countEarlierConnections(context)
    context.tokenInvalidations.configure()
    for (const connection of context.clients.all) connection.configure()
    for (const channel of context.hub.channels.values()) {
      const resolved = resolveChannel(channel.name, channels)
      if (!(resolved instanceof ReplyError)) context.hub.configure(channel, resolved.options)
    }
  }

  /** Checks pings, expiries and positions. Called periodically; one pass over all connections replaces a timer for each. */
  tick(): void {
    const now = readClocks(this.#context)
    this.#context.clients.checkDue(now, (client) => client.closeOnError(() => client.deadlines.check(now)))
    this.#reconnecting.tick(now.monotonicMs)
    runInBackground(this.#context, () => this.#context.presenceMaps.renew())
    checkPositions(this.#context, now.monotonicMs)
  }

  stats(): RelayStats {
    const { hub, clients } = this.#context
    return { clients: clients.all.length, users: clients.users, ...hub.counts() }
  }

  /** Closes up to `count` connections. Returns the number of remaining ones. */
  closeClients(count: number, reason: Disconnect): number {
    const { all } = this.#context.clients
    for (let closed = 0; closed < count && all.length > 0; closed++) all[all.length - 1]?.close(reason)
    return all.length
  }
}
