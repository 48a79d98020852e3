import { isObject } from '../../shared/is-object.js'
import { DURATION_PATTERN, durationMs } from './schema-kinds.js'

const SENTINEL_ADDRESS =
  'write it into engine.redis.address: redis+sentinel://user:password@host:26379,host:26379/master-name/0?sentinel_password=…'

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

  'engine.redis.cluster_address': 'list servers of the Redis Cluster in engine.redis.address',
  'engine.redis.sentinel_address': SENTINEL_ADDRESS,
  'engine.redis.sentinel_master_name': SENTINEL_ADDRESS,
  'engine.redis.sentinel_user': SENTINEL_ADDRESS,
  'engine.redis.sentinel_password': SENTINEL_ADDRESS,
  'engine.redis.sentinel_tls': SENTINEL_ADDRESS,
  'engine.redis.sentinel_client_name': 'remove it',
  'engine.redis.user': 'write it into engine.redis.address: redis://user:password@host:6379/0',
  'engine.redis.password': 'write it into engine.redis.address: redis://user:password@host:6379/0',
  'engine.redis.db': 'write it into engine.redis.address: redis://user:password@host:6379/0',
  'engine.redis.tls': 'write rediss:// in engine.redis.address',
  'engine.redis.connect_timeout': 'remove it; the relay reconnects by itself',
  'engine.redis.io_timeout': 'remove it; a command that takes more than 2 s fails',
  'engine.redis.client_name': 'remove it',
  'engine.redis.force_resp2': 'remove it',
  'engine.redis.force_resp3': 'remove it',
  'engine.redis.history_use_lists': 'remove it; history is stored in streams',
  'engine.redis.idempotent_result_ttl': 'remove it; results are stored for five minutes',
  'engine.redis.presence_hash_field_ttl': 'use engine.redis.presence_ttl',
  'engine.redis.presence_user_mapping': 'remove it',
  'engine.redis.replica_client': 'remove it; all commands go to the master',
  broker: 'use engine',
  controller: 'use engine, which also connects the nodes',
  presence_manager: 'use engine',
  'map_broker.redis': 'use engine.redis, which also stores maps',
  'map_broker.postgres': 'use the engine "redis", which also stores maps',
  shared_poll: 'publish changes with the HTTP API',

  'client.user_id_http_header': 'use client.proxy.connect with this header in http_headers',
  'client.insecure_skip_token_signature_verify': 'use client.insecure in test environments',
  'client.token.insecure_skip_jwks_endpoint_safety_check':
    'remove it; jwks_public_endpoint is always one fixed address',
  'client.subscription_token.insecure_skip_jwks_endpoint_safety_check':
    'remove it; jwks_public_endpoint is always one fixed address',
  'client.presence_update_interval': 'use engine.redis.presence_ttl',
  'client.connect_code_to_unidirectional_disconnect': 'remove it; docs/reference/protocol-codes.md lists the codes',
  'client.subscribe_to_user_personal_channel.single_connection': 'use client.user_connection_limit',

  'namespace.subscribe_stream_proxy_enabled': 'publish with the HTTP API',
  'namespace.subscribe_stream_proxy_bidirectional': 'publish with the HTTP API',
  'namespace.shared_position_sync': 'remove it; positions are always checked once per channel and node',
  'namespace.subscription_types': 'use subscription_type',
  'namespace.shared_poll': 'publish changes with the HTTP API',
  'namespace.allow_channel_compaction': 'use allowed_delta_types to send fewer bytes',
  'namespace.keep_latest_publication': 'use force_recovery_mode "cache"',
  'namespace.batch_max_size': 'remove it; publications of one turn of the event loop are sent together',
  'namespace.batch_max_delay': 'remove it; publications of one turn of the event loop are sent together',
  'namespace.batch_flush_latest': 'use conflate',

  'proxy.grpc': 'use an endpoint with http:// or https://',
  'proxy.grpc_metadata': 'use http_headers',
  'proxy.http.tls.client_ca_pem': 'remove it; only servers use it',
  'rpc.ping': 'remove it; clients receive pings of the protocol',
  grpc_api: 'use http_api',
  consumers: 'publish with the HTTP API',

  'http_api.disabled': 'do not expose /api at the reverse proxy',
  'http_api.handler_prefix': 'use /api, or rewrite the path at the reverse proxy',
  'websocket.disabled': 'do not expose the path at the reverse proxy',
  'websocket.handler_prefix': 'use /connection/websocket, or rewrite the path at the reverse proxy',
  'websocket.read_buffer_size': 'remove it; Node.js manages its buffers',
  'websocket.write_buffer_size': 'remove it; Node.js manages its buffers',
  'websocket.use_write_buffer_pool': 'remove it; Node.js manages its buffers',
  'websocket.write_timeout': 'use client.queue_max_size, which limits slow clients',
  'websocket.compression_prepared_message_cache_size': 'remove it; a message is compressed once for all its receivers',
  'sse.handler_prefix': 'use /connection/sse, or rewrite the path at the reverse proxy',
  'sse.max_request_body_size': 'remove it; the limit is 64 KiB',
  'http_stream.handler_prefix': 'use /connection/http_stream, or rewrite the path at the reverse proxy',
  'http_stream.max_request_body_size': 'remove it; the limit is 64 KiB',
  emulation: 'use /emulation, or rewrite the path at the reverse proxy; the limit of a body is 64 KiB',
  'uni_sse.handler_prefix': 'use /connection/uni_sse, or rewrite the path at the reverse proxy',
  'uni_sse.connect_code_to_http_response': 'read the disconnect push',
  'uni_http_stream.handler_prefix': 'use /connection/uni_http_stream, or rewrite the path at the reverse proxy',
  'uni_http_stream.connect_code_to_http_response': 'read the disconnect push',
  'uni_websocket.handler_prefix': 'use /connection/uni_websocket, or rewrite the path at the reverse proxy',
  'uni_websocket.read_buffer_size': 'remove it; Node.js manages its buffers',
  'uni_websocket.write_buffer_size': 'remove it; Node.js manages its buffers',
  'uni_websocket.use_write_buffer_pool': 'remove it; Node.js manages its buffers',
  'uni_websocket.disable_closing_handshake': 'remove it; the relay always sends a close frame',
  'uni_websocket.join_push_messages':
    'remove it; every message has its own frame, and the relay writes several frames with one system call',
  'uni_websocket.write_timeout': 'use client.queue_max_size, which limits slow clients',
  uni_grpc: 'use uni_http_stream',
  webtransport: 'use websocket',
  init: 'remove it; clients connect to /connection/websocket',

  'admin.secret': 'remove it; the key of operator sessions is derived from the password and the API key',
  'admin.insecure': 'use admin.password',
  'admin.handler_prefix': 'use /admin, or rewrite the path at the reverse proxy',
  'admin.web_path': 'remove it; the page is part of the relay',
  'admin.web_proxy_address': 'remove it; the page is part of the relay',
  'prometheus.handler_prefix': 'use /metrics',
  'prometheus.native_histograms': 'remove it; histograms have explicit buckets',
  'health.handler_prefix': 'use /health',
  swagger: 'read docs/reference/server-api.md',
  debug: 'start Node.js with --inspect or --cpu-prof',
  dev: 'use the demo: npm start',
  opentelemetry: 'set OTEL_EXPORTER_OTLP_ENDPOINT',
  graphite: 'use the metrics at /metrics',
  usage_stats: 'remove it; the relay sends no usage statistics',
  'node.info_metrics_aggregate_interval': 'use the metrics at /metrics',
  'shutdown.termination_delay': 'set SHUTDOWN_DELAY_MS',
  pid_file: 'use the service manager, which knows the process id',
  enable_unreleased_features: 'remove it'
}

