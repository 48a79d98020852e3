import { type Static, type TProperties, type TSchema, Type } from '@sinclair/typebox'
import { schemas } from '../../../schemas/registry.js'

const UNIT_MS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 } as const

/** As in `300s`, `1h30m`, `1.5s`; a bare `0` is written too. */
export const DURATION_PATTERN = '^(?:0|(?:\\d{1,9}(?:\\.\\d{1,3})?(?:ms|s|m|h))+)$'

const PART = /(\d+(?:\.\d+)?)(ms|s|m|h)/g

/** Milliseconds of a text that matches `DURATION_PATTERN`. */
export const durationMs = (text: string): number =>
  Math.round(
    [...text.matchAll(PART)].reduce(
      (sum, [, count, unit]) => sum + Number(count) * UNIT_MS[unit as keyof typeof UNIT_MS],
      0
    )
  )

// The file that RELAY_CONFIG names. Names and nesting are those of Centrifugo 6, so that an existing file can be brought
// along; what is marked "ours" it does not have. docs/relay-config.schema.json is written from this.

const MAX_COUNT = 1_000_000_000
const GIB = 1024 ** 3

const section = <P extends TProperties>(description: string, properties: P) =>
  Type.Optional(Type.Object(properties, { description, additionalProperties: false }))

const flag = (description: string) => Type.Optional(Type.Boolean({ description }))

/** For what the relay always does: a file that asks for it is right, one that forbids it is not obeyed, so it is refused. */
const alwaysOn = (description: string) =>
  section(description, { enabled: Type.Optional(Type.Literal(true, { description: 'It cannot be switched off.' })) })

const count = (description: string, minimum = 0, maximum = MAX_COUNT) =>
  Type.Optional(Type.Integer({ description, minimum, maximum }))

const duration = (description: string) =>
  Type.Optional(Type.String({ description, pattern: DURATION_PATTERN, examples: ['300s'] }))

const text = (description: string, maxLength = 1024) =>
  Type.Optional(Type.String({ description, minLength: 1, maxLength }))

const oneOf = <const Choice extends string>(choices: readonly Choice[], description: string) =>
  Type.Optional(
    Type.Unsafe<Choice>(
      Type.Union(
        choices.map((choice) => Type.Literal(choice)),
        { description }
      )
    )
  )

/** What a namespace may be called; without the `:` that ends it. */
export const NAMESPACE_PATTERN = '^[-a-zA-Z0-9_.]{2,}$'

const SCHEMA_NAMES = Object.keys(schemas)

const channelOptions = {
  presence: flag('Keep a list of who is subscribed.'),
  join_leave: flag('Make events of clients that come and go.'),
  force_push_join_leave: flag('Send these events to subscribers that did not ask for them.'),
  history_size: count('Publications kept per channel; together with history_ttl.', 0, 1_000_000),
  history_ttl: duration('How long publications are kept, in whole seconds; together with history_size.'),
  history_meta_ttl: duration('How long epoch and offset outlive the last use of a channel.'),
  force_recovery: flag('Clients that come back get what they missed.'),
  allow_recovery: flag('The same for clients that ask for it.'),
  force_recovery_mode: oneOf(['stream', 'cache'], 'stream: all that was missed, in order; cache: only the newest.'),
  auto_cache_recover: flag('Who subscribes gets the newest without asking; with force_recovery and the mode cache.'),
  force_positioning: flag('Notice when a client missed something.'),
  allow_positioning: flag('The same for clients that ask for it.'),
  allow_subscribe_for_client: flag('Who is signed in may subscribe.'),
  allow_subscribe_for_anonymous: flag('And so may others.'),
  allow_publish_for_client: flag('Who is signed in may publish.'),
  allow_publish_for_subscriber: flag('Subscribers may publish.'),
  allow_publish_for_anonymous: flag('And so may others.'),
  allow_presence_for_client: flag('Who is signed in may ask who is there.'),
  allow_presence_for_subscriber: flag('Subscribers may ask who is there.'),
  allow_presence_for_anonymous: flag('And so may others.'),
  allow_history_for_client: flag('Who is signed in may read the history.'),
  allow_history_for_subscriber: flag('Subscribers may read the history.'),
  allow_history_for_anonymous: flag('And so may others.'),
  allowed_delta_types: Type.Optional(
    Type.Array(Type.Literal('fossil'), {
      description: 'Kinds of deltas that subscribers may ask for.',
      uniqueItems: true
    })
  ),
  delta_publish: flag('Send deltas of every publication, also of those that were not published for it.'),
  allow_user_limited_channels: flag('Channels such as room#42,43 are for the users 42 and 43.'),
  channel_regex: text('What the name behind the namespace must match; without one it must be ASCII.'),
  conflate: text('Ours: the list in a publication and the key of its entries, such as data[].transmitterId.', 256),
  schema: oneOf(SCHEMA_NAMES, 'Ours: publications must fit this schema.')
} as const satisfies Record<string, TSchema>

export const ChannelOptionsSchema = Type.Object(channelOptions, { additionalProperties: false })
export type FileChannelOptions = Static<typeof ChannelOptionsSchema>

