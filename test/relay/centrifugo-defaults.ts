// A configuration file with all options of Centrifugo 6 and their defaults, in the form that `centrifugo defaultconfig`
// prints: empty texts, empty lists as null, durations such as "1m0s".

const TLS = {
  enabled: false,
  cert_pem: '',
  key_pem: '',
  server_ca_pem: '',
  client_ca_pem: '',
  insecure_skip_verify: false,
  server_name: ''
}

const PROXY = {
  endpoint: '',
  timeout: '1s',
  http_headers: null,
  grpc_metadata: null,
  binary_encoding: false,
  include_connection_meta: false,
  http: { tls: TLS, static_headers: {}, status_to_code_transforms: [] },
  grpc: { tls: TLS, credentials_key: '', credentials_value: '', compression: false, static_metadata: {} }
}

const CHANNEL_OPTIONS = {
  presence: false,
  join_leave: false,
  force_push_join_leave: false,
  map_clients_presence_channel_prefix: '',
  map_users_presence_channel_prefix: '',
  history_size: 0,
  history_ttl: '0s',
  history_meta_ttl: '0s',
  force_positioning: false,
  allow_positioning: false,
  force_recovery: false,
  allow_recovery: false,
  force_recovery_mode: '',
  auto_cache_recover: false,
  allowed_delta_types: null,
  allow_tags_filter: false,
  delta_publish: false,
  allow_subscribe_for_anonymous: false,
  allow_subscribe_for_client: false,
  allow_publish_for_anonymous: false,
  allow_publish_for_subscriber: false,
  allow_publish_for_client: false,
  allow_presence_for_anonymous: false,
  allow_presence_for_subscriber: false,
  allow_presence_for_client: false,
  allow_history_for_anonymous: false,
  allow_history_for_subscriber: false,
  allow_history_for_client: false,
  allow_user_limited_channels: false,
  channel_regex: '',
  publication_data_format: '',
  subscribe_proxy_enabled: false,
  subscribe_proxy_name: 'default',
  publish_proxy_enabled: false,
  publish_proxy_name: 'default',
  sub_refresh_proxy_enabled: false,
  sub_refresh_proxy_name: 'default',
  subscribe_stream_proxy_enabled: false,
  subscribe_stream_proxy_name: 'default',
  subscribe_stream_proxy_bidirectional: false,
  subscription_type: '',
  map: {
    mode: '',
    key_ttl: '0s',
    ordered: false,
    stream_size: 0,
    client_key: '',
    publish_proxy_enabled: false,
    publish_proxy_name: 'default',
    remove_proxy_name: 'default',
    subscribe_catch_up_timeout: '0s'
  },
  shared_poll: { proxy_name: '', refresh_interval: '0s', refresh_batch_size: 0, mode: '', publish_enabled: false }
}

const REDIS = {
  address: ['redis://127.0.0.1:6379'],
  prefix: 'centrifugo',
  connect_timeout: '1s',
  io_timeout: '4s',
  db: 0,
  user: '',
  password: '',
  client_name: '',
  force_resp2: false,
  cluster_address: null,
  tls: TLS,
  sentinel_address: null,
  sentinel_user: '',
  sentinel_password: '',
  sentinel_master_name: '',
  sentinel_client_name: '',
  sentinel_tls: TLS,
  replica_client: { enabled: false },
  history_use_lists: false,
  presence_ttl: '1m0s',
  presence_hash_field_ttl: false,
  presence_user_mapping: false
}

const TOKEN = {
  hmac_secret_key: '',
  hmac_previous_secret_key: '',
  hmac_previous_secret_key_valid_until: 0,
  rsa_public_key: '',
  ecdsa_public_key: '',
  jwks_public_endpoint: '',
  audience: '',
  audience_regex: '',
  issuer: '',
  issuer_regex: '',
  user_id_claim: '',
  insecure_skip_jwks_endpoint_safety_check: false
}

const WEBSOCKET = {
  compression: false,
  compression_min_size: 0,
  compression_level: 1,
  read_buffer_size: 0,
  use_write_buffer_pool: false,
  write_buffer_size: 0,
  write_timeout: '1s',
  message_size_limit: 65_536,
  decompressed_message_size_limit: 0
}

const CONNECT_CODES = { enabled: false, transforms: [] }

