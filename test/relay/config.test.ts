import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import type { RelayConfig } from '../../src/relay/config/config.js'
import { relaySettings } from '../../src/relay/config/settings.js'
import type { Environment } from '../../src/shared/env.js'
import { configOf, configWith, errorsOf, PRODUCTION, SECRETS } from './config-fixture.js'

const namesIn = (errors: readonly string[]): string[] => errors.map((error) => error.split(' ', 1).join())
const environmentErrors = (environment: Environment) => errorsOf(() => configOf(environment))

const INVALID_FILES: Readonly<Record<string, readonly string[]>> = {
  NODE_ENV: ['prod', 'Production', 'staging'],
  RELAY_PORT: ['http', '-1', '65536', '8100.5'],
  RELAY_ALLOWED_ORIGINS: [
    'app.example.com',
    'https://app.example.com/',
    'https://app.example.com:443',
    'http://app.example.com:80',
    'https://*',
    'https://app.*.com',
    'https://*app.example.com',
    'https://*.example.com/path',
    'https://a.example b.example',
    'null',
    '**'
  ],
  RELAY_ENGINE: ['Redis', 'nats', 'none'],
  REDIS_URL: [
    'localhost:6379',
    'http://:hunter2@localhost',
    'redis://a,http://:hunter2@b',
    'redis://:hunter2@a/name',
    'redis://a?db=2',
    'redis://:%hunter2@a',
    'redis://a,,redis://b'
  ],
  RELAY_REDIS_PREFIX: ['{a}', 'a b', 'x'.repeat(65)],
  SHUTDOWN_DELAY_MS: ['-1', '300001', '5s'],
  RELAY_WARM_UP: ['yes', '1'],
  RELAY_WORKERS: ['0', '257', 'all', '-1', 'Auto', '1.5'],
  TRUST_PROXY: ['true', '1', '*', '10.0.0.0/33', 'proxy.example.com', '0.0.0.0/0', '::/0'],
  METRICS_ALLOW: ['true', '*', 'prometheus.example.com'],
  LOG_LEVEL: ['loud', 'INFO', '30']
}

// Settings that accept any text. The strength of secrets is tested below.
const FREE_TEXT = [
  'RELAY_HOST',
  'REALTIME_HMAC_SECRET',
  'REALTIME_HMAC_SECRET_PREVIOUS',
  'REALTIME_API_KEY',
  'REALTIME_API_KEY_PREVIOUS',
  'REALTIME_SIGNING_SECRET',
  'REALTIME_SIGNING_SECRET_PREVIOUS',
  'RELAY_CONFIG',
  'RELAY_ADMIN_PASSWORD'
]

t.test('malformed settings', async (t) => {
  t.test('every setting has test cases for malformed values', async (t) => {
    t.same([...Object.keys(INVALID_FILES), ...FREE_TEXT].sort(), Object.keys(relaySettings).sort())
  })

  for (const [name, texts] of Object.entries(INVALID_FILES)) {
    for (const text of texts) {
      t.test(`the error names ${name} if it is ${JSON.stringify(text)}`, async (t) => {
        t.same(namesIn(environmentErrors({ ...SECRETS, [name]: text })), [name], 'in development')
        t.same(namesIn(environmentErrors({ ...PRODUCTION, [name]: text })), [name], 'in production, once')
        t.notMatch(environmentErrors({ ...SECRETS, [name]: text }).join(), 'hunter2', 'no password is shown')
      })
    }

    t.test(`an empty ${name} counts as unset`, async (t) => {
      t.same(environmentErrors({ ...SECRETS, [name]: '' }), [])
    })
  }

  t.test('all malformed settings are reported together', async (t) => {
    const environment = Object.fromEntries(Object.entries(INVALID_FILES).map(([name, [text]]) => [name, text]))

    t.same(namesIn(environmentErrors({ ...SECRETS, ...environment })).sort(), Object.keys(INVALID_FILES).sort())
  })
})

