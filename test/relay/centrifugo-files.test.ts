import { randomBytes } from 'node:crypto'
import type { TSchema } from '@sinclair/typebox'
import { dump } from 'js-yaml'
import { stringify } from 'smol-toml'
import t from 'tap'
import { isIgnored } from '../../src/relay/config/centrifugo-options.js'
import { type RelayConfig, relayConfig } from '../../src/relay/config/config.js'
import { migrationNotes } from '../../src/relay/config/migration-notes.js'
import { RelayConfigFileSchema } from '../../src/relay/config/schema.js'
import type { Environment } from '../../src/shared/env.js'
import { isObject } from '../../src/shared/is-object.js'
import DEFAULT_CONFIG from './centrifugo-defaultconfig.json' with { type: 'json' }
import { configWith, errorsOf, SECRETS } from './config-fixture.js'

// Files that Centrifugo 6 accepts. centrifugo-defaultconfig.json is the output of `centrifugo defaultconfig` of version
// 6.9.1, whose options and defaults are those of 6.9.6.

const configFrom = (path: string, text: string, environment: Environment = SECRETS): RelayConfig =>
  relayConfig({ NODE_ENV: 'test', ...environment, RELAY_CONFIG: path }, () => text)

const errorsFrom = (path: string, text: string): readonly string[] => errorsOf(() => configFrom(path, text))

const namespace = (options: object) => ({ channel: { namespaces: [{ name: 'room', ...options }] } })

/** TOML has no null. */
const withoutNull = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(withoutNull)
  if (!isObject(value)) return value
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, each]) => (each === null ? [] : [[name, withoutNull(each)]]))
  )
}

/** The paths of all options of a file. */
const pathsOf = (value: unknown, path = ''): string[] =>
  isObject(value) && Object.keys(value).length > 0
    ? Object.entries(value).flatMap(([name, each]) => pathsOf(each, path === '' ? name : `${path}.${name}`))
    : [path]

t.test('the file of centrifugo defaultconfig', async (t) => {
  t.test('it is accepted, and its options take effect', async (t) => {
    const { listen, logLevel, endpoints } = configWith(DEFAULT_CONFIG)

    t.same([listen.port, logLevel], [8000, 'info'])
    t.same(endpoints, { sse: false, httpStream: false, metrics: false, health: false })
  })

  t.test('it is accepted with its channel options in a namespace', async (t) => {
    const { without_namespace: options } = DEFAULT_CONFIG.channel
    t.same(
      errorsOf(() => configWith(namespace(options))),
      []
    )
  })

  t.test('it has the same effect in YAML and in TOML', async (t) => {
    const expected = configWith(DEFAULT_CONFIG)
    t.same(configFrom('relay.yaml', dump(DEFAULT_CONFIG)), expected)
    t.same(configFrom('relay.yml', dump(DEFAULT_CONFIG)), expected)
    t.same(configFrom('/etc/relay.TOML', stringify(withoutNull(DEFAULT_CONFIG))), expected)
  })

  t.test('each of its 779 options is one that the relay has, or that it rejects or ignores by name', async (t) => {
    const has = (schema: TSchema | undefined, [name, ...rest]: readonly string[]): boolean =>
      name === undefined || has(schema?.properties?.[name], rest)
    const isKnown = (path: string): boolean => has(RelayConfigFileSchema, path.split('.')) || isIgnored(path, 'x', true)
    const isCovered = (path: string): boolean =>
      isKnown(path) ||
      path.split('.').some((_, depth, steps) => depth > 0 && isIgnored(steps.slice(0, depth).join('.'), 'x', true))

    const paths = pathsOf(DEFAULT_CONFIG)
    t.equal(paths.length, 779)
    t.same(
      paths.filter((path) => !isCovered(path)),
      []
    )
  })
})

t.test('the file of centrifugo genconfig starts in production', async (t) => {
  const secret = (bytes: number): string => randomBytes(bytes).toString('base64url')
  const file = {
    client: { token: { hmac_secret_key: secret(64) }, allowed_origins: [] },
    admin: { enabled: false, password: secret(16), secret: secret(64) },
    http_api: { key: secret(64) }
  }
  const production = { NODE_ENV: 'production' }
  const { tokens, api, adminPassword, ineffectiveOptions } = configWith(file, production)

  t.equal(tokens.connection.hmacSecret, file.client.token.hmac_secret_key)
  t.equal(api.key, file.http_api.key)
  t.equal(adminPassword, null)
  t.same(ineffectiveOptions, [])
  const withPage = configWith({ ...file, admin: { ...file.admin, enabled: true } }, production)
  t.equal(withPage.adminPassword, file.admin.password)
  t.match(withPage.ineffectiveOptions, [/^admin.secret has no effect: the key of operator sessions is derived/])
})

