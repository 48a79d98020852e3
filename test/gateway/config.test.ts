import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import t from 'tap'
import { type GatewayConfig, gatewayConfig } from '../../src/gateway/config.js'
import { gatewaySettings } from '../../src/gateway/settings.js'
import { isObject } from '../../src/shared/is-object.js'
import { gatewaySettingsErrors } from '../helper/settings-errors.js'

const MIB = 1024 * 1024
const WEB_FOLDER = t.testdir({ 'index.html': '' })

const PRODUCTION = {
  NODE_ENV: 'production',
  BACKEND_URL: 'http://backend.internal:4000',
  API_SECRET: 'a-secret-for-tests-0123456789-abcdef'
}

const namesIn = (errors: readonly string[]): string[] => errors.map((error) => error.split(' ', 1).join())

/** The leaves in which two objects of the same shape differ, by path. */
const differences = (one: object, other: object, prefix = ''): Record<string, unknown[]> =>
  Object.fromEntries(
    Object.entries(one).flatMap(([name, value]) => {
      const otherValue: unknown = Reflect.get(other, name)
      if (isObject(value) && isObject(otherValue)) {
        return Object.entries(differences(value, otherValue, `${prefix}${name}.`))
      }
      return isDeepStrictEqual(value, otherValue) ? [] : [[`${prefix}${name}`, [value, otherValue]]]
    })
  )

const INVALID_CSP_HOSTS = [
  '*',
  "'unsafe-eval'",
  'cdn.example.com; script-src *',
  'a.example b.example',
  'a.example,data:'
]

const INVALID_PATHS = ['reports', '/reports', '/api/', '/api/a//b', '/api/../x', '/apiary', '/api/a b', '/api/%61']
const INVALID_FIELDS = ['data..token', '.token', 'data.', 'a b']

