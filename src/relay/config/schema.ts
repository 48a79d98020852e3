import { type Static, type TSchema, Type } from '@sinclair/typebox'
import { schemas } from '../../../schemas/registry.js'
import type { ChannelState } from '../core/options.js'
import { count, duration, flag, limit, oneOf, section, text } from './option-kinds.js'
import { proxyOptions, proxyReference } from './proxy-schema.js'

// The schema of the RELAY_CONFIG file. Names and nesting are those of Centrifugo 6, so that an existing file can be used;
// options marked "Gatehouse only" are not in Centrifugo. docs/relay-config.schema.json is generated from this file.

const GIB = 1024 ** 3

/** A namespace name without the boundary character. */
export const NAMESPACE_PATTERN = '^[-a-zA-Z0-9_.]{2,}$'

/** A port as text; '' is not given. */
export const PORT_PATTERN = '^\\d{0,5}$'

export const USER_ID_CLAIM_PATTERN = '^[a-zA-Z_]+$'

const SCHEMA_NAMES = Object.keys(schemas)

// docs/how-to/extend.md lists the further steps that a new option of a namespace needs.
const channelOptions = {
  presence: flag('Keep a list of the subscribed clients.'),
  join_leave: flag('Generate join and leave events.'),
  force_push_join_leave: flag('Send join and leave events to all subscribers, not only to those that request them.'),
  history_size: count('Publications stored per channel; requires history_ttl.', 0, 1_000_000, 0),
  history_ttl: duration('How long publications are stored, in whole seconds; requires history_size.', '0'),
  history_meta_ttl: duration(
    'How long the epoch and offset of a channel are stored after its last use. Default: channel.history_meta_ttl.'
  ),
  force_recovery: flag('Clients that reconnect receive the publications they missed.'),
  allow_recovery: flag('Clients may request recovery of missed publications, if the namespace has a history.'),
  force_recovery_mode: oneOf(
    ['stream', 'cache'],
    'stream: recover all missed publications in order; cache: recover the latest one only.',
    'stream'
  ),
  auto_cache_recover: flag(
    'Subscribers receive the latest publication without requesting it; requires force_recovery and the cache mode.'
  ),
  force_positioning: flag('Detect when a client missed publications.'),
  allow_positioning: flag('Clients may request the detection of missed publications.'),
  allow_subscribe_for_client: flag('Clients with a user id may subscribe.'),
  allow_subscribe_for_anonymous: flag('Anonymous clients may subscribe.'),
  allow_publish_for_client: flag('Clients with a user id may publish.'),
  allow_publish_for_subscriber: flag('Subscribers may publish.'),
  allow_publish_for_anonymous: flag('Anonymous clients may publish.'),
  allow_presence_for_client: flag('Clients with a user id may read the presence.'),
  allow_presence_for_subscriber: flag('Subscribers may read the presence.'),
  allow_presence_for_anonymous: flag('Anonymous clients may read the presence.'),
  allow_history_for_client: flag('Clients with a user id may read the history.'),
  allow_history_for_subscriber: flag('Subscribers may read the history.'),
  allow_history_for_anonymous: flag('Anonymous clients may read the history.'),
  allowed_delta_types: Type.Optional(
    Type.Array(Type.Literal('fossil'), {
      description: 'Delta types that subscribers may request.',
      uniqueItems: true,
      default: []
    })
  ),
  delta_publish: flag('Send every publication as a delta, also if its publisher did not set delta.'),
  allow_tags_filter: flag('Clients may subscribe with a filter on the tags of publications.'),
  allow_user_limited_channels: flag('Channels such as room#42,43 are restricted to the users 42 and 43.'),
  channel_regex: text(
    'Regular expression (RE2) for the channel name without its namespace. By default names must be ASCII.'
  ),
  conflate: text(
    'Gatehouse only: merge queued publications by the key of the entries of a list, such as data[].transmitterId.',
    256
  ),
  entry_time: text(
    'Gatehouse only: where an entry has its time, such as timestamp; a number (Unix milliseconds) or an ISO 8601 text. When entries are merged, an entry never replaces a newer one. Without it the later publication wins. Requires conflate.',
    256
  ),
  snapshot: flag(
    'Gatehouse only: a subscriber that does not recover receives the newest entry of every key in the history. Requires conflate, history_size and history_ttl.'
  ),
  allow_max_rate: flag(
    'Gatehouse only: a subscriber can limit its deliveries per second with data: {"max_rate": n}; entries are merged by key in between. Requires conflate.'
  ),
  publication_data_format: oneOf(
    ['json', 'json_object', 'binary'],
    'Data of publications: any JSON value, a JSON object, or any bytes (also none), which only protobuf clients receive. Default: channel.publication_data_format.'
  ),
  schema: oneOf(SCHEMA_NAMES, 'Gatehouse only: publications must match this schema.'),
  subscribe_proxy_enabled: flag(
    'The backend decides who may subscribe. The permissions allow_subscribe_for_client and allow_subscribe_for_anonymous are not used then.'
  ),
  subscribe_proxy_name: proxyReference('channel.proxy.subscribe'),
  publish_proxy_enabled: flag(
    'The backend decides about publications of clients. The permissions allow_publish_for_… are not used then.'
  ),
  publish_proxy_name: proxyReference('channel.proxy.publish'),
  sub_refresh_proxy_enabled: flag('The backend decides about subscriptions that expire.'),
  sub_refresh_proxy_name: proxyReference('channel.proxy.sub_refresh'),
  state_proxy_enabled: flag(
    'The backend is notified when a channel becomes occupied and when it is vacated. Requires presence.'
  ),
  state_events: Type.Optional(
    Type.Array(Type.Unsafe<ChannelState>(Type.Union([Type.Literal('occupied'), Type.Literal('vacated')])), {
      description: 'The events that the backend receives: occupied, vacated. Empty: both.',
      uniqueItems: true,
      default: []
    })
  ),
  state_proxy_name: text(
    'Gatehouse only: the proxy: the name of one of proxies, or default for channel.proxy.state.',
    1024,
    'default'
  )
} as const satisfies Record<string, TSchema>

