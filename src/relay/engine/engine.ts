import type { Log } from '../../shared/log.js'
import type { Broker, History, Presence } from '../core/engine.js'
import type { UserConnections } from '../core/session/user-connection-limit.js'
import type { Cluster } from '../core/surveys.js'

/** Stores publications and presence, and connects a relay with the other nodes of its cluster. */
export interface Engine {
  readonly broker: Broker
  readonly history: History
  readonly presence: Presence
  readonly cluster: Cluster
  readonly userConnections: UserConnections
  /** False while the engine cannot be used; `/health` is 503 then. */
  readonly isReady: boolean
  /** One channel on each server of the engine, for delivery probes. All names begin with `name`. */
  probeChannels(name: string): readonly ProbeChannel[]
  /** Called at intervals. Removes expired data. */
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
}
