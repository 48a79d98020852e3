import { generateKeyPairSync } from 'node:crypto'
import t from 'tap'
import { UNSUPPORTED_OPTIONS } from '../../src/relay/config/centrifugo-options.js'
import type { RelayConfig } from '../../src/relay/config/config.js'
import { relayConfig } from '../../src/relay/config/config.js'
import { configWith, errorsOf, PRODUCTION, SECRETS } from './config-fixture.js'

const fileErrors = (file: unknown, environment = {}) =>
  errorsOf(() => configWith(file, { ...SECRETS, ...environment })).map((error) => error.replace('RELAY_CONFIG: ', ''))

const namespace = (options: object) => ({ channel: { namespaces: [{ name: 'room', ...options }] } })

t.test('an unreadable configuration file', async (t) => {
  const NOT_READ: readonly (readonly [properties: object, message: string])[] = [
    [{ code: 'ENOENT' }, 'RELAY_CONFIG must name a readable file (ENOENT): x'],
    [{ code: 'EISDIR' }, 'RELAY_CONFIG must name a readable file (EISDIR): x'],
    [{}, 'RELAY_CONFIG must name a readable file (unreadable): x']
  ]
  for (const [properties, message] of NOT_READ) {
    t.test(`an unreadable file is reported as: ${message}`, async (t) => {
      const readFile = (): string => {
        throw Object.assign(new Error('no'), properties)
      }
      t.same(
        errorsOf(() => relayConfig({ NODE_ENV: 'test', ...SECRETS, RELAY_CONFIG: 'x' }, readFile)),
        [message]
      )
    })
  }

  for (const value of [[], null, 1, 'text', true]) {
    t.test(`the file ${JSON.stringify(value)} is rejected because it is not an object`, async (t) => {
      t.same(fileErrors(JSON.stringify(value)), ['the file must be an object'])
    })
  }

  t.test('errors of the file are reported together with errors of the environment', async (t) => {
    t.same(
      errorsOf(() => configWith('{', { ...SECRETS, RELAY_PORT: 'http' })).map((error) => error.split(' ', 1).join()),
      ['RELAY_PORT', 'RELAY_CONFIG:']
    )
  })
})

const tokenFile = (token: object) => ({ client: { token } })

const pem = (type: 'rsa' | 'ec', options: object): string => {
  const pair =
    type === 'rsa'
      ? generateKeyPairSync('rsa', { modulusLength: 2048, ...options })
      : generateKeyPairSync('ec', { namedCurve: 'P-256', ...options })
  return pair.publicKey.export({ type: 'spki', format: 'pem' }).toString()
}

const RSA_PEM = pem('rsa', { modulusLength: 2048 })
const PRIVATE_PEM = generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
const RSA_RULE = 'must be the PEM text of an RSA public key of at least 2048 bits'

const PATTERN_RULE = 'must be a regular expression in the syntax of RE2'
const UNKNOWN = 'is not an option that the relay has'