t.test('secrets of the relay', async (t) => {
  for (const NODE_ENV of [undefined, 'development', 'test', 'production']) {
    t.test(`secrets are required if NODE_ENV is ${NODE_ENV ?? 'not set'}`, async (t) => {
      t.same(environmentErrors({ NODE_ENV }), ['REALTIME_HMAC_SECRET is required', 'REALTIME_API_KEY is required'])
    })
  }

  t.test('without NODE_ENV the rules of production apply to a relay that other machines can reach', async (t) => {
    const hint =
      'NODE_ENV is required for a relay that other machines can reach: set NODE_ENV=production, or NODE_ENV=development to accept these'
    const { NODE_ENV: _, ...strong } = PRODUCTION
    const exposed = { ...strong, NODE_ENV: undefined, RELAY_HOST: '0.0.0.0' }
    t.same(environmentErrors(exposed), [])
    t.same(environmentErrors({ ...exposed, REALTIME_API_KEY: 'a key' }), [
      'REALTIME_API_KEY must be 64 hex characters in production',
      hint
    ])
    t.same(
      errorsOf(() => configWith({ client: { insecure: true } }, exposed)),
      ['RELAY_CONFIG: client.insecure is not allowed in production', hint]
    )
    const fromFile = { http_server: { address: '192.0.2.1' } }
    t.same(namesIn(errorsOf(() => configWith(fromFile, { NODE_ENV: '', ...SECRETS }))), [
      'REALTIME_HMAC_SECRET',
      'REALTIME_API_KEY',
      'NODE_ENV'
    ])
    t.same(namesIn(environmentErrors({ ...exposed, RELAY_PORT: 'x' })), ['RELAY_PORT'])
    for (const RELAY_HOST of ['', 'localhost', '127.0.0.1', '::1'])
      t.same(environmentErrors({ NODE_ENV: undefined, RELAY_HOST, ...SECRETS }), [])
    t.same(environmentErrors({ NODE_ENV: 'development', RELAY_HOST: '0.0.0.0', ...SECRETS }), [])
  })

  t.test('in development a secret may be any text, which is not decoded', async (t) => {
    const { tokens, api } = configOf({ REALTIME_HMAC_SECRET: 'c0ffee', REALTIME_API_KEY: 'k' })

    t.match({ tokens, api }, { tokens: { connection: { hmacSecret: 'c0ffee' } }, api: { key: 'k' } })
    t.equal(tokens.subscription, tokens.connection, 'the same for subscriptions')
  })

  const WEAK: readonly (readonly [secret: string, error: string | null])[] = [
    ['hunter2', 'must be 64 hex characters in production'],
    ['0123456789abcdef'.repeat(4).slice(1), 'must be 64 hex characters in production'],
    [`${'0123456789abcdef'.repeat(4)}0`, 'must be 64 hex characters in production'],
    [`${'0123456789abcdef'.repeat(3)}0123456789abcdeg`, 'must be 64 hex characters in production'],
    ['abc1'.repeat(15).concat('aaaa'), null],
    ['a'.repeat(64), 'is too easy to guess: use at least 4 different characters'],
    ['abc'.repeat(22).slice(0, 64), 'is too easy to guess: use at least 4 different characters'],
    ['0123456789ABCDEF'.repeat(4), null]
  ]
  for (const [secret, error] of WEAK) {
    for (const name of [
      'REALTIME_HMAC_SECRET',
      'REALTIME_HMAC_SECRET_PREVIOUS',
      'REALTIME_API_KEY',
      'REALTIME_API_KEY_PREVIOUS'
    ]) {
      t.test(`${name}: production ${error === null ? 'accepts' : 'rejects'} ${secret.slice(0, 20)}…`, async (t) => {
        const errors = environmentErrors({ ...PRODUCTION, [name]: secret })

        t.same(errors, error === null ? [] : [`${name} ${error}`])
      })
    }
  }

  t.test('an admin password of fewer than 12 characters is rejected in production, from any source', async (t) => {
    const error = 'must have at least 12 characters in production'
    t.same(environmentErrors({ ...PRODUCTION, RELAY_ADMIN_PASSWORD: 'elevenchars' }), [`RELAY_ADMIN_PASSWORD ${error}`])
    t.same(environmentErrors({ ...PRODUCTION, RELAY_ADMIN_PASSWORD: 'twelve chars' }), [])
    t.same(environmentErrors({ ...SECRETS, RELAY_ADMIN_PASSWORD: 'x' }), [])
    const file = { admin: { enabled: true, password: 'elevenchars' } }
    t.same(
      errorsOf(() => configWith(file, PRODUCTION)),
      [`RELAY_CONFIG: admin.password ${error}`]
    )
  })

  t.test('secrets can be read from files', async (t) => {
    const folder = t.testdir({ hmac: `${PRODUCTION.REALTIME_HMAC_SECRET}\n`, key: PRODUCTION.REALTIME_API_KEY })
    const config = configOf({
      NODE_ENV: 'production',
      REALTIME_HMAC_SECRET_FILE: join(folder, 'hmac'),
      REALTIME_API_KEY_FILE: join(folder, 'key')
    })

    t.equal(config.tokens.connection.hmacSecret, PRODUCTION.REALTIME_HMAC_SECRET)
    t.equal(config.api.key, PRODUCTION.REALTIME_API_KEY)
  })

  t.test('an unreadable secret file is reported once', async (t) => {
    const { REALTIME_API_KEY } = SECRETS
    const REALTIME_HMAC_SECRET_FILE = join(t.testdir(), 'missing')

    t.same(environmentErrors({ REALTIME_API_KEY, REALTIME_HMAC_SECRET_FILE }), [
      `REALTIME_HMAC_SECRET_FILE must name a readable file (ENOENT): ${REALTIME_HMAC_SECRET_FILE}`
    ])
  })

  t.test('an empty secret file is reported as a missing secret', async (t) => {
    const empty = join(t.testdir({ empty: '\n' }), 'empty')

    t.same(environmentErrors({ REALTIME_API_KEY_FILE: empty, REALTIME_HMAC_SECRET_FILE: empty }).toSorted(), [
      'REALTIME_API_KEY is required',
      'REALTIME_HMAC_SECRET is required'
    ])
  })
})