const INVALID_VALUES: Readonly<Record<string, readonly string[]>> = {
  NODE_ENV: ['prodution', 'Production', 'prod', 'staging'],
  GATEWAY_PORT: ['http', '-1', '65536', '3000.5', '0x10'],
  BACKEND_URL: [
    'backend:4000',
    'ftp://backend',
    'http://user:hunter2@backend',
    'http://backend?a=b',
    'http://backend#a'
  ],
  BACKEND_TIMEOUT_MS: ['0', '600001', '30s', '-1'],
  BACKEND_STREAM_IDLE_MS: ['0', '86400001', '5m'],
  RELAY_UPSTREAM: ['relay:8100', 'ws://relay:8100', 'http://user@relay'],
  RELAY_UPSTREAM_CONNECTIONS: ['0', 'many'],
  RELAY_UPSTREAM_CONNECTIONS_PER_ADDRESS: ['0', '-1'],
  RELAY_UPSTREAM_IDLE_MS: ['0', '999', '1m'],
  BACKEND_CONNECTIONS: ['0', '4097', 'many'],
  BACKEND_ANONYMOUS_PERCENT: ['0', '101', '25%', '0.25'],
  TRUST_PROXY: [
    'true',
    'TRUE',
    'false',
    '1',
    '2',
    '*',
    '10.0.0.0/33',
    'proxy.example.com',
    'loopback,true',
    '0.0.0.0/0',
    '::/0'
  ],
  PUBLIC_URL: ['app.example.com', 'wss://app.example.com', 'https://user@app.example.com'],
  ALLOWED_ORIGINS: ['*', 'null', 'app.example.com', 'https://app.example.com/', 'https://a.example,b.example'],
  CSRF_MODE: ['off', 'Signed', 'true'],
  REDIS_URL: ['localhost:6379', 'http://:hunter2@localhost'],
  DATABASE_URL: ['localhost/app', 'mysql://user:hunter2@localhost/app'],
  OIDC_ISSUER: [
    'id.example.com',
    'ftp://id.example.com',
    'https://user:hunter2@id.example.com',
    'https://id.example.com?a'
  ],
  OIDC_REDIRECT_URI: ['/auth/oidc/callback', 'app://callback', 'https://app.example.com/auth/oidc/callback?a=b'],
  EXCHANGE_FIELD: ['a b', 'okta[]', '1', 'a.b'],
  EXCHANGE_SECRET: ['two words hunter2', 'sécret'],
  COOKIE_SECURE: ['yes', '1', 'True'],
  GATEWAY_FORWARD_AUTH: ['yes', '1', 'True'],
  GATEWAY_ALLOW_DEVELOPMENT: ['yes', '1'],
  LOGIN_LIMIT_MAX: ['0', '-1', '1000001', 'none'],
  LOGIN_LIMIT_WINDOW_S: ['0', '86401', '15m'],
  CSP_SCRIPT_HOSTS: INVALID_CSP_HOSTS,
  CSP_STYLE_HOSTS: INVALID_CSP_HOSTS,
  CSP_IMG_HOSTS: INVALID_CSP_HOSTS,
  CSP_FONT_HOSTS: INVALID_CSP_HOSTS,
  CSP_CONNECT_HOSTS: INVALID_CSP_HOSTS,
  CSP_INLINE: ['refused', 'Allow', 'true'],
  CSP_FRAME_ANCESTORS: INVALID_CSP_HOSTS,
  CSP_MODE: ['strict', 'Hardened', 'true'],
  BODY_LIMIT: ['0', '65MiB', '1MB', '1.5MiB', 'unlimited'],
  UPLOAD_LIMIT: ['0', '4097MiB', '1GiB', '-1'],
  RESPONSE_BUFFER: ['0', '17MiB', '64kb'],
  CLIENT_MIN_RATE: ['0', '2MiB', '1KiB/s', '-1'],
  CLIENT_RATE_WINDOW_MS: ['999', '600001', '30s'],
  BACKEND_STRIP_API_PREFIX: ['yes', '/api'],
  GATEWAY_UPSTREAMS: ['/nonexistent/rows.yaml'],
  GATEWAY_WEBSOCKETS: ['0', '1000001', 'all'],
  GATEWAY_WEBSOCKETS_PER_ADDRESS: ['0', '1000001', 'all'],
  GATEWAY_WEBSOCKET_IDLE_MS: ['999', '86400001', '90s'],
  GATEWAY_UNKNOWN_PATHS: ['404', 'Refuse', 'true'],
  GATEWAY_AUTH_PATHS: [...INVALID_PATHS, '/api/auth', '/api/zones', '/api/authors', '/api/auth/login'],
  GATEWAY_DEFAULT_ACCESS: ['user', 'Session', 'true'],
  GATEWAY_PUBLIC_PATHS: INVALID_PATHS,
  GATEWAY_STRICT_PATHS: INVALID_PATHS,
  GATEWAY_ADMIN_PATHS: INVALID_PATHS,
  LOGIN_REQUEST_FIELDS: ['a b', 'user.otp', 'okta', 'otp,Groups', 'provider', 'OKTA'],
  LOGIN_TOKEN_FIELD: INVALID_FIELDS,
  LOGIN_USER_FIELD: INVALID_FIELDS,
  LOGIN_PERMISSIONS_FIELD: INVALID_FIELDS,
  LOGIN_EXPIRES_IN_FIELD: INVALID_FIELDS,
  LOGIN_BODY_TOKEN: ['drop', 'Omit', 'true'],
  API_DOCS: ['yes', '0'],
  METRICS_ALLOW: ['true', '*', 'prometheus.example.com', '10.0.0.0/33'],
  GATEWAY_MAX_IN_FLIGHT: ['0', '1000001', 'all'],
  GATEWAY_INTERNAL_PORT: ['http', '-1', '65536'],
  GATEWAY_INTERNAL_KEY: ['two words hunter2', 'kéy'],
  GATEWAY_INTERNAL_KEY_PREVIOUS: ['two words hunter2', 'kéy'],
  GATEWAY_MAX_TOKEN_AGE_S: ['59', '31536001', '30d'],
  GATEWAY_LIMITS: ['/nonexistent/limits.yaml', import.meta.dirname],
  RELAY_API_URL: ['relay:8100', 'ws://relay:8100/api', 'http://user@relay/api'],
  REALTIME_API_KEY: ['two words hunter2'],
  WEB_ROOT: ['/nonexistent', import.meta.dirname],
  SHUTDOWN_DELAY_MS: ['-1', '300001', '5s'],
  LOG_LEVEL: ['loud', 'INFO', 'off', '30']
}

