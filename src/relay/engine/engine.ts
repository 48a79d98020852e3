import type { Broker, History, Presence } from '../core/broker.js'
import type { Log } from '../core/context.js'
import type { Fleet } from '../core/fleet.js'
import type { MaybePromise } from '../core/maybe-promise.js'
import type { UserConnections } from '../core/user-connections.js'

/** All that is behind a relay: what it keeps, and which others it acts as one with. */
export interface Engine {
  readonly broker: Broker
  readonly history: History
  readonly presence: Presence
  readonly fleet: Fleet
  readonly userConnections: UserConnections
  /** Whether it can do what it is asked for; load balancers send clients elsewhere while it cannot. */
  readonly isReady: boolean
  /** To be called now and then: forgets what has run out. */
  sweep(): void
  close(): MaybePromise<void>
}

/** What an engine that is reached over a network is given. */
export interface EngineParts {
  readonly nowMs: () => number
  readonly log: Log
  readonly watch: EngineWatch
}

/** Told what happens between a relay and its engine, to be counted. */
export interface EngineWatch {
  /** It could be used and no longer can. */
  engineLost(): void
  /** It answered with an error. */
  engineRefused(): void
  /** Something came from it that no relay of ours sent. */
  engineStrange(): void
}
