import { Gauge, Registry } from 'prom-client'
import { collectProcessMetrics } from '../../shared/process-metrics.js'
import type { Action, CoreMetrics, MessageType, Traffic } from '../core/metrics.js'
import type { RelayStats } from '../core/relay.js'
import type { RejectionKind } from '../transport/rejections.js'
import { Counter, Counters, Histograms, TrafficCounters } from './metric-tables.js'

/** What others keep count of already; asked when somebody reads the numbers. */
export interface MetricSources {
  readonly version: string
  readonly stats: () => RelayStats
  /** Relays that act as one. */
  readonly nodes: () => number
  readonly isEngineReady: () => boolean
}

export interface Totals {
  readonly published: number
  /** One for each client that a publication went to. */
  readonly delivered: number
  readonly bytesSent: number
}

/** From 100 µs to 10 s. */
const BOUNDS = [1e-4, 2.5e-4, 5e-4, 1e-3, 5e-3, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
const BROADCAST_BOUNDS = [1e-6, 1e-5, 5e-5, ...BOUNDS]
const LAG_BOUNDS = BOUNDS.filter((bound) => bound >= 1e-3)

/** What the official clients call themselves. Anybody can send any name, so others are not told apart. */
const CLIENT_NAMES: ReadonlySet<string> = new Set(['js', 'go', 'dart', 'swift', 'java', 'python', 'csharp', 'flutter'])
const clientName = (name: string): string => (name === '' ? 'unnamed' : CLIENT_NAMES.has(name) ? name : 'unregistered')
const clientVersion = (version: string): string => (version === '' ? 'unversioned' : 'unregistered')

/** How clients come: all transports are HTTP/1.1 at first. */
const ACCEPT_PROTOCOL = 'h1'

const SLOW = 3008

/** Those that misconfiguration causes; others appear with their first occurrence. */
const REJECTIONS: Readonly<Record<RejectionKind, readonly string[]>> = {
  origin: ['not-allowed'],
  token: ['missing', 'expired', 'bad-signature', 'malformed', 'bad-claims', 'no-user', 'no-secret', 'not-yet-valid'],
  api_key: ['missing', 'wrong']
}

const ERROR_SOURCES = ['api', 'http', 'admin', 'connection', 'delivery', 'background'] as const

const REFUSAL_REASONS = ['origin', 'limit', 'rate', 'address'] as const

/**
 * The numbers of one relay, under the names that dashboards for Centrifugo ask for; ours begin with `relay_`. What happens
 * is counted in plain numbers, and made into text when somebody reads them.
 */
export class RelayMetrics implements CoreMetrics {
  readonly #registry = new Registry()
  readonly #messagesSent = new Counters(
    'centrifugo_node_messages_sent_count',
    'Messages sent to the engine by this node.',
    ['type', 'channel_namespace']
  )
  readonly #messagesReceived = new Counters(
    'centrifugo_node_messages_received_count',
    'Messages received from the engine.',
    ['type', 'channel_namespace']
  )
  readonly #actions = new Counters('centrifugo_node_action_count', 'Actions of this node.', [
    'action',
    'channel_namespace'
  ])
  readonly #broadcastDurations = new Histograms(
    'centrifugo_node_broadcast_duration_seconds',
    'Time to write one message to all subscribers of this node.',
    ['type', 'channel_namespace'],
    BROADCAST_BOUNDS
  )
  readonly #lags = new Histograms(
    'centrifugo_node_pub_sub_lag_seconds',
    'Time from publish to delivery.',
    ['channel_namespace'],
    LAG_BOUNDS
  )
  readonly #connectionLimit = new Counter(
    'centrifugo_node_client_connection_limit',
    'Connections rejected by the connection limit.'
  )
  readonly #connectionsAccepted = new Counters(
    'centrifugo_client_connections_accepted',
    'Accepted client connections.',
    ['transport', 'accept_protocol', 'client_name', 'client_version']
  )
  readonly #connectionsInflight = new Counters(
    'centrifugo_client_connections_inflight',
    'Current client connections.',
    ['transport', 'accept_protocol', 'client_name', 'client_version'],
    'gauge'
  )
  readonly #subscriptionsAccepted = new Counters(
    'centrifugo_client_subscriptions_accepted',
    'Accepted subscriptions.',
    ['client_name', 'channel_namespace']
  )
  readonly #subscriptionsInflight = new Counters(
    'centrifugo_client_subscriptions_inflight',
    'Current subscriptions.',
    ['client_name', 'channel_namespace'],
    'gauge'
  )
  readonly #commandDurations = new Histograms(
    'centrifugo_client_command_duration_seconds_histogram',
    'Time to execute a client command.',
    ['method', 'channel_namespace'],
    BOUNDS
  )
  readonly #replyErrors = new Counters('centrifugo_client_num_reply_errors', 'Client commands with an error reply.', [
    'method',
    'code',
    'channel_namespace'
  ])
  readonly #serverUnsubscribes = new Counters(
    'centrifugo_client_num_server_unsubscribes',
    'Subscriptions ended by the relay.',
    ['code', 'channel_namespace']
  )
  readonly #serverDisconnects = new Counters(
    'centrifugo_client_num_server_disconnects',
    'Connections closed by the relay.',
    ['code']
  )
  readonly #recoveries = new Counters('centrifugo_client_recover', 'Recoveries requested by clients, by result.', [
    'recovered',
    'channel_namespace',
    'has_recovered_publications'
  ])
  readonly #pingPongs = new Histograms(
    'centrifugo_client_ping_pong_duration_seconds',
    'Time from ping to pong.',
    ['transport'],
    BOUNDS
  )
  readonly #sent = new TrafficCounters('centrifugo_transport_messages_sent', 'to clients.', [
    'transport',
    'frame_type',
    'channel_namespace'
  ])
  readonly #received = new TrafficCounters('centrifugo_transport_messages_received', 'from clients.', [
    'transport',
    'frame_type',
    'channel_namespace'
  ])
  readonly #closes = new Counters('centrifugo_transport_outgoing_close_count', 'Close frames sent to clients.', [
    'transport',
    'code'
  ])
  readonly #apiDurations = new Histograms(
    'centrifugo_api_command_duration_seconds_histogram',
    'Time to execute a command of the publish API.',
    ['protocol', 'method'],
    BOUNDS
  )
  readonly #apiErrors = new Counters(
    'centrifugo_api_command_errors_total',
    'Commands of the publish API that failed.',
    ['protocol', 'method', 'error']
  )
  readonly #suppressed = new Counters(
    'centrifugo_broker_publish_suppressed_count',
    'Publications suppressed by an idempotency key or a version.',
    ['reason', 'channel_namespace']
  )
  readonly #conflated = new Counters(
    'relay_conflated_publications_total',
    'Publications merged into newer ones for slow clients.',
    ['channel_namespace']
  )
  readonly #slow = new Counter('relay_slow_disconnects_total', 'Slow clients disconnected with 3008.')
  readonly #refused = new Counters(
    'relay_connections_refused_total',
    'Connections rejected before the upgrade, by reason.',
    ['reason']
  )
  readonly #rejections = new Counters('relay_rejections_total', 'Rejected origins, tokens and API keys.', [
    'kind',
    'reason'
  ])
  readonly #unexpectedErrors = new Counters(
    'relay_unexpected_errors_total',
    'Unexpected errors that ended a request, connection or command; the log has the cause.',
    ['source']
  )
  #published = 0
  readonly #engineOutages = new Counter('relay_engine_outages_total', 'Outages of the engine.')
  readonly #engineRefusals = new Counter('relay_engine_refusals_total', 'Commands rejected by the engine.')
  readonly #engineStrangers = new Counter(
    'relay_engine_strange_messages_total',
    'Malformed messages received from the engine.'
  )
  readonly #families = [
    this.#messagesSent,
    this.#messagesReceived,
    this.#actions,
    this.#broadcastDurations,
    this.#lags,
    this.#connectionLimit,
    this.#connectionsAccepted,
    this.#connectionsInflight,
    this.#subscriptionsAccepted,
    this.#subscriptionsInflight,
    this.#commandDurations,
    this.#replyErrors,
    this.#serverUnsubscribes,
    this.#serverDisconnects,
    this.#recoveries,
    this.#pingPongs,
    this.#sent,
    this.#received,
    this.#closes,
    this.#apiDurations,
    this.#apiErrors,
    this.#suppressed,
    this.#conflated,
    this.#slow,
    this.#refused,
    this.#rejections,
    this.#unexpectedErrors,
    this.#engineOutages,
    this.#engineRefusals,
    this.#engineStrangers
  ]

  constructor(sources: MetricSources) {
    this.#readAtScrape(sources)
    // From the start: a series that appears with its first refusals hides them from who watches for a rise.
    for (const reason of REFUSAL_REASONS) this.#refused.of(reason)
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
    if (code === SLOW) this.#slow.add()
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

  /** A command came in; what it was called is one of ours, never what somebody sent. */
  command(method: string, namespace: string, bytes: number, transport: string): void {
    const received = this.#received.of(transport, method === 'pong' ? 'client_pong' : method, namespace)
    received.messages.value += 1
    received.bytes.value += bytes
  }

  /** The answer to a command is on its way. */
  replied(method: string, namespace: string, seconds: number): void {
    this.#commandDurations.of(method, namespace).observe(seconds)
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

  /** For joins and leaves, and for what relays tell each other. */
  messageSent(type: MessageType, namespace: string): void {
    this.#messagesSent.of(type, namespace).value += 1
  }

  /** A message came from the engine and was handed to all subscribers. */
  delivered(type: MessageType, namespace: string, broadcastSeconds: number, lagSeconds: number): void {
    this.#messagesReceived.of(type, namespace).value += 1
    this.#broadcastDurations.of(type, namespace).observe(broadcastSeconds)
    this.#lags.of(namespace).observe(lagSeconds)
  }

  /** The numbers to add to; whoever writes to many clients keeps them. */
  sent(transport: string, frameType: string, namespace: string): Traffic {
    return this.#sent.of(transport, frameType, namespace)
  }

  engineAction(action: Action, namespace: string): void {
    this.#actions.of(action, namespace).value += 1
  }

  pongReceived(transport: string, seconds: number): void {
    this.#pingPongs.of(transport).observe(seconds)
  }

  /** `method` is one that the API has. */
  apiReplied(method: string, seconds: number): void {
    this.#apiDurations.of('http', method).observe(seconds)
  }

  apiError(method: string, code: number): void {
    this.#apiErrors.of('http', method, String(code)).value += 1
  }

  /** `reason` is one of ours, never what somebody sent. */
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

  connectionRefused(reason: (typeof REFUSAL_REASONS)[number]): void {
    this.#refused.of(reason).value += 1
    if (reason !== 'origin') this.#connectionLimit.add()
  }

  /** Since the start. */
  totals(): Totals {
    const { messages } = this.#sent.total('frame_type', 'push_publication')
    return { published: this.#published, delivered: messages, bytesSent: this.#sent.total().bytes }
  }

  engineLost(): void {
    this.#engineOutages.add()
  }

  engineError(): void {
    this.#engineRefusals.add()
  }

  engineMalformedMessage(): void {
    this.#engineStrangers.add()
  }

  get contentType(): string {
    return this.#registry.contentType
  }

  /** All of it in the text format of Prometheus. */
  async text(): Promise<string> {
    return this.#families.map((family) => family.text()).join('') + (await this.#registry.metrics())
  }

  #readAtScrape({ version, stats, nodes, isEngineReady }: MetricSources): void {
    const gauges: readonly (readonly [name: string, help: string, read: () => number])[] = [
      ['centrifugo_node_num_clients', 'Connected clients.', () => stats().clients],
      ['centrifugo_node_num_users', 'Connected users.', () => stats().users],
      ['centrifugo_node_num_subscriptions', 'Current subscriptions.', () => stats().subscriptions],
      ['centrifugo_node_num_channels', 'Channels with subscribers.', () => stats().channels],
      ['centrifugo_node_num_nodes', 'Nodes of the cluster.', nodes],
      ['relay_engine_ready', '1 while the engine is available.', () => Number(isEngineReady())]
    ]
    const registers = [this.#registry]
    for (const [name, help, read] of gauges) {
      new Gauge({
        name,
        help,
        registers,
        collect() {
          this.set(read())
        }
      })
    }
    new Gauge({
      name: 'centrifugo_node_build',
      help: 'Version of this node.',
      labelNames: ['version'],
      registers
    }).set({ version }, 1)
  }
}
