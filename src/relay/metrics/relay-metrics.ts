import { AggregatorRegistry, Gauge, Registry } from 'prom-client'
import { collectProcessMetrics } from '../../shared/process-metrics.js'
import type { RelayConfig } from '../config/config.js'
import type { ProxyEvent } from '../config/proxy-selection.js'
import type { Action, CoreMetrics, MessageType, Traffic } from '../core/core-metrics.js'
import type { MapSuppression } from '../core/engine.js'
import { RATES } from '../core/fan-out/rate-class.js'
import type { RelayStats } from '../core/relay.js'
import type { ProxyMetrics } from '../proxies/event-proxy.js'
import type { RejectionReasons } from '../transport/rejections.js'
import { CLIENT_LABELS, clientName, clientVersion } from './client-labels.js'
import { defineMetrics } from './definitions.js'
import {
  ACCEPT_PROTOCOL,
  BROKER_NAME,
  type ConnectionRejection,
  createKnownSeries,
  createNamespaceSeries,
  createProxySeries,
  createSharedEngineSeries,
  PROXY_PROTOCOL,
  type ProbeStep,
  type UnexpectedErrorSource
} from './known-series.js'
import { type MetricJson, parseMetrics } from './metric-json.js'
import type { Value } from './series.js'
import { withSummaries } from './summaries.js'

/** Values that other parts maintain, read when the metrics are scraped. */
export interface RelayMetricSources {
  readonly version: string
  readonly stats: () => RelayStats
  /** Number of nodes in the cluster. */
  readonly nodes: () => number
  readonly isEngineReady: () => boolean
  /** Whether memory, CPU time and event loop of the process are included. Their observers last as long as the process. */
  readonly hasProcessMetrics: boolean
  /** The longest silence of a channel with subscribers, in milliseconds, by namespace. */
  readonly silences: () => ReadonlyMap<string, number>
}

export interface Totals {
  readonly published: number
  /** Counted once for each client that receives a publication. */
  readonly delivered: number
  readonly bytesSent: number
}

const rateLabel = (rate: number | null): string => (rate === null ? 'full' : String(rate))

const SLOW_CODE = 3008

/** The text format of Prometheus. */
export const metricsText = (metrics: readonly MetricJson[]): Promise<string> =>
  AggregatorRegistry.aggregate([withSummaries(metrics).map((metric) => ({ ...metric, aggregator: 'first' }))]).metrics()

/** Methods that have a label value of their own. */
const HTTP_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])

/** Counts the events of one relay process, and exports them. */
export class RelayMetrics implements CoreMetrics, ProxyMetrics {
  readonly #registry = new Registry()
  readonly #metrics = defineMetrics(this.#registry)
  #published = 0
  #optional: RelayConfig['metrics'] = { recoveredPublications: false, httpRequests: false }

