import {
  after,
  type Broker,
  type History,
  type MaybePromise,
  type NewPublication,
  type Presence,
  type Published
} from './broker.js'
import type { ChannelObserver } from './channel.js'
import { type ResolvedChannel, resolveChannel } from './channels.js'
import { Client, type ClientTransport } from './client.js'
import { type Clocks, readClocks } from './clocks.js'
import { DISCONNECT_INSUFFICIENT_STATE, type Disconnect, ReplyError } from './codes.js'
import { CommandQueue } from './commands.js'
import type { Conflator } from './conflation.js'
import { DeltaPatches } from './delta.js'
import { ConnectionRegistry, Hub } from './hub.js'
import { type CoreMetrics, PublishActivity } from './metrics.js'
import type { ChannelRules, ClientOptions } from './options.js'
import { publishToChannel, type SchemaCheck } from './publish.js'
import { removeIfUnused, runInBackground } from './subscription.js'
import { type Cluster, nodeSurveyHandlers, type SurveyHandlers } from './survey.js'
import { TurnQueue } from './time-slice.js'
import type { TokenCheck } from './tokens.js'
import { countEarlierConnections, type UserConnections } from './user-connections.js'

export interface RelayRules {
  readonly client: ClientOptions
  readonly channels: ChannelRules
}

export interface RelayStats {
  readonly clients: number
  readonly users: number
  readonly channels: number
  readonly subscriptions: number
}

/** Joins hub, broker and connections; what the edges talk to. */
export class Relay {
  readonly context: RelayContext
  /** What this node tells the fleet. */
  readonly answers: SurveyHandlers

  constructor(parts: RelayDependencies, { client, channels }: RelayRules, conflators: (path: string) => Conflator) {
    const patches = new DeltaPatches()
    this.context = {
      ...parts,
      clientOptions: client,
      channelRules: channels,
      hub: new Hub(parts, conflators, patches),
      patches,
      interrupted: new TurnQueue(parts.atEndOfTurn, parts.monotonicMs),
      activity: new PublishActivity(),
      clients: new ConnectionRegistry<Client>(),
      sessions: new Map(),
      node: parts.newId()
    }
    this.answers = nodeSurveyHandlers(this)
  }

  start(): MaybePromise<void> {
    const { broker, hub, cluster, node } = this.context
    // Nobody knows which clients the commands were about: all come back, and their tokens are checked again.
    const missedCommands = (): void => void this.endSome(Number.POSITIVE_INFINITY, DISCONNECT_INSUFFICIENT_STATE)
    return after(broker.start(hub), () => cluster.start(node, this.answers, missedCommands))
  }

  attach(transport: ClientTransport): CommandQueue {
    const client = new Client(this.context, transport)
    const commands = new CommandQueue(client)
    if (transport.isEmulated) client.commands = commands
    return commands
  }

  publish(channel: string, publication: NewPublication, findFault?: SchemaCheck): MaybePromise<Published | ReplyError> {
    const kind = resolveChannel(channel, this.context.channelRules)
    return kind instanceof ReplyError ? kind : publishToChannel(this.context, kind, channel, publication, findFault)
  }

  /** New rules hold at once, also for existing connections and channels. What a client has agreed on with the relay stays so. */
  configure({ client, channels }: RelayRules): void {
    const isLimitNew = this.context.clientOptions.userConnectionLimit <= 0 && client.userConnectionLimit > 0
    this.context.clientOptions = client
    this.context.channelRules = channels
    if (isLimitNew) countEarlierConnections(this.context)
    const { hub, clients } = this.context
    for (const connection of clients.all) connection.configure()
    for (const channel of hub.channels.values()) {
      const kind = resolveChannel(channel.name, channels)
      if (!(kind instanceof ReplyError)) hub.configure(channel, kind.options)
    }
  }

  /** To be called often: pings, and ends whatever has run out. One walk over all connections instead of a timer each. */
  tick(): void {
    const now = readClocks(this.context)
    const { all } = this.context.clients
    // Backwards, because a connection that ends is replaced by the last one.
    for (let index = all.length - 1; index >= 0; index--) {
      const client = all[index]
      if (client === undefined) continue
      if (client.wakeAt <= now.monotonicMs || client.wakeAtWall <= now.wallMs) {
        client.contain(() => client.wake(now))
      }
    }
    this.#checkPositions(now.monotonicMs)
  }