const INVALID_FILES: readonly (readonly [file: object, ...errors: string[]])[] = [
  [{ clients: {} }, `clients ${UNKNOWN}`],
  [{ token_hmac_secret_key: 'x' }, `token_hmac_secret_key ${UNKNOWN}`],
  [{ client: { allowed_origin: [] } }, `client.allowed_origin ${UNKNOWN}`],
  [tokenFile({ rsa_public_key: 'x' }), `client.token.rsa_public_key ${RSA_RULE}`],
  [tokenFile({ rsa_public_key: pem('rsa', { modulusLength: 1024 }) }), `client.token.rsa_public_key ${RSA_RULE}`],
  [tokenFile({ rsa_public_key: pem('ec', { namedCurve: 'P-256' }) }), `client.token.rsa_public_key ${RSA_RULE}`],
  [
    tokenFile({ ecdsa_public_key: pem('ec', { namedCurve: 'secp256k1' }) }),
    'client.token.ecdsa_public_key must be the PEM text of a public key on the curve P-256, P-384 or P-521'
  ],
  [
    tokenFile({ eddsa_public_key: pem('ec', { namedCurve: 'P-256' }) }),
    'client.token.eddsa_public_key must be the PEM text of an Ed25519 public key'
  ],
  [tokenFile({ rsa_public_key: PRIVATE_PEM }), 'client.token.rsa_public_key must be a public key, not a private key'],
  [
    { client: { subscription_token: { enabled: true, hmac_secret_key: RSA_PEM } } },
    'client.subscription_token.hmac_secret_key must not be a PEM key; use rsa_public_key, ecdsa_public_key or eddsa_public_key for public keys'
  ],
  [
    tokenFile({ jwks_public_endpoint: 'https://id.example/{{realm}}/keys' }),
    'client.token.jwks_public_endpoint must not contain {{…}}, because a token that is not verified yet would choose the address; use one address'
  ],
  ...['id.example/keys', 'file:///etc/keys', 'https://user:secret@id.example/keys', 'https://id.example/#keys'].map(
    (address) =>
      [
        tokenFile({ jwks_public_endpoint: address }),
        'client.token.jwks_public_endpoint must be an http or https address without user name and fragment'
      ] as const
  ),
  [
    tokenFile({ audience: 'web', audience_regex: 'web' }),
    'client.token.audience_regex excludes audience; use one of them'
  ],
  [tokenFile({ issuer: 'us', issuer_regex: 'us' }), 'client.token.issuer_regex excludes issuer; use one of them'],
  [tokenFile({ issuer_regex: '(' }), `client.token.issuer_regex ${PATTERN_RULE}: missing closing ): \`(\``],
  [
    tokenFile({ audience_regex: '(?=web)' }),
    `client.token.audience_regex ${PATTERN_RULE}: invalid or unsupported Perl syntax: \`(?=\``
  ],
  [tokenFile({ user_id_claim: 'user-id' }), 'client.token.user_id_claim must be letters and "_"'],
  [
    tokenFile({ hmac_previous_secret_key_valid_until: 1_900_000_000 }),
    'client.token.hmac_previous_secret_key_valid_until needs hmac_previous_secret_key'
  ],
  [
    tokenFile({ hmac_previous_secret_key: 'x', hmac_previous_secret_key_valid_until: 1_900_000_000_000 }),
    'client.token.hmac_previous_secret_key_valid_until must be a whole number from 0 to 99999999999'
  ],
  [{ client: { subscription_token: { hmac_secret_key: 'x' } } }, 'client.subscription_token needs "enabled": true'],
  [{ client: { subscription_token: { enabled: true } } }, 'client.subscription_token.hmac_secret_key is required'],
  [
    { client: { subscription_token: { enabled: true, rsa_public_key: 'x' } } },
    `client.subscription_token.rsa_public_key ${RSA_RULE}`
  ],
  [
    {
      client: {
        subscription_token: { enabled: true, rsa_public_key: RSA_PEM, hmac_previous_secret_key: 'x' }
      }
    },
    'client.subscription_token.hmac_previous_secret_key needs hmac_secret_key'
  ],
  [namespace({ history_lifetime: '5s' }), `channel.namespaces[0].history_lifetime ${UNKNOWN}`],
  [{ channel: { without_namespace: { name: 'x' } } }, `channel.without_namespace.name ${UNKNOWN}`],
  [JSON.parse('{"client":{"__proto__":{"insecure":true}}}'), `client.__proto__ ${UNKNOWN}`],
  [{ 'a/b~c': 1 }, `a/b~c ${UNKNOWN}`],
  [{ client: [] }, 'client must be an object'],
  [{ channel: { namespaces: 'room' } }, 'channel.namespaces[0] must be an object'],
  [{ channel: { namespaces: [1] } }, 'channel.namespaces[0] must be an object'],
  [{ channel: { namespaces: [{}] } }, 'channel.namespaces[0].name is missing'],
  [namespace({ name: 'a' }), 'channel.namespaces[0].name must be two or more letters, digits, "-", "_" or "."'],
  [namespace({ name: 'a:b' }), 'channel.namespaces[0].name must be two or more letters, digits, "-", "_" or "."'],
  [
    { channel: { namespaces: [{ name: 'aa' }, { name: 'bb' }, { name: 'aa' }] } },
    'channel.namespaces[2].name is the name of another namespace too'
  ],
  [
    { channel: { namespace_boundary: '-', namespaces: [{ name: 'a-b' }] } },
    'channel.namespaces[0].name must not contain channel.namespace_boundary'
  ],
  [namespace({ presence: 'yes' }), 'channel.namespaces[0].presence must be true or false'],
  [namespace({ presence: 2 }), 'channel.namespaces[0].presence must be true or false'],
  [
    namespace({ history_size: 1.5, history_ttl: '5s' }),
    'channel.namespaces[0].history_size must be a whole number from 0 to 1000000'
  ],
  [
    namespace({ history_size: -1, history_ttl: '5s' }),
    'channel.namespaces[0].history_size must be a whole number from 0 to 1000000'
  ],
  ...[5, '5', '5 s', '-5s', 's', '5d', 'PT5S', '1e3s'].map(
    (history_ttl) =>
      [
        namespace({ history_size: 1, history_ttl }),
        'channel.namespaces[0].history_ttl must be a duration such as "300s"'
      ] as const
  ),
  [namespace({ history_size: 1, history_ttl: '1500ms' }), 'channel.namespaces[0].history_ttl must be whole seconds'],
  [namespace({ history_size: 1 }), 'channel.namespaces[0].history_ttl is needed together with history_size'],
  [namespace({ history_ttl: '5s' }), 'channel.namespaces[0].history_size is needed together with history_ttl'],
  [
    namespace({ history_size: 1, history_ttl: '2h', history_meta_ttl: '1h' }),
    'channel.namespaces[0].history_meta_ttl must not be shorter than history_ttl'
  ],
  [
    { channel: { history_meta_ttl: '1s', without_namespace: { history_size: 1, history_ttl: '2s' } } },
    'channel.without_namespace.history_meta_ttl must not be shorter than history_ttl'
  ],
  [namespace({ force_recovery: true }), 'channel.namespaces[0].force_recovery needs history_size and history_ttl'],
  [
    namespace({ force_recovery_mode: 'last' }),
    'channel.namespaces[0].force_recovery_mode must be one of "stream", "cache"'
  ],
  ...[
    { force_recovery: true },
    { force_recovery: true, force_recovery_mode: 'stream' },
    { allow_recovery: true, force_recovery_mode: 'cache' }
  ].map(
    (options) =>
      [
        namespace({ history_size: 1, history_ttl: '5s', auto_cache_recover: true, ...options }),
        'channel.namespaces[0].auto_cache_recover needs force_recovery and the force_recovery_mode "cache"'
      ] as const
  ),
  [namespace({ allowed_delta_types: ['xdelta'] }), 'channel.namespaces[0].allowed_delta_types[0] must be "fossil"'],
  [
    namespace({ allowed_delta_types: ['fossil', 'fossil'] }),
    'channel.namespaces[0].allowed_delta_types must be a list without repetitions'
  ],
  ...(
    [
      ['(', 'missing closing ): `(`'],
      ['(a)\\1', 'invalid escape sequence: `\\1`'],
      ['a{1001}', 'invalid repeat count: `{1001}`'],
      ['.{0,1000}'.repeat(100), 'too many repetitions']
    ] as const
  ).map(
    ([channel_regex, reason]) =>
      [namespace({ channel_regex }), `channel.namespaces[0].channel_regex ${PATTERN_RULE}: ${reason}`] as const
  ),
  ...['transmitterId', 'data.transmitterId', 'data[]', '[]', 'data[0].id', 'data[].', 'a[].b[].c', ' data[].id'].map(
    (conflate) =>
      [
        namespace({ conflate }),
        'channel.namespaces[0].conflate must name a list and the key of its entries, such as "data[].transmitterId"'
      ] as const
  ),
  [namespace({ entry_time: 'timestamp' }), 'channel.namespaces[0].entry_time needs conflate'],
  [namespace({ allow_max_rate: true }), 'channel.namespaces[0].allow_max_rate needs conflate'],
  [namespace({ snapshot: true, history_size: 1, history_ttl: '5s' }), 'channel.namespaces[0].snapshot needs conflate'],
  [
    namespace({ snapshot: true, conflate: 'data[].id' }),
    'channel.namespaces[0].snapshot needs history_size and history_ttl'
  ],
  ...['data[].time', 'a b', '.time', 'time.'].map(
    (entry_time) =>
      [
        namespace({ conflate: 'data[].id', entry_time }),
        'channel.namespaces[0].entry_time must name a field of an entry, such as "timestamp" or "position.time"'
      ] as const
  ),
  [
    namespace({ publication_data_format: 'binary', conflate: 'data[].id', schema: 'PositionBatch' }),
    'channel.namespaces[0].conflate needs JSON data, not the publication_data_format "binary"',
    'channel.namespaces[0].schema needs JSON data, not the publication_data_format "binary"'
  ],
  ...['Positions', 'positionbatch', 'toString'].map(
    (schema) =>
      [
        namespace({ schema }),
        'channel.namespaces[0].schema must be one of the names in docs/relay-config.schema.json'
      ] as const
  ),
  [
    { channel: { private_prefix: '#' } },
    'channel must have different characters as namespace_boundary, user_boundary, user_separator and private_prefix'
  ],
  [{ channel: { namespace_boundary: '::' } }, 'channel.namespace_boundary must be one character'],
  [{ channel: { max_length: 65_536 } }, 'channel.max_length must be a whole number from 1 to 65535'],
  [{ client: { ping_interval: 25 } }, 'client.ping_interval must be a duration such as "300s"'],
  [{ client: { ping_interval: '8s' } }, 'client.pong_timeout must be shorter than client.ping_interval'],
  [{ client: { pong_timeout: '25s' } }, 'client.pong_timeout must be shorter than client.ping_interval'],
  [{ client: { ping_interval: '1500ms' } }, 'client.pong_timeout must be shorter than client.ping_interval'],
  [{ client: { ping_interval: '-1s' } }, 'client.ping_interval must be a duration such as "300s"'],
  [{ client: { queue_max_size: -1 } }, 'client.queue_max_size must be a whole number from 1 to 1073741824'],
  [{ client: { channel_limit: -1 } }, 'client.channel_limit must be a whole number from 1 to 1000000'],
  [
    { client: { allowed_origins: ['https://a.example', 'https://a.example/'] } },
    'client.allowed_origins[1] must be an origin such as https://app.example.com, a glob such as https://*.example.com:*, or *'
  ],
  ...['app.example.com', 'https://app.example.com:443', 'https://[a-', 'https://{a,b.example.com', ''].map(
    (origin): readonly [object, string] => [
      { client: { allowed_origins: [origin] } },
      'client.allowed_origins[0] must be an origin such as https://app.example.com, a glob such as https://*.example.com:*, or *'
    ]
  ),
  [
    { client: { subscribe_to_user_personal_channel: { enabled: true, personal_channel_namespace: 'room' } } },
    'client.subscribe_to_user_personal_channel.personal_channel_namespace must be one of the namespaces'
  ],
  [
    {
      client: { subscribe_to_user_personal_channel: { enabled: true, personal_channel_namespace: 'fleet' } },
      channel: { namespaces: [{ name: 'fleet', subscription_type: 'map', map: { mode: 'persistent' } }] }
    },
    'client.subscribe_to_user_personal_channel.personal_channel_namespace must not be a namespace of maps'
  ],
  [{ client: { subscription_token: { enabled: true } } }, 'client.subscription_token.hmac_secret_key is required'],
  [
    { client: { token: { hmac_secret_key: 'x'.repeat(1025) } } },
    'client.token.hmac_secret_key must be text of 1 to 1024 characters'
  ],
  [{ http_api: { error_mode: 'inline' } }, 'http_api.error_mode must be one of "default", "transport"'],
  [{ http_api: { max_body_size: 1.5 } }, 'http_api.max_body_size must be a whole number from 1 to 1073741824'],
  ...['http', '08100', '81e2', ' 8100', '0x1f90', '65536'].map(
    (port) => [{ http_server: { port } }, 'http_server.port must be a whole number from 0 to 65535'] as const
  ),
  ...[70_000, '80a', true].map(
    (port) =>
      [
        { http_server: { internal_port: port } },
        'http_server.internal_port must be a whole number from 0 to 65535, or such a number as text'
      ] as const
  ),
  [{ http_server: { internal_port: '70000' } }, 'http_server.internal_port must be a whole number from 0 to 65535'],
  [{ engine: { type: 'nats' } }, 'engine.type must be one of "memory", "redis"'],
  [
    { engine: { type: 'redis', redis: { address: 'localhost' } } },
    'engine.redis.address must be an address such as redis://host:6379, a comma list of them, or redis+sentinel://host:26379,host:26379/master-name: it must begin with redis://, rediss:// or redis+sentinel://'
  ],
  [{ engine: { redis: { presence_ttl: '100ms' } } }, 'engine.redis.presence_ttl must be at least 1s'],
  [{ engine: { redis: { prefix: '{a}' } } }, 'engine.redis.prefix must be up to 64 letters, digits, - _ . and :'],
  [{ shutdown: { timeout: 5 } }, 'shutdown.timeout must be a duration such as "300s"'],
  [
    { log: { level: 'all' } },
    'log.level must be one of "trace", "debug", "info", "warn", "error", "fatal", "silent", "none"'
  ],
  [{ nonsense: null, client: { nonsense: '' } }, `nonsense ${UNKNOWN}`, `client.nonsense ${UNKNOWN}`],
  [
    { client: { a: 1 }, channel: { max_length: 'x' }, sse: [] },
    `client.a ${UNKNOWN}`,
    'channel.max_length must be a whole number from 1 to 65535',
    'sse must be an object'
  ]
]