// Any text is valid for these. Weak secrets are tested below.
const FREE_TEXT = [
  'GATEWAY_HOST',
  'GATEWAY_INTERNAL_HOST',
  'GATEWAY_ROUTES',
  'API_SECRET',
  'API_SECRET_PREVIOUS',
  'AUDIT_LOG_FILE',
  'OIDC_CLIENT_ID',
  'OIDC_CLIENT_SECRET',
  'OIDC_SCOPES',
  'OIDC_GROUPS_CLAIM',
  'OIDC_PROVIDERS',
  'SESSION_SECRET'
]

// A provider needs these too. Without them, they would be reported with a malformed issuer.
const OIDC = {
  PUBLIC_URL: 'https://app.example.com',
  OIDC_CLIENT_ID: 'gatehouse',
  OIDC_CLIENT_SECRET: 'a client secret',
  SESSION_SECRET: 'session-secret-for-tests-0123456789',
  EXCHANGE_SECRET: 'exchange-secret-for-tests-0123456789'
}

t.test('a malformed setting', async (t) => {
  t.test('every setting has malformed examples in this test', async (t) => {
    t.same([...Object.keys(INVALID_VALUES), ...FREE_TEXT].sort(), Object.keys(gatewaySettings).sort())
  })

  for (const [name, texts] of Object.entries(INVALID_VALUES)) {
    for (const text of texts) {
      t.test(`${name}=${JSON.stringify(text)} is reported as malformed`, async (t) => {
        const settings = { ...(name === 'OIDC_ISSUER' && OIDC), [name]: text }
        t.same(namesIn(gatewaySettingsErrors(settings)), [name], 'in development')
        t.same(namesIn(gatewaySettingsErrors({ ...PRODUCTION, ...settings })), [name], 'in production, once')
        t.notMatch(gatewaySettingsErrors(settings).join(), 'hunter2', 'no password is shown')
      })
    }

    t.test(`an empty ${name} is not malformed`, async (t) => {
      t.same(namesIn(gatewaySettingsErrors({ [name]: '' })), name === 'NODE_ENV' ? ['NODE_ENV'] : [])
    })
  }

  t.test('all malformed settings are reported', async (t) => {
    const environment = Object.fromEntries(Object.entries(INVALID_VALUES).map(([name, [text]]) => [name, text]))

    t.same(namesIn(gatewaySettingsErrors({ ...OIDC, ...environment })).sort(), Object.keys(INVALID_VALUES).sort())
  })
})