const ChannelOptionsSchema = Type.Object(channelOptions, { additionalProperties: false })
export type FileChannelOptions = Static<typeof ChannelOptionsSchema>

const NamespaceSchema = Type.Object(
  {
    name: Type.String({ description: 'The part of a channel name before the colon.', pattern: NAMESPACE_PATTERN }),
    ...channelOptions
  },
  { additionalProperties: false }
)

const MAX_UNIX_SECONDS = 99_999_999_999

const tokenOptions = {
  hmac_previous_secret_key: text('The secret that is being replaced; its tokens are still accepted.'),
  hmac_previous_secret_key_valid_until: count(
    'Unix time in seconds from which hmac_previous_secret_key is rejected; 0: no limit.',
    0,
    MAX_UNIX_SECONDS,
    0
  ),
  rsa_public_key: text('PEM text. Verifies RS256, RS384 and RS512.', 16_384),
  ecdsa_public_key: text('PEM text. Verifies ES256, ES384 or ES512, depending on its curve.', 16_384),
  eddsa_public_key: text('Gatehouse only: PEM text of an Ed25519 key. Verifies EdDSA.', 16_384),
  jwks_public_endpoint: text(
    'Address of a JSON Web Key Set with RSA, EC or Ed25519 keys. A token selects its key with kid.',
    2048
  ),
  audience: text('Required value in the aud claim.'),
  audience_regex: text(
    'Regular expression (RE2) that a value of the aud claim must match; use ^ and $ for the whole value.'
  ),
  issuer: text('Required value of the iss claim.'),
  issuer_regex: text('Regular expression (RE2) that the iss claim must match; use ^ and $ for the whole value.'),
  user_id_claim: Type.Optional(
    Type.String({
      description: 'The claim that contains the user id.',
      pattern: USER_ID_CLAIM_PATTERN,
      maxLength: 64,
      default: 'sub'
    })
  ),
  expiry_required: flag('Gatehouse only: tokens must have an expiry.', true)
} as const satisfies Record<string, TSchema>