t.test('options of Centrifugo that the relay does not have', async (t) => {
  const ON = { enabled: true }
  /** What switches sections on that are off by default. Their options have an effect only then. */
  const SWITCHES = new Map<string, object>([
    ['admin', ON],
    ['engine', { type: 'redis' }],
    ['map_broker', { type: 'redis' }],
    // Other options would become a part of the address.
    ['redis', { address: 'redis+sentinel://a/m' }],
    ['uni_sse', ON],
    ['uni_http_stream', ON],
    ['uni_websocket', ON],
    ['tls', ON],
    ['subscription_token', ON],
    ['subscribe_to_user_personal_channel', ON]
  ])

  /** A file with this option; `namespace` stands for a namespace, `proxy` for a proxy. */
  const fileWith = (path: string, value: unknown): object => {
    const steps = path.split('.')
    const nested = ([name = '', ...rest]: readonly string[]): object => ({
      [name]: rest.length === 0 ? value : { ...SWITCHES.get(name), ...nested(rest) }
    })
    if (steps[0] === 'proxy') return { rpc: nested(steps) }
    return steps[0] === 'namespace' ? namespace(nested(steps.slice(1))) : nested(steps)
  }

  for (const [path, alternative] of Object.entries(UNSUPPORTED_OPTIONS)) {
    t.test(`${path} is rejected with an alternative`, async (t) => {
      const name = path.replace('namespace.', 'channel.namespaces[0].').replace(/^proxy\./, 'rpc.proxy.')
      // Two clusters, or masters, cannot be one address.
      const value = /^engine.redis.(?:cluster|sentinel)_address$/.test(path) ? ['a:1', 'b:1'] : 'x'
      const errors = fileErrors(fileWith(path, value)).filter((error) => error.includes(' is not supported'))
      t.same(errors, [`${name} is not supported: ${alternative}`])
    })
  }

  t.test('an unsupported option with another value than its default is rejected', async (t) => {
    for (const [path, value] of [
      ['http_api.handler_prefix', '/other'],
      ['namespace.subscribe_stream_proxy_enabled', true],
      ['consumers', [{ name: 'kafka', enabled: true }]],
      ['controller', { enabled: true }]
    ] as const)
      t.match(fileErrors(fileWith(path, value)), [/ is not supported: /], path)
  })

  t.test('null and an empty text have the same effect as no option', async (t) => {
    const file = {
      client: null,
      http_api: { error_mode: '', key: '' },
      channel: { namespace_boundary: '', namespaces: [{ name: 'room', channel_regex: '', allowed_delta_types: null }] }
    }
    t.same(configWith(file), configWith({ channel: { namespaces: [{ name: 'room' }] } }))
  })

  t.test('alternatives of a namespace also apply to channels without a namespace', async (t) => {
    t.match(fileErrors({ channel: { without_namespace: { keep_latest_publication: true } } }), [
      /^channel.without_namespace.keep_latest_publication is not supported: use force_recovery_mode/
    ])
  })

  t.test('all errors of a file are reported at once', async (t) => {
    const file = { grpc_api: { enabled: true }, client: { ping_interval: '5s', nonsense: 1 } }
    t.same(fileErrors(file), [
      'grpc_api is not supported: use http_api',
      `client.nonsense ${UNKNOWN}`,
      'client.pong_timeout must be shorter than client.ping_interval'
    ])
  })
})