  constructor(sources: RelayMetricSources) {
    this.#readAtScrape(sources)
    this.#metrics.subscriptionsByRate.create([null, ...RATES].map(rateLabel))
    createKnownSeries(this.#metrics, CLIENT_LABELS)
    if (sources.hasProcessMetrics) collectProcessMetrics(this.#registry)
  }

  /** Called once the engine is built, if it is shared with other relays. */
  addSharedEngine(): void {
    createSharedEngineSeries(this.#metrics)
  }

  clientConnected(transport: string, name: string, version: string): void {
    const labels = [transport, ACCEPT_PROTOCOL, clientName(name), clientVersion(version)]
    this.#metrics.connectionsAccepted.of(...labels).value += 1
    this.#metrics.connectionsInflight.of(...labels).value += 1
    this.#metrics.actions.of('add_client', '').value += 1
  }

  clientClosed(transport: string, name: string, version: string): void {
    const labels = [transport, ACCEPT_PROTOCOL, clientName(name), clientVersion(version)]
    this.#metrics.connectionsInflight.of(...labels).value -= 1
    this.#metrics.actions.of('remove_client', '').value += 1
  }

  disconnected(transport: string, code: number): void {
    this.#metrics.serverDisconnects.of(String(code)).value += 1
    this.#metrics.closes.of(transport, String(code)).value += 1
    if (code === SLOW_CODE) this.#metrics.slow.inc()
  }

  subscribed(namespace: string, name: string, rate: number | null): void {
    this.#metrics.subscriptionsByRate.of(rateLabel(rate)).value += 1
    this.#metrics.subscriptionsAccepted.of(clientName(name), namespace).value += 1
    this.#metrics.subscriptionsInflight.of(clientName(name), namespace).value += 1
    this.#metrics.actions.of('add_subscription', namespace).value += 1
  }

  unsubscribed(namespace: string, name: string, rate: number | null): void {
    this.#metrics.subscriptionsByRate.of(rateLabel(rate)).value -= 1
    this.#metrics.subscriptionsInflight.of(clientName(name), namespace).value -= 1
    this.#metrics.actions.of('remove_subscription', namespace).value += 1
  }

  serverUnsubscribed(namespace: string, code: number): void {
    this.#metrics.serverUnsubscribes.of(String(code), namespace).value += 1
  }

  /** `method` is a method of the protocol, never text of the client. */
  command(method: string, namespace: string, bytes: number, transport: string): void {
    const received = this.#metrics.received.of(transport, method === 'pong' ? 'client_pong' : method, namespace)
    received.messages.value += 1
    received.bytes.value += bytes
  }

  replied(method: string, namespace: string, seconds: number): void {
    this.#metrics.commandDurations.add(seconds, method, namespace)
  }

  replyError(method: string, namespace: string, code: number): void {
    this.#metrics.replyErrors.of(method, String(code), namespace).value += 1
  }

  configure({ metrics, channels, proxies }: Pick<RelayConfig, 'metrics' | 'channels' | 'proxies'>): void {
    this.#optional = metrics
    createProxySeries(this.#metrics, proxies)
    createNamespaceSeries(this.#metrics, CLIENT_LABELS, channels)
  }

  recovered(namespace: string, isRecovered: boolean, publications: number): void {
    this.#metrics.recoveries.of(isRecovered ? 'yes' : 'no', namespace, publications > 0 ? 'yes' : 'no').value += 1
    if (isRecovered && this.#optional.recoveredPublications)
      this.#metrics.recoveredPublications.add(publications, namespace)
  }

  surveyed(op: string, seconds: number): void {
    this.#metrics.surveyDurations.add(seconds, op)
  }

  /** `path` is the pattern of a route, never text of the request. */
  httpResponded(path: string, method: string, status: number): void {
    if (!this.#optional.httpRequests) return
    this.#metrics.httpRequests.of(HTTP_METHODS.has(method) ? method : 'other', path, String(status)).value += 1
  }

  published(namespace: string): void {
    this.#published += 1
    this.#metrics.messagesSent.of('publication', namespace).value += 1
  }

  /** For joins, leaves and messages between nodes. */
  messageSent(type: MessageType, namespace: string): void {
    this.#metrics.messagesSent.of(type, namespace).value += 1
  }

  /** A message of the engine was written to all subscribers of this node. */
  delivered(type: MessageType, namespace: string, broadcastSeconds: number, lagSeconds: number | null): void {
    this.#metrics.messagesReceived.of(type, namespace).value += 1
    this.#metrics.broadcastDurations.add(broadcastSeconds, type, namespace)
    if (lagSeconds !== null) this.#metrics.lags.add(lagSeconds, namespace)
  }

  /** The values to add to. Callers that write to many clients keep them. */
  sent(transport: string, frameType: string, namespace: string): Traffic {
    return this.#metrics.sent.of(transport, frameType, namespace)
  }

  engineAction(action: Action, namespace: string): void {
    this.#metrics.actions.of(action, namespace).value += 1
  }

  pongReceived(transport: string, seconds: number): void {
    this.#metrics.pingPongs.add(seconds, transport)
  }

  /** `method` is a method of the API, never text of the request. */
  apiReplied(method: string, seconds: number): void {
    this.#metrics.apiDurations.add(seconds, 'http', method)
  }

  apiError(method: string, code: number): void {
    this.#metrics.apiErrors.of('http', method, String(code)).value += 1
  }

  proxyInFlight(event: ProxyEvent, proxy: string): Value {
    return this.#metrics.proxyInFlight.of(PROXY_PROTOCOL, event, proxy)
  }

  proxyCalled(event: ProxyEvent, proxy: string, seconds: number): void {
    this.#metrics.proxyDurations.add(seconds, PROXY_PROTOCOL, event, proxy)
  }

  proxyFailed(event: ProxyEvent, proxy: string): void {
    this.#metrics.proxyErrors.of(PROXY_PROTOCOL, event, proxy).value += 1
  }

  rejected<Kind extends keyof RejectionReasons>(kind: Kind, reason: RejectionReasons[Kind]): void {
    this.#metrics.rejections.of(kind, reason).value += 1
  }

  unexpectedError(source: UnexpectedErrorSource): void {
    this.#metrics.unexpectedErrors.of(source).value += 1
  }

  suppressed(namespace: string, reason: 'idempotency' | 'version'): void {
    this.#metrics.suppressed.of(reason, namespace).value += 1
  }

  mapSuppressed(change: 'publish' | 'remove', namespace: string, reason: MapSuppression): void {
    const { mapPublishSuppressed, mapRemoveSuppressed } = this.#metrics
    const counters = change === 'publish' ? mapPublishSuppressed : mapRemoveSuppressed
    counters.of(reason, namespace).value += 1
  }

  mapKeysExpired(keys: number, lagSeconds: number): void {
    this.#metrics.mapKeysExpired.of(BROKER_NAME).value += keys
    this.#metrics.mapExpiryLag.of(BROKER_NAME).value = lagSeconds
  }

  mapExpiryFailed(): void {
    this.#metrics.mapExpiryErrors.of(BROKER_NAME).value += 1
  }

  filteredOut(namespace: string, subscribers: number): void {
    this.#metrics.filteredOut.of(namespace).value += subscribers
  }

  outsideView(namespace: string, subscribers: number): void {
    this.#metrics.outsideView.of(namespace).value += subscribers
  }

  joinOrLeaveDropped(namespace: string): void {
    this.#metrics.joinsAndLeavesDropped.of(namespace).value += 1
  }

  conflated(namespace: string, publications: number): void {
    this.#metrics.conflated.of(namespace).value += publications
  }

  publicationAge(namespace: string, seconds: number): void {
    this.#metrics.publicationAges.add(seconds, namespace)
  }

  deliveryProbed(seconds: number): void {
    this.#metrics.deliveryProbes.add(seconds)
  }

  deliveryProbeFailed(step: ProbeStep): void {
    this.#metrics.deliveryProbeFailures.of(step).value += 1
  }

  connectionRejected(reason: ConnectionRejection): void {
    this.#metrics.rejectedConnections.of(reason).value += 1
    if (reason !== 'origin' && reason !== 'shutdown') this.#metrics.connectionLimit.inc()
  }

  /** Totals since the start of the process. */
  totals(): Totals {
    return {
      published: this.#published,
      delivered: this.#metrics.sent.messagesWith('frame_type', 'push_publication'),
      bytesSent: this.#metrics.sent.totalBytes
    }
  }

  engineLost(): void {
    this.#metrics.engineOutages.inc()
    this.#metrics.pubSubErrors.of(BROKER_NAME, 'connection_lost').value += 1
  }

  engineError(): void {
    this.#metrics.engineErrors.inc()
  }

  engineMalformedMessage(): void {
    this.#metrics.engineMalformed.inc()
    this.#metrics.pubSubDropped.of(BROKER_NAME, 'malformed').value += 1
  }

  userRateCountedLocally(): void {
    this.#metrics.userRatesLocal.inc()
  }

  get contentType(): string {
    return this.#registry.contentType
  }

  /** In the text format of Prometheus. Made from JSON, because the text of a registry ignores `get` of `ArrayHistogram`. */
  async text(): Promise<string> {
    return metricsText(parseMetrics(await this.json()))
  }

  /** JSON for `AggregatorRegistry.aggregate`. */
  async json(): Promise<string> {
    return JSON.stringify(await this.#registry.getMetricsAsJSON())
  }

  #readAtScrape({ version, stats, nodes, isEngineReady, silences }: RelayMetricSources): void {
    const gauges: readonly [name: string, help: string, read: () => number, aggregator?: 'max' | 'min'][] = [
      ['centrifugo_node_num_clients', 'Connected clients.', () => stats().clients],
      ['centrifugo_node_num_users', 'Connected users.', () => stats().users],
      ['centrifugo_node_num_subscriptions', 'Current subscriptions.', () => stats().subscriptions],
      ['centrifugo_node_num_channels', 'Channels with subscribers.', () => stats().channels],
      ['centrifugo_node_num_nodes', 'Nodes of the cluster.', nodes, 'max'],
      ['relay_engine_ready', '1 while the engine is available.', () => Number(isEngineReady()), 'min']
    ]
    const registers = [this.#registry]
    // The aggregator is for several workers, of which every one counts the same nodes.
    for (const [name, help, read, aggregator = 'sum'] of gauges) {
      new Gauge({
        name,
        help,
        registers,
        aggregator,
        collect() {
          this.set(read())
        }
      })
    }
    new Gauge({
      name: 'gatehouse_channel_silence_seconds',
      help: 'Time since the last publication to the most silent channel with subscribers.',
      labelNames: ['channel_namespace'],
      registers,
      aggregator: 'max',
      collect() {
        this.reset()
        for (const [namespace, ms] of silences()) this.set({ channel_namespace: namespace }, ms / 1000)
      }
    })
    new Gauge({
      name: 'centrifugo_node_build',
      help: 'Version of this node.',
      labelNames: ['version'],
      registers,
      aggregator: 'max'
    }).set({ version }, 1)
  }
}