const TokenSchema = Type.Object(
  { hmac_secret_key: text('Same as REALTIME_HMAC_SECRET. Verifies HS256, HS384 and HS512.'), ...tokenOptions },
  { additionalProperties: false }
)
export type FileToken = Static<typeof TokenSchema>

const SubscriptionTokenSchema = Type.Object(
  {
    enabled: flag('Use these options. By default subscription tokens have the options of connection tokens.'),
    hmac_secret_key: text('Verifies HS256, HS384 and HS512.'),
    ...tokenOptions
  },
  { additionalProperties: false }
)
export type FileSubscriptionToken = Static<typeof SubscriptionTokenSchema>

const channel = {
  proxy: section('Default proxies of events in channels.', {
    subscribe: section('Is asked when a client subscribes.', proxyOptions),
    publish: section('Is asked when a client publishes.', proxyOptions),
    sub_refresh: section('Is asked when a subscription expires.', proxyOptions),
    state: section('Is notified when a channel becomes occupied or is vacated.', proxyOptions)
  }),
  without_namespace: section('Options of channels without a namespace.', channelOptions),
  namespaces: Type.Optional(
    Type.Array(NamespaceSchema, {
      description: 'All namespaces. Permissions that a namespace does not grant are denied.'
    })
  ),
  publication_data_format: oneOf(
    ['json', 'json_object', 'binary'],
    'Default for namespaces without their own publication_data_format. Without both, data is a JSON value or other bytes (but not none), and JSON clients that would receive other bytes are closed with 3506.'
  ),
  history_meta_ttl: duration('Default for namespaces without their own history_meta_ttl.', '720h'),
  max_length: count('Maximum length of a channel name, in bytes.', 1, 65_535, 255),
  private_prefix: text('Channels with this prefix require a subscription token.', 1, '$'),
  namespace_boundary: text('Separates the namespace from the rest of a channel name.', 1, ':'),
  user_boundary: text('Separates a channel name from its list of users.', 1, '#'),
  user_separator: text('Separates the users in that list.', 1, ',')
}

const client = {
  proxy: section('Proxies of events of connections.', {
    connect: section('Is asked when a client connects without a token.', {
      enabled: flag('Ask the backend about connections without a token.'),
      ...proxyOptions
    }),
    refresh: section('Is asked when a connection expires.', {
      enabled: flag('Ask the backend about connections that expire.'),
      ...proxyOptions
    })
  }),
  insecure: flag(
    'Accept clients without a token and permit everything, for client test suites. Rejected in production.'
  ),
  allowed_origins: Type.Optional(
    Type.Array(Type.String(), {
      description:
        'Origins that may connect, or globs such as https://*.example.com and http://localhost:*, in which * matches any text; * alone allows all origins.',
      examples: [['https://app.example.com', 'https://*.example.com']]
    })
  ),
  token: section('Connection tokens.', TokenSchema.properties),
  subscription_token: section('Separate options for subscription tokens.', SubscriptionTokenSchema.properties),
  allow_anonymous_connect_without_token: flag('Clients may connect without a token.'),
  disallow_anonymous_connection_tokens: Type.Optional(
    Type.Boolean({
      description:
        'Reject connection tokens without a user. Default: true, or false with allow_anonymous_connect_without_token.'
    })
  ),
  ping_interval: duration('Interval between pings; 0: the default.', '25s'),
  pong_timeout: duration(
    'Maximum time for a client to respond to a ping; less than ping_interval. 0: the default.',
    '8s'
  ),
  stale_close_delay: duration('Maximum time between opening a connection and the connect command.', '10s'),
  expired_close_delay: duration(
    'Time between the expiry of a connection token and the close of the connection.',
    '25s'
  ),
  expired_sub_close_delay: duration(
    'Time between the expiry of a subscription token and the end of the subscription.',
    '25s'
  ),
  queue_max_size: count('Maximum size of the send queue of a client, in bytes.', 1, GIB, 1_048_576),
  channel_limit: count('Maximum subscriptions per connection.', 1, 1_000_000, 128),
  user_connection_limit: limit('Maximum connections per user, over all workers and nodes; 0 means no limit.'),
  connection_limit: limit('Maximum connections; 0 means no limit.'),
  connection_rate_limit: limit('Maximum new connections per second; 0 means no limit.'),
  connections_per_address: limit('Gatehouse only: maximum connections per client address; 0 means no limit.'),
  commands_per_second: limit('Gatehouse only: maximum commands per second and connection; 0 means no limit.'),
  concurrency: count(
    'Commands of one connection that may run at the same time. Commands for the same channel always run one after the other, and so do those with large replies. 0 and 1: all commands run one after the other.',
    0,
    1000,
    0
  ),
  channel_position_check_delay: duration(
    'Interval at which the positions of channels are compared with the history.',
    '40s'
  ),
  channel_position_max_time_lag: duration(
    'Maximum time from publish to delivery. After a longer one, subscribers with a position resubscribe and recover; 0 means no limit.',
    '0'
  ),
  history_max_publication_limit: count('Maximum publications in one history reply.', 1, 1_000_000, 300),
  recovery_max_publication_limit: count('Maximum publications that a client can recover.', 1, 1_000_000, 300),
  connect_include_server_time: flag("Send the server's time in the connect reply."),
  subscribe_to_user_personal_channel: section('Subscribe each user to a personal channel.', {
    enabled: flag('Enable personal channels.'),
    personal_channel_namespace: text('The namespace of personal channels.')
  })
}

