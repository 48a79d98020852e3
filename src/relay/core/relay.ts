import { Activity } from './activity.js'
import type { NewPublication, Published } from './broker.js'
import { channelKind } from './channels.js'
import { readClocks } from './clocks.js'
import { CommandLine } from './commands.js'
import type { Conflator } from './conflate.js'
import { type ClientSink, Connection } from './connection.js'
import type { Context, RelayParts } from './context.js'
import { DeltaPatches } from './delta-patches.js'
import { type Disconnect, INSUFFICIENT_STATE } from './disconnect.js'
import { ReplyError } from './errors.js'
import type { Answers } from './fleet.js'
import { Hub } from './hub.js'
import { inBackground } from './leave-channel.js'
import { after, type MaybePromise } from './maybe-promise.js'
import { nodeAnswers } from './node-answers.js'
import type { ChannelRules, ClientOptions } from './options.js'
import { type FaultFinder, publishOn } from './publish.js'
import { Roster } from './roster.js'
import { TurnQueue } from './turn-queue.js'
import { countEarlierConnections } from './user-connections.js'

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
  readonly context: Context
  /** What this node tells the fleet. */
  readonly answers: Answers

  constructor(parts: RelayParts, { client, channels }: RelayRules, conflators: (path: string) => Conflator) {
    const patches = new DeltaPatches()
    this.context = {
      ...parts,
      client,
      channels,
      hub: new Hub(parts, conflators, patches),
      patches,
      interrupted: new TurnQueue(parts.atEndOfTurn, parts.monotonicMs),
      activity: new Activity(),
      roster: new Roster<Connection>(),
      sessions: new Map(),
      node: parts.newId()
    }
    this.answers = nodeAnswers(this)
  }

  start(): MaybePromise<void> {
    const { broker, hub, fleet, node } = this.context
    // Nobody knows which clients the commands were about: all come back, and their tokens are checked again.
    const missedCommands = (): void => void this.endSome(Number.POSITIVE_INFINITY, INSUFFICIENT_STATE)
    return after(broker.start(hub), () => fleet.start(node, this.answers, missedCommands))
  }

  attach(sink: ClientSink): CommandLine {
    const connection = new Connection(this.context, sink)
    const commands = new CommandLine(connection)
    if (sink.isEmulated) connection.commands = commands
    return commands
  }

  publish(channel: string, publication: NewPublication, findFault?: FaultFinder): MaybePromise<Published | ReplyError> {
    const kind = channelKind(channel, this.context.channels)
    return kind instanceof ReplyError ? kind : publishOn(this.context, kind, channel, publication, findFault)
  }

  /** New rules hold at once, also for existing connections and channels. What a client has agreed on with the relay stays so. */
  configure({ client, channels }: RelayRules): void {
    const isLimitNew = this.context.client.userConnectionLimit <= 0 && client.userConnectionLimit > 0
    this.context.client = client
    this.context.channels = channels
    if (isLimitNew) countEarlierConnections(this.context)
    const { hub, roster } = this.context
    for (const connection of roster.all) connection.configure()
    for (const channel of hub.channels.values()) {
      const kind = channelKind(channel.name, channels)
      if (!(kind instanceof ReplyError)) hub.configure(channel, kind.options)
    }
  }

  /** To be called often: pings, and ends whatever has run out. One walk over all connections instead of a timer each. */
  tick(): void {
    const now = readClocks(this.context)
    const { all } = this.context.roster
    // Backwards, because a connection that ends is replaced by the last one.
    for (let index = all.length - 1; index >= 0; index--) {
      const connection = all[index]
      if (connection === undefined) continue
      if (connection.wakeAt <= now.monotonicMs || connection.wakeAtWall <= now.wallMs) {
        connection.contain(() => connection.wake(now))
      }
    }
    this.#checkPositions(now.monotonicMs)
  }

  stats(): RelayStats {
    const { hub, roster } = this.context
    let subscriptions = 0
    for (const { size } of hub.channels.values()) subscriptions += size
    return { clients: roster.all.length, users: roster.users, channels: hub.channels.size, subscriptions }
  }

  /** Ends so many of the connections, for a relay that is leaving; returns how many are left. */
  endSome(count: number, reason: Disconnect): number {
    const { all } = this.context.roster
    for (let ended = 0; ended < count && all.length > 0; ended++) all[all.length - 1]?.end(reason)
    return all.length
  }

  #checkPositions(nowMs: number): void {
    const { hub, broker, history, client } = this.context
    const delayMs = client.positionCheckDelayMs > 0 ? client.positionCheckDelayMs : Number.POSITIVE_INFINITY
    for (const channel of hub.channels.values()) {
      // Somebody looks on since the engine was away.
      if (!channel.isListening) inBackground(this.context, () => channel.listen(broker))
      if (channel.checkedAt === 0) channel.checkedAt = nowMs
      if (!channel.isDoubtful && nowMs - channel.checkedAt < delayMs) continue
      channel.checkedAt = nowMs
      if (!channel.hasPositions) continue
      const top = { since: null, limit: 0, reverse: false }
      const check = channel.beginCheck()
      inBackground(this.context, () =>
        after(history.read(channel.name, top, channel.options), (page) => channel.compare(page, check))
      )
    }
  }
}