t.test('features that are off', async (t) => {
  const OFF: readonly (readonly [title: string, file: object])[] = [
    ['a section with enabled: false', { grpc_api: { enabled: false, port: 10_000 }, graphite: { enabled: 'false' } }],
    ['options of a section that is off by default', { admin: { secret: 'x' }, uni_sse: { handler_prefix: '/x' } }],
    ['a controller that is off', { controller: { enabled: false, type: 'redis' } }],
    [
      'consumers that are off',
      {
        consumers: [
          { name: 'aa', enabled: false, type: 'kafka' },
          { name: 'bb', type: 'kafka' }
        ]
      }
    ],
    ['proxies that no namespace uses', { proxies: [{ name: 'aa', endpoint: 'http://backend' }] }],
    ['the endpoint of a proxy that is off', { channel: { proxy: { publish: { endpoint: 'http://backend' } } } }],
    ['the name of a proxy that is off', namespace({ subscribe_proxy_enabled: false, subscribe_proxy_name: 'aa' })],
    [
      'the endpoint of RPC calls, which are off',
      { rpc: { proxy: { endpoint: 'http://backend' }, without_namespace: { proxy_name: 'aa' } } }
    ],
    [
      'the namespace of personal channels that are off',
      { client: { subscribe_to_user_personal_channel: { personal_channel_namespace: 'aa', single_connection: true } } }
    ],
    [
      'options of Redis while the engine is memory',
      { engine: { type: 'memory', redis: { address: 'cache', password: 'x', db: 3, tls: { enabled: true } } } }
    ],
    ['options of Redis without an engine', { engine: { redis: { sentinel_address: ['a:26379'], client_name: 'a' } } }],
    ['recovery on request without a history', namespace({ allow_recovery: true })],
    [
      'proxies without an endpoint or with gRPC that nothing refers to',
      { proxies: [{ name: 'aa' }, { name: 'bb', endpoint: 'grpc://backend:9000', grpc: { compression: true } }] }
    ],
    ['options of gRPC of a proxy over HTTP', { proxies: [{ name: 'aa', endpoint: 'http://b', grpc_metadata: ['x'] }] }],
    ['options of PostgreSQL for maps in Redis', { map_broker: { type: 'redis', postgres: { dsn: 'x' } } }],
    ['a default as text', { sse: { max_request_body_size: '65536' }, websocket: { write_timeout: '1000ms' } }]
  ]
  for (const [title, file] of OFF) {
    t.test(`the relay accepts ${title}`, async (t) => {
      t.same(
        errorsOf(() => configWith(file)),
        []
      )
    })
  }

  const ON: readonly (readonly [file: object, path: string])[] = [
    [{ controller: { enabled: true } }, 'controller'],
    [{ graphite: { enabled: 'true' } }, 'graphite'],
    [{ sse: { enabled: true, handler_prefix: '/x' } }, 'sse.handler_prefix'],
    [{ sse: { handler_prefix: '/x' } }, 'sse.handler_prefix'],
    [
      {
        consumers: [
          { name: 'aa', enabled: false },
          { name: 'bb', enabled: true }
        ]
      },
      'consumers'
    ],
    [{ engine: { type: 'redis', redis: { address: 'redis+sentinel://a/m', password: 'x' } } }, 'engine.redis.password'],
    [{ engine: { type: 'redis', redis: { tls: { enabled: true, server_ca_pem: 'x' } } } }, 'engine.redis.tls'],
    [{ engine: { type: 'redis', redis: { tls: 'x' } } }, 'engine.redis.tls'],
    [{ engine: { type: 'redis', redis: { sentinel_user: 'x' } } }, 'engine.redis.sentinel_user'],
    [{ engine: { type: 'redis', redis: { cluster_address: ['a:1', 'b:1'] } } }, 'engine.redis.cluster_address'],
    [{ broker: { enabled: true, type: 'nats' } }, 'broker'],
    [{ presence_manager: { enabled: true, type: 'redis', redis: 'x' } }, 'presence_manager'],
    [{ controller: { enabled: true, type: 'redis', redis: { prefix: 'x' } }, engine: { type: 'redis' } }, 'controller'],
    [namespace({ subscribe_stream_proxy_enabled: true }), 'channel.namespaces[0].subscribe_stream_proxy_enabled']
  ]
  for (const [file, path] of ON) {
    t.test(`the relay rejects ${JSON.stringify(file)} by name`, async (t) => {
      const errors = errorsOf(() => configWith(file))
      t.equal(errors.length, 1)
      t.match(errors[0], `RELAY_CONFIG: ${path} is not supported: `)
    })
  }
})

