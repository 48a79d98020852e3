import type { Broker, History, MaybePromise, Presence } from '../core/broker.js'
import type { Log } from '../core/context.js'
import type { Cluster } from '../core/survey.js'
import type { UserConnections } from '../core/user-connections.js'

/** All that is behind a relay: what it keeps, and which others it acts as one with. */
export interface Engine {
  readonly broker: Broker
  readonly history: History
  readonly presence: Presence
  readonly cluster: Cluster
  readonly userConnections: UserConnections
  /** Whether it can do what it is asked for; load balancers send clients elsewhere while it cannot. */
  readonly isReady: boolean
  /** To be called now and then: forgets what has run out. */
  sweep(): void
  close(): MaybePromise<void>
}

/** What an engine that is reached over a network is given. */
export interface EngineDependencies {
  readonly nowMs: () => number
  readonly log: Log
  readonly metrics: EngineMetrics
}

/** Told what happens between a relay and its engine, to be counted. */
export interface EngineMetrics {
  /** It could be used and no longer can. */
  engineLost(): void
  /** It answered with an error. */
  engineError(): void
  /** Something came from it that no relay of ours sent. */
  engineMalformedMessage(): void
}