const MAX_MESSAGE_BYTES = 64 * 1024 * 1024

/** Options of both WebSocket transports. */
const webSocket = {
  compression: flag(
    'Compress messages for clients that support it. Costs CPU time, and 40 KB for a client that sends compressed messages.'
  ),
  compression_min_size: count('Shorter messages are not compressed, in bytes.', 0, MAX_MESSAGE_BYTES, 0),
  compression_level: count('1 is fast, 9 is small.', 1, 9, 1),
  decompressed_message_size_limit: count(
    'With compression, the maximum size of a message from a client after decompression, in bytes. 0: message_size_limit.',
    0,
    MAX_MESSAGE_BYTES,
    0
  ),
  message_size_limit: count('Maximum size of a message from a client, in bytes.', 1, MAX_MESSAGE_BYTES, 65_536)
} as const satisfies Record<string, TSchema>

const rpcOptions = {
  proxy_enabled: flag('Clients may call methods of this namespace.'),
  proxy_name: proxyReference('rpc.proxy')
} as const satisfies Record<string, TSchema>

const CLOSED = { additionalProperties: false }

/** Error messages name options by their path in this schema. */
export const RelayConfigFileSchema = Type.Object(
  {
    $schema: text('Gatehouse only: the JSON schema of this file, for editors.'),
    http_server: section('Listen addresses.', {
      address: text('Same as RELAY_HOST.'),
      port: count('Same as RELAY_PORT.', 0, 65_535),
      internal_address: Type.Optional(
        Type.String({
          description: "Listen address of the publish API, the operators' page, metrics and health. Default: address.",
          maxLength: 1024
        })
      ),
      internal_port: Type.Optional(
        Type.Union([Type.Integer({ minimum: 0, maximum: 65_535 }), Type.String({ pattern: PORT_PATTERN })], {
          description:
            "Listen port of the publish API, the operators' page, metrics and health, which clients then cannot reach at port. Default: port."
        })
      )
    }),
    log: section('Logging.', {
      file: text(
        'Append the log to this file instead of standard output. SIGHUP opens it again, for log rotation.',
        4096
      ),
      level: oneOf(
        ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent', 'none'],
        'Same as LOG_LEVEL; none is silent.'
      )
    }),
    client: section('Client connections.', client),
    channel: section('Channels.', channel),
    http_api: section('The publish API.', {
      key: text('Same as REALTIME_API_KEY.'),
      insecure: flag('Accept requests without a key. Rejected in production.'),
      external: flag('With http_server.internal_port: serve the API at http_server.port instead.'),
      error_mode: oneOf(['default', 'transport'], 'transport: respond to errors with an HTTP error status.', 'default'),
      max_body_size: count('Gatehouse only: maximum size of a request body, in bytes.', 1, GIB, 1_048_576)
    }),
    rpc: section('Calls of clients to the backend.', {
      proxy: section('The default proxy of calls.', proxyOptions),
      without_namespace: section('Methods without a namespace.', rpcOptions),
      namespaces: Type.Optional(
        Type.Array(Type.Object({ name: text('The part of a method before the boundary.'), ...rpcOptions }, CLOSED), {
          description: 'All namespaces of methods.'
        })
      ),
      namespace_boundary: text('Separates the namespace from the rest of a method.', 1, ':')
    }),
    proxies: Type.Optional(
      Type.Array(
        Type.Object({ name: text('The name for the options that select a proxy.'), ...proxyOptions }, CLOSED),
        { description: 'Named proxies. One proxy may serve several events.' }
      )
    ),
    websocket: section('WebSocket transport.', webSocket),
    engine: section('The engine, which stores history and presence and connects relay nodes.', {
      type: oneOf(['memory', 'redis'], 'Same as RELAY_ENGINE.'),
      redis: section('Options of the Redis engine.', {
        address: Type.Optional(
          Type.Union(
            [
              Type.String({ minLength: 1, maxLength: 4096 }),
              Type.Array(Type.String({ minLength: 1, maxLength: 4096 }))
            ],
            { description: 'Same as REDIS_URL, or a list of servers.' }
          )
        ),
        prefix: text('Same as RELAY_REDIS_PREFIX.', 64),
        presence_ttl: duration('How long the presence of the clients of a crashed relay remains.', '60s'),
        channel_state: section('Channel state events.', {
          vacated_event_delay: duration(
            'How long a channel must be without subscribers before it counts as vacated; 0: the default. Also read with the memory engine.',
            '5s'
          )
        })
      })
    }),
    admin: section("The operators' page.", {
      enabled: flag("Enable the operators' page."),
      password: text('Same as RELAY_ADMIN_PASSWORD.'),
      external: flag('With http_server.internal_port: serve the page at http_server.port instead.')
    }),
    node: section('This node.', { name: text("Name on the operators' page and in the info of the publish API.", 128) }),
    shutdown: section('Shutdown.', { timeout: duration('Time over which clients are closed.', '5s') }),
    uni_sse: section('Server-sent events without commands, at /connection/uni_sse.', {
      enabled: flag('Enable the transport.'),
      max_request_body_size: count('Maximum size of a connect request, in bytes.', 1, MAX_MESSAGE_BYTES, 65_536)
    }),
    uni_http_stream: section('HTTP streaming without commands, at /connection/uni_http_stream.', {
      enabled: flag('Enable the transport.'),
      max_request_body_size: count('Maximum size of a connect request, in bytes.', 1, MAX_MESSAGE_BYTES, 65_536)
    }),
    uni_websocket: section('WebSocket without commands, at /connection/uni_websocket.', {
      enabled: flag('Enable the transport.'),
      disable_disconnect_push: flag('Send the code and reason of a disconnect in the close frame only.'),
      ...webSocket
    }),
    sse: section('Server-sent events, at /connection/sse.', { enabled: flag('Enable the transport.', true) }),
    http_stream: section('HTTP streaming, at /connection/http_stream.', {
      enabled: flag('Enable the transport.', true)
    }),
    prometheus: section('Prometheus metrics at /metrics.', {
      enabled: flag('Enable the endpoint.', true),
      recovered_publications_histogram: flag('Export centrifugo_client_recovered_publications.'),
      instrument_http_handlers: flag('Export centrifugo_node_incoming_http_requests_total.')
    }),
    health: section('Health checks at /health and /health/delivery.', { enabled: flag('Enable the endpoints.', true) })
  },
  {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'Relay configuration file',
    additionalProperties: false
  }
)
export type RelayConfigFile = Static<typeof RelayConfigFileSchema>
