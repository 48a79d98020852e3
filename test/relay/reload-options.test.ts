import { isDeepStrictEqual } from 'node:util'
import t from 'tap'
import { relayOptions } from '../../scripts/lib/relay-options-docs.js'
import { reloadConfigFile } from '../../src/relay/config/reload.js'
import { newSigningKey, pemOf } from '../helper/jwks-server.js'
import type { Json } from '../helper/raw-client.js'
import type { ConfigFile } from '../helper/relay-rules.js'
import { selfSigned } from '../helper/tls-event-backend.js'
import { configOfFile, fileWith, merged, room } from './reload-fixture.js'

// Classifies every option of the configuration file: it takes effect at once, or after a reconnect, or after a restart.
// test/relay/reload-connections.test.ts and reload-channels.test.ts observe the first kind in a relay with clients.

/** Two values of an option, and further options of both files. */
type Change = readonly [before: unknown, after: unknown, also?: ConfigFile]
type Changes = Readonly<Record<string, Change>>
/** The same with options of the same namespace. */
type ChannelChanges = Readonly<Record<string, readonly [before: unknown, after: unknown, also?: Json]>>

const ENDPOINT = 'https://backend.example/one'
const OTHER_ENDPOINT = 'https://backend.example/two'
const KEYS = await selfSigned(t.testdir(), 'backend.example')
const HISTORY = { history_size: 10, history_ttl: '300s' }
const VIEW = { ...HISTORY, conflate: 'data[].id', snapshot: true, view_x: 'x', view_y: 'y', view_cell: 10 }
const STATE = { presence: true, state_proxy_enabled: true }
const MAP = { mode: 'recoverable', key_ttl: '60s', min_page_size: 1, default_page_size: 2 }
const MAPPED = { subscription_type: 'map', map: MAP }
const LIMITS = [[{ commands: ['history'], by: 'client', rate: 1, interval: '1h' }], []] as const

/** Backends of all events, which options refer to. */
const PROXIES: ConfigFile = {
  proxies: [{ name: 'one', endpoint: ENDPOINT }],
  client: { proxy: { connect: { endpoint: ENDPOINT }, refresh: { endpoint: ENDPOINT } } },
  channel: {
    proxy: Object.fromEntries(
      ['subscribe', 'publish', 'sub_refresh', 'map_publish', 'map_remove', 'state'].map((event) => [
        event,
        { endpoint: ENDPOINT }
      ])
    )
  },
  rpc: { proxy: { endpoint: ENDPOINT } }
}
const CALLS = merged(PROXIES, { rpc: { without_namespace: { proxy_enabled: true, proxy_name: 'one' } } })
const proxy = (options: Json): ConfigFile => merged(CALLS, { proxies: [options] })
const TLS = { enabled: true, server_ca_pem: KEYS.cert, server_name: 'backend.example' }

function prefixed<T>(prefix: string, rows: Readonly<Record<string, T>>): Record<string, T> {
  return Object.fromEntries(Object.entries(rows).map(([name, row]) => [`${prefix}.${name}`, row]))
}

const flags = (names: readonly string[], also: Json = {}): ChannelChanges =>
  Object.fromEntries(names.map((name) => [name, [false, true, also]]))

const permissions = (what: string, also: Json): ChannelChanges => ({
  [`allow_${what}_for_client`]: [false, true, also],
  [`allow_${what}_for_subscriber`]: [false, true, also],
  [`allow_${what}_for_anonymous`]: [false, true, { ...also, [`allow_${what}_for_client`]: true }]
})

const mapPermissions = (what: string): ChannelChanges => ({
  [`allow_${what}_for_client`]: [false, true, MAPPED],
  [`allow_${what}_for_subscriber`]: [false, true, MAPPED],
  [`allow_${what}_for_anonymous`]: [false, true, { ...MAPPED, map: { ...MAP, [`allow_${what}_for_client`]: true } }]
})

const mapProxy = (what: string): ChannelChanges => ({
  [`${what}_proxy_enabled`]: [false, true, MAPPED],
  [`${what}_proxy_name`]: ['default', 'one', { ...MAPPED, map: { ...MAP, [`${what}_proxy_enabled`]: true } }]
})

