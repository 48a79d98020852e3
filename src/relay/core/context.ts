import type { Activity } from './activity.js'
import type { Broker, History, Presence } from './broker.js'
import type { Clocks } from './clocks.js'
import type { Connection } from './connection.js'
import type { DeltaPatches } from './delta-patches.js'
import type { Fleet } from './fleet.js'
import type { Hub } from './hub.js'
import type { ChannelRules, ClientOptions } from './options.js'
import type { Roster } from './roster.js'
import type { TokenCheck } from './tokens.js'
import type { TurnQueue } from './turn-queue.js'
import type { UserConnections } from './user-connections.js'
import type { Watch } from './watch.js'

/** What a faulty engine is reported to. */
export interface Log {
  info(facts: object, message: string): void
  warn(facts: object, message: string): void
  error(facts: object, message: string): void
}

/** What the core is given from outside; tests give it a clock that stands still. */
export interface RelayParts extends Clocks {
  readonly broker: Broker
  readonly history: History
  readonly presence: Presence
  readonly fleet: Fleet
  readonly userConnections: UserConnections
  readonly checkToken: TokenCheck
  readonly checkSubscriptionToken: TokenCheck
  /** A token was refused; the reason in a word, and the address of the client. */
  readonly tokenRefused: (reason: string, address: string) => void
  /** 0 to below 1. */
  readonly random: () => number
  /** A name that nobody can guess. */
  readonly newId: () => string
  /** What does not fit the schema of this name, said to a person; null where all does. */
  readonly schemaFault: (schema: string, data: unknown) => string | null
  /**
   * Runs the task when a client has had the time to take a reply that is on its way. The official client hands what
   * comes in one and the same read to its pages in the wrong order: a publication before the reply that it follows.
   */
  readonly afterReply: (task: () => void) => void
  readonly atEndOfTurn: (task: () => void) => void
  readonly log: Log
  readonly watch: Watch
  /** What operators know this node by. */
  readonly name: string
  readonly version: string
}

/** What every connection of a relay shares. The two sets of rules change when the operator reloads them. */
export interface Context extends RelayParts {
  readonly hub: Hub
  readonly activity: Activity
  readonly roster: Roster<Connection>
  /** Connections over transports whose client speaks through requests of its own. */
  readonly sessions: Map<string, Connection>
  /** Clients whose commands took long, and go on in the next turn. */
  readonly interrupted: TurnQueue
  readonly patches: DeltaPatches
  readonly node: string
  client: ClientOptions
  channels: ChannelRules
}
