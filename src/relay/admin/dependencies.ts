import type { IncomingMessage } from 'node:http'
import type { Logger } from 'pino'
import type { ApiDispatcher } from '../api/dispatcher.js'
import type { RelayConfig } from '../config/config.js'
import type { ExpectedTraffic } from '../config/expected-traffic.js'
import type { Relay } from '../core/relay.js'
import type { Totals } from '../metrics/relay-metrics.js'
import type { ProxyStatus } from '../proxies/health.js'
import type { Rejections } from '../transport/rejections.js'

/** Everything that the operators' page needs from the relay. */
export interface AdminDependencies {
  readonly relay: Relay
  readonly dispatcher: ApiDispatcher
  readonly config: () => RelayConfig
  readonly configTimes: { readonly startedAt: number; reloadedAt: number | null }
  /** The traffic that the current namespaces expect. */
  readonly expectedTraffic: () => readonly ExpectedTraffic[]
  readonly addressOf: (request: IncomingMessage) => string
  readonly totals: () => Totals
  readonly rejections: Rejections
  /** The name of this node on the page. */
  readonly nodeName: string
  /** Null for the memory engine. */
  readonly isEngineConnected: () => boolean | null
  readonly proxies: () => readonly ProxyStatus[]
  /** Number of webhook events that wait, by the name of their proxy. */
  readonly waitingEvents: () => Promise<ReadonlyMap<string, number>>
  /** Counts an unexpected error. */
  readonly unexpectedError: () => void
  /** The folder of the built page. */
  readonly pageFolder: string
  readonly log: Logger
}