/** Options of a namespace, and of channels without one. */
const CHANNEL_LIVE: ChannelChanges = {
  ...permissions('publish', {}),
  ...permissions('presence', { presence: true }),
  ...permissions('history', HISTORY),
  ...flags(['allow_subscribe_for_client', 'allow_user_limited_channels', 'allow_tags_filter']),
  ...flags(['subscribe_proxy_enabled', 'publish_proxy_enabled']),
  allow_subscribe_for_anonymous: [false, true, { allow_subscribe_for_client: true }],
  auto_cache_recover: [false, true, { ...HISTORY, force_recovery: true, force_recovery_mode: 'cache' }],
  delta_publish: [false, true, { ...HISTORY, allowed_delta_types: ['fossil'] }],
  snapshot: [false, true, { ...HISTORY, conflate: 'data[].id' }],
  allow_max_rate: [false, true, { conflate: 'data[].id' }],
  command_limits: LIMITS,
  history_size: [1, 3, { history_ttl: '300s' }],
  history_ttl: ['1s', '600s', { history_size: 5 }],
  history_meta_ttl: ['5s', '600s', { history_size: 5, history_ttl: '1s' }],
  force_recovery_mode: ['stream', 'cache', { ...HISTORY, force_recovery: true }],
  channel_regex: ['^[a-z0-9]+$', '^other$'],
  subscribe_proxy_name: ['default', 'one', { subscribe_proxy_enabled: true }],
  publish_proxy_name: ['default', 'one', { publish_proxy_enabled: true }],
  sub_refresh_proxy_name: ['default', 'one', { subscribe_proxy_enabled: true, sub_refresh_proxy_enabled: true }],
  state_proxy_enabled: [false, true, { presence: true }],
  state_proxy_name: ['default', 'one', STATE],
  state_events: [['occupied'], ['vacated'], STATE],
  conflate: [undefined, 'data[].id'],
  entry_time: [undefined, 'time', { conflate: 'data[].id' }],
  view_x: ['x', 'z', VIEW],
  view_y: ['y', 'z', VIEW],
  view_cell: [10, 5, VIEW],
  publication_data_format: ['json', 'json_object'],
  schema: [undefined, 'PositionBatch'],
  subscription_type: ['map', 'map_clients', { map: MAP }],
  map_clients_presence_channel_prefix: ['who:', 'who:x-'],
  map_users_presence_channel_prefix: ['whose:', 'whose:x-'],
  ...prefixed('map', {
    ...mapPermissions('publish'),
    ...mapPermissions('remove'),
    ...mapProxy('publish'),
    ...mapProxy('remove'),
    mode: ['recoverable', 'ephemeral', { subscription_type: 'map', map: { key_ttl: '60s' } }],
    key_ttl: ['60s', '1s', MAPPED],
    stream_size: [1, 10, MAPPED],
    stream_ttl: ['1s', '100s', MAPPED],
    meta_ttl: ['60s', '1000s', MAPPED],
    max_keys: [1, 5, MAPPED],
    default_page_size: [1, 3, MAPPED],
    min_page_size: [1, 2, MAPPED],
    max_page_size: [2, 4, MAPPED],
    live_transition_max_publication_limit: [1, 10, MAPPED],
    subscribe_catch_up_timeout: ['1s', '100s', MAPPED],
    client_key: ['client_id', 'user_id', MAPPED],
    remove_client_on_unsubscribe: [
      false,
      true,
      { subscription_type: 'map', map: { ...MAP, client_key: 'client_id', allow_publish_for_client: true } }
    ]
  } satisfies ChannelChanges)
}

const CHANNEL_RECONNECT: ChannelChanges = {
  ...flags(['presence', 'join_leave', 'sub_refresh_proxy_enabled']),
  ...flags(['force_recovery', 'allow_recovery', 'force_positioning', 'allow_positioning'], HISTORY),
  force_push_join_leave: [false, true, { join_leave: true }],
  allowed_delta_types: [[], ['fossil']]
}

const WHO = { name: 'who', subscription_type: 'map_clients', map: { mode: 'ephemeral', key_ttl: '60s' } }
const WHOSE = { ...WHO, name: 'whose', subscription_type: 'map_users' }

/** Both kinds of channels have the same options. */
const inChannels = (rows: ChannelChanges): Changes => {
  const of = (prefix: string, fileOf: (options: Json) => ConfigFile): Changes =>
    prefixed(
      prefix,
      Object.fromEntries(
        Object.entries(rows).map(([name, [before, after, also = {}]]): [string, Change] => [
          name,
          [before, after, merged(PROXIES, fileOf(also))]
        ])
      )
    )
  return {
    ...of('channel.namespaces[]', (options) => merged(room(options), { channel: { namespaces: [{}, WHO, WHOSE] } })),
    ...of('channel.without_namespace', (options) => ({
      channel: { without_namespace: options, namespaces: [{ name: 'room' }, WHO, WHOSE] }
    }))
  }
}

