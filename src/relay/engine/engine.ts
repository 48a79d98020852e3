import type { Broker, History, Presence } from '../core/broker.js'
import type { Fleet } from '../core/fleet.js'
import type { MaybePromise } from '../core/maybe-promise.js'

/** All that is behind a relay: what it keeps, and which others it acts as one with. */
export interface Engine {
  readonly broker: Broker
  readonly history: History
  readonly presence: Presence
  readonly fleet: Fleet
  /** To be called now and then: forgets what has run out. */
  sweep(): void
  close(): MaybePromise<void>
  /** Only where there is something to be connected to. */
  isConnected?(): boolean
}
