import { isObject } from '../../shared/is-object.js'
import { DURATION_PATTERN, durationMs } from './schema-kinds.js'

/**
 * Options of Centrifugo 6 that the relay does not have, with what to use instead. The options of a namespace are listed
 * under `namespace`, those of a proxy under `proxy`. A path also covers everything below it.
 */
export const UNSUPPORTED_OPTIONS: Readonly<Record<string, string>> = {
  'http_server.tls': 'terminate TLS at the reverse proxy',
  'http_server.tls_autocert': 'terminate TLS at the reverse proxy',
  'http_server.tls_external': 'terminate TLS at the reverse proxy',
  'http_server.internal_tls': 'terminate TLS at the reverse proxy',
  'http_server.http3': 'enable HTTP/3 at the reverse proxy',
  'http_server.h2c_external': 'enable HTTP/2 at the reverse proxy',

  'engine.redis.cluster_address': 'list servers of one Redis Cluster in engine.redis.address',
  'engine.redis.sentinel_address': 'write one address of Sentinel into engine.redis.address',
  'engine.redis.sentinel_master_name': 'it needs engine.redis.sentinel_address',
  'engine.redis.sentinel_user': 'it needs engine.redis.sentinel_address',
  'engine.redis.sentinel_password': 'it needs engine.redis.sentinel_address',
  'engine.redis.sentinel_tls':
    'TLS applies to the sentinels and to Redis alike: write rediss+sentinel:// in engine.redis.address',
  'engine.redis.user': 'write it into engine.redis.address: redis://user:password@host:6379/0',
  'engine.redis.password': 'write it into engine.redis.address: redis://user:password@host:6379/0',
  'engine.redis.db': 'write it into engine.redis.address: redis://user:password@host:6379/0',
  'engine.redis.tls':
    'write rediss:// in engine.redis.address, and set NODE_EXTRA_CA_CERTS for certificates of your own',
  broker: 'use engine, which stores everything at one address of Redis',
  controller: 'use engine, which also connects the nodes',
  presence_manager: 'use engine, which stores everything at one address of Redis',
  'map_broker.redis': 'use engine.redis, which also stores maps',
  shared_poll: 'publish changes with the HTTP API',

  'client.insecure_skip_token_signature_verify': 'use client.insecure in test environments',
  'client.connect_code_to_unidirectional_disconnect': 'remove it; docs/reference/protocol-codes.md lists the codes',

  'namespace.subscribe_stream_proxy_enabled': 'publish with the HTTP API',
  'namespace.subscribe_stream_proxy_bidirectional': 'publish with the HTTP API',
  'namespace.subscription_types': 'use subscription_type',
  'namespace.shared_poll': 'publish changes with the HTTP API',
  'namespace.keep_latest_publication': 'use force_recovery_mode "cache"',
  'namespace.batch_flush_latest': 'use conflate',

  grpc_api: 'use http_api',
  consumers: 'publish with the HTTP API',

  'http_api.disabled': 'do not expose /api at the reverse proxy',
  'http_api.handler_prefix': 'use /api, or rewrite the path at the reverse proxy',
  'websocket.disabled': 'do not expose the path at the reverse proxy',
  'websocket.handler_prefix': 'use /connection/websocket, or rewrite the path at the reverse proxy',
  'sse.handler_prefix': 'use /connection/sse, or rewrite the path at the reverse proxy',
  'http_stream.handler_prefix': 'use /connection/http_stream, or rewrite the path at the reverse proxy',
  'emulation.handler_prefix': 'use /emulation, or rewrite the path at the reverse proxy',
  'uni_sse.handler_prefix': 'use /connection/uni_sse, or rewrite the path at the reverse proxy',
  'uni_sse.connect_code_to_http_response': 'read the disconnect push',
  'uni_http_stream.handler_prefix': 'use /connection/uni_http_stream, or rewrite the path at the reverse proxy',
  'uni_http_stream.connect_code_to_http_response': 'read the disconnect push',
  'uni_websocket.handler_prefix': 'use /connection/uni_websocket, or rewrite the path at the reverse proxy',
  uni_grpc: 'use uni_http_stream',
  webtransport: 'use websocket',
  init: 'remove it; clients connect to /connection/websocket',

  'admin.handler_prefix': 'use /admin, or rewrite the path at the reverse proxy',
  'prometheus.handler_prefix': 'use /metrics',
  'health.handler_prefix': 'use /health',
  graphite: 'use the metrics at /metrics'
}