t.test('errors in the configuration file', async (t) => {
  for (const [file, ...errors] of INVALID_FILES) {
    t.test(`errors name the path of the option: ${JSON.stringify(file)}`, async (t) => {
      t.same(fileErrors(file).toSorted(), errors.toSorted())
    })
  }
})

t.test('the configuration file in production', async (t) => {
  t.test('insecure options are rejected in production', async (t) => {
    const file = { client: { insecure: true }, http_api: { insecure: true } }

    t.same(fileErrors(file, PRODUCTION), [
      'client.insecure is not allowed in production',
      'http_api.insecure is not allowed in production'
    ])
    t.same(fileErrors(file), [], 'outside production they are allowed')
  })

  t.test('weak secrets in the file are rejected in production', async (t) => {
    const file = {
      client: { token: { hmac_secret_key: 'hunter2' }, subscription_token: { enabled: true, hmac_secret_key: 'x' } },
      http_api: { key: 'a'.repeat(64) }
    }

    t.same(
      errorsOf(() => configWith(file, { NODE_ENV: 'production' })),
      [
        'RELAY_CONFIG: client.token.hmac_secret_key must have at least 32 characters in production',
        'RELAY_CONFIG: client.subscription_token.hmac_secret_key must have at least 32 characters in production',
        'RELAY_CONFIG: http_api.key is too easy to guess: use at least 4 different characters'
      ]
    )
  })
})