t.test('production', async (t) => {
  const { BACKEND_URL, API_SECRET } = PRODUCTION

  t.test('production requires BACKEND_URL and API_SECRET only', async (t) => {
    t.same(gatewaySettingsErrors({ NODE_ENV: 'production' }), [
      'BACKEND_URL is required in production',
      'API_SECRET is required in production'
    ])
    t.same(
      gatewaySettingsErrors({ NODE_ENV: 'production', BACKEND_URL: '', API_SECRET: ' ' }).length,
      2,
      'an empty one is none'
    )
    t.same(gatewaySettingsErrors({ NODE_ENV: 'production', BACKEND_URL, API_SECRET }), [])
  })

  t.test('missing and malformed settings are reported together', async (t) => {
    t.same(
      namesIn(gatewaySettingsErrors({ NODE_ENV: 'production', BACKEND_URL, GATEWAY_PORT: 'http', LOG_LEVEL: 'loud' })),
      ['GATEWAY_PORT', 'LOG_LEVEL', 'API_SECRET']
    )
  })

  const SECRETS: readonly (readonly [secret: string, errors: readonly string[], title: string])[] = [
    ['hunter2', ['API_SECRET must have at least 32 characters in production'], 'short'],
    ['0123456789abcdef0123456789abcde', ['API_SECRET must have at least 32 characters in production'], 'one short'],
    ['a'.repeat(64), ['API_SECRET is too easy to guess: use at least 4 different characters'], 'one character'],
    ...['changeme-', 'Change_Me-', 'replace-this-', 'placeholder-', 'your-api-secret-', 'yourkey-'].map(
      (placeholder) =>
        [
          `${placeholder}${API_SECRET}`,
          ['API_SECRET is too easy to guess: it contains a placeholder; openssl rand -hex 32 generates a value'],
          'a value of a template'
        ] as const
    ),
    ['abc'.repeat(20), ['API_SECRET is too easy to guess: use at least 4 different characters'], 'three characters'],
    [
      `  ${'hunter2'.repeat(4)}     `,
      ['API_SECRET must have at least 32 characters in production'],
      'blanks around it'
    ],
    ['0123456789abcdef0123456789abcdef', [], 'just long enough'],
    ['abcd'.repeat(8), [], 'four different characters']
  ]
  for (const [secret, errors, title] of SECRETS) {
    t.test(`production ${errors.length > 0 ? 'rejects' : 'accepts'} a secret with ${title}`, async (t) => {
      t.same(gatewaySettingsErrors({ NODE_ENV: 'production', BACKEND_URL, API_SECRET: secret }), errors)
    })
  }

  t.test('API_SECRET_PREVIOUS has the same minimum strength as API_SECRET', async (t) => {
    t.same(gatewaySettingsErrors({ ...PRODUCTION, API_SECRET_PREVIOUS: 'hunter2' }), [
      'API_SECRET_PREVIOUS must have at least 32 characters in production'
    ])
    t.same(gatewaySettingsErrors({ NODE_ENV: 'production', BACKEND_URL, API_SECRET_PREVIOUS: 'hunter2' }), [
      'API_SECRET is required in production',
      'API_SECRET_PREVIOUS must have at least 32 characters in production'
    ])
  })

  t.test('API_SECRET_FILE provides the secret', async (t) => {
    const file = join(t.testdir({ secret: `${API_SECRET}\n` }), 'secret')
    const environment = { NODE_ENV: 'production', BACKEND_URL, API_SECRET_FILE: file }

    t.equal(gatewayConfig(environment).apiSecret, API_SECRET)
  })

  t.test('an unreadable secret file is reported once', async (t) => {
    const file = join(t.testdir(), 'missing')
    const environment = { NODE_ENV: 'production', BACKEND_URL, API_SECRET_FILE: file }

    t.same(gatewaySettingsErrors(environment), [`API_SECRET_FILE must name a readable file (ENOENT): ${file}`])
  })

  t.test('a weak secret in a file is rejected', async (t) => {
    const file = join(t.testdir({ secret: 'hunter2\n' }), 'secret')

    t.same(gatewaySettingsErrors({ NODE_ENV: 'production', BACKEND_URL, API_SECRET_FILE: file }), [
      'API_SECRET must have at least 32 characters in production'
    ])
  })
})

t.test('NODE_ENV is required, and the error says what to set', async (t) => {
  for (const environment of [{}, { NODE_ENV: '' }, { ...PRODUCTION, NODE_ENV: undefined }])
    t.same(gatewaySettingsErrors({ NODE_ENV: undefined, ...environment }), [
      'NODE_ENV is required: set NODE_ENV=production, or NODE_ENV=development for a gateway on this machine that authenticates no request'
    ])
})

t.test('outside production no other program may rely on the gateway unless its operator says so', async (t) => {
  const rows = join(
    t.testdir({
      'rows.json': '[{"name":"a","url":"http://127.0.0.1:9","paths":["/a"],\n"identity_headers":{"user":"X-User"}}]'
    }),
    'rows.json'
  )
  const settings = { TRUST_PROXY: 'loopback', GATEWAY_FORWARD_AUTH: 'true', GATEWAY_UPSTREAMS: rows }
  const rule =
    'must not be set outside production, where requests are not authenticated: set NODE_ENV=production, or GATEWAY_ALLOW_DEVELOPMENT=true'
  for (const NODE_ENV of ['development', 'test']) {
    t.same(gatewaySettingsErrors({ ...settings, NODE_ENV }), [
      `TRUST_PROXY ${rule}`,
      `GATEWAY_FORWARD_AUTH ${rule}`,
      `GATEWAY_UPSTREAMS rows.json:2: entry 1, identity_headers ${rule}`
    ])
    t.same(gatewaySettingsErrors({ ...settings, NODE_ENV, GATEWAY_ALLOW_DEVELOPMENT: 'true' }), [])
  }
  t.same(gatewaySettingsErrors({ ...PRODUCTION, ...settings }), [])
})

