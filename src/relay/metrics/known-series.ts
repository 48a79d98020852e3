import type { ApiMethodName } from '../api/methods.js'
import type { ProxyConfig } from '../config/proxy-selection.js'
import type { TransportName } from '../core/codec/transport.js'
import * as codes from '../core/codes.js'
import type { Action, ErrorSource, MapAction, MapMessageType, MessageType } from '../core/core-metrics.js'
import type { MapSuppression } from '../core/engine.js'
import type { ChannelRules } from '../core/options.js'
import type { Method } from '../core/protocol.js'
import type { RejectionReasons } from '../transport/rejections.js'
import type { defineMetrics } from './definitions.js'

// Counters are exported from the start with 0: `increase` of Prometheus misses the first value of a new series. Excepted are
// counters with too many combinations of labels, such as those of messages to clients.

/** With more namespaces, their series are created by the first event, so that the page of metrics stays small. */
const MAX_NAMESPACES = 20

type Metrics = ReturnType<typeof defineMetrics>

/** The names of a closed set, which the compiler checks for completeness. */
const namesOf = <Name extends string>(names: Readonly<Record<Name, true>>): readonly string[] => Object.keys(names)

const TRANSPORTS = namesOf<TransportName>({
  websocket: true,
  http_stream: true,
  sse: true,
  uni_websocket: true,
  uni_http_stream: true,
  uni_sse: true
})

const API_METHOD_NAMES = namesOf<ApiMethodName>({
  publish: true,
  broadcast: true,
  subscribe: true,
  unsubscribe: true,
  disconnect: true,
  refresh: true,
  invalidate_user_tokens: true,
  presence: true,
  presence_stats: true,
  history: true,
  history_remove: true,
  channels: true,
  info: true,
  rpc: true,
  map_publish: true,
  map_remove: true,
  map_read_state: true,
  map_read_stream: true,
  map_stats: true,
  map_clear: true
})
/** `broadcast_publish`: one channel of a broadcast. */
const API_ERROR_METHODS = [...API_METHOD_NAMES, 'broadcast_publish']
const API_ERRORS = ['100', '102', '104', '106', '107', '108', '112']

const CONNECTION_METHODS: readonly Method[] = ['connect', 'refresh']
const CONNECTION_ERRORS = ['100', '109']
const CHANNEL_METHODS: readonly Method[] = [
  'subscribe',
  'publish',
  'presence',
  'presence_stats',
  'history',
  'sub_refresh'
]
const CHANNEL_ERRORS = ['100', '103', '105', '106', '107', '108', '109', '112']

const CHANNEL_MESSAGES: readonly MessageType[] = ['publication', 'join', 'leave']
const CHANNEL_ACTIONS = [
  'add_subscription',
  'remove_subscription',
  ...namesOf<Exclude<Action, MapAction | 'survey'>>({
    broker_subscribe: true,
    broker_unsubscribe: true,
    add_presence: true,
    remove_presence: true,
    presence: true,
    presence_stats: true,
    history: true,
    history_recover: true,
    history_recover_cache: true,
    history_stream_top: true,
    history_remove: true
  })
]

const MAP_MESSAGES = namesOf<MapMessageType>({ map_publication: true, map_removal: true })
const MAP_ACTIONS = namesOf<MapAction>({
  map_broker_subscribe: true,
  map_broker_unsubscribe: true,
  map_publish: true,
  map_remove: true,
  map_state_read: true,
  map_stream_read: true,
  map_stats: true,
  map_clear: true
})
const MAP_SUPPRESSIONS = namesOf<MapSuppression>({
  idempotency: true,
  version: true,
  key_exists: true,
  key_not_found: true
})

const CLOSE_CODES = Object.values(codes).flatMap((each) =>
  each instanceof codes.Disconnect && each !== codes.DISCONNECT_NORMAL ? [String(each.code)] : []
)
const UNSUBSCRIBE_CODES = [
  codes.UNSUBSCRIBE_BY_SERVER,
  codes.UNSUBSCRIBE_INSUFFICIENT_STATE,
  codes.UNSUBSCRIBE_EXPIRED
].map(({ code }) => String(code))

const REJECTIONS: { readonly [Kind in keyof RejectionReasons]: readonly string[] } = {
  origin: namesOf<RejectionReasons['origin']>({ 'not-allowed': true }),
  token: namesOf<RejectionReasons['token']>({
    missing: true,
    expired: true,
    revoked: true,
    'invalidations-unknown': true,
    'too-long': true,
    malformed: true,
    'not-an-object': true,
    'bad-algorithm': true,
    'bad-header': true,
    'bad-signature': true,
    'no-key-id': true,
    'unknown-key': true,
    'keys-unavailable': true,
    'no-expiry': true,
    'bad-expiry': true,
    'wrong-expiry-unit': true,
    'bad-not-before': true,
    'not-yet-valid': true,
    'bad-issued-at': true,
    'issued-in-future': true,
    'bad-claims': true,
    'no-user': true,
    'other-user': true,
    'other-client': true,
    'other-channel': true
  }),
  api_key: namesOf<RejectionReasons['api_key']>({ missing: true, wrong: true })
}