const redisUrl = ({ engine }: RelayConfig): string | null => (engine.kind === 'redis' ? engine.url : null)

const room = (config: RelayConfig) => config.channels.namespaces.get('room')

const LOCAL_3 = 'redis://127.0.0.1:6379/3'

/** The parts of an address in options, and addresses as Centrifugo has them, with the address that the relay uses. */
const ADDRESSES: readonly (readonly [redis: object, url: string])[] = [
  [{ address: 'redis+sentinel://a:1?sentinel_master_name=m' }, 'redis+sentinel://a:1/m'],
  [
    { address: 'redis+sentinel://:p%40@a:1/3?sentinel_master_name=m&addr=b:2&sentinel_user=s&sentinel_password=q%26' },
    'redis+sentinel://:p%40@a:1,b:2/m/3?sentinel_username=s&sentinel_password=q%26'
  ],
  [{ address: 'rediss+sentinel://a?sentinel_master_name=m&io_timeout=1s' }, 'rediss+sentinel://a/m'],
  [{ address: 'redis+sentinel://a,b/m/2?sentinel_password=x' }, 'redis+sentinel://a,b/m/2?sentinel_password=x'],
  [{ address: 'redis+cluster://u:p@a:1?addr=b:2&addr=c:3' }, 'redis://u:p@a:1,redis://u:p@b:2,redis://u:p@c:3'],
  [{ address: 'tcp://a:1?connect_timeout=1s&force_resp2=true&tls_enabled=true' }, 'rediss://a:1'],
  [
    { address: ['a:1', 'redis://x:y@b/2'], user: 'u', password: 'p @', db: '3', tls: { enabled: true } },
    'rediss://u:p%20%40@a:1/3,rediss://x:y@b/2'
  ],
  [{ password: 1234 }, 'redis://:1234@127.0.0.1:6379'],
  [{ cluster_address: 'a:1,b:2', password: 'p', address: 'unused:1' }, 'redis://:p@a:1,redis://:p@b:2'],
  [
    {
      sentinel_address: ['a:1,b:2'],
      sentinel_master_name: 'm',
      sentinel_user: 's',
      sentinel_password: 'q&',
      user: 'u'
    },
    'redis+sentinel://u:@a:1,b:2/m?sentinel_username=s&sentinel_password=q%26'
  ],
  [
    { sentinel_address: 'a', sentinel_master_name: 'm', tls: { enabled: true }, sentinel_tls: { enabled: true } },
    'rediss+sentinel://a/m'
  ]
]

