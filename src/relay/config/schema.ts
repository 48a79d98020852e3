import { type Static, type TSchema, Type } from '@sinclair/typebox'
import { channelSection } from './channel-schema.js'
import { ENGINE_KINDS } from './engine-kinds.js'
import { proxyOptions, proxyReference } from './proxy-schema.js'
import { commandLimits, count, duration, flag, GIB, limit, oneOf, section, text } from './schema-kinds.js'
import { SubscriptionTokenSchema, TokenSchema } from './token-schema.js'

// The schema of the RELAY_CONFIG file. Names and nesting are those of Centrifugo 6, so that an existing file can be used;
// options marked "Gatehouse only" are not in Centrifugo. docs/relay-config.schema.json is generated from this file.

/** A port as text; '' is not given. */
export const PORT_PATTERN = '^\\d{0,5}$'

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
  user_id_http_header: text(
    'The user of a client without a token, if the connect proxy has none and anonymous clients are not allowed. The reverse proxy must set or remove this header of every request.'
  ),
  disallow_anonymous_connection_tokens: Type.Optional(
    Type.Boolean({
      description:
        'Reject connection tokens without a user. Default: true, or false with allow_anonymous_connect_without_token.'
    })
  ),
  user_tokens_invalidate: section('Gatehouse only: invalidation of the tokens of a user.', {
    enabled: flag(
      'Enable the API method invalidate_user_tokens. Until a relay has read the invalidated tokens from its engine, clients cannot connect with a token.'
    ),
    ttl: duration('How long invalidations are kept: at least the lifetime of your tokens.', '720h')
  }),
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
  command_limits: commandLimits(
    'Gatehouse only: limits of commands in all namespaces together. A command beyond a limit gets error 111.'
  ),
  concurrency: count(
    'Commands of one connection that may run at the same time; 0 and 1: one. Those for the same channel, and those with large replies, always run one after the other.',
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
    personal_channel_namespace: text('The namespace of personal channels.'),
    single_connection: flag(
      'A new connection of a user closes the earlier ones with 3504. Requires presence in the namespace of personal channels.'
    )
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
    channel: section('Channels.', channelSection),
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
      namespace_boundary: text('Separates the namespace from the rest of a method.', 1, ':'),
      ping: section('A method that the relay itself responds to, with an empty result.', {
        enabled: flag('Enable the method.'),
        method: text('The name of the method, which is then never sent to a backend.', 1024, 'ping')
      })
    }),
    proxies: Type.Optional(
      Type.Array(
        Type.Object({ name: text('The name for the options that select a proxy.'), ...proxyOptions }, CLOSED),
        { description: 'Named proxies. One proxy may serve several events.' }
      )
    ),
    websocket: section('WebSocket transport.', webSocket),
    engine: section('The engine, which stores history and presence and connects relay nodes.', {
      type: oneOf(ENGINE_KINDS, 'Same as RELAY_ENGINE.'),
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
    map_broker: section('Storage of maps.', {
      type: oneOf(ENGINE_KINDS, 'Must be the engine, which stores maps too.')
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
    sse: section('Server-sent events, at /connection/sse.', {
      enabled: flag('Enable the transport.', true),
      max_request_body_size: count(
        'Maximum size of a connect request, in bytes. Default: websocket.message_size_limit.',
        1,
        MAX_MESSAGE_BYTES
      )
    }),
    http_stream: section('HTTP streaming, at /connection/http_stream.', {
      enabled: flag('Enable the transport.', true),
      max_request_body_size: count(
        'Maximum size of a connect request, in bytes. Default: websocket.message_size_limit.',
        1,
        MAX_MESSAGE_BYTES
      )
    }),
    emulation: section('Commands of clients of sse and http_stream, at /emulation.', {
      max_request_body_size: count('Maximum size of a request with commands, in bytes.', 1, MAX_MESSAGE_BYTES, 65_536)
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