const NamespaceSchema = Type.Object(
  { name: Type.String({ description: 'Stands before the colon.', pattern: NAMESPACE_PATTERN }), ...channelOptions },
  { additionalProperties: false }
)

const channel = {
  without_namespace: section('What holds on channels without a namespace.', channelOptions),
  namespaces: Type.Optional(
    Type.Array(NamespaceSchema, { description: 'All namespaces there are. What one does not open is closed.' })
  ),
  history_meta_ttl: duration('For namespaces that do not say it themselves.'),
  max_length: count('Longest name of a channel, in bytes.', 1, 65_535),
  private_prefix: text('Channels that begin so need a token of their own.', 1),
  namespace_boundary: text('What stands between namespace and rest.', 1),
  user_boundary: text('What stands before the users of a channel.', 1)
}

const client = {
  insecure: flag('No tokens, everything allowed: for test suites of clients. Refused in production.'),
  allowed_origins: Type.Optional(
    Type.Array(Type.String(), {
      description: 'Pages that may connect; https://*.example.com stands for one or more labels, * alone for all.',
      examples: [['https://app.example.com', 'https://*.example.com']]
    })
  ),
  token: section('How connections prove who they are.', {
    hmac_secret_key: text('As REALTIME_HMAC_SECRET.'),
    audience: text('What aud must contain.'),
    issuer: text('What iss must be.'),
    expiry_required: flag('Ours: whether a connection token must have an expiry; true where not given.')
  }),
  subscription_token: section('Another key for subscription tokens.', {
    enabled: flag('Without it the key of connection tokens is used.'),
    hmac_secret_key: text('Verifies HS256 tokens.')
  }),
  allow_anonymous_connect_without_token: flag('Clients without a token may connect.'),
  ping_interval: duration('How often clients are pinged, in whole seconds.'),
  pong_timeout: duration('How long a client may take to answer; less than ping_interval.'),
  stale_close_delay: duration('How long a client may take to say who it is.'),
  expired_close_delay: duration('How long a connection outlives its token.'),
  expired_sub_close_delay: duration('How long a subscription outlives its token.'),
  queue_max_size: count('Bytes that may wait for one client.', 1, GIB),
  channel_limit: count('Subscriptions per connection.', 1, 1_000_000),
  user_connection_limit: count('Connections per user, at all workers and relays together; 0 is no limit.'),
  connection_limit: count('Connections in all; 0 is no limit.'),
  connection_rate_limit: count('New connections per second; 0 is no limit.'),
  connections_per_address: count('Ours: connections per address; 0 is no limit.'),
  commands_per_second: count('Ours: commands per second and connection; 0 is no limit.'),
  channel_position_check_delay: duration('How often positions are compared.'),
  history_max_publication_limit: count('Publications in one answer to a history command.', 1, 1_000_000),
  recovery_max_publication_limit: count('Publications that a client may have missed.', 1, 1_000_000),
  connect_include_server_time: flag("Tell clients the server's time."),
  subscribe_to_user_personal_channel: section('Subscribe each user to a channel of their own.', {
    enabled: flag('Whether to do so.'),
    personal_channel_namespace: text('The namespace of these channels.')
  })
}

/** Paths that stand in messages are paths in this. */
export const RelayConfigFileSchema = Type.Object(
  {
    $schema: text('For editors.'),
    http_server: section('Where the relay listens.', {
      address: text('As RELAY_HOST.'),
      port: count('As RELAY_PORT.', 0, 65_535)
    }),
    log: section('What is logged.', {
      level: oneOf(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'], 'As LOG_LEVEL.')
    }),
    client: section('Connections.', client),
    channel: section('Channels.', channel),
    http_api: section('The publish API.', {
      key: text('As REALTIME_API_KEY.'),
      insecure: flag('No key is needed. Refused in production.'),
      error_mode: oneOf(['default', 'transport'], 'transport: errors have their own HTTP status.'),
      max_body_size: count('Ours: largest body, in bytes.', 1, GIB)
    }),
    websocket: section('WebSocket.', {
      message_size_limit: count('Largest message from a client, in bytes.', 1, 64 * 1024 * 1024)
    }),
    engine: section('What carries publications between relays.', {
      type: oneOf(['memory', 'redis'], 'As RELAY_ENGINE.'),
      redis: section('For the type redis.', {
        address: text('As REDIS_URL.', 4096),
        prefix: text('As RELAY_REDIS_PREFIX.', 64),
        presence_ttl: duration('How long a client of a relay that died is still listed; 60s where not given.')
      })
    }),
    admin: section("Operators' page.", {
      enabled: flag('Whether there is one.'),
      password: text('As RELAY_ADMIN_PASSWORD.')
    }),
    shutdown: section('Leaving.', { timeout: duration('How long clients may take to be gone.') }),
    sse: alwaysOn('The fallback over server-sent events.'),
    http_stream: alwaysOn('The fallback over an HTTP stream.'),
    prometheus: alwaysOn('/metrics'),
    health: alwaysOn('/health')
  },
  {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'Configuration file of the relay',
    additionalProperties: false
  }
)
export type RelayConfigFile = Static<typeof RelayConfigFileSchema>