const VALUES: readonly (readonly [file: object, read: (config: RelayConfig) => unknown, value: unknown])[] = [
  [{ http_server: { port: '8200' } }, (config) => config.listen.port, 8200],
  [{ client: { insecure: 'true' } }, (config) => config.client.insecure, true],
  [namespace({ presence: 'TRUE' }), (config) => room(config)?.presence, true],
  [{ sse: { enabled: 'f' } }, (config) => config.endpoints.sse, false],
  [{ sse: { enabled: 0 } }, (config) => config.endpoints.sse, false],
  [namespace({ presence: 1 }), (config) => room(config)?.presence, true],
  [{ client: { token: { audience: 7 } } }, (config) => config.client.token.audience, '7'],
  [{ node: { name: 12 } }, (config) => config.nodeName, '12'],
  [{ channel: { namespaces: [{ name: 42 }] } }, (config) => [...config.channels.namespaces.keys()], ['42']],
  [{ channel: { namespaces: { name: 'one' } } }, (config) => [...config.channels.namespaces.keys()], ['one']],
  [{ client: { allowed_origins: ['http://Localhost:*'] } }, (config) => config.allowedOrigins, ['http://localhost:*']],
  [{ client: { allowed_origins: 'https://A.example' } }, (config) => config.allowedOrigins, ['https://a.example']],
  [namespace({ allowed_delta_types: 'fossil' }), (config) => room(config)?.allowedDeltaTypes, ['fossil']],
  [{ client: { ping_interval: '9.5s' } }, (config) => config.client.pingIntervalMs, 9500],
  [{ client: { ping_interval: '1500ms', pong_timeout: '1s' } }, (config) => config.client.pingIntervalMs, 1500],
  [{ engine: { type: 'redis' } }, redisUrl, 'redis://127.0.0.1:6379'],
  [{ engine: { type: 'redis', redis: { address: 'cache:6380' } } }, redisUrl, 'redis://cache:6380'],
  [
    { engine: { type: 'redis', redis: { address: ['10.0.0.1:6379', '[::1]:6379', 'rediss://c'] } } },
    redisUrl,
    'redis://10.0.0.1:6379,redis://[::1]:6379,rediss://c'
  ],
  ...ADDRESSES.map(([redis, url]) => [{ engine: { type: 'redis', redis } }, redisUrl, url] as const),
  ...['broker', 'presence_manager', 'controller'].map(
    (section) => [{ [section]: { enabled: 'true', type: 'redis', redis: { db: 3 } } }, redisUrl, LOCAL_3] as const
  ),
  [{ map_broker: { type: 'redis', redis: { db: 3 } } }, redisUrl, LOCAL_3],
  [{ map_broker: { type: 'redis' } }, redisUrl, 'redis://127.0.0.1:6379'],
  [{ engine: { type: 'redis', redis: { db: 3 } }, map_broker: { type: 'redis', redis: { db: 3 } } }, redisUrl, LOCAL_3],
  [{ rpc: { ping: { enabled: true } } }, (config) => config.rpc.pingMethod, 'ping'],
  [{ rpc: { ping: { enabled: true, method: 'are you there' } } }, (config) => config.rpc.pingMethod, 'are you there'],
  [{ sse: { max_request_body_size: 5 } }, (config) => config.client.sseBodyBytes, 5],
  [{ http_stream: { max_request_body_size: '5' } }, (config) => config.client.httpStreamBodyBytes, 5],
  [{ websocket: { message_size_limit: 5 } }, ({ client }) => [client.sseBodyBytes, client.httpStreamBodyBytes], [5, 5]],
  [{ emulation: { max_request_body_size: 5 } }, (config) => config.client.emulationBodyBytes, 5]
]

t.test('values as Centrifugo accepts them', async (t) => {
  for (const [file, read, value] of VALUES) {
    t.test(`the value takes effect: ${JSON.stringify(file)}`, async (t) => {
      t.same(read(configWith(file)), value)
      t.notSame(read(configWith(namespace({}))), value, 'the value is not the default')
    })
  }

  t.test('the duration 0 stands for the default', async (t) => {
    const durations = [
      'ping_interval',
      'pong_timeout',
      'stale_close_delay',
      'expired_close_delay',
      'expired_sub_close_delay',
      'channel_position_check_delay'
    ]
    for (const zero of ['0s', '0', 0]) {
      const client = Object.fromEntries(durations.map((name) => [name, zero]))
      t.same(configWith({ client, engine: { redis: { presence_ttl: zero } } }), configWith({}))
    }
  })

  t.test('the number 0 stands for the default where it is not a useful value', async (t) => {
    const limits = [
      'channel_limit',
      'queue_max_size',
      'history_max_publication_limit',
      'recovery_max_publication_limit'
    ]
    for (const zero of [0, '0']) {
      const file = {
        client: Object.fromEntries(limits.map((name) => [name, zero])),
        channel: { max_length: zero },
        websocket: { message_size_limit: zero, compression_level: zero },
        uni_sse: { max_request_body_size: zero }
      }
      t.same(configWith(file), configWith({ channel: {} }))
    }
  })

  t.test('a number that has lost digits is not accepted as text', async (t) => {
    t.same(errorsFrom('relay.yaml', 'client:\n  token:\n    audience: 12345678901234567890'), [
      'RELAY_CONFIG: client.token.audience must be text of 1 to 1024 characters'
    ])
  })

  t.test('options of Redis are not ignored if RELAY_ENGINE selects Redis', async (t) => {
    const environment = { ...SECRETS, RELAY_ENGINE: 'redis', REDIS_URL: 'redis://cache' }
    t.match(
      errorsOf(() => configWith({ engine: { type: 'memory', redis: { sentinel_user: 'x' } } }, environment)),
      [/^RELAY_CONFIG: engine.redis.sentinel_user is not supported: /]
    )
  })

  t.test('an empty or null switch is on or off by default', async (t) => {
    t.same(configWith({ sse: { enabled: '' }, admin: { enabled: null, secret: 'x' } }), configWith({}))
  })

  t.test('REDIS_URL is still required if only RELAY_ENGINE selects Redis', async (t) => {
    t.same(
      errorsOf(() => configWith({}, { ...SECRETS, RELAY_ENGINE: 'redis' })),
      ['REDIS_URL is required with RELAY_ENGINE=redis']
    )
  })
})