t.test('any setting can be read from a file', async (t) => {
  const folder = t.testdir({ port: '8200\n', origins: 'https://a.example, https://b.example\n', empty: '' })
  const port = (environment: Environment) =>
    configWith({ http_server: { port: 8300 } }, { ...SECRETS, ...environment }).listen.port

  t.equal(port({ RELAY_PORT_FILE: join(folder, 'port') }), 8200, 'and wins over the config file, as the variable does')
  t.equal(port({ RELAY_PORT_FILE: join(folder, 'empty') }), 8300, 'unless it is empty')
  t.same(configOf({ ...SECRETS, RELAY_ALLOWED_ORIGINS_FILE: join(folder, 'origins') }).allowedOrigins, [
    'https://a.example',
    'https://b.example'
  ])
})

t.test('the redis engine requires REDIS_URL', async (t) => {
  t.same(environmentErrors({ ...SECRETS, RELAY_ENGINE: 'redis' }), ['REDIS_URL is required with RELAY_ENGINE=redis'])
  for (const url of ['rediss://cache:6380/2', 'redis://a:1, redis://b:2']) {
    const environment = { ...SECRETS, RELAY_ENGINE: 'redis', REDIS_URL: url, RELAY_REDIS_PREFIX: 'site-7' }
    t.same(configOf(environment).engine, { kind: 'redis', url, prefix: 'site-7', presenceTtlMs: 60_000 })
  }
})

const CLOSED = {
  presence: false,
  joinLeave: false,
  forcePushJoinLeave: false,
  historySize: 0,
  historyTtlMs: 0,
  historyMetaTtlMs: 720 * 3_600_000,
  forceRecovery: false,
  recoveryMode: 'stream',
  autoCacheRecover: false,
  forcePositioning: false,
  allowRecovery: false,
  allowPositioning: false,
  allowSubscribeForClient: false,
  allowSubscribeForAnonymous: false,
  allowPublishForClient: false,
  allowPublishForSubscriber: false,
  allowPublishForAnonymous: false,
  allowPresenceForClient: false,
  allowPresenceForSubscriber: false,
  allowPresenceForAnonymous: false,
  allowHistoryForClient: false,
  allowHistoryForSubscriber: false,
  allowHistoryForAnonymous: false,
  allowedDeltaTypes: [],
  deltaPublish: false,
  allowTagsFilter: false,
  allowUserLimitedChannels: false,
  channelRegex: null,
  publicationDataFormat: 'any',
  conflate: null,
  entryTime: null,
  snapshot: false,
  allowMaxRate: false,
  view: null,
  subscriptionType: 'stream',
  map: null,
  mapClientsPresencePrefix: null,
  mapUsersPresencePrefix: null,
  schema: null,
  subscribeProxy: null,
  publishProxy: null,
  subRefreshProxy: null,
  stateProxy: null,
  stateEvents: ['occupied', 'vacated'],
  commandLimits: []
}

