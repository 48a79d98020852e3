import t from 'tap'
import type { MapOptions } from '../../src/relay/core/options.js'
import { type ConfigFile, configOf } from '../helper/relay-rules.js'
import { required } from '../helper/required.js'

type Options = Readonly<Record<string, unknown>>

const RECOVERABLE = { mode: 'recoverable', key_ttl: '60s' }

const fileOf = (map: Options, options: Options = {}): ConfigFile => ({
  channel: { namespaces: [{ name: 'ns', subscription_type: 'map', map, ...options }] }
})

const optionsOf = (map: Options, options: Options = {}): MapOptions =>
  required(required(configOf(fileOf(map, options)).channels.namespaces.get('ns')).map)

/** The error messages about a file; none if it is valid. */
const errorsOf = (file: ConfigFile, env: Readonly<Record<string, string>> = {}): string => {
  try {
    configOf(file, env)
    return ''
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

t.test('a namespace without subscription_type is a stream', async (t) => {
  const { channels } = configOf({ channel: { namespaces: [{ name: 'ns' }] } })

  t.match(channels.namespaces.get('ns'), { subscriptionType: 'stream', map: null, view: null })
})

t.test('options of maps have the defaults of Centrifugo', async (t) => {
  t.match(optionsOf(RECOVERABLE), {
    mode: 'recoverable',
    keyTtlMs: 60_000,
    streamSize: 100,
    streamTtlMs: 60_000,
    metaTtlMs: 600_000,
    maxKeys: 100_000,
    defaultPageSize: 100,
    minPageSize: 100,
    maxPageSize: 1000,
    liveLimit: 1000,
    catchUpTimeoutMs: 5000,
    clientKey: null,
    removeClientOnUnsubscribe: false,
    allowPublishForClient: false,
    allowRemoveForAnonymous: false,
    deliversPrevious: false
  })
  t.match(optionsOf({ mode: 'persistent' }), { keyTtlMs: 0, metaTtlMs: 0, streamSize: 100 })
  t.match(optionsOf({ mode: 'ephemeral', key_ttl: '1500ms' }), { keyTtlMs: 1500, streamSize: 0, streamTtlMs: 0 })

  t.match(optionsOf({ ...RECOVERABLE, key_ttl: '1h' }), { metaTtlMs: 3_600_000 }, 'the longer of both')
})

t.test('a negative subscribe_catch_up_timeout is no limit', async (t) => {
  t.equal(optionsOf({ ...RECOVERABLE, subscribe_catch_up_timeout: '-1s' }).catchUpTimeoutMs, Number.POSITIVE_INFINITY)

  t.equal(optionsOf({ ...RECOVERABLE, subscribe_catch_up_timeout: '250ms' }).catchUpTimeoutMs, 250)
})

t.test('deliveries contain the previous entry if deltas, tag filters or views need it', async (t) => {
  for (const options of [
    { allowed_delta_types: ['fossil'] },
    { allow_tags_filter: true },
    { view_x: 'x', view_y: 'y', view_cell: 10 }
  ])
    t.ok(optionsOf(RECOVERABLE, options).deliversPrevious, JSON.stringify(options))
})

const NS = 'channel.namespaces[0]'

const INVALID: readonly (readonly [file: ConfigFile, error: string])[] = [
  [fileOf({}), `${NS}.map.mode is missing`],
  [fileOf({ mode: 'other' }), `${NS}.map.mode must be one of "ephemeral", "recoverable", "persistent"`],
  [fileOf(RECOVERABLE, { subscription_type: 'stream' }), `${NS}.map needs the subscription_type`],
  [fileOf({ mode: 'recoverable' }), `${NS}.map.key_ttl is needed with the mode "recoverable"`],
  [fileOf({ mode: 'ephemeral' }), `${NS}.map.key_ttl is needed with the mode "ephemeral"`],
  [fileOf({ mode: 'persistent', key_ttl: '1s' }), `${NS}.map.key_ttl must not be set with the mode "persistent"`],
  [fileOf({ mode: 'persistent', meta_ttl: '1h' }), `${NS}.map.meta_ttl must not be set with the mode "persistent"`],
  [fileOf({ mode: 'ephemeral', key_ttl: '1s', stream_size: 5 }), `${NS}.map.stream_size must not be set`],
  [fileOf({ mode: 'ephemeral', key_ttl: '1s', stream_ttl: '5s' }), `${NS}.map.stream_ttl must not be set`],
  [fileOf({ ...RECOVERABLE, meta_ttl: '59s' }), `${NS}.map.meta_ttl must not be shorter than key_ttl and stream_ttl`],
  [fileOf({ ...RECOVERABLE, meta_ttl: '90s', stream_ttl: '2m' }), `${NS}.map.meta_ttl must not be shorter`],
  [fileOf({ ...RECOVERABLE, min_page_size: 200 }), `${NS}.map.min_page_size must not be above default_page_size`],
  [fileOf({ ...RECOVERABLE, max_page_size: 50 }), `${NS}.map.max_page_size must not be below default_page_size`],
  [fileOf({ ...RECOVERABLE, max_keys: -1 }), `${NS}.map.max_keys must be a whole number`],
  [fileOf({ ...RECOVERABLE, client_key: 'name' }), `${NS}.map.client_key must be one of "client_id", "user_id"`],
  ...['key_ttl', 'meta_ttl', 'stream_ttl', 'subscribe_catch_up_timeout'].map(
    (option) =>
      [fileOf({ [option]: '1s' }, { subscription_type: 'stream' }), `${NS}.map needs the subscription_type`] as const
  ),
  [fileOf({ max_keys: 5 }, { subscription_type: 'stream' }), `${NS}.map needs the subscription_type`],
  [
    fileOf({ allow_publish_for_client: true }, { subscription_type: 'stream' }),
    `${NS}.map needs the subscription_type`
  ],
  [fileOf({ publish_proxy_enabled: true }, { subscription_type: 'stream' }), `${NS}.map needs the subscription_type`],
  ...['publish', 'remove'].flatMap((event) => [
    [
      fileOf({ ...RECOVERABLE, [`${event}_proxy_enabled`]: true }),
      `channel.proxy.map_${event}.endpoint is missing, and ${NS}.map.${event}_proxy_enabled needs it`
    ] as const,
    [
      fileOf({ ...RECOVERABLE, [`${event}_proxy_enabled`]: true, [`${event}_proxy_name`]: 'none' }),
      `${NS}.map.${event}_proxy_name must be default, or the name of one of proxies`
    ] as const,
    [
      fileOf({ ...RECOVERABLE, [`${event}_proxy_enabled`]: true, client_key: 'client_id' }),
      `${NS}.map.${event}_proxy_enabled must not be combined with client_key`
    ] as const
  ]),
  [fileOf({ ...RECOVERABLE, nonsense: 1 }), `${NS}.map.nonsense is not an option`],
  ...['map_clients', 'map_users'].map(
    (type) =>
      [
        fileOf({ mode: 'persistent' }, { subscription_type: type }),
        `${NS}.map.mode must not be "persistent" with "${type}"`
      ] as const
  ),
  ...[
    { history_size: 5 },
    { history_ttl: '5s' },
    { history_meta_ttl: '5s' },
    { force_recovery: true },
    { allow_recovery: true },
    { force_positioning: true },
    { allow_positioning: true },
    { force_recovery_mode: 'cache' },
    { conflate: 'id' },
    { snapshot: true },
    { allow_max_rate: true },
    { publish_proxy_enabled: true }
  ].map(
    (option) => [fileOf(RECOVERABLE, option), `${NS}.${Object.keys(option)[0]} is not an option of a map`] as const
  ),
  [
    fileOf(RECOVERABLE, { map_clients_presence_channel_prefix: 'none:' }),
    `${NS}.map_clients_presence_channel_prefix must begin with a namespace of the subscription_type "map_clients"`
  ],
  [
    fileOf(RECOVERABLE, { map_users_presence_channel_prefix: 'ns:' }),
    `${NS}.map_users_presence_channel_prefix must begin with a namespace of the subscription_type "map_users"`
  ],
  [fileOf(RECOVERABLE, { view_x: 'x' }), `${NS}.view_y is needed together with`],
  [fileOf(RECOVERABLE, { view_x: 'x', view_y: 'y' }), `${NS}.view_cell is needed together with`],
  [fileOf(RECOVERABLE, { view_x: 'x', view_y: 'y', view_cell: 0 }), `${NS}.view_cell must be`],
  [
    { ...fileOf(RECOVERABLE), map_broker: { type: 'memory' }, engine: { type: 'redis' } },
    'map_broker.type must be "redis", as the engine'
  ],
  [
    { ...fileOf(RECOVERABLE), map_broker: { type: 'redis', redis: { prefix: 'x' } }, engine: { type: 'redis' } },
    'map_broker.redis is not supported: use engine.redis'
  ]
]

for (const [file, error] of INVALID) {
  t.test(`an invalid option of a map is reported: ${error}`, async (t) => {
    t.match(errorsOf(file), error)
  })
}

t.test('map_broker may name the engine', async (t) => {
  t.equal(errorsOf({ ...fileOf(RECOVERABLE), map_broker: { type: 'memory', redis: { prefix: 'unused' } } }), '')
  t.equal(errorsOf({ ...fileOf(RECOVERABLE), map_broker: { type: 'redis' }, engine: { type: 'redis' } }), '')
  t.equal(errorsOf({ ...fileOf(RECOVERABLE), map_broker: { type: 'redis' } }), '', 'it selects the engine')
  t.match(
    errorsOf({ ...fileOf(RECOVERABLE), map_broker: { type: 'redis' } }, { RELAY_ENGINE: 'memory' }),
    'map_broker.type must be "memory", as the engine'
  )

  t.equal(errorsOf({ map_broker: { type: 'memory' }, engine: { type: 'redis' } }), '', 'a default without maps')
})

t.test('a map accepts the defaults of other options, as Centrifugo prints them', async (t) => {
  const unset = { history_size: 0, history_ttl: '0s', history_meta_ttl: '0s', force_recovery_mode: '', snapshot: false }
  const map = {
    ...RECOVERABLE,
    meta_ttl: '0s',
    stream_size: 0,
    publish_proxy_enabled: false,
    remove_proxy_name: 'default'
  }

  t.equal(errorsOf(fileOf(map, unset)), '')
  const off = {
    mode: '',
    key_ttl: '0s',
    client_key: '',
    allow_publish_for_client: false,
    publish_proxy_name: 'default'
  }
  t.equal(errorsOf(fileOf(off, { subscription_type: 'stream' })), '', 'on a stream')
})