t.test('with the insecure options no secrets are required and random ones are used', async (t) => {
  const file = { client: { insecure: true }, http_api: { insecure: true } }
  const { tokens, api } = configWith(file, {})

  t.match(tokens.connection.hmacSecret, /^[0-9a-f]{64}$/)
  t.match(api.key, /^[0-9a-f]{64}$/)
  t.not(configWith(file, {}).api.key, api.key)
})

const room = (config: RelayConfig) => config.channels.namespaces.get('room')

const EFFECTS: readonly (readonly [file: object, read: (config: RelayConfig) => unknown, value: unknown])[] = [
  [{ http_server: { address: '::1', port: 8200 } }, (config) => config.listen, { host: '::1', port: 8200 }],
  ...(
    [
      [{ internal_port: 9000 }, { host: '127.0.0.1', port: 9000 }],
      [{ internal_port: '9000' }, { host: '127.0.0.1', port: 9000 }],
      [
        { internal_port: 9000, internal_address: '::1' },
        { host: '::1', port: 9000 }
      ],
      [{ internal_address: '::1' }, { host: '::1', port: 8200 }]
    ] as const
  ).map(
    ([options, internal]) =>
      [
        { http_server: { address: '127.0.0.1', port: 8200, ...options } },
        (config: RelayConfig) => config.internalListen,
        internal
      ] as const
  ),
  [{ http_api: { external: true } }, (config) => config.api.isExternal, true],
  [{ admin: { external: true } }, (config) => config.isAdminExternal, true],
  [{ log: { level: 'debug' } }, (config) => config.logLevel, 'debug'],
  [{ client: { insecure: true } }, (config) => config.client.insecure, true],
  [{ client: { allowed_origins: ['https://A.example'] } }, (config) => config.allowedOrigins, ['https://a.example']],
  [{ client: { token: { audience: 'web' } } }, (config) => config.client.token.audience, 'web'],
  [{ client: { token: { issuer: 'us' } } }, (config) => config.client.token.issuer, 'us'],
  [{ client: { token: { expiry_required: false } } }, (config) => config.client.token.expiryRequired, false],
  [
    tokenFile({ issuer_regex: '^(?P<realm>a+)$' }),
    (config) => Object(config.client.token.issuer).source,
    '^(?P<realm>a+)$'
  ],
  [tokenFile({ user_id_claim: 'uid' }), (config) => config.client.token.userIdClaim, 'uid'],
  [
    tokenFile({ hmac_previous_secret_key: 'older', hmac_previous_secret_key_valid_until: 1_900_000_000 }),
    ({ tokens: { connection } }) => [connection.previousHmacSecret, connection.previousValidUntilMs],
    ['older', 1_900_000_000_000]
  ],
  [
    { client: { subscription_token: { enabled: true, hmac_secret_key: 'other' } } },
    (config) => config.tokens.subscription.hmacSecret,
    'other'
  ],
  [
    { client: { allow_anonymous_connect_without_token: true } },
    (config) => config.client.allowAnonymousConnectWithoutToken,
    true
  ],
  [{ client: { ping_interval: '10s' } }, (config) => config.client.pingIntervalMs, 10_000],
  [{ client: { pong_timeout: '2.5s' } }, (config) => config.client.pongTimeoutMs, 2_500],
  [{ client: { stale_close_delay: '500ms' } }, (config) => config.client.staleCloseDelayMs, 500],
  [{ client: { expired_close_delay: '1m' } }, (config) => config.client.expiredCloseDelayMs, 60_000],
  [{ client: { expired_sub_close_delay: '1m30s' } }, (config) => config.client.expiredSubCloseDelayMs, 90_000],
  [{ client: { queue_max_size: 4096 } }, (config) => config.client.queueMaxBytes, 4096],
  [{ client: { channel_limit: 5 } }, (config) => config.client.channelLimit, 5],
  [{ client: { user_connection_limit: 5 } }, (config) => config.client.userConnectionLimit, 5],
  [{ client: { connection_limit: 5 } }, (config) => config.client.connectionLimit, 5],
  [{ client: { connection_rate_limit: 5 } }, (config) => config.client.connectionRateLimit, 5],
  [{ client: { connections_per_address: 5 } }, (config) => config.client.connectionsPerAddress, 5],
  [{ client: { commands_per_second: 5 } }, (config) => config.client.commandsPerSecond, 5],
  [{ client: { concurrency: 5 } }, (config) => config.client.concurrency, 5],
  [{ client: { channel_position_check_delay: '1s' } }, (config) => config.client.positionCheckDelayMs, 1_000],
  [{ client: { history_max_publication_limit: 5 } }, (config) => config.client.historyMaxPublicationLimit, 5],
  [{ client: { recovery_max_publication_limit: 5 } }, (config) => config.client.recoveryMaxPublicationLimit, 5],
  [{ client: { connect_include_server_time: true } }, (config) => config.client.includeConnectionTime, true],
  [
    {
      client: { subscribe_to_user_personal_channel: { enabled: true, personal_channel_namespace: 'room' } },
      ...namespace({})
    },
    ({ client }) => [client.userSubscribeToPersonal, client.personalChannelNamespace],
    [true, 'room']
  ],
  [{ websocket: { message_size_limit: 1024 } }, (config) => config.client.messageSizeLimit, 1024],
  [
    { websocket: { compression: true, compression_min_size: 200, compression_level: 6 } },
    (config) => config.client.compression,
    { minBytes: 200, level: 6, maxDecompressedBytes: 65_536 }
  ],
  [
    { websocket: { compression: true, message_size_limit: 1024, decompressed_message_size_limit: 4096 } },
    (config) => config.client.compression?.maxDecompressedBytes,
    4096
  ],
  [{ http_api: { insecure: true } }, (config) => config.api.insecure, true],
  [{ http_api: { error_mode: 'transport' } }, (config) => config.api.errorMode, 'transport'],
  [{ http_api: { max_body_size: 1024 } }, (config) => config.api.maxBodyBytes, 1024],
  [
    { engine: { type: 'redis', redis: { address: 'redis://cache' } } },
    ({ engine }) => engine,
    { kind: 'redis', url: 'redis://cache', prefix: 'gatehouse', presenceTtlMs: 60_000 }
  ],
  [
    { engine: { type: 'redis', redis: { prefix: 'site-7', presence_ttl: '5s' } } },
    ({ engine }) => engine,
    { kind: 'redis', url: 'redis://127.0.0.1:6379', prefix: 'site-7', presenceTtlMs: 5_000 }
  ],
  [
    { engine: { type: 'redis', redis: { address: ['redis://one', 'redis://two'] } } },
    (config) => config.engine,
    { kind: 'redis', url: 'redis://one,redis://two', prefix: 'gatehouse', presenceTtlMs: 60_000 }
  ],
  [{ log: { level: 'none' } }, (config) => config.logLevel, 'silent'],
  [{ sse: { enabled: false } }, (config) => config.endpoints.sse, false],
  [{ http_stream: { enabled: false } }, (config) => config.endpoints.httpStream, false],
  [{ prometheus: { enabled: false } }, (config) => config.endpoints.metrics, false],
  [{ health: { enabled: false } }, (config) => config.endpoints.health, false],
  [
    { uni_websocket: { compression: true, compression_min_size: 200, compression_level: 6, message_size_limit: 1024 } },
    (config) => config.unidirectional.webSocket.compression,
    { minBytes: 200, level: 6, maxDecompressedBytes: 1024 }
  ],
  [
    { uni_websocket: { disable_disconnect_push: true } },
    (config) => config.unidirectional.webSocket.hasDisconnectPush,
    false
  ],
  [
    { websocket: { compression: true, decompressed_message_size_limit: 0 } },
    (config) => config.client.compression?.maxDecompressedBytes,
    65_536
  ],
  [
    { channel: { history_meta_ttl: '2h', namespaces: [{ name: 'room', history_meta_ttl: '0s' }] } },
    (config) => room(config)?.historyMetaTtlMs,
    7_200_000
  ],
  [{ admin: { enabled: true, password: 'sesame' } }, (config) => config.adminPassword, 'sesame'],
  [{ shutdown: { timeout: '9s' } }, (config) => config.shutdownMs, 9_000],
  [{ channel: { max_length: 64 } }, (config) => config.channels.maxLength, 64],
  [{ channel: { private_prefix: '!' } }, (config) => config.channels.privatePrefix, '!'],
  [{ channel: { namespace_boundary: '/' } }, (config) => config.channels.namespaceBoundary, '/'],
  [{ channel: { user_boundary: '@' } }, (config) => config.channels.userBoundary, '@'],
  [{ channel: { user_separator: '|' } }, (config) => config.channels.userSeparator, '|'],
  [{ log: { file: '/var/log/relay.log' } }, (config) => config.logFile, '/var/log/relay.log'],
  [{ node: { name: 'relay-7' } }, (config) => config.nodeName, 'relay-7'],
  [
    { channel: { without_namespace: { allow_subscribe_for_client: true } } },
    (config) => config.channels.withoutNamespace.allowSubscribeForClient,
    true
  ],
  [
    { channel: { history_meta_ttl: '2h', without_namespace: {} } },
    (config) => config.channels.withoutNamespace.historyMetaTtlMs,
    7_200_000
  ],
  [namespace({ presence: true }), (config) => room(config)?.presence, true],
  [namespace({ join_leave: true }), (config) => room(config)?.joinLeave, true],
  [namespace({ force_push_join_leave: true }), (config) => room(config)?.forcePushJoinLeave, true],
  [
    namespace({ history_size: 7, history_ttl: '1h' }),
    (config) => [room(config)?.historySize, room(config)?.historyTtlMs],
    [7, 3_600_000]
  ],
  [namespace({ history_meta_ttl: '24h' }), (config) => room(config)?.historyMetaTtlMs, 86_400_000],
  [
    namespace({ history_size: 7, history_ttl: '1h', force_recovery: true, force_recovery_mode: 'stream' }),
    (config) => [room(config)?.forceRecovery, room(config)?.recoveryMode, room(config)?.autoCacheRecover],
    [true, 'stream', false]
  ],
  [
    namespace({
      history_size: 1,
      history_ttl: '1h',
      force_recovery: true,
      force_recovery_mode: 'cache',
      auto_cache_recover: true
    }),
    (config) => [room(config)?.recoveryMode, room(config)?.autoCacheRecover],
    ['cache', true]
  ],
  [
    namespace({ history_size: 7, history_ttl: '1h', allow_recovery: true }),
    (config) => room(config)?.allowRecovery,
    true
  ],
  [namespace({ force_positioning: true }), (config) => room(config)?.forcePositioning, true],
  [namespace({ allow_positioning: true }), (config) => room(config)?.allowPositioning, true],
  [namespace({ allow_subscribe_for_client: true }), (config) => room(config)?.allowSubscribeForClient, true],
  [namespace({ allow_subscribe_for_anonymous: true }), (config) => room(config)?.allowSubscribeForAnonymous, true],
  [namespace({ allow_publish_for_client: true }), (config) => room(config)?.allowPublishForClient, true],
  [namespace({ allow_publish_for_subscriber: true }), (config) => room(config)?.allowPublishForSubscriber, true],
  [namespace({ allow_publish_for_anonymous: true }), (config) => room(config)?.allowPublishForAnonymous, true],
  [namespace({ allow_presence_for_client: true }), (config) => room(config)?.allowPresenceForClient, true],
  [namespace({ allow_presence_for_subscriber: true }), (config) => room(config)?.allowPresenceForSubscriber, true],
  [namespace({ allow_presence_for_anonymous: true }), (config) => room(config)?.allowPresenceForAnonymous, true],
  [namespace({ allow_history_for_client: true }), (config) => room(config)?.allowHistoryForClient, true],
  [namespace({ allow_history_for_subscriber: true }), (config) => room(config)?.allowHistoryForSubscriber, true],
  [namespace({ allow_history_for_anonymous: true }), (config) => room(config)?.allowHistoryForAnonymous, true],
  [namespace({ allowed_delta_types: ['fossil'] }), (config) => room(config)?.allowedDeltaTypes, ['fossil']],
  [namespace({ delta_publish: true }), (config) => room(config)?.deltaPublish, true],
  [namespace({ allow_tags_filter: true }), (config) => room(config)?.allowTagsFilter, true],
  [namespace({ allow_user_limited_channels: true }), (config) => room(config)?.allowUserLimitedChannels, true],
  [namespace({ channel_regex: '^\\d+$' }), (config) => room(config)?.channelRegex?.source, '^\\d+$'],
  [namespace({ conflate: 'data[].id' }), (config) => room(config)?.conflate, 'data[].id'],
  [
    namespace({ conflate: 'data[].id', history_size: 1, history_ttl: '5s', snapshot: true }),
    (config) => room(config)?.snapshot,
    true
  ],
  [namespace({ conflate: 'data[].id', allow_max_rate: true }), (config) => room(config)?.allowMaxRate, true],
  [namespace({ conflate: 'data[].id', entry_time: 'meta.time' }), (config) => room(config)?.entryTime, 'meta.time'],
  [namespace({ schema: 'PositionBatch' }), (config) => room(config)?.schema, 'PositionBatch'],
  [namespace({ publication_data_format: 'binary' }), (config) => room(config)?.publicationDataFormat, 'binary'],
  [
    { channel: { publication_data_format: 'json_object', namespaces: [{ name: 'room' }] } },
    (config) => room(config)?.publicationDataFormat,
    'json_object'
  ]
]