const LISTENERS = {
  ...CLOSED,
  allowSubscribeForClient: true,
  publicationDataFormat: 'json',
  historySize: 100,
  historyTtlMs: 60_000,
  forceRecovery: true,
  forcePositioning: true
}

const CLAIM_RULES = { expiryRequired: true, audience: null, issuer: null, userIdClaim: 'sub' }
const TOKEN_KEYS = {
  hmacSecret: 'a secret',
  previousHmacSecret: null,
  previousValidUntilMs: Number.POSITIVE_INFINITY,
  rsaPublicKey: null,
  ecdsaPublicKey: null,
  eddsaPublicKey: null,
  jwksEndpoint: null
}

const DEFAULTS = {
  listen: { host: '127.0.0.1', port: 8100 },
  internalListen: null,
  allowedOrigins: [],
  allowsLoopback: true,
  client: {
    insecure: false,
    allowAnonymousConnectWithoutToken: false,
    userIdHeader: null,
    disallowAnonymousConnectionTokens: true,
    token: CLAIM_RULES,
    subscriptionToken: CLAIM_RULES,
    pingIntervalMs: 25_000,
    pongTimeoutMs: 8_000,
    staleCloseDelayMs: 10_000,
    expiredCloseDelayMs: 25_000,
    expiredSubCloseDelayMs: 25_000,
    queueMaxBytes: 1_048_576,
    channelLimit: 128,
    userConnectionLimit: 0,
    connectionLimit: 0,
    connectionsPerAddress: 0,
    connectionRateLimit: 0,
    commandsPerSecond: 0,
    concurrency: 0,
    positionCheckDelayMs: 40_000,
    positionMaxTimeLagMs: 0,
    historyMaxPublicationLimit: 300,
    recoveryMaxPublicationLimit: 300,
    messageSizeLimit: 65_536,
    sseBodyBytes: 65_536,
    httpStreamBodyBytes: 65_536,
    emulationBodyBytes: 65_536,
    compression: null,
    userSubscribeToPersonal: false,
    personalChannelNamespace: '',
    singleConnection: false,
    includeConnectionTime: false,
    connectProxy: false,
    refreshProxy: false,
    tokenInvalidation: null,
    commandLimits: []
  },
  tokens: { connection: TOKEN_KEYS, subscription: TOKEN_KEYS },
  channels: {
    withoutNamespace: CLOSED,
    namespaces: new Map<string, object>([
      ['floor', { ...LISTENERS, conflate: 'data[].transmitterId', entryTime: 'timestamp', snapshot: true }],
      ['global', LISTENERS]
    ]),
    namespaceBoundary: ':',
    userBoundary: '#',
    userSeparator: ',',
    privatePrefix: '$',
    maxLength: 255
  },
  rpc: { withoutNamespace: null, namespaces: new Map(), namespaceBoundary: ':', pingMethod: null },
  proxies: {
    events: {
      connect: new Map(),
      refresh: new Map(),
      subscribe: new Map(),
      publish: new Map(),
      sub_refresh: new Map(),
      map_publish: new Map(),
      map_remove: new Map(),
      rpc: new Map(),
      state: new Map()
    },
    requestHeaders: [],
    emulatedHeaders: []
  },
  api: {
    key: 'a key',
    previousKey: null,
    maxBodyBytes: 1_048_576,
    insecure: false,
    errorMode: 'default',
    isExternal: false
  },
  unidirectional: {
    sse: { enabled: false, maxBodyBytes: 65_536 },
    httpStream: { enabled: false, maxBodyBytes: 65_536 },
    webSocket: { enabled: false, maxMessageBytes: 65_536, compression: null, hasDisconnectPush: true }
  },
  endpoints: { sse: true, httpStream: true, metrics: true, health: true },
  trustedProxies: [],
  metricsAllow: ['loopback'],
  metrics: { recoveredPublications: false, httpRequests: false },
  adminPassword: null,
  isAdminExternal: false,
  engine: { kind: 'memory' },
  vacatedDelayMs: 5_000,
  workers: 1,
  nodeName: null,
  logLevel: 'info',
  logFile: null,
  shutdownMs: 5_000,
  shutdownDelayMs: 0,
  warmsUp: false,
  ineffectiveOptions: []
}

