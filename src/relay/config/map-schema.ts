import { Type } from '@sinclair/typebox'
import { proxyReference } from './proxy-schema.js'
import { count, duration, flag, oneOf, section, text } from './schema-kinds.js'

/** A number above 0. */
const positive = (description: string) => Type.Optional(Type.Number({ description, exclusiveMinimum: 0 }))

const MAX_KEYS = 10_000_000
const MAX_PAGE_SIZE = 100_000

/** The section `map` of a namespace. */
const mapSection = section('Options of map channels; only with a subscription_type other than stream.', {
  mode: oneOf(
    ['ephemeral', 'recoverable', 'persistent'],
    'ephemeral: keys expire, and clients that reconnect start from scratch; recoverable: keys expire, and clients recover the changes that they missed; persistent: keys stay. Required.'
  ),
  key_ttl: duration(
    'How long a key stays after its last write. Required for ephemeral and recoverable maps, rejected for persistent ones.'
  ),
  stream_size: count('Changes stored per channel, for recovery. Not for ephemeral maps.', 1, 1_000_000, 100),
  stream_ttl: duration('How long changes are stored. Not for ephemeral maps.', '1m'),
  meta_ttl: duration(
    'How long a map that is not persistent is stored after the last use; at least key_ttl and stream_ttl. Default: the larger of ten times stream_ttl and key_ttl.'
  ),
  max_keys: count('Gatehouse only: a write that would add a key to a map of this size fails.', 1, MAX_KEYS, 100_000),
  default_page_size: count('Entries per page for clients that request no number.', 1, MAX_PAGE_SIZE, 100),
  min_page_size: count('Smaller requests are raised to this number.', 1, MAX_PAGE_SIZE, 100),
  max_page_size: count('Larger requests are reduced to this number.', 1, MAX_PAGE_SIZE, 1000),
  live_transition_max_publication_limit: count(
    'A client with more changes than this to catch up starts from scratch. Default: max_page_size.',
    1,
    1_000_000
  ),
  subscribe_catch_up_timeout: Type.Optional(
    Type.String({
      description:
        'Maximum time from the first page to live delivery; clients that take longer are closed with 3008. A negative duration: no limit.',
      pattern: '^-?(?:0|(?:\\d{1,9}(?:\\.\\d{1,3})?(?:ms|s|m|h))+)$',
      default: '5s'
    })
  ),
  client_key: oneOf(['client_id', 'user_id'], 'Replaces the key in the writes of clients.'),
  remove_client_on_unsubscribe: flag('Remove the key with the id of the client when its subscription ends.'),
  allow_publish_for_client: flag('Clients with a user id may write.'),
  allow_publish_for_subscriber: flag('Subscribers may write.'),
  allow_publish_for_anonymous: flag('Anonymous clients may write.'),
  allow_remove_for_client: flag('Clients with a user id may remove keys.'),
  allow_remove_for_subscriber: flag('Subscribers may remove keys.'),
  allow_remove_for_anonymous: flag('Anonymous clients may remove keys.'),
  publish_proxy_enabled: flag(
    'The backend decides about writes of clients. The permissions allow_publish_for_… are not used then.'
  ),
  publish_proxy_name: proxyReference('channel.proxy.map_publish'),
  remove_proxy_enabled: flag(
    'The backend decides about removals by clients. The permissions allow_remove_for_… are not used then.'
  ),
  remove_proxy_name: proxyReference('channel.proxy.map_remove')
})

const prefix = (kind: string) =>
  text(`Every live subscription writes ${kind} into the map channel with this prefix and the name of the channel.`, 255)

/** Options of a namespace for maps and views. */
export const mapOptionSchemas = {
  subscription_type: oneOf(
    ['stream', 'map', 'map_clients', 'map_users'],
    'stream: publications; map: keyed entries; map_clients and map_users: maps of the clients or users of other channels.',
    'stream'
  ),
  map: mapSection,
  map_clients_presence_channel_prefix: prefix('its client'),
  map_users_presence_channel_prefix: prefix('its user'),
  view_x: text(
    'Gatehouse only: where an entry, or the data of a map, has its x coordinate, such as position.x: subscribers can ask for a rectangle (view). Requires view_y, view_cell, and snapshot or a map.',
    256
  ),
  view_y: text('Gatehouse only: the same for the y coordinate.', 256),
  view_cell: positive('Gatehouse only: rectangles of subscribers are enlarged to multiples of this length.')
} as const