t.test('options of the configuration file', async (t) => {
  for (const [file, read, value] of EFFECTS) {
    t.test(`the option takes effect: ${JSON.stringify(file)}`, async (t) => {
      t.same(read(configWith(file)), value)
      t.notSame(read(configWith(namespace({}))), value, 'the value is not the default')
    })
  }

  t.test('an option of one namespace does not apply to another', async (t) => {
    const { channels } = configWith({
      channel: { namespaces: [{ name: 'room', presence: true }, { name: 'hall' }] }
    })

    t.equal(channels.namespaces.get('hall')?.presence, false)
    t.equal(channels.withoutNamespace.presence, false)
  })

  t.test('enabling a feature that is always on changes nothing', async (t) => {
    const always = { enabled: true }
    const file = { sse: always, http_stream: always, prometheus: always, health: always }

    t.same(configWith(file), configWith({}))
  })

  t.test("admin.password without admin.enabled does not enable the operators' page", async (t) => {
    t.equal(configWith({ admin: { password: 'sesame' } }).adminPassword, null)
  })
})

t.test('an internal listener with the address of the clients, or with empty options, is none', async (t) => {
  for (const options of [
    { internal_port: '', internal_address: '' },
    { internal_port: 8200, internal_address: '127.0.0.1' }
  ])
    t.equal(configWith({ http_server: { address: '127.0.0.1', port: 8200, ...options } }).internalListen, null)
})