const token = (section: 'token' | 'subscription_token'): Changes => {
  const also = section === 'token' ? {} : { enabled: true, hmac_secret_key: 'a secret' }
  const rows: Record<string, readonly [unknown, unknown, Json?]> = {
    hmac_secret_key: ['the secret before that one', 'another secret'],
    hmac_previous_secret_key: ['an even older secret', 'an old secret'],
    hmac_previous_secret_key_valid_until: [1, 0, { hmac_previous_secret_key: 'an old secret' }],
    rsa_public_key: [pemOf(newSigningKey('RS256')), pemOf(newSigningKey('RS256'))],
    ecdsa_public_key: [pemOf(newSigningKey('ES256')), pemOf(newSigningKey('ES256'))],
    eddsa_public_key: [pemOf(newSigningKey('EdDSA')), pemOf(newSigningKey('EdDSA'))],
    jwks_public_endpoint: [undefined, 'https://keys.example/jwks'],
    audience: ['one', 'two'],
    audience_regex: ['^one$', '^two$'],
    issuer: ['one', 'two'],
    issuer_regex: ['^one$', '^two$'],
    user_id_claim: ['sub', 'uid'],
    expiry_required: [true, false]
  }
  return Object.fromEntries(
    Object.entries(rows).map(([name, [before, after, more]]) => [
      `client.${section}.${name}`,
      [before, after, { client: { [section]: { ...also, ...more } } }]
    ])
  )
}

