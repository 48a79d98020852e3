import { AggregatorRegistry, Counter, Gauge, Registry } from 'prom-client'
import { collectProcessMetrics } from '../../shared/process-metrics.js'
import type { Action, CoreMetrics, Traffic as FrameTraffic, MessageType } from '../core/metrics.js'
import type { RelayStats } from '../core/relay.js'
import type { RejectionKind } from '../transport/rejections.js'
import { Durations, Traffic, Values } from './series.js'

/** Values that other parts maintain, read when the metrics are scraped. */
export interface MetricSources {
  readonly version: string
  readonly stats: () => RelayStats
  /** Number of nodes in the cluster. */
  readonly nodes: () => number
  readonly isEngineReady: () => boolean
}

export interface Totals {
  readonly published: number
  /** Counted once for each client that receives a publication. */
  readonly delivered: number
  readonly bytesSent: number
}

/** From 100 µs to 10 s. */
const BOUNDS = [1e-4, 2.5e-4, 5e-4, 1e-3, 5e-3, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
const BROADCAST_BOUNDS = [1e-6, 1e-5, 5e-5, ...BOUNDS]
const LAG_BOUNDS = BOUNDS.filter((bound) => bound >= 1e-3)

/** Names of the official clients. Clients can send any name, so all others share one label value. */
const CLIENT_NAMES: ReadonlySet<string> = new Set(['js', 'go', 'dart', 'swift', 'java', 'python', 'csharp', 'flutter'])
const clientName = (name: string): string => (name === '' ? 'unnamed' : CLIENT_NAMES.has(name) ? name : 'unregistered')
const clientVersion = (version: string): string => (version === '' ? 'unversioned' : 'unregistered')

/** All transports start with HTTP/1.1. */
const ACCEPT_PROTOCOL = 'h1'

const SLOW_CODE = 3008

/** Reasons that a misconfiguration causes. Other reasons are exported after their first occurrence. */
const REJECTIONS: Readonly<Record<RejectionKind, readonly string[]>> = {
  origin: ['not-allowed'],
  token: ['missing', 'expired', 'bad-signature', 'malformed', 'bad-claims', 'no-user', 'no-secret', 'not-yet-valid'],
  api_key: ['missing', 'wrong']
}

const ERROR_SOURCES = ['api', 'http', 'admin', 'connection', 'delivery', 'background'] as const

const REFUSED_REASONS = ['origin', 'limit', 'rate', 'address'] as const

/** The metrics of one relay process. Names that Centrifugo has too are the same; the relay's own begin with `relay_`. */
export class RelayMetrics implements CoreMetrics {
  readonly #registry = new Registry()
  readonly #messagesSent = new Values(
    this.#registry,
    'counter',
    'centrifugo_node_messages_sent_count',
    'Messages sent to the engine by this node.',
    ['type', 'channel_namespace']
  )
  readonly #messagesReceived = new Values(
    this.#registry,
    'counter',
    'centrifugo_node_messages_received_count',
    'Messages received from the engine.',
    ['type', 'channel_namespace']
  )
  readonly #actions = new Values(this.#registry, 'counter', 'centrifugo_node_action_count', 'Actions of this node.', [
    'action',
    'channel_namespace'
  ])
  readonly #broadcastDurations = new Durations(
    this.#registry,
    'centrifugo_node_broadcast_duration_seconds',
    'Time to write one message to all subscribers of this node.',
    ['type', 'channel_namespace'],
    BROADCAST_BOUNDS
  )
  readonly #lags = new Durations(
    this.#registry,
    'centrifugo_node_pub_sub_lag_seconds',
    'Time from publish to delivery.',
    ['channel_namespace'],
    LAG_BOUNDS
  )
  readonly #connectionLimit = this.#counter(
    'centrifugo_node_client_connection_limit',
    'Connections rejected by the connection limit.'
  )
  readonly #connectionsAccepted = new Values(
    this.#registry,
    'counter',
    'centrifugo_client_connections_accepted',
    'Accepted client connections.',
    ['transport', 'accept_protocol', 'client_name', 'client_version']
  )
  readonly #connectionsInflight = new Values(
    this.#registry,
    'gauge',
    'centrifugo_client_connections_inflight',
    'Current client connections.',
    ['transport', 'accept_protocol', 'client_name', 'client_version']
  )
  readonly #subscriptionsAccepted = new Values(
    this.#registry,
    'counter',
    'centrifugo_client_subscriptions_accepted',
    'Accepted subscriptions.',
    ['client_name', 'channel_namespace']
  )
  readonly #subscriptionsInflight = new Values(
    this.#registry,
    'gauge',
    'centrifugo_client_subscriptions_inflight',
    'Current subscriptions.',
    ['client_name', 'channel_namespace']
  )
  readonly #commandDurations = new Durations(
    this.#registry,
    'centrifugo_client_command_duration_seconds_histogram',
    'Time to execute a client command.',
    ['method', 'channel_namespace'],
    BOUNDS
  )
  readonly #replyErrors = new Values(
    this.#registry,
    'counter',
    'centrifugo_client_num_reply_errors',
    'Client commands with an error reply.',
    ['method', 'code', 'channel_namespace']
  )
  readonly #serverUnsubscribes = new Values(
    this.#registry,
    'counter',
    'centrifugo_client_num_server_unsubscribes',
    'Subscriptions ended by the relay.',
    ['code', 'channel_namespace']
  )
  readonly #serverDisconnects = new Values(
    this.#registry,
    'counter',
    'centrifugo_client_num_server_disconnects',
    'Connections closed by the relay.',
    ['code']
  )
  readonly #recoveries = new Values(
    this.#registry,
    'counter',
    'centrifugo_client_recover',
    'Recoveries requested by clients, by result.',
    ['recovered', 'channel_namespace', 'has_recovered_publications']
  )
  readonly #pingPongs = new Durations(
    this.#registry,
    'centrifugo_client_ping_pong_duration_seconds',
    'Time from ping to pong.',
    ['transport'],
    BOUNDS
  )
  readonly #sent = new Traffic(this.#registry, 'centrifugo_transport_messages_sent', 'to clients.', [
    'transport',
    'frame_type',
    'channel_namespace'
  ])
  readonly #received = new Traffic(this.#registry, 'centrifugo_transport_messages_received', 'from clients.', [
    'transport',
    'frame_type',
    'channel_namespace'
  ])
  readonly #closes = new Values(
    this.#registry,
    'counter',
    'centrifugo_transport_outgoing_close_count',
    'Close frames sent to clients.',
    ['transport', 'code']
  )
  readonly #apiDurations = new Durations(
    this.#registry,
    'centrifugo_api_command_duration_seconds_histogram',
    'Time to execute a command of the publish API.',
    ['protocol', 'method'],
    BOUNDS
  )
  readonly #apiErrors = new Values(
    this.#registry,
    'counter',
    'centrifugo_api_command_errors_total',
    'Commands of the publish API that failed.',
    ['protocol', 'method', 'error']
  )
  readonly #suppressed = new Values(
    this.#registry,
    'counter',
    'centrifugo_broker_publish_suppressed_count',
    'Publications suppressed by an idempotency key or a version.',
    ['reason', 'channel_namespace']
  )
  readonly #conflated = new Values(
    this.#registry,
    'counter',
    'relay_conflated_publications_total',
    'Publications merged into newer ones for slow clients.',
    ['channel_namespace']
  )
  readonly #slow = this.#counter('relay_slow_disconnects_total', 'Slow clients disconnected with 3008.')
  readonly #refused = new Values(
    this.#registry,
    'counter',
    'relay_connections_refused_total',
    'Connections rejected before the upgrade, by reason.',
    ['reason']
  )
  readonly #rejections = new Values(
    this.#registry,
    'counter',
    'relay_rejections_total',
    'Rejected origins, tokens and API keys.',
    ['kind', 'reason']
  )
  readonly #unexpectedErrors = new Values(
    this.#registry,
    'counter',
    'relay_unexpected_errors_total',
    'Unexpected errors that ended a request, connection or command; the log has the cause.',
    ['source']
  )
  #published = 0
  readonly #engineOutages = this.#counter('relay_engine_outages_total', 'Outages of the engine.')
  readonly #engineErrors = this.#counter('relay_engine_refusals_total', 'Commands rejected by the engine.')
  readonly #engineMalformed = this.#counter(
    'relay_engine_strange_messages_total',
    'Malformed messages received from the engine.'
  )
  constructor(sources: MetricSources) {
    this.#readAtScrape(sources)
    // Exported from the start: `increase` misses the first value of a new series.
    for (const reason of REFUSED_REASONS) this.#refused.of(reason)
    for (const [kind, reasons] of Object.entries(REJECTIONS))
      for (const reason of reasons) this.#rejections.of(kind, reason)
    for (const source of ERROR_SOURCES) this.#unexpectedErrors.of(source)
    collectProcessMetrics(this.#registry)
  }

  clientConnected(transport: string, name: string, version: string): void {
    const labels = [transport, ACCEPT_PROTOCOL, clientName(name), clientVersion(version)]
    this.#connectionsAccepted.of(...labels).value += 1
    this.#connectionsInflight.of(...labels).value += 1
    this.#actions.of('add_client', '').value += 1
  }

  clientClosed(transport: string, name: string, version: string): void {
    this.#connectionsInflight.of(transport, ACCEPT_PROTOCOL, clientName(name), clientVersion(version)).value -= 1
    this.#actions.of('remove_client', '').value += 1
  }

  disconnected(transport: string, code: number): void {
    this.#serverDisconnects.of(String(code)).value += 1
    this.#closes.of(transport, String(code)).value += 1
    if (code === SLOW_CODE) this.#slow.inc()
  }

  subscribed(namespace: string, name: string): void {
    this.#subscriptionsAccepted.of(clientName(name), namespace).value += 1
    this.#subscriptionsInflight.of(clientName(name), namespace).value += 1
    this.#actions.of('add_subscription', namespace).value += 1
  }

  unsubscribed(namespace: string, name: string): void {
    this.#subscriptionsInflight.of(clientName(name), namespace).value -= 1
    this.#actions.of('remove_subscription', namespace).value += 1
  }

  serverUnsubscribed(namespace: string, code: number): void {
    this.#serverUnsubscribes.of(String(code), namespace).value += 1
  }

  /** `method` is a method of the protocol, never text of the client. */
  command(method: string, namespace: string, bytes: number, transport: string): void {
    const received = this.#received.of(transport, method === 'pong' ? 'client_pong' : method, namespace)
    received.messages.value += 1
    received.bytes.value += bytes
  }

  replied(method: string, namespace: string, seconds: number): void {
    this.#commandDurations.add(seconds, method, namespace)
  }

  replyError(method: string, namespace: string, code: number): void {
    this.#replyErrors.of(method, String(code), namespace).value += 1
  }

  recovered(namespace: string, isRecovered: boolean, hasPublications: boolean): void {
    this.#recoveries.of(isRecovered ? 'yes' : 'no', namespace, hasPublications ? 'yes' : 'no').value += 1
  }

  published(namespace: string): void {
    this.#published += 1
    this.#messagesSent.of('publication', namespace).value += 1
  }

  /** For joins, leaves and messages between nodes. */
  messageSent(type: MessageType, namespace: string): void {
    this.#messagesSent.of(type, namespace).value += 1
  }

  /** A message of the engine was written to all subscribers of this node. */
  delivered(type: MessageType, namespace: string, broadcastSeconds: number, lagSeconds: number | null): void {
    this.#messagesReceived.of(type, namespace).value += 1
    this.#broadcastDurations.add(broadcastSeconds, type, namespace)
    if (lagSeconds !== null) this.#lags.add(lagSeconds, namespace)
  }

  /** The values to add to. Callers that write to many clients keep them. */
  sent(transport: string, frameType: string, namespace: string): FrameTraffic {
    return this.#sent.of(transport, frameType, namespace)
  }

  engineAction(action: Action, namespace: string): void {
    this.#actions.of(action, namespace).value += 1
  }

  pongReceived(transport: string, seconds: number): void {
    this.#pingPongs.add(seconds, transport)
  }

  /** `method` is a method of the API, never text of the request. */
  apiReplied(method: string, seconds: number): void {
    this.#apiDurations.add(seconds, 'http', method)
  }

  apiError(method: string, code: number): void {
    this.#apiErrors.of('http', method, String(code)).value += 1
  }

  /** `reason` is a constant, never text of the client. */
  rejected(kind: RejectionKind, reason: string): void {
    this.#rejections.of(kind, reason).value += 1
  }

  unexpectedError(source: (typeof ERROR_SOURCES)[number]): void {
    this.#unexpectedErrors.of(source).value += 1
  }

  suppressed(namespace: string, reason: 'idempotency' | 'version'): void {
    this.#suppressed.of(reason, namespace).value += 1
  }

  conflated(namespace: string, publications: number): void {
    this.#conflated.of(namespace).value += publications
  }

  connectionRefused(reason: (typeof REFUSED_REASONS)[number]): void {
    this.#refused.of(reason).value += 1
    if (reason !== 'origin') this.#connectionLimit.inc()
  }

  /** Totals since the start of the process. */
  totals(): Totals {
    return {
      published: this.#published,
      delivered: this.#sent.messagesWith('frame_type', 'push_publication'),
      bytesSent: this.#sent.totalBytes
    }
  }

  engineLost(): void {
    this.#engineOutages.inc()
  }

  engineError(): void {
    this.#engineErrors.inc()
  }

  engineMalformedMessage(): void {
    this.#engineMalformed.inc()
  }

  get contentType(): string {
    return this.#registry.contentType
  }

  /** In the text format of Prometheus. Made from JSON, because the text of a registry ignores `get` of `Durations`. */
  async text(): Promise<string> {
    const metrics = await this.#registry.getMetricsAsJSON()
    return AggregatorRegistry.aggregate([metrics.map((metric) => ({ ...metric, aggregator: 'first' }))]).metrics()
  }

  /** JSON for `AggregatorRegistry.aggregate`. */
  async json(): Promise<string> {
    return JSON.stringify(await this.#registry.getMetricsAsJSON())
  }

  /** A counter without labels. It is exported from the start with 0. */
  #counter(name: string, help: string): Counter {
    return new Counter({ name, help, registers: [this.#registry] })
  }

  #readAtScrape({ version, stats, nodes, isEngineReady }: MetricSources): void {
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
      name: 'centrifugo_node_build',
      help: 'Version of this node.',
      labelNames: ['version'],
      registers,
      aggregator: 'max'
    }).set({ version }, 1)
  }
}