/** Options that take effect only together with an unsupported one, such as `subscribe_stream_proxy_enabled`. */
const DEPENDENT_OPTIONS: readonly string[] = [
  'channel.proxy.subscribe_stream',
  'channel.proxy.shared_poll_refresh',
  'namespace.subscribe_stream_proxy_name'
]

/** The name of an option of a namespace or a proxy is the same in all of them. */
const commonName = (path: string): string =>
  path
    .replace(/^channel\.(?:namespaces\[\d+\]|without_namespace)\./, 'namespace.')
    .replace(/^(?:client\.proxy\.\w+|channel\.proxy\.\w+|rpc\.proxy|proxies\[\d+\])\./, 'proxy.')

/** The advice for an unsupported option of Centrifugo; null for an option that Centrifugo does not have. */
export const alternativeTo = (path: string): string | null => {
  const steps = commonName(path).split('.')
  for (let length = steps.length; length > 0; length--) {
    const name = steps.slice(0, length).join('.')
    if (Object.hasOwn(UNSUPPORTED_OPTIONS, name)) return UNSUPPORTED_OPTIONS[name] ?? null
  }
  return null
}

/** Whether an option that the relay does not have is one of Centrifugo without an effect. */
export const isIgnored = (path: string, value: unknown, isSectionOff: boolean): boolean =>
  DEPENDENT_OPTIONS.includes(commonName(path)) ||
  (alternativeTo(path) !== null && (isSectionOff || isUnused(path, value)))

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
  ['sse.max_request_body_size', 65_536],
  ['http_stream.handler_prefix', '/connection/http_stream'],
  ['http_stream.max_request_body_size', 65_536],
  ['emulation.handler_prefix', '/emulation'],
  ['emulation.max_request_body_size', 65_536],
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
