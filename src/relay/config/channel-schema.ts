import { type Static, type TSchema, Type } from '@sinclair/typebox'
import { schemas } from '../../../schemas/registry.js'
import type { ChannelState } from '../core/options.js'
import { mapOptionSchemas } from './map-schema.js'
import { proxyOptions, proxyReference } from './proxy-schema.js'
import { commandLimits, count, duration, flag, oneOf, section, text } from './schema-kinds.js'

/** A namespace name without the boundary character. */
export const NAMESPACE_PATTERN = '^[-a-zA-Z0-9_.]{2,}$'

const SCHEMA_NAMES = Object.keys(schemas)

// docs/how-to/extend.md lists the further steps that a new option of a namespace needs.
const channelOptionSchemas = {
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
    'Gatehouse only: where an entry has its time (Unix milliseconds or ISO 8601), such as timestamp: a merge never replaces a newer entry. Requires conflate.',
    256
  ),
  snapshot: flag(
    'Gatehouse only: a subscriber that does not recover receives the newest entry of every key in the history. Requires conflate, history_size and history_ttl.'
  ),
  allow_max_rate: flag(
    'Gatehouse only: a subscriber can limit its deliveries per second with data: {"max_rate": n}; entries are merged by key in between. Requires conflate.'
  ),
  ...mapOptionSchemas,
  publication_data_format: oneOf(
    ['json', 'json_object', 'binary'],
    'Data of publications: any JSON value, a JSON object, or any bytes (also none), which only protobuf clients receive. Default: channel.publication_data_format.'
  ),
  command_limits: commandLimits(
    'Gatehouse only: limits of commands in this namespace, beside those of client.command_limits.',
    ['subscribe', 'publish', 'history']
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

const ChannelOptionsSchema = Type.Object(channelOptionSchemas, { additionalProperties: false })
export type FileChannelOptions = Static<typeof ChannelOptionsSchema>

const NamespaceSchema = Type.Object(
  {
    name: Type.String({ description: 'The part of a channel name before the colon.', pattern: NAMESPACE_PATTERN }),
    ...channelOptionSchemas
  },
  { additionalProperties: false }
)

/** The section `channel`. */
export const channelSection = {
  proxy: section('Default proxies of events in channels.', {
    subscribe: section('Is asked when a client subscribes.', proxyOptions),
    publish: section('Is asked when a client publishes.', proxyOptions),
    sub_refresh: section('Is asked when a subscription expires.', proxyOptions),
    map_publish: section('Is asked when a client writes to a map.', proxyOptions),
    map_remove: section('Is asked when a client removes a key of a map.', proxyOptions),
    state: section('Is notified when a channel becomes occupied or is vacated.', proxyOptions)
  }),
  without_namespace: section('Options of channels without a namespace.', channelOptionSchemas),
  namespaces: Type.Optional(
    Type.Array(NamespaceSchema, {
      description: 'All namespaces. A namespace grants only the permissions that it lists.'
    })
  ),
  publication_data_format: oneOf(
    ['json', 'json_object', 'binary'],
    'Default for namespaces without their own publication_data_format. Without both, data is JSON or other bytes, and JSON clients that would receive other bytes are closed with 3506.'
  ),
  history_meta_ttl: duration('Default for namespaces without their own history_meta_ttl.', '720h'),
  max_length: count('Maximum length of a channel name, in bytes.', 1, 65_535, 255),
  private_prefix: text('Channels with this prefix require a subscription token.', 1, '$'),
  namespace_boundary: text('Separates the namespace from the rest of a channel name.', 1, ':'),
  user_boundary: text('Separates a channel name from its list of users.', 1, '#'),
  user_separator: text('Separates the users in that list.', 1, ',')
}