  stats(): RelayStats {
    const { hub, clients } = this.context
    let subscriptions = 0
    for (const { size } of hub.channels.values()) subscriptions += size
    return { clients: clients.all.length, users: clients.users, channels: hub.channels.size, subscriptions }
  }

  /** Ends so many of the connections, for a relay that is leaving; returns how many are left. */
  endSome(count: number, reason: Disconnect): number {
    const { all } = this.context.clients
    for (let ended = 0; ended < count && all.length > 0; ended++) all[all.length - 1]?.close(reason)
    return all.length
  }

  #checkPositions(nowMs: number): void {
    const { hub, broker, history, clientOptions: client } = this.context
    const delayMs = client.positionCheckDelayMs > 0 ? client.positionCheckDelayMs : Number.POSITIVE_INFINITY
    for (const channel of hub.channels.values()) {
      // Somebody looks on since the engine was away.
      if (!channel.isSubscribedAtBroker) runInBackground(this.context, () => channel.subscribeAtBroker(broker))
      if (channel.checkedAt === 0) channel.checkedAt = nowMs
      if (!channel.mayHaveGap && nowMs - channel.checkedAt < delayMs) continue
      channel.checkedAt = nowMs
      if (!channel.hasPositions) continue
      const top = { since: null, limit: 0, reverse: false }
      const check = channel.beginCheck()
      runInBackground(this.context, () =>
        after(history.read(channel.name, top, channel.options), (page) => channel.compare(page, check))
      )
    }
  }
}

/** What a faulty engine is reported to. */
export interface Log {
  info(facts: object, message: string): void
  warn(facts: object, message: string): void
  error(facts: object, message: string): void
}

/** What the core is given from outside; tests give it a clock that stands still. */
export interface RelayDependencies extends Clocks {
  readonly broker: Broker
  readonly history: History
  readonly presence: Presence
  readonly cluster: Cluster
  readonly userConnections: UserConnections
  readonly checkToken: TokenCheck
  readonly checkSubscriptionToken: TokenCheck
  /** A token was refused; the reason in a word, and the address of the client. */
  readonly tokenRejected: (reason: string, address: string) => void
  /** 0 to below 1. */
  readonly random: () => number
  /** A name that nobody can guess. */
  readonly newId: () => string
  /** What does not fit the schema of this name, said to a person; null where all does. */
  readonly schemaError: (schema: string, data: unknown) => string | null
  /**
   * Runs the task when a client has had the time to take a reply that is on its way. The official client hands what
   * comes in one and the same read to its pages in the wrong order: a publication before the reply that it follows.
   */
  readonly delayPushAfterReply: (task: () => void) => void
  readonly atEndOfTurn: (task: () => void) => void
  readonly log: Log
  readonly metrics: CoreMetrics
  /** What operators know this node by. */
  readonly name: string
  readonly version: string
}

/** What every connection of a relay shares. The two sets of rules change when the operator reloads them. */
export interface RelayContext extends RelayDependencies {
  readonly hub: Hub
  readonly activity: PublishActivity
  readonly clients: ConnectionRegistry<Client>
  /** Connections over transports whose client speaks through requests of its own. */
  readonly sessions: Map<string, Client>
  /** Clients whose commands took long, and go on in the next turn. */
  readonly interrupted: TurnQueue
  readonly patches: DeltaPatches
  readonly node: string
  clientOptions: ClientOptions
  channelRules: ChannelRules
}

/** Listens to a channel beside its subscribers, until what is handed back is called. */
export const observeChannel = (
  context: RelayContext,
  name: string,
  kind: ResolvedChannel,
  observer: ChannelObserver
): (() => void) => {
  const channel = context.hub.open(name, kind)
  // Who only looks on must not disturb the delivery to subscribers.
  const contained: ChannelObserver = (publication) => runInBackground(context, () => observer(publication))
  channel.addObserver(contained)
  runInBackground(context, () => channel.subscribeAtBroker(context.broker))
  return () => {
    channel.removeObserver(contained)
    removeIfUnused(context, channel)
  }
}