export const CENTRIFUGO_DEFAULTS = {
  http_server: {
    address: '',
    port: 8000,
    internal_address: '',
    internal_port: '',
    tls: TLS,
    tls_autocert: { enabled: false, host_whitelist: null, cache_dir: '', email: '', server_name: '', http: false },
    tls_external: false,
    internal_tls: TLS,
    http3: { enabled: false },
    h2c_external: false
  },
  log: { level: 'info', file: '' },
  engine: { type: 'memory', redis: REDIS },
  broker: { enabled: false, type: 'memory', redis: REDIS, nats: { url: 'nats://localhost:4222' } },
  presence_manager: { enabled: false, type: 'memory', redis: REDIS },
  map_broker: { type: 'memory', redis: REDIS, postgres: { dsn: '', pool_size: 16 } },
  client: {
    proxy: { connect: { enabled: false, ...PROXY }, refresh: { enabled: false, ...PROXY } },
    allowed_origins: null,
    token: TOKEN,
    subscription_token: { enabled: false, ...TOKEN },
    allow_anonymous_connect_without_token: false,
    disallow_anonymous_connection_tokens: false,
    ping_interval: '25s',
    pong_timeout: '8s',
    expired_close_delay: '25s',
    expired_sub_close_delay: '25s',
    stale_close_delay: '10s',
    channel_limit: 128,
    queue_max_size: 1_048_576,
    presence_update_interval: '27s',
    concurrency: 0,
    channel_position_check_delay: '40s',
    channel_position_max_time_lag: '0s',
    connection_limit: 0,
    user_connection_limit: 0,
    connection_rate_limit: 0,
    connect_include_server_time: false,
    history_max_publication_limit: 300,
    recovery_max_publication_limit: 300,
    insecure_skip_token_signature_verify: false,
    user_id_http_header: '',
    insecure: false,
    subscribe_to_user_personal_channel: { enabled: false, personal_channel_namespace: '', single_connection: false },
    connect_code_to_unidirectional_disconnect: CONNECT_CODES
  },
  channel: {
    proxy: {
      subscribe: PROXY,
      publish: PROXY,
      sub_refresh: PROXY,
      subscribe_stream: PROXY,
      map_publish: PROXY,
      map_remove: PROXY,
      shared_poll_refresh: PROXY
    },
    without_namespace: CHANNEL_OPTIONS,
    namespaces: [{ name: 'room', ...CHANNEL_OPTIONS }],
    history_meta_ttl: '720h0m0s',
    publication_data_format: '',
    max_length: 255,
    private_prefix: '$',
    namespace_boundary: ':',
    user_boundary: '#',
    user_separator: ','
  },
  rpc: {
    proxy: PROXY,
    without_namespace: { proxy_enabled: false, proxy_name: 'default' },
    namespaces: [],
    ping: { enabled: false, method: 'ping' },
    namespace_boundary: ':'
  },
  proxies: [],
  http_api: { disabled: false, handler_prefix: '/api', key: '', error_mode: '', external: false, insecure: false },
  grpc_api: { enabled: false, error_mode: '', address: '', port: 10_000, key: '', tls: TLS, reflection: false },
  consumers: [],
  websocket: { disabled: false, handler_prefix: '/connection/websocket', ...WEBSOCKET },
  sse: { enabled: false, handler_prefix: '/connection/sse', max_request_body_size: 65_536 },
  http_stream: { enabled: false, handler_prefix: '/connection/http_stream', max_request_body_size: 65_536 },
  webtransport: { enabled: false, handler_prefix: '/connection/webtransport', message_size_limit: 65_536 },
  uni_sse: {
    enabled: false,
    handler_prefix: '/connection/uni_sse',
    max_request_body_size: 65_536,
    connect_code_to_http_response: CONNECT_CODES
  },
  uni_http_stream: {
    enabled: false,
    handler_prefix: '/connection/uni_http_stream',
    max_request_body_size: 65_536,
    connect_code_to_http_response: CONNECT_CODES
  },
  uni_websocket: {
    enabled: false,
    handler_prefix: '/connection/uni_websocket',
    ...WEBSOCKET,
    disable_closing_handshake: false,
    disable_disconnect_push: false,
    join_push_messages: false
  },
  uni_grpc: { enabled: false, address: '', port: 11_000, max_receive_message_size: 0, tls: TLS },
  emulation: { handler_prefix: '/emulation', max_request_body_size: 65_536 },
  admin: {
    enabled: false,
    handler_prefix: '',
    password: '',
    secret: '',
    insecure: false,
    web_path: '',
    web_proxy_address: '',
    external: false
  },
  prometheus: {
    enabled: false,
    handler_prefix: '/metrics',
    instrument_http_handlers: false,
    recovered_publications_histogram: false,
    native_histograms: false
  },
  health: { enabled: false, handler_prefix: '/health' },
  swagger: { enabled: false, handler_prefix: '/swagger' },
  debug: { enabled: false, handler_prefix: '/debug/pprof' },
  dev: { enabled: false, handler_prefix: '/dev' },
  init: { enabled: false, handler_prefix: '/connection/init' },
  opentelemetry: { enabled: false, api: false, consuming: false, google_cloud_adc_auth: false },
  graphite: { enabled: false, host: 'localhost', port: 2003, prefix: 'centrifugo', interval: '10s', tags: false },
  usage_stats: { disabled: false },
  node: { name: '', info_metrics_aggregate_interval: '1m0s' },
  shutdown: { timeout: '30s' },
  pid_file: '',
  enable_unreleased_features: false
}