/** `engine`: the engine reports that it is not ready, although every Redis server delivers. */
export type ProbeStep = 'subscribe' | 'publish' | 'delivery' | 'engine'
const PROBE_STEPS = namesOf<ProbeStep>({ subscribe: true, publish: true, delivery: true, engine: true })

export type ConnectionRejection = 'origin' | 'limit' | 'rate' | 'address' | 'shutdown'
const CONNECTION_REJECTIONS = namesOf<ConnectionRejection>({
  origin: true,
  limit: true,
  rate: true,
  address: true,
  shutdown: true
})

export type UnexpectedErrorSource = ErrorSource | 'api' | 'admin'
const ERROR_SOURCES = namesOf<UnexpectedErrorSource>({
  api: true,
  http: true,
  admin: true,
  connection: true,
  delivery: true,
  background: true
})

/** The only broker of a relay. As in Centrifugo, which can have several, it has no name. */
export const BROKER_NAME = ''

/** All transports start with HTTP/1.1. As Centrifugo by default, the relay does not tell. */
export const ACCEPT_PROTOCOL = ''

/** Creates the series that do not depend on the configuration. */
export const createKnownSeries = (metrics: Metrics, clientNames: readonly string[]): void => {
  metrics.rejectedConnections.create(CONNECTION_REJECTIONS)
  for (const [kind, reasons] of Object.entries(REJECTIONS)) metrics.rejections.create([kind], reasons)
  metrics.deliveryProbeFailures.create(PROBE_STEPS)
  metrics.unexpectedErrors.create(ERROR_SOURCES)
  metrics.actions.create(['add_client', 'remove_client', 'survey'], [''])
  metrics.connectionsAccepted.create(TRANSPORTS, [ACCEPT_PROTOCOL], clientNames, ['unversioned', 'unregistered'])
  metrics.serverDisconnects.create(CLOSE_CODES)
  metrics.closes.create(TRANSPORTS, CLOSE_CODES)
  metrics.apiErrors.create(['http'], API_ERROR_METHODS, API_ERRORS)
  metrics.mapKeysExpired.create([BROKER_NAME])
  metrics.mapExpiryErrors.create([BROKER_NAME])
  metrics.mapExpiryLag.create([BROKER_NAME])
  metrics.replyErrors.create(CONNECTION_METHODS, CONNECTION_ERRORS, [''])
  // The channel of an unknown namespace.
  metrics.replyErrors.create(CHANNEL_METHODS, ['102'], [''])
}

/** Creates the series of an engine that is reached over the network. */
export const createSharedEngineSeries = (metrics: Metrics): void => {
  metrics.pubSubErrors.create([BROKER_NAME], ['connection_lost'])
  metrics.pubSubDropped.create([BROKER_NAME], ['malformed'])
}

/** Creates the series of the configured namespaces. */
export const createNamespaceSeries = (
  metrics: Metrics,
  clientNames: readonly string[],
  { namespaces: configured, withoutNamespace }: ChannelRules
): void => {
  if (configured.size >= MAX_NAMESPACES) return
  const all = [['', withoutNamespace] as const, ...configured]
  const namespaces = all.map(([name]) => name)
  const maps = all.flatMap(([name, { map }]) => (map === null ? [] : [name]))
  metrics.messagesSent.create(MAP_MESSAGES, maps)
  metrics.actions.create(MAP_ACTIONS, maps)
  metrics.mapPublishSuppressed.create(MAP_SUPPRESSIONS, maps)
  metrics.mapRemoveSuppressed.create(['idempotency', 'key_not_found'], maps)
  metrics.messagesSent.create(CHANNEL_MESSAGES, namespaces)
  metrics.messagesReceived.create(CHANNEL_MESSAGES, namespaces)
  metrics.actions.create(CHANNEL_ACTIONS, namespaces)
  metrics.subscriptionsAccepted.create(clientNames, namespaces)
  metrics.replyErrors.create(CHANNEL_METHODS, CHANNEL_ERRORS, namespaces)
  metrics.serverUnsubscribes.create(UNSUBSCRIBE_CODES, namespaces)
  metrics.recoveries.create(['yes'], namespaces, ['yes', 'no'])
  metrics.recoveries.create(['no'], namespaces, ['no'])
  metrics.suppressed.create(['idempotency', 'version'], namespaces)
  metrics.conflated.create(namespaces)
  metrics.filteredOut.create(namespaces)
  metrics.outsideView.create(namespaces)
  metrics.joinsAndLeavesDropped.create(namespaces)
}

/** Creates the series of the proxies in use. */
export const createProxySeries = (metrics: Metrics, proxies: ProxyConfig): void => {
  for (const [type, byName] of Object.entries(proxies.events)) {
    metrics.proxyErrors.create([PROXY_PROTOCOL], [type], [...byName.keys()])
    metrics.proxyInFlight.create([PROXY_PROTOCOL], [type], [...byName.keys()])
  }
}

/** Centrifugo also has gRPC. */
export const PROXY_PROTOCOL = 'http'