const LIVE: Changes = {
  ...inChannels(CHANNEL_LIVE),
  ...token('token'),
  ...token('subscription_token'),
  'client.subscription_token.enabled': [
    false,
    true,
    { client: { subscription_token: { hmac_secret_key: 'another key' } } }
  ],
  ...prefixed<Change>('client', {
    insecure: [false, true],
    allowed_origins: [['https://one.example'], ['https://two.example']],
    disallow_anonymous_connection_tokens: [true, false],
    allow_anonymous_connect_without_token: [false, true],
    user_id_http_header: ['X-User-Id', 'X-User'],
    'subscribe_to_user_personal_channel.single_connection': [
      false,
      true,
      {
        client: { subscribe_to_user_personal_channel: { enabled: true } },
        channel: { without_namespace: { presence: true } }
      }
    ],
    pong_timeout: ['8s', '20s'],
    stale_close_delay: ['5s', '600s'],
    expired_close_delay: ['5s', '600s'],
    expired_sub_close_delay: ['5s', '600s'],
    queue_max_size: [65_536, 131_072],
    channel_limit: [1, 2],
    user_connection_limit: [1, 2],
    connection_limit: [1, 2],
    connection_rate_limit: [1, 0],
    connections_per_address: [1, 2],
    command_limits: LIMITS,
    'user_tokens_invalidate.enabled': [false, true],
    'user_tokens_invalidate.ttl': ['1s', '1h', { client: { user_tokens_invalidate: { enabled: true } } }],
    commands_per_second: [5, 0],
    concurrency: [1, 2],
    channel_position_check_delay: ['10s', '600s'],
    channel_position_max_time_lag: ['0', '5s'],
    history_max_publication_limit: [1, 3],
    recovery_max_publication_limit: [1, 10],
    connect_include_server_time: [false, true],
    'proxy.connect.enabled': [false, true, PROXIES],
    'proxy.connect.endpoint': [ENDPOINT, OTHER_ENDPOINT, { client: { proxy: { connect: { enabled: true } } } }],
    'proxy.refresh.endpoint': [ENDPOINT, OTHER_ENDPOINT, { client: { proxy: { refresh: { enabled: true } } } }]
  }),
  ...prefixed<Change>('channel', {
    history_meta_ttl: ['5s', '600s', room({ history_size: 5, history_ttl: '1s' })],
    publication_data_format: ['json', 'json_object', room({})],
    max_length: [10, 255],
    private_prefix: ['$', '%'],
    namespace_boundary: [':', '.'],
    user_boundary: ['#', '~'],
    user_separator: [',', '|'],
    'namespaces[].name': ['one', 'two'],
    'proxy.subscribe.endpoint': [ENDPOINT, OTHER_ENDPOINT, room({ subscribe_proxy_enabled: true })],
    'proxy.publish.endpoint': [ENDPOINT, OTHER_ENDPOINT, room({ publish_proxy_enabled: true })],
    'proxy.sub_refresh.endpoint': [
      ENDPOINT,
      OTHER_ENDPOINT,
      merged(PROXIES, room({ subscribe_proxy_enabled: true, sub_refresh_proxy_enabled: true }))
    ],
    'proxy.map_publish.endpoint': [
      ENDPOINT,
      OTHER_ENDPOINT,
      room({ ...MAPPED, map: { ...MAP, publish_proxy_enabled: true } })
    ],
    'proxy.map_remove.endpoint': [
      ENDPOINT,
      OTHER_ENDPOINT,
      room({ ...MAPPED, map: { ...MAP, remove_proxy_enabled: true } })
    ],
    'proxy.state.endpoint': [ENDPOINT, OTHER_ENDPOINT, room(STATE)]
  }),
  ...prefixed<Change>('rpc', {
    'proxy.endpoint': [ENDPOINT, OTHER_ENDPOINT, { rpc: { without_namespace: { proxy_enabled: true } } }],
    'without_namespace.proxy_enabled': [false, true, PROXIES],
    'without_namespace.proxy_name': ['default', 'one', CALLS],
    'namespaces[].name': ['room', 'hall', merged(PROXIES, { rpc: { namespaces: [{ proxy_enabled: true }] } })],
    'namespaces[].proxy_enabled': [false, true, CALLS],
    'namespaces[].proxy_name': [
      'default',
      'one',
      merged(CALLS, { rpc: { namespaces: [{ name: 'room', proxy_enabled: true }] } })
    ],
    namespace_boundary: [':', '/', CALLS],
    'ping.enabled': [false, true],
    'ping.method': ['ping', 'alive', { rpc: { ping: { enabled: true } } }]
  }),
  ...prefixed<Change>('proxies[]', {
    endpoint: [ENDPOINT, OTHER_ENDPOINT, CALLS],
    timeout: ['10ms', '30s', CALLS],
    binary_encoding: [false, true, CALLS],
    include_connection_meta: [false, true, CALLS],
    'http.static_headers': [{}, { 'X-Key': 'a' }, CALLS],
    'http.status_to_code_transforms': [[], [{ status_code: 404, to_error: { code: 1404 } }], CALLS],
    'http.tls.enabled': [false, true, proxy({ http: { tls: TLS } })],
    'http.tls.server_ca_pem': [undefined, KEYS.cert, proxy({ http: { tls: { enabled: true } } })],
    'http.tls.server_name': ['other.example', 'backend.example', proxy({ http: { tls: TLS } })],
    'http.tls.insecure_skip_verify': [false, true, proxy({ http: { tls: { enabled: true } } })],
    'http.max_response_size': [50, 500, CALLS],
    'http.signing_secret': [undefined, 'a secret', CALLS],
    'http.signing_secret_previous': [undefined, 'the old secret', proxy({ http: { signing_secret: 'a secret' } })],
    max_inflight: [1, 2, CALLS],
    max_queue: [0, 1, CALLS]
  }),
  'log.level': ['info', 'debug'],
  'http_api.key': ['one key', 'another key'],
  'http_api.insecure': [false, true],
  'http_api.external': [false, true, { http_server: { internal_port: 0 } }],
  'http_api.error_mode': ['default', 'transport'],
  'http_api.max_body_size': [20, 2000],
  'uni_sse.enabled': [false, true],
  'uni_sse.max_request_body_size': [10, 100],
  'uni_http_stream.enabled': [false, true],
  'uni_http_stream.max_request_body_size': [10, 100],
  'uni_websocket.enabled': [false, true],
  'engine.redis.channel_state.vacated_event_delay': ['1h', '1s'],
  'admin.enabled': [false, true, { admin: { password: 'a password for operators' } }],
  'admin.password': ['a password for operators', 'another password', { admin: { enabled: true } }],
  'admin.external': [false, true, { http_server: { internal_port: 0 } }],
  'shutdown.timeout': ['60s', '0s'],
  'sse.enabled': [false, true],
  'sse.max_request_body_size': [10, 100],
  'http_stream.enabled': [false, true],
  'http_stream.max_request_body_size': [10, 100],
  'emulation.max_request_body_size': [10, 100],
  'prometheus.enabled': [false, true],
  'prometheus.recovered_publications_histogram': [false, true],
  'prometheus.instrument_http_handlers': [false, true],
  'health.enabled': [false, true]
}

const compression = (section: string): Changes => {
  const also = { [section]: { compression: true } }
  return prefixed<Change>(section, {
    compression: [false, true],
    compression_min_size: [0, 200, also],
    compression_level: [1, 6, also],
    decompressed_message_size_limit: [65_536, 131_072, also],
    message_size_limit: [65_536, 131_072]
  })
}