for (const environment of ['development', 'test']) {
  t.test(`NODE_ENV ${environment}`, async (t) => {
    t.test(`NODE_ENV ${environment} requires no setting`, async (t) => {
      t.match(gatewayConfig({ NODE_ENV: environment }), {
        listen: { host: '127.0.0.1', port: 3000 },
        logLevel: 'info',
        trustedProxies: [],
        publicHost: null,
        apiSecret: /^[0-9a-f]{64}$/,
        backend: { url: 'http://127.0.0.1:4000', timeoutMs: 30_000 },
        loginLimit: { max: 5, windowMs: 900_000 },
        redis: null,
        csrf: { signed: false, allowsLoopback: true, publicOrigin: null, allowedOrigins: [] },
        databaseUrl: null,
        webRoot: null,
        loginBodyToken: 'omit',
        metricsAllow: ['loopback'],
        audit: { file: 'logs/audit.jsonl' },
        limits: { bodyBytes: MIB, uploadBytes: 25 * MIB }
      })
    })

    t.test(`NODE_ENV ${environment} accepts a weak secret`, async (t) => {
      t.equal(gatewayConfig({ NODE_ENV: environment, API_SECRET: 'dev' }).apiSecret, 'dev')
    })

    t.test(`NODE_ENV ${environment} generates a new secret at every start`, async (t) => {
      t.not(gatewayConfig({ NODE_ENV: environment }).apiSecret, gatewayConfig({ NODE_ENV: environment }).apiSecret)
    })

    t.test(`NODE_ENV ${environment} differs from production in these values only`, async (t) => {
      const here = gatewayConfig({ ...PRODUCTION, NODE_ENV: environment })

      t.same(differences(here, gatewayConfig(PRODUCTION)), {
        production: [false, true],
        'listen.loopbackOnly': [true, false],
        'headers.strict': [false, true],
        'loginLimit.enforced': [false, true],
        'csrf.enforced': [false, true],
        'csrf.allowsLoopback': [true, false],
        'auth.enforced': [false, true],
        apiDocs: [true, false],
        'cookies.secure': [false, true]
      })
    })
  })
}

