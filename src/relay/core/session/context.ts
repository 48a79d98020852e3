import type { Log } from '../../../shared/log.js'
import {
  type Broker,
  type Cluster,
  EngineError,
  type History,
  type Maps,
  type Presence,
  type UserConnections,
  type UserRates
} from '../engine.js'
import type { EventProxies } from '../event-proxies.js'
import type { DeltaPatches } from '../fan-out/delta.js'
import type { Hub, HubDependencies } from '../fan-out/hub.js'
import type { RecoveryCache } from '../fan-out/recovery-cache.js'
import type { StatePages } from '../fan-out/state-pages.js'
import type { PresenceMaps } from '../maps/presence-maps.js'
import type { CoreSurveys } from '../node-requests.js'
import type { ChannelRules, ClientOptions, RpcRules } from '../options.js'
import type { PublishActivity } from '../publish/publish-activity.js'
import type { Surveys } from '../surveys.js'
import type { TurnQueue } from '../time-slice.js'
import type { Client } from './client.js'
import type { ConnectionRegistry } from './registry.js'
import type { TokenInvalidations } from './token-invalidations.js'
import type { TokenCheck, TokenRejectionReason } from './tokens.js'

// Circle of imports: every client has the context, which lists all clients. Both are passed to the functions of a connection.

export interface ProcessStats {
  readonly uptimeSeconds: number
  /** Resident memory. */
  readonly memoryBytes: number
}

/** Everything that the core needs from outside. Tests pass a fake clock and run the end of a turn themselves. */
export interface RelayDependencies extends HubDependencies {
  readonly broker: Broker
  readonly history: History
  readonly maps: Maps
  readonly presence: Presence
  readonly cluster: Cluster
  readonly userConnections: UserConnections
  readonly userRates: UserRates
  readonly eventProxies: EventProxies
  readonly checkToken: TokenCheck
  readonly checkSubscriptionToken: TokenCheck
  /** Called for each rejected token, with the address of the client. */
  readonly tokenRejected: (reason: TokenRejectionReason, address: string) => void
  /** Called each time that a limit of the configuration rejects a client. `who`: the user, or the address of an anonymous client. */
  readonly limitReached: (limit: string, who: string) => void
  /** Returns a number from 0 to below 1. */
  readonly random: () => number
  /** Returns an unguessable id. */
  readonly newId: () => string
  /** Returns a readable description of the first mismatch with the named schema, or null if the data is valid. */
  readonly schemaError: (schema: string, data: unknown) => string | null
  /**
   * Runs the task after a client had time to process a reply that is being sent. If a reply and a push arrive in one read,
   * the official client handles the push first.
   */
  readonly delayPushAfterReply: (task: () => void) => void
  readonly processStats: () => ProcessStats
  /** Name of this node, as operators see it. */
  readonly name: string
  readonly version: string
}

/** State shared by the modules of the core. It is private to the core; other folders use the methods of `Relay`. */
export interface RelayContext extends RelayDependencies {
  readonly hub: Hub
  readonly surveys: Surveys<CoreSurveys>
  readonly activity: PublishActivity
  readonly clients: ConnectionRegistry<Client>
  /** Clients of emulated transports (HTTP streaming, SSE) by session id; their commands arrive in separate requests. */
  readonly sessions: Map<string, Client>
  /** Clients whose commands used up their time slice and continue in the next turn. */
  readonly interrupted: TurnQueue
  readonly patches: DeltaPatches
  readonly tokenInvalidations: TokenInvalidations
  readonly presenceMaps: PresenceMaps
  /** Lists of publications that several clients recover. */
  readonly recoveryCache: RecoveryCache
  /** Pages of maps that several clients load. */
  readonly statePages: StatePages
  /** Unique id of this node. */
  readonly node: string
  /** Replaced when the configuration is reloaded. */
  clientOptions: ClientOptions
  channelRules: ChannelRules
  rpcRules: RpcRules
}

export interface BackgroundDependencies {
  readonly log: Pick<Log, 'error'>
  readonly metrics: { unexpectedError(source: 'background'): void }
}

/**
 * Runs work that nothing waits for. Engine errors are ignored, because the engine reports them; others are logged. A rejection
 * that nothing observes would close the relay.
 */
export const runInBackground = ({ metrics, log }: BackgroundDependencies, work: () => unknown): void => {
  const failed = (error: unknown): void => {
    if (error instanceof EngineError) return
    metrics.unexpectedError('background')
    log.error({ err: error }, 'internal error in background work')
  }
  try {
    const result = work()
    if (result instanceof Promise) result.catch(failed)
  } catch (error) {
    failed(error)
  }
}