t.test('the environment wins over the file', async (t) => {
  const config = configWith(
    {
      http_server: { address: '::1', port: 8200 },
      log: { level: 'debug' },
      client: { token: { hmac_secret_key: 'of the file' }, allowed_origins: ['https://file.example'] },
      http_api: { key: 'of the file' },
      engine: { type: 'redis', redis: { address: 'redis://file' } },
      admin: { enabled: true, password: 'of the file' }
    },
    {
      RELAY_HOST: '127.0.0.1',
      RELAY_PORT: '8100',
      LOG_LEVEL: 'info',
      REALTIME_HMAC_SECRET: 'a',
      REALTIME_API_KEY: 'b',
      RELAY_ALLOWED_ORIGINS: 'https://env.example',
      RELAY_ENGINE: 'memory',
      REDIS_URL: 'redis://env',
      RELAY_ADMIN_PASSWORD: 'c'
    }
  )

  t.match(config, {
    listen: { host: '127.0.0.1', port: 8100 },
    logLevel: 'info',
    tokens: { connection: { hmacSecret: 'a' } },
    api: { key: 'b' },
    allowedOrigins: ['https://env.example'],
    engine: { kind: 'memory' },
    adminPassword: 'c'
  })
  t.equal(config.allowedOrigins.length, 1)
})