const EFFECTS: readonly (readonly [
  name: string,
  text: string,
  read: (config: GatewayConfig) => unknown,
  value: unknown
])[] = [
  ['GATEWAY_HOST', '0.0.0.0', (config) => config.listen.host, '0.0.0.0'],
  ['GATEWAY_PORT', '0', (config) => config.listen.port, 0],
  ['GATEWAY_PORT', '8443', (config) => config.listen.port, 8443],
  ['BACKEND_URL', 'https://backend.example.com/v1', (config) => config.backend.url, 'https://backend.example.com/v1'],
  ['BACKEND_TIMEOUT_MS', '500', (config) => config.backend.timeoutMs, 500],
  ['BACKEND_STREAM_IDLE_MS', '1000', (config) => config.backend.streamIdleMs, 1000],
  ['RELAY_UPSTREAM', 'http://relay:8100', (config) => config.relay?.url, 'http://relay:8100'],
  ['BACKEND_CONNECTIONS', '8', (config) => config.backend.connections, 8],
  ['BACKEND_ANONYMOUS_PERCENT', '50', (config) => config.backend.anonymousPercent, 50],
  ['API_SECRET', 'a secret', (config) => config.apiSecret, 'a secret'],
  ['API_SECRET_PREVIOUS', 'older', (config) => config.apiSecretPrevious, 'older'],
  ['TRUST_PROXY', 'loopback, 10.0.0.0/8', (config) => config.trustedProxies, ['loopback', '10.0.0.0/8']],
  ['PUBLIC_URL', 'https://App.example.com:8443/', (config) => config.publicHost, 'app.example.com:8443'],
  ['PUBLIC_URL', 'https://App.example.com/', (config) => config.csrf.publicOrigin, 'https://app.example.com'],
  ['ALLOWED_ORIGINS', 'https://A.example', (config) => config.csrf.allowedOrigins, ['https://a.example']],
  ['CSRF_MODE', 'signed', (config) => config.csrf.signed, true],
  ['GATEWAY_ALLOW_DEVELOPMENT', 'false', (config) => config.listen.loopbackOnly, true],
  ['LOGIN_LIMIT_MAX', '20', (config) => config.loginLimit.max, 20],
  ['LOGIN_LIMIT_WINDOW_S', '60', (config) => config.loginLimit.windowMs, 60_000],
  ['REDIS_URL', 'redis://localhost', (config) => config.redis?.url, 'redis://localhost'],
  ['DATABASE_URL', 'postgres://localhost/app', (config) => config.databaseUrl, 'postgres://localhost/app'],
  ['WEB_ROOT', WEB_FOLDER, (config) => config.webRoot, WEB_FOLDER],
  ['LOGIN_BODY_TOKEN', 'keep', (config) => config.loginBodyToken, 'keep'],
  ['LOGIN_TOKEN_FIELD', 'access_token', (config) => config.loginFields.token, 'access_token'],
  ['LOGIN_USER_FIELD', 'user', (config) => config.loginFields.user, 'user'],
  ['LOGIN_PERMISSIONS_FIELD', 'user.scopes', (config) => config.loginFields.permissions, 'user.scopes'],
  ['LOGIN_EXPIRES_IN_FIELD', 'ttl', (config) => config.loginFields.expiresIn, 'ttl'],
  ['GATEWAY_ROUTES', 'openapi.yaml', (config) => config.routes.file, 'openapi.yaml'],
  ['GATEWAY_UNKNOWN_PATHS', 'refuse', (config) => config.routes.unknownPaths, 'refuse'],
  ['GATEWAY_PUBLIC_PATHS', '/api/a,/api/b', (config) => config.access.public, ['/api/a', '/api/b']],
  ['GATEWAY_STRICT_PATHS', '/api', (config) => config.access.strict, ['/api']],
  ['GATEWAY_ADMIN_PATHS', '/api/x/y', (config) => config.access.admin, ['/api/x/y']],
  ['BACKEND_STRIP_API_PREFIX', 'true', (config) => config.backend.strippedPrefix, '/api'],
  ['API_DOCS', 'false', (config) => config.apiDocs, false],
  ['METRICS_ALLOW', '10.0.0.7', (config) => config.metricsAllow, ['loopback', '10.0.0.7']],
  ['AUDIT_LOG_FILE', '/var/log/audit.jsonl', (config) => config.audit.file, '/var/log/audit.jsonl'],
  ['COOKIE_SECURE', 'true', (config) => config.cookies.secure, true],
  ['CSP_SCRIPT_HOSTS', 'a.example', (config) => config.headers.scriptHosts, ['a.example']],
  ['CSP_STYLE_HOSTS', 'b.example', (config) => config.headers.styleHosts, ['b.example']],
  ['CSP_IMG_HOSTS', 'c.example,*.d.example', (config) => config.headers.imgHosts, ['c.example', '*.d.example']],
  ['CSP_FONT_HOSTS', 'e.example', (config) => config.headers.fontHosts, ['e.example']],
  ['CSP_CONNECT_HOSTS', 'ws://localhost:8100', (config) => config.headers.connectHosts, ['ws://localhost:8100']],
  [
    'CSP_FRAME_ANCESTORS',
    'self,https://a.example',
    (config) => config.headers.frameAncestors,
    ['self', 'https://a.example']
  ],
  ['CSP_MODE', 'hardened', (config) => config.headers.mode, 'hardened'],
  ['BODY_LIMIT', '64KiB', (config) => config.limits.bodyBytes, 64 * 1024],
  ['UPLOAD_LIMIT', '100MiB', (config) => config.limits.uploadBytes, 100 * MIB],
  ['RESPONSE_BUFFER', '1MiB', (config) => config.backend.responseBufferBytes, MIB],
  ['CLIENT_MIN_RATE', '2KiB', (config) => config.clientRate.minBytesPerSecond, 2048],
  ['CLIENT_RATE_WINDOW_MS', '5000', (config) => config.clientRate.windowMs, 5000],
  ['GATEWAY_MAX_IN_FLIGHT', '7', (config) => config.backend.inFlight, 7],
  ['SHUTDOWN_DELAY_MS', '5000', (config) => config.shutdownDelayMs, 5000],
  ['LOG_LEVEL', 'silent', (config) => config.logLevel, 'silent']
]