const NEEDS_RECONNECT: Changes = {
  ...inChannels(CHANNEL_RECONNECT),
  ...compression('websocket'),
  ...compression('uni_websocket'),
  'uni_websocket.disable_disconnect_push': [false, true],
  'client.ping_interval': ['25s', '60s'],
  'client.proxy.refresh.enabled': [false, true, PROXIES],
  'client.subscribe_to_user_personal_channel.enabled': [false, true],
  'client.subscribe_to_user_personal_channel.personal_channel_namespace': [
    'one',
    'two',
    { channel: { namespaces: [{ name: 'one' }, { name: 'two' }] } }
  ],
  'proxies[].http_headers': [[], ['cookie'], CALLS],
  'proxies[].emulated_headers': [[], ['authorization'], CALLS]
}

const REDIS: ConfigFile = { engine: { type: 'redis', redis: { address: 'redis://127.0.0.1:1' } } }

const NEEDS_RESTART: Changes = {
  'http_server.address': ['127.0.0.1', '127.0.0.2'],
  'http_server.port': [8101, 8102],
  'http_server.internal_address': ['127.0.0.1', '127.0.0.2', { http_server: { internal_port: 0 } }],
  'http_server.internal_port': [0, 8103],
  'log.file': ['/dev/null', '/dev/zero'],
  'node.name': ['one', 'two'],
  'engine.type': ['memory', 'redis', REDIS],
  'engine.redis.address': ['redis://127.0.0.1:1', 'redis://127.0.0.1:2', REDIS],
  'engine.redis.prefix': ['one', 'two', REDIS],
  'engine.redis.presence_ttl': ['60s', '30s', REDIS]
}

/** For editors only, or with one value, or changed together with another option. */
const NOT_CHANGED = [
  '$schema',
  'map_broker.type',
  'proxies[].name',
  'proxies[].http.tls.cert_pem',
  'proxies[].http.tls.key_pem'
]

/** The options of the default proxies are read like those of a named one. */
const OF_DEFAULT_PROXY = /^(?:client\.proxy\.\w+|channel\.proxy\.\w+|rpc\.proxy)\.(?!enabled$|endpoint$)/

t.test('every option of the configuration file is classified', async (t) => {
  const classified = [LIVE, NEEDS_RECONNECT, NEEDS_RESTART].flatMap((rows) => Object.keys(rows)).concat(NOT_CHANGED)
  const paths = relayOptions().map(({ path }) => path)
  t.same(classified.toSorted(), paths.filter((path) => !OF_DEFAULT_PROXY.test(path)).toSorted())
})

const CLASSES = [
  { title: 'takes effect at once', rows: LIVE, list: null },
  { title: 'is listed as one that needs a reconnect', rows: NEEDS_RECONNECT, list: 'needsReconnect' },
  { title: 'is listed as one that needs a restart and keeps its value', rows: NEEDS_RESTART, list: 'needsRestart' }
] as const

for (const { title, rows, list } of CLASSES) {
  t.test(`an option that a reload changes ${title}`, async (t) => {
    for (const [path, [before, after, also]] of Object.entries(rows)) {
      const file = JSON.stringify(fileWith(path, after, also))
      const current = configOfFile(fileWith(path, before, also))
      const name = path.replace('namespaces[]', 'namespaces[room]').replace('proxies[]', 'proxies[one]')
      const reload = reloadConfigFile(current, { RELAY_CONFIG: 'relay.json' }, () => file)
      t.match(reload, { ok: true }, path)
      if (!reload.ok) continue
      const { config, needsRestart, needsReconnect } = reload
      t.same(
        { needsRestart, needsReconnect },
        { needsRestart: [], needsReconnect: [], ...(list !== null && { [list]: [name] }) },
        path
      )
      t.equal(isDeepStrictEqual(config, current), list === 'needsRestart', path)
    }
  })
}

t.test('equal files make equal configurations, except for patterns, which are functions', async (t) => {
  const file = fileWith('node.name', 'x', merged(CALLS, room({ ...VIEW, ...STATE })))
  t.ok(isDeepStrictEqual(configOfFile(file), configOfFile(file)))
})

t.test('channels without a namespace have the options of those with one', async (t) => {
  for (const [name, [, after, also = {}]] of Object.entries(CHANNEL_LIVE)) {
    const namespaces = [{ name: 'room' }, WHO, WHOSE]
    const unnamed = merged(PROXIES, { channel: { without_namespace: also, namespaces } })
    const named = merged(PROXIES, { channel: { namespaces: [{ name: 'room', ...also }, WHO, WHOSE] } })
    const { withoutNamespace } = configOfFile(fileWith(`channel.without_namespace.${name}`, after, unnamed)).channels
    const { namespaces: all } = configOfFile(fileWith(`channel.namespaces[].${name}`, after, named)).channels
    t.same(withoutNamespace, all.get('room'), name)
  }
})