/** Options of Centrifugo 6 that are accepted without an effect, because clients and backends do not notice it, with the reason. */
export const INEFFECTIVE_OPTIONS: Readonly<Record<string, string>> = {
  'engine.redis.connect_timeout': 'the relay reconnects by itself',
  'engine.redis.io_timeout': 'a command that takes more than 2 s fails',
  'engine.redis.client_name': 'connections to Redis have no name',
  'engine.redis.sentinel_client_name': 'connections to Redis have no name',
  'engine.redis.force_resp2': 'the relay selects the protocol of Redis',
  'engine.redis.force_resp3': 'the relay selects the protocol of Redis',
  'engine.redis.history_use_lists': 'history is stored in streams',
  'engine.redis.idempotent_result_ttl': 'results are stored for five minutes',
  'engine.redis.presence_hash_field_ttl': 'presence expires with engine.redis.presence_ttl',
  'engine.redis.presence_user_mapping': 'users are counted by their clients',
  'engine.redis.replica_client': 'all commands go to the master',
  'engine.redis.cleanup_interval': 'expired keys are removed twice a second',
  'engine.redis.cleanup_batch_size': 'expired keys are removed twice a second',

  'client.token.insecure_skip_jwks_endpoint_safety_check': 'jwks_public_endpoint is always one fixed address',
  'client.subscription_token.insecure_skip_jwks_endpoint_safety_check':
    'jwks_public_endpoint is always one fixed address',
  'client.presence_update_interval': 'the interval follows from engine.redis.presence_ttl',
  'client.batch_periodic_events': 'one timer checks all connections',
  'client.write_delay': 'messages of one turn of the event loop are written together',
  'client.write_with_timer': 'messages of one turn of the event loop are written together',

  'namespace.shared_position_sync': 'positions are always checked once per channel and node',
  'namespace.allow_channel_compaction': 'messages always contain the name of the channel',
  'namespace.batch_max_size': 'messages of one turn of the event loop are written together',
  'namespace.batch_max_delay': 'messages of one turn of the event loop are written together',
  'namespace.client_publish_debounce_interval': 'clients publish without a delay',

  'proxy.http.tls.client_ca_pem': 'only servers use it',

  'websocket.read_buffer_size': 'Node.js manages its buffers',
  'websocket.write_buffer_size': 'Node.js manages its buffers',
  'websocket.use_write_buffer_pool': 'Node.js manages its buffers',
  'websocket.write_timeout': 'client.queue_max_size limits slow clients',
  'websocket.compression_prepared_message_cache_size': 'a message is compressed once for all its receivers',
  'websocket.process_commands_off_read_loop': 'Node.js has no threads for connections',
  'uni_websocket.read_buffer_size': 'Node.js manages its buffers',
  'uni_websocket.write_buffer_size': 'Node.js manages its buffers',
  'uni_websocket.use_write_buffer_pool': 'Node.js manages its buffers',
  'uni_websocket.write_timeout': 'client.queue_max_size limits slow clients',
  'uni_websocket.disable_closing_handshake': 'the relay always sends a close frame',
  'uni_websocket.join_push_messages': 'every message has its own frame',

  'admin.secret': 'the key of operator sessions is derived from the password and the API key',
  'admin.insecure': "the operators' page always needs a password",
  'admin.web_path': 'the page is part of the relay',
  'admin.web_proxy_address': 'the page is part of the relay',
  'prometheus.native_histograms': 'histograms have explicit buckets',
  'prometheus.channel_namespace_resolution': 'metrics always have the label channel_namespace',
  swagger: 'docs/reference/server-api.md describes the API',
  debug: 'start Node.js with --inspect or --cpu-prof',
  dev: 'the demo starts with npm start',
  opentelemetry: 'OTEL_EXPORTER_OTLP_ENDPOINT enables traces',
  usage_stats: 'the relay sends no usage statistics',
  'node.info_metrics_aggregate_interval': 'the metrics are at /metrics',
  'shutdown.termination_delay': 'SHUTDOWN_DELAY_MS is this delay',
  pid_file: 'the service manager knows the process id',
  enable_unreleased_features: 'the relay has none'
}

/** Options that take effect only together with an unsupported one, such as `subscribe_stream_proxy_enabled` or `grpc://`. */
const DEPENDENT_OPTIONS: readonly string[] = [
  'proxy.grpc',
  'proxy.grpc_metadata',
  'map_broker.postgres',
  'channel.proxy.subscribe_stream',
  'channel.proxy.shared_poll_refresh',
  'namespace.subscribe_stream_proxy_name'
]