t.test('a setting', async (t) => {
  for (const [name, text, read, value] of EFFECTS) {
    t.test(`${name}=${text} changes the configuration`, async (t) => {
      const env = { NODE_ENV: 'development', GATEWAY_ALLOW_DEVELOPMENT: 'true' }
      t.same(read(gatewayConfig({ ...env, [name]: text })), value)
      t.notSame(read(gatewayConfig(env)), value, 'the value is not the default')
    })
  }
})

t.test('the settings of revocation', async (t) => {
  const KEY = 'internal-key-0123456789-abcdefghijkl'
  const settings = {
    GATEWAY_INTERNAL_PORT: '3001',
    GATEWAY_INTERNAL_KEY: KEY,
    GATEWAY_MAX_TOKEN_AGE_S: '600',
    RELAY_API_URL: 'http://relay:8100/api',
    REALTIME_API_KEY: 'relay-key'
  }
  t.same(gatewayConfig({ NODE_ENV: 'test', ...settings }).revocation, {
    listen: { host: '127.0.0.1', port: 3001 },
    key: KEY,
    previousKey: null,
    maxTokenAgeMs: 600_000,
    relay: { url: 'http://relay:8100/api', key: 'relay-key' }
  })
  t.equal(gatewayConfig({ NODE_ENV: 'test' }).revocation, null)
  t.same(gatewaySettingsErrors({ GATEWAY_INTERNAL_PORT: '3001' }), [
    'GATEWAY_INTERNAL_KEY is required with GATEWAY_INTERNAL_PORT'
  ])
  t.same(gatewaySettingsErrors({ GATEWAY_INTERNAL_KEY: KEY }), [
    'GATEWAY_INTERNAL_PORT is required with GATEWAY_INTERNAL_KEY'
  ])
  t.same(gatewaySettingsErrors({ RELAY_API_URL: 'http://relay/api' }), [
    'GATEWAY_INTERNAL_PORT is required with RELAY_API_URL',
    'REALTIME_API_KEY is required with RELAY_API_URL'
  ])
  t.same(namesIn(gatewaySettingsErrors({ ...PRODUCTION, ...settings, GATEWAY_INTERNAL_KEY: 'short' })), [
    'GATEWAY_INTERNAL_KEY'
  ])
  const rotating = { ...settings, GATEWAY_INTERNAL_KEY_PREVIOUS: 'older' }
  t.equal(gatewayConfig({ NODE_ENV: 'test', ...rotating }).revocation?.previousKey, 'older')
  t.same(namesIn(gatewaySettingsErrors({ ...PRODUCTION, ...rotating })), ['GATEWAY_INTERNAL_KEY_PREVIOUS'])
  t.same(gatewaySettingsErrors({ GATEWAY_INTERNAL_KEY_PREVIOUS: 'older' }), [
    'GATEWAY_INTERNAL_KEY is required with GATEWAY_INTERNAL_KEY_PREVIOUS'
  ])
})

t.test('a path in the access lists is rejected if it is in two of them, or always public', async (t) => {
  t.same(gatewaySettingsErrors({ GATEWAY_PUBLIC_PATHS: '/api/a', GATEWAY_ADMIN_PATHS: '/api/b,/api/a' }), [
    'GATEWAY_ADMIN_PATHS must not contain /api/a, which is also in GATEWAY_PUBLIC_PATHS'
  ])
  t.same(gatewaySettingsErrors({ GATEWAY_STRICT_PATHS: '/api/auth/sessions' }), [
    'GATEWAY_STRICT_PATHS must not contain /api/auth/sessions: /api/auth is always public'
  ])
})

t.test('COOKIE_SECURE overrides the default of NODE_ENV', async (t) => {
  t.equal(gatewayConfig({ ...PRODUCTION, COOKIE_SECURE: 'false' }).cookies.secure, false)
  t.equal(gatewayConfig({ NODE_ENV: 'test', COOKIE_SECURE: 'true' }).cookies.secure, true)
})

t.test('API_DOCS overrides the default of NODE_ENV', async (t) => {
  t.equal(gatewayConfig({ ...PRODUCTION, API_DOCS: 'true' }).apiDocs, true)
  t.equal(gatewayConfig({ NODE_ENV: 'test', API_DOCS: 'false' }).apiDocs, false)
})