t.test('options that are accepted without an effect', async (t) => {
  t.test('they are named with the reason', async (t) => {
    const { ineffectiveOptions } = configWith({
      websocket: { read_buffer_size: 512, write_timeout: '1s', use_write_buffer_pool: true },
      admin: { enabled: true, insecure: true },
      swagger: { enabled: true },
      debug: { enabled: 'false' },
      engine: { redis: { io_timeout: '1s' } },
      broker: { enabled: true, type: 'redis', redis: { connect_timeout: '3s' } },
      opentelemetry: { enabled: true, api: true },
      usage_stats: { disabled: true },
      proxies: [{ name: 'aa', http: { tls: { enabled: true, client_ca_pem: 'x' } } }],
      channel: { namespaces: [{ name: 'room', shared_position_sync: true }] }
    })
    t.same(ineffectiveOptions.map((line) => line.split(':', 1).join()).sort(), [
      'admin.enabled has no effect',
      'admin.insecure has no effect',
      'broker selects Redis as the engine, which stores streams, presence and maps',
      'channel.namespaces[0].shared_position_sync has no effect',
      'engine.redis.connect_timeout has no effect',
      'opentelemetry has no effect',
      'proxies[0].http.tls.client_ca_pem has no effect',
      'swagger has no effect',
      'websocket.read_buffer_size has no effect',
      'websocket.use_write_buffer_pool has no effect'
    ])
  })

  t.test('gatehouse check-config prints them too', async (t) => {
    const text = JSON.stringify({ websocket: { write_buffer_size: 512 } })
    t.match(
      migrationNotes('relay.json', () => text),
      [/^websocket.write_buffer_size has no effect: Node.js manages/]
    )
  })

  t.test('the page of operators stays off without a password', async (t) => {
    for (const admin of [{ enabled: true }, { enabled: true, insecure: true }])
      t.equal(configWith({ admin }).adminPassword, null)
    const { adminPassword, ineffectiveOptions } = configWith(
      { admin: { enabled: true } },
      { ...SECRETS, RELAY_ADMIN_PASSWORD: 'x' }
    )
    t.same([adminPassword, ineffectiveOptions], ['x', []])
  })

  t.test('the parts of an address are no part of an error', async (t) => {
    const lines = errorsOf(() =>
      configWith({ engine: { type: 'redis', redis: { address: 'redis://a/b', password: 'hunter2' } } })
    )
    t.match(lines, [/engine.redis.password is not supported/])
    t.notMatch(lines.join(), 'hunter2')
  })
})