/** The name of an option of a namespace or a proxy is the same in all of them. */
const commonName = (path: string): string =>
  path
    .replace(/^channel\.(?:namespaces\[\d+\]|without_namespace)\./, 'namespace.')
    .replace(/^(?:client\.proxy\.\w+|channel\.proxy\.\w+|rpc\.proxy|proxies\[\d+\])\./, 'proxy.')

/** The entry of the option, or of a section that it is in; null for none. */
const entryOf = (table: Readonly<Record<string, string>>, path: string): string | null => {
  const steps = commonName(path).split('.')
  for (let length = steps.length; length > 0; length--) {
    const name = steps.slice(0, length).join('.')
    if (Object.hasOwn(table, name)) return table[name] ?? null
  }
  return null
}

/** The advice for an unsupported option of Centrifugo; null for an option that Centrifugo does not have. */
export const alternativeTo = (path: string): string | null => entryOf(UNSUPPORTED_OPTIONS, path)

/** Whether an option that the relay does not have is one of Centrifugo without an effect. */
export const isIgnored = (path: string, value: unknown, isSectionOff: boolean): boolean =>
  DEPENDENT_OPTIONS.includes(commonName(path)) ||
  entryOf(INEFFECTIVE_OPTIONS, path) !== null ||
  (alternativeTo(path) !== null && (isSectionOff || isUnused(path, value)))

/** Why an option that is ignored has no effect, although it would have one in Centrifugo; null otherwise. */
export const reasonToIgnore = (path: string, value: unknown, isSectionOff: boolean): string | null =>
  isSectionOff || isUnused(path, value) ? null : entryOf(INEFFECTIVE_OPTIONS, path)

const PROXY_NAME = 'default'

/** Defaults of Centrifugo for unsupported options, except empty ones and names of proxies. */
const DEFAULTS: ReadonlyMap<string, unknown> = new Map<string, unknown>([
  ['engine.redis.connect_timeout', '1s'],
  ['engine.redis.io_timeout', '4s'],
  ['client.presence_update_interval', '27s'],
  ['http_api.handler_prefix', '/api'],
  ['websocket.handler_prefix', '/connection/websocket'],
  ['websocket.write_timeout', '1s'],
  ['sse.handler_prefix', '/connection/sse'],
  ['http_stream.handler_prefix', '/connection/http_stream'],
  ['emulation.handler_prefix', '/emulation'],
  ['uni_sse.handler_prefix', '/connection/uni_sse'],
  ['uni_http_stream.handler_prefix', '/connection/uni_http_stream'],
  ['uni_websocket.handler_prefix', '/connection/uni_websocket'],
  ['uni_websocket.write_timeout', '1s'],
  ['prometheus.handler_prefix', '/metrics'],
  ['health.handler_prefix', '/health'],
  // The relay sends none.
  ['usage_stats.disabled', true],
  ['node.info_metrics_aggregate_interval', '60s']
])

/**
 * Whether an unsupported option has no effect in Centrifugo either: it is empty, switched off, or has its default. A file
 * that `centrifugo defaultconfig` printed contains all options.
 */
const isUnused = (path: string, value: unknown): boolean => {
  if (DEPENDENT_OPTIONS.includes(path) || isEmpty(value) || isSameValue(value, defaultOf(path))) return true
  if (Array.isArray(value)) return value.every((entry) => isUnused(`${path}[]`, entry))
  if (!isObject(value)) return false
  if (isEmpty(value.enabled) && (value.enabled !== undefined || path === 'consumers[]')) return true
  return Object.entries(value).every(([name, inner]) => isUnused(`${path}.${name}`, inner))
}

const isEmpty = (value: unknown): boolean => !value || value === 'false' || isSameValue(value, '0s')

const defaultOf = (path: string): unknown => (path.endsWith('proxy_name') ? PROXY_NAME : DEFAULTS.get(path))

/** `60s` and `1m0s` are the same duration. A text may stand for a number. */
const isSameValue = (value: unknown, other: unknown): boolean =>
  (typeof value !== 'object' && String(value) === String(other)) ||
  (isDuration(value) && isDuration(other) && durationMs(value) === durationMs(other))

const isDuration = (value: unknown): value is string => typeof value === 'string' && DURATION.test(value)

const DURATION = new RegExp(DURATION_PATTERN)
