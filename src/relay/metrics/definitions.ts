import { Counter, type Registry } from 'prom-client'
import { ArrayHistogram, ArrayValues, TrafficCounters } from './series.js'

/** From 100 µs to 10 s. */
const BOUNDS = [1e-4, 2.5e-4, 5e-4, 1e-3, 5e-3, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
const BROADCAST_BOUNDS = [1e-6, 1e-5, 5e-5, ...BOUNDS]
const RECOVERED_BOUNDS = [0, 1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000]
/** From 10 ms to 10 minutes. */
const AGE_BOUNDS = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600]
const PROXY_BOUNDS = BOUNDS.filter((bound) => bound >= 5e-3)
const LAG_BOUNDS = BOUNDS.filter((bound) => bound >= 1e-3)

/** A counter without labels. It is exported from the start with 0. */
const counter = (registry: Registry, name: string, help: string): Counter =>
  new Counter({ name, help, registers: [registry] })

/**
 * Every metric that the relay counts: name, help text and labels. Names that Centrifugo has too are the same; the relay's own
 * begin with `relay_` or `gatehouse_`. `relay-metrics.ts` counts them; an event of the core is also a method of `CoreMetrics`.
 */
export const defineMetrics = (registry: Registry) => ({
  messagesSent: new ArrayValues(
    registry,
    'counter',
    'centrifugo_node_messages_sent_count',
    'Messages sent to the engine by this node.',
    ['type', 'channel_namespace']
  ),
  messagesReceived: new ArrayValues(
    registry,
    'counter',
    'centrifugo_node_messages_received_count',
    'Messages received from the engine.',
    ['type', 'channel_namespace']
  ),
  actions: new ArrayValues(registry, 'counter', 'centrifugo_node_action_count', 'Actions of this node.', [
    'action',
    'channel_namespace'
  ]),
  broadcastDurations: new ArrayHistogram(
    registry,
    'centrifugo_node_broadcast_duration_seconds',
    'Time to write all publications of one event loop turn to the subscribers of this node, for each publication; 0 for joins and leaves.',
    ['type', 'channel_namespace'],
    BROADCAST_BOUNDS
  ),
  lags: new ArrayHistogram(
    registry,
    'centrifugo_node_pub_sub_lag_seconds',
    'Time from publish to delivery.',
    ['channel_namespace'],
    LAG_BOUNDS
  ),
  surveyDurations: new ArrayHistogram(
    registry,
    'centrifugo_node_survey_duration_seconds_histogram',
    'Time until all nodes have responded to a survey or command.',
    ['op'],
    BOUNDS
  ),
  httpRequests: new ArrayValues(
    registry,
    'counter',
    'centrifugo_node_incoming_http_requests_total',
    'HTTP requests by route.',
    // In the order of the text of Centrifugo, which sorts labels by name.
    ['method', 'path', 'status']
  ),
  connectionLimit: counter(
    registry,
    'centrifugo_node_client_connection_limit',
    'Connections rejected by a limit: total, rate or address.'
  ),
  connectionsAccepted: new ArrayValues(
    registry,
    'counter',
    'centrifugo_client_connections_accepted',
    'Accepted client connections.',
    ['transport', 'accept_protocol', 'client_name', 'client_version']
  ),
  connectionsInflight: new ArrayValues(
    registry,
    'gauge',
    'centrifugo_client_connections_inflight',
    'Current client connections.',
    ['transport', 'accept_protocol', 'client_name', 'client_version']
  ),
  subscriptionsAccepted: new ArrayValues(
    registry,
    'counter',
    'centrifugo_client_subscriptions_accepted',
    'Accepted subscriptions.',
    ['client_name', 'channel_namespace']
  ),
  subscriptionsInflight: new ArrayValues(
    registry,
    'gauge',
    'centrifugo_client_subscriptions_inflight',
    'Current subscriptions.',
    ['client_name', 'channel_namespace']
  ),
  subscriptionsByRate: new ArrayValues(
    registry,
    'gauge',
    'gatehouse_subscriptions_by_rate',
    'Current subscriptions by their limit of deliveries per second; full: no limit.',
    ['rate']
  ),
  commandDurations: new ArrayHistogram(
    registry,
    'centrifugo_client_command_duration_seconds_histogram',
    'Time to execute a client command.',
    ['method', 'channel_namespace'],
    BOUNDS
  ),
  replyErrors: new ArrayValues(
    registry,
    'counter',
    'centrifugo_client_num_reply_errors',
    'Client commands with an error reply.',
    ['method', 'code', 'channel_namespace']
  ),
  serverUnsubscribes: new ArrayValues(
    registry,
    'counter',
    'centrifugo_client_num_server_unsubscribes',
    'Subscriptions ended by the relay.',
    ['code', 'channel_namespace']
  ),
  serverDisconnects: new ArrayValues(
    registry,
    'counter',
    'centrifugo_client_num_server_disconnects',
    'Connections closed by the relay.',
    ['code']
  ),
  recoveries: new ArrayValues(
    registry,
    'counter',
    'centrifugo_client_recover',
    'Recoveries requested by clients, by result.',
    ['recovered', 'channel_namespace', 'has_recovered_publications']
  ),
  recoveredPublications: new ArrayHistogram(
    registry,
    'centrifugo_client_recovered_publications',
    'Publications in a successful recovery.',
    ['channel_namespace'],
    RECOVERED_BOUNDS
  ),
  pingPongs: new ArrayHistogram(
    registry,
    'centrifugo_client_ping_pong_duration_seconds',
    'Time from ping to pong.',
    ['transport'],
    BOUNDS
  ),
  sent: new TrafficCounters(registry, 'centrifugo_transport_messages_sent', 'to clients.', [
    'transport',
    'frame_type',
    'channel_namespace'
  ]),
  received: new TrafficCounters(registry, 'centrifugo_transport_messages_received', 'from clients.', [
    'transport',
    'frame_type',
    'channel_namespace'
  ]),
  closes: new ArrayValues(
    registry,
    'counter',
    'centrifugo_transport_outgoing_close_count',
    'Close frames sent to clients.',
    ['transport', 'code']
  ),
  apiDurations: new ArrayHistogram(
    registry,
    'centrifugo_api_command_duration_seconds_histogram',
    'Time to execute a command of the publish API.',
    ['protocol', 'method'],
    BOUNDS
  ),
  apiErrors: new ArrayValues(
    registry,
    'counter',
    'centrifugo_api_command_errors_total',
    'Commands of the publish API that failed.',
    ['protocol', 'method', 'error']
  ),
  proxyDurations: new ArrayHistogram(
    registry,
    'centrifugo_proxy_duration_seconds_histogram',
    'Time to ask a backend about an event, also if the call fails.',
    ['protocol', 'type', 'name'],
    PROXY_BOUNDS
  ),
  proxyErrors: new ArrayValues(
    registry,
    'counter',
    'centrifugo_proxy_errors',
    'Failed calls of a backend about an event.',
    ['protocol', 'type', 'name']
  ),
  proxyInFlight: new ArrayValues(
    registry,
    'gauge',
    'centrifugo_proxy_inflight_requests',
    'Requests to a backend that are under way.',
    ['protocol', 'type', 'name']
  ),
  suppressed: new ArrayValues(
    registry,
    'counter',
    'centrifugo_broker_publish_suppressed_count',
    'Publications suppressed by an idempotency key or a version.',
    ['reason', 'channel_namespace']
  ),
  pubSubErrors: new ArrayValues(
    registry,
    'counter',
    'centrifugo_broker_redis_pub_sub_errors',
    'Errors of the connections to Redis.',
    ['broker_name', 'error']
  ),
  pubSubDropped: new ArrayValues(
    registry,
    'counter',
    'centrifugo_broker_redis_pub_sub_dropped_messages',
    'Messages of Redis that were not processed.',
    ['broker_name', 'channel_type']
  ),
  conflated: new ArrayValues(
    registry,
    'counter',
    'relay_conflated_publications_total',
    'Publications merged into newer ones for slow clients.',
    ['channel_namespace']
  ),
  filteredOut: new ArrayValues(
    registry,
    'counter',
    'centrifugo_node_tags_filter_dropped_publications',
    'Publications that were not sent to a subscriber because of its tag filter.',
    ['channel_namespace']
  ),
  outsideView: new ArrayValues(
    registry,
    'counter',
    'gatehouse_view_dropped_publications_total',
    'Publications that were not sent to a subscriber because nothing of them is in its view.',
    ['channel_namespace']
  ),
  joinsAndLeavesDropped: new ArrayValues(
    registry,
    'counter',
    'gatehouse_join_leave_dropped_total',
    'Joins and leaves that were not sent, because too many of their channel were waiting.',
    ['channel_namespace']
  ),
  publicationAges: new ArrayHistogram(
    registry,
    'gatehouse_publication_age_seconds',
    'Time from the newest entry of a publication to its delivery, sampled.',
    ['channel_namespace'],
    AGE_BOUNDS
  ),
  deliveryProbes: new ArrayHistogram(
    registry,
    'gatehouse_delivery_probe_seconds',
    'Time from publish to delivery of a successful delivery probe, of the slowest Redis server.',
    [],
    BOUNDS
  ),
  deliveryProbeFailures: new ArrayValues(
    registry,
    'counter',
    'gatehouse_delivery_probe_failures_total',
    'Delivery probes that failed, by step.',
    ['step']
  ),
  slow: counter(registry, 'relay_slow_disconnects_total', 'Slow clients disconnected with 3008.'),
  rejectedConnections: new ArrayValues(
    registry,
    'counter',
    'relay_connections_refused_total',
    'Connections rejected before the upgrade, by reason.',
    ['reason']
  ),
  rejections: new ArrayValues(registry, 'counter', 'relay_rejections_total', 'Rejected origins, tokens and API keys.', [
    'kind',
    'reason'
  ]),
  unexpectedErrors: new ArrayValues(
    registry,
    'counter',
    'relay_unexpected_errors_total',
    'Unexpected errors that ended a request, connection or command; the log has the cause.',
    ['source']
  ),
  engineOutages: counter(registry, 'relay_engine_outages_total', 'Outages of the engine.'),
  engineErrors: counter(registry, 'relay_engine_refusals_total', 'Commands rejected by the engine.'),
  engineMalformed: counter(
    registry,
    'relay_engine_strange_messages_total',
    "Malformed messages on the relay's topics in Redis."
  ),
  userRatesLocal: counter(
    registry,
    'relay_user_limits_local_total',
    'Commands that one process counted alone for limits by user, because the engine was unavailable or slow.'
  ),
  mapPublishSuppressed: new ArrayValues(
    registry,
    'counter',
    'centrifugo_map_broker_publish_suppressed_count',
    'Writes to maps that a condition suppressed.',
    ['reason', 'channel_namespace']
  ),
  mapRemoveSuppressed: new ArrayValues(
    registry,
    'counter',
    'centrifugo_map_broker_remove_suppressed_count',
    'Removals from maps that a condition suppressed.',
    ['reason', 'channel_namespace']
  ),
  mapKeysExpired: new ArrayValues(
    registry,
    'counter',
    'centrifugo_map_broker_cleanup_removed_count',
    'Keys of maps that expired.',
    ['broker_name']
  ),
  mapExpiryErrors: new ArrayValues(
    registry,
    'counter',
    'centrifugo_map_broker_cleanup_errors_count',
    'Failed removals of expired keys.',
    ['broker_name']
  ),
  mapExpiryLag: new ArrayValues(
    registry,
    'gauge',
    'centrifugo_map_broker_cleanup_lag_seconds',
    'Time from the deadline of a key to its removal, at the last removal.',
    ['broker_name']
  )
})