t.test('a file that cannot be parsed', async (t) => {
  const MALFORMED: readonly (readonly [path: string, text: string, problem: string])[] = [
    ['relay.json', '', 'JSON: line 1, column 1'],
    ['relay.json', '{', 'JSON: line 1, column 2'],
    ['relay.json', 'hunter2', 'JSON: line 1, column 1'],
    ['relay.json', '{} {}', 'JSON: line 1, column 4'],
    ['relay.json', '{\n  "client": {},\n  "a": 1,\n}', 'JSON: line 4, column 1'],
    ['relay.json', '{\n  "a": [1,\n    hunter2]\n}', 'JSON: line 3, column 5'],
    ['relay.json', '{\n  "a": [1,]\n}', 'JSON: line 2, column 11'],
    ['relay.json', '{\n  "a": tru\n}', 'JSON: line 2, column 11'],
    ['relay.json', '{"client":{"token":{"hmac_secret_key":"hunter2"}', 'JSON: line 1, column 49'],
    ['relay.conf', 'client: {}', 'JSON: line 1, column 1'],
    [
      'relay.yaml',
      'client:\n\tinsecure: true',
      'YAML: line 2, column 1 (tab characters must not be used in indentation)'
    ],
    ['relay.yml', 'client: {}\nclient: {}', 'YAML: line 2, column 1 (duplicated mapping key)'],
    ['relay.yaml', 'client:\n  secret: *hunter2', 'YAML: line 2, column 12'],
    ['relay.yaml', 'client: [1', 'YAML: line 1, column 11 (unexpected end of the stream within a flow collection)'],
    ['relay.yaml', '', 'YAML: line 1, column 1 (expected a document, but the input is empty)'],
    ['relay.yaml', 'rpc: &a\n  x: *a', 'YAML: line 1, column 1 (too many values)'],
    ['relay.toml', '[client]\ninsecure = hunter2', 'TOML: line 2, column 12 (invalid value)'],
    [
      'relay.toml',
      '[client]\n[client]',
      'TOML: line 2, column 2 (trying to redefine an already defined table or value)'
    ]
  ]
  for (const [path, text, problem] of MALFORMED) {
    t.test(`${path} with ${JSON.stringify(text)} is reported with line and column, without quoting it`, async (t) => {
      t.same(errorsFrom(path, text), [`RELAY_CONFIG: ${path} is not valid ${problem}`])
    })
  }

  t.test('aliases in YAML that multiply to millions of values are rejected at once', async (t) => {
    const lines = Array.from({ length: 20 }, (_, n) => `a${n + 1}: &a${n + 1} [*a${n}, *a${n}, *a${n}, *a${n}]`)
    t.same(errorsFrom('relay.yaml', ['a0: &a0 [x, x]', ...lines].join('\n')), [
      'RELAY_CONFIG: relay.yaml is not valid YAML: line 1, column 1 (too many values)'
    ])
  })

  t.test('merge keys in YAML share options between namespaces', async (t) => {
    const text = `
common: &common
  presence: true
channel:
  namespaces:
    - name: room
      <<: *common
`
    t.same(errorsFrom('relay.yaml', text), ['RELAY_CONFIG: common is not an option that the relay has'])
    const { channels } = configFrom(
      'relay.yaml',
      'channel:\n  without_namespace: &common\n    presence: true\n  namespaces:\n    - {name: room, <<: *common}'
    )
    t.equal(channels.namespaces.get('room')?.presence, true)
  })
})

t.test('notes on the migration', async (t) => {
  const [expiry, user] = ['client.token.expiry_required', 'client.disallow_anonymous_connection_tokens']
  const token = { hmac_secret_key: 'x' }
  const proxied = { name: 'room', subscribe_stream_proxy_enabled: true }
  const FILES: readonly (readonly [file: object, options: readonly string[]])[] = [
    [DEFAULT_CONFIG, [expiry]],
    [{ client: { token }, channel: { namespaces: [proxied] } }, [expiry, user]],
    [{ client: { token: { jwks_public_endpoint: 'https://id.example' } } }, [expiry, user]],
    [{ client: { token, disallow_anonymous_connection_tokens: false } }, [expiry]],
    [{ client: { token, allow_anonymous_connect_without_token: true } }, [expiry]],
    [
      { client: { token, subscription_token: { enabled: true, ...token } } },
      [expiry, 'client.subscription_token.expiry_required', user]
    ],
    [{ client: { token: { ...token, expiry_required: true } } }, []],
    [{ client: { token }, channel: { namespaces: [{ name: 'room', snapshot: true }] } }, []],
    [{ client: { ping_interval: '20s' } }, []]
  ]
  for (const [file, options] of FILES) {
    t.test(`the notes name ${options.join(', ') || 'nothing'} for ${JSON.stringify(file).slice(0, 100)}`, async (t) => {
      const notes = migrationNotes('relay.json', () => JSON.stringify(file))
      t.same(
        notes.map((note) => note.split(' ', 1).join()),
        options
      )
    })
  }

  t.test('a file that cannot be parsed has no notes', async (t) => {
    t.same(
      migrationNotes('relay.json', () => '{'),
      []
    )
  })
})