t.test('default configuration', async (t) => {
  t.test('a configuration without settings has the documented defaults', async (t) => {
    t.strictSame(configOf(SECRETS), DEFAULTS)
  })

  t.test('an empty file gives the defaults without the default namespaces', async (t) => {
    t.strictSame(configWith({}), { ...DEFAULTS, channels: { ...DEFAULTS.channels, namespaces: new Map() } })
  })

  t.test('production has the same defaults', async (t) => {
    t.strictSame(configOf({ ...SECRETS, ...PRODUCTION, ...SECRETS, NODE_ENV: 'test' }), DEFAULTS)
    const { client, api, ...rest } = configOf(PRODUCTION)
    t.match({ ...rest }, { engine: { kind: 'memory' }, workers: 1, allowedOrigins: [], adminPassword: null })
    t.equal(client.insecure || api.insecure, false)
  })

  t.test('the configuration is frozen', async (t) => {
    const { client, channels, api, listen, allowedOrigins } = configOf(SECRETS)

    for (const part of [configOf(SECRETS), client, channels, channels.withoutNamespace, api, listen, allowedOrigins])
      t.ok(Object.isFrozen(part))
    for (const options of channels.namespaces.values()) t.ok(Object.isFrozen(options))
  })
})

const EFFECTS: readonly (readonly [
  name: string,
  text: string,
  read: (config: RelayConfig) => unknown,
  value: unknown
])[] = [
  ['RELAY_HOST', '0.0.0.0', (config) => config.listen.host, '0.0.0.0'],
  ['RELAY_PORT', '0', (config) => config.listen.port, 0],
  ['REALTIME_HMAC_SECRET', 'other', (config) => config.tokens.connection.hmacSecret, 'other'],
  ['REALTIME_API_KEY', 'other', (config) => config.api.key, 'other'],
  ['REALTIME_HMAC_SECRET_PREVIOUS', 'older', (config) => config.tokens.connection.previousHmacSecret, 'older'],
  ['REALTIME_API_KEY_PREVIOUS', 'older', (config) => config.api.previousKey, 'older'],
  [
    'RELAY_ALLOWED_ORIGINS',
    'https://App.example.com:8443, https://*.Example.com,http://[::1]:3000,capacitor://localhost',
    (config) => config.allowedOrigins,
    ['https://app.example.com:8443', 'https://*.example.com', 'http://[::1]:3000', 'capacitor://localhost']
  ],
  ['RELAY_ALLOWED_ORIGINS', '*', (config) => config.allowedOrigins, ['*']],
  ['RELAY_ADMIN_PASSWORD', 'open sesame', (config) => config.adminPassword, 'open sesame'],
  ['SHUTDOWN_DELAY_MS', '5000', (config) => config.shutdownDelayMs, 5000],
  ['RELAY_WARM_UP', 'true', (config) => config.warmsUp, true],
  ['RELAY_WORKERS', '3', (config) => config.workers, 3],
  ['TRUST_PROXY', 'loopback, 10.0.0.0/8', (config) => config.trustedProxies, ['loopback', '10.0.0.0/8']],
  ['METRICS_ALLOW', '10.0.0.7', (config) => config.metricsAllow, ['loopback', '10.0.0.7']],
  ['LOG_LEVEL', 'silent', (config) => config.logLevel, 'silent']
]

t.test('effects of settings', async (t) => {
  for (const [name, text, read, value] of EFFECTS) {
    t.test(`${name}=${text} takes effect`, async (t) => {
      t.same(read(configOf({ ...SECRETS, [name]: text })), value)
      t.notSame(read(configOf(SECRETS)), value, 'the value is not the default')
    })
  }

  t.test('RELAY_WORKERS=auto means one per core', async (t) => {
    t.equal(configOf({ ...SECRETS, RELAY_WORKERS: 'auto' }).workers, availableParallelism())
  })
})
