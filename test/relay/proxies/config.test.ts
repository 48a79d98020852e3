import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { Disconnect, ReplyError } from '../../../src/relay/core/codes.js'
import { configWith, errorsOf, PRODUCTION, SECRETS } from '../config-fixture.js'

const fileErrors = (file: object, environment: Readonly<Record<string, string>> = SECRETS): string[] =>
  errorsOf(() => configWith(file, environment)).map((error) => error.replace('RELAY_CONFIG: ', ''))

const ENDPOINT = 'http://backend/events'

/** A file with a named proxy, which is in use. */
const named = (options: object): object => ({
  proxies: [{ name: 'one', endpoint: ENDPOINT, ...options }],
  rpc: { without_namespace: { proxy_enabled: true, proxy_name: 'one' } }
})

const transform = (entry: object): object => named({ http: { status_to_code_transforms: [entry] } })

const TRANSFORM = 'proxies[0].http.status_to_code_transforms[0]'
const TARGET_RULE = `${TRANSFORM} must have the code of either to_error or to_disconnect`
const NAME_RULE = 'must be two or more letters, digits, "-", "_" or "."'
const HEADER_RULE = 'must not be a header that the HTTP connection itself needs'
const TEXT_RULE = 'must be ASCII text of at most 123 bytes'
const REFERENCE_RULE = 'must be default, or the name of one of proxies'
const ADDRESS_RULE = 'must be an http or https address in ASCII, without fragment'

const ERROR = { code: 400, message: 'no' }

const INVALID: readonly (readonly [file: object, ...errors: string[]])[] = [
  [
    { channel: { namespaces: [{ name: 'room', subscribe_proxy_enabled: true, subscribe_proxy_name: 'two' }] } },
    `channel.namespaces[0].subscribe_proxy_name ${REFERENCE_RULE}`
  ],
  [
    { channel: { without_namespace: { publish_proxy_enabled: true, publish_proxy_name: 'two' } } },
    `channel.without_namespace.publish_proxy_name ${REFERENCE_RULE}`
  ],
  [
    { ...named({}), rpc: { namespaces: [{ name: 'calls', proxy_enabled: true, proxy_name: 'two' }] } },
    `rpc.namespaces[0].proxy_name ${REFERENCE_RULE}`
  ],
  [
    { client: { proxy: { connect: { enabled: true }, refresh: { enabled: true } } } },
    'client.proxy.connect.endpoint is missing, and client.proxy.connect.enabled needs it',
    'client.proxy.refresh.endpoint is missing, and client.proxy.refresh.enabled needs it'
  ],
  [
    { channel: { namespaces: [{ name: 'room', sub_refresh_proxy_enabled: true }] } },
    'channel.proxy.sub_refresh.endpoint is missing, and channel.namespaces[0].sub_refresh_proxy_enabled needs it'
  ],
  [
    { rpc: { without_namespace: { proxy_enabled: true } } },
    'rpc.proxy.endpoint is missing, and rpc.without_namespace.proxy_enabled needs it'
  ],
  [named({ endpoint: undefined }), 'proxies[0].endpoint is missing, and rpc.without_namespace.proxy_name needs it'],
  [
    named({ endpoint: 'grpc://backend:9000' }),
    'proxies[0].endpoint must begin with http:// or https://; the relay does not speak gRPC'
  ],
  ...[
    'backend/events',
    'ftp://backend',
    'http://',
    'http://back end/',
    'http://b/ü',
    'http://b/#x',
    'http://b:99999/'
  ].map((endpoint) => [named({ endpoint }), `proxies[0].endpoint ${ADDRESS_RULE}`] as const),
  ...['0', '0s', 0, '2h'].map(
    (timeout) => [named({ timeout }), 'proxies[0].timeout must be longer than 0 and at most 1h'] as const
  ),
  [named({ timeout: '-1s' }), 'proxies[0].timeout must be a duration such as "300s"'],
  [
    {
      proxies: [
        { name: 'one', endpoint: ENDPOINT },
        { name: 'one', endpoint: ENDPOINT },
        { name: 'default', endpoint: ENDPOINT },
        { name: 'x', endpoint: ENDPOINT },
        { name: 'a b', endpoint: ENDPOINT },
        { endpoint: ENDPOINT }
      ]
    },
    'proxies[1].name is the name of another proxy too',
    'proxies[2].name must not be default, which names the default proxies',
    `proxies[3].name ${NAME_RULE}`,
    `proxies[4].name ${NAME_RULE}`,
    `proxies[5].name ${NAME_RULE}`
  ],
  [
    { rpc: { namespaces: [{ name: 'calls' }, { name: 'calls' }, { name: 'x' }, {}] } },
    'rpc.namespaces[1].name is the name of another namespace too',
    `rpc.namespaces[2].name ${NAME_RULE}`,
    `rpc.namespaces[3].name ${NAME_RULE}`
  ],
  [
    { rpc: { namespace_boundary: '.', namespaces: [{ name: 'a.b' }] } },
    'rpc.namespaces[0].name must not contain rpc.namespace_boundary'
  ],
  [transform({ to_error: ERROR }), `${TRANSFORM}.status_code is missing`],
  [transform({ status_code: 0, to_error: ERROR }), `${TRANSFORM}.status_code is missing`],
  [transform({ status_code: 404 }), TARGET_RULE],
  [transform({ status_code: 404, to_error: { message: 'no' } }), TARGET_RULE],
  [transform({ status_code: 404, to_error: ERROR, to_disconnect: { code: 4000, reason: 'x' } }), TARGET_RULE],
  [
    transform({ status_code: 404, to_error: { code: 400, message: 'ü' } }),
    `${TRANSFORM}.to_error.message ${TEXT_RULE}`
  ],
  [
    transform({ status_code: 404, to_disconnect: { code: 4000, reason: 'x'.repeat(124) } }),
    `${TRANSFORM}.to_disconnect.reason ${TEXT_RULE}`
  ],
  [
    transform({ status_code: 404, to_disconnect: { code: 404, reason: 'x' } }),
    `${TRANSFORM}.to_disconnect.code must be 1000, or from 3000 to 4999`
  ],
  [
    named({
      http_headers: ['Cookie', 'Host', 'content-LENGTH', 'HTTP2-Settings', 'a b'],
      emulated_headers: ['Content-Type']
    }),
    `proxies[0].http_headers[1] ${HEADER_RULE}`,
    `proxies[0].http_headers[2] ${HEADER_RULE}`,
    `proxies[0].http_headers[3] ${HEADER_RULE}`,
    'proxies[0].http_headers[4] must be the name of a header',
    `proxies[0].emulated_headers[0] ${HEADER_RULE}`
  ],
  [
    named({
      http: { static_headers: { 'X-Key': 'a\r\nX-Admin: 1', 'X-Tab': 'a\tb', TE: 'x', 'X-Gatehouse-Signature': 'x' } }
    }),
    'proxies[0].http.static_headers.X-Key must not contain line breaks and control characters',
    `proxies[0].http.static_headers.TE ${HEADER_RULE}`,
    `proxies[0].http.static_headers.X-Gatehouse-Signature ${HEADER_RULE}`
  ],
  [
    named({ http: { static_headers: { 'X-Key': [1] } } }),
    'proxies[0].http.static_headers.X-Key must be text of 1 to any number of characters'
  ],
  [
    named({ http: { signing_secret_previous: 'x' } }),
    'proxies[0].http.signing_secret is needed with signing_secret_previous'
  ],
  [
    named({ http: { tls: { enabled: true, server_ca_pem: '/no/such/file.pem' } } }),
    'proxies[0].http.tls.server_ca_pem must be PEM text, the same in base64, or the path of a readable PEM file (ENOENT)'
  ],
  [
    named({
      http: { tls: { enabled: true, cert_pem: '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----' } }
    }),
    'proxies[0].http.tls.key_pem is needed together with cert_pem'
  ],
  [named({ max_inflight: -1 }), 'proxies[0].max_inflight must be a whole number from 1 to 100000'],
  [named({ retries: 3 }), 'proxies[0].retries is not an option that the relay has'],
  [
    {
      channel: {
        proxy: { subscribe: { timeout: '0', http_headers: ['Host'] } },
        namespaces: [
          { name: 'room', subscribe_proxy_enabled: true, publish_proxy_enabled: true, publish_proxy_name: 'two' }
        ]
      },
      client: { proxy: { connect: { enabled: true, endpoint: 'grpc://x', more: 1 } } },
      proxies: [{ name: 'default' }]
    },
    'client.proxy.connect.more is not an option that the relay has',
    'proxies[0].name must not be default, which names the default proxies',
    'client.proxy.connect.endpoint must begin with http:// or https://; the relay does not speak gRPC',
    'channel.proxy.subscribe.timeout must be longer than 0 and at most 1h',
    'channel.proxy.subscribe.endpoint is missing, and channel.namespaces[0].subscribe_proxy_enabled needs it',
    `channel.proxy.subscribe.http_headers[0] ${HEADER_RULE}`,
    `channel.namespaces[0].publish_proxy_name ${REFERENCE_RULE}`
  ]
]

t.test('invalid options of proxies', async (t) => {
  for (const [file, ...errors] of INVALID) {
    t.test(`the start fails with all errors of ${JSON.stringify(file).slice(0, 150)}`, async (t) => {
      t.same(fileErrors(file), errors)
    })
  }

  t.test('a signing secret that is easy to guess is rejected in production', async (t) => {
    t.same(
      fileErrors(named({ http: { signing_secret: 'short', signing_secret_previous: 'a'.repeat(40) } }), PRODUCTION),
      [
        'proxies[0].http.signing_secret must have at least 32 characters in production',
        'proxies[0].http.signing_secret_previous is too easy to guess: use at least 4 different characters'
      ]
    )
  })
})

t.test('REALTIME_SIGNING_SECRET', async (t) => {
  const secretsOf = (file: object, environment: Readonly<Record<string, string>>) =>
    configWith(
      { rpc: { proxy: { endpoint: ENDPOINT, ...file }, without_namespace: { proxy_enabled: true } } },
      {
        ...SECRETS,
        ...environment
      }
    ).proxies.events.rpc.get('default')?.signingSecrets
  const current = { REALTIME_SIGNING_SECRET: 'current' }
  const both = { ...current, REALTIME_SIGNING_SECRET_PREVIOUS: 'previous' }

  t.test('requests are signed with the secrets of the environment unless the proxy has its own', async (t) => {
    t.same(secretsOf({}, {}), [])
    t.same(secretsOf({}, current), ['current'])
    t.same(secretsOf({}, both), ['current', 'previous'])
    t.same(secretsOf({ http: { signing_secret: 'own' } }, both), ['own'])
  })

  t.test('a previous signing secret needs a current one, and both must be strong in production', async (t) => {
    t.same(fileErrors({}, { ...SECRETS, REALTIME_SIGNING_SECRET_PREVIOUS: 'x' }), [
      'REALTIME_SIGNING_SECRET is required with REALTIME_SIGNING_SECRET_PREVIOUS'
    ])
    t.match(fileErrors({}, { ...PRODUCTION, ...both }), [
      'REALTIME_SIGNING_SECRET_PREVIOUS must be 64 hex characters in production',
      'REALTIME_SIGNING_SECRET must be 64 hex characters in production'
    ])
  })
})

t.test('a proxy that no option enables may lack its endpoint', async (t) => {
  t.same(
    fileErrors({
      client: { proxy: { connect: { enabled: false, timeout: '2s' } } },
      channel: { proxy: { subscribe: { timeout: '2s' } }, namespaces: [{ name: 'room', subscribe_proxy_name: 'two' }] },
      rpc: { proxy: { endpoint: 'grpc://backend' }, namespaces: [{ name: 'calls' }] },
      proxies: [{ name: 'one' }, { name: 'two', endpoint: 'grpc://backend' }]
    }),
    []
  )
})

t.test('a relay with a connect proxy needs no secret for tokens', async (t) => {
  const file = { client: { proxy: { connect: { enabled: true, endpoint: ENDPOINT } } } }
  t.same(fileErrors(file, { REALTIME_API_KEY: 'a key', REALTIME_HMAC_SECRET: '' }), [])
  t.same(fileErrors({}, { REALTIME_API_KEY: 'a key', REALTIME_HMAC_SECRET: '' }), ['REALTIME_HMAC_SECRET is required'])
})

t.test('namespaces select their proxies by name', async (t) => {
  const { channels, rpc, client, proxies } = configWith({
    client: { proxy: { connect: { enabled: true, endpoint: 'https://backend/connect?a=1' } } },
    channel: {
      proxy: { subscribe: { endpoint: `${ENDPOINT}/subscribe` }, publish: { endpoint: `${ENDPOINT}/publish` } },
      without_namespace: { subscribe_proxy_enabled: true },
      namespaces: [
        { name: 'room', subscribe_proxy_enabled: true, subscribe_proxy_name: 'one', publish_proxy_enabled: true },
        { name: 'hall', subscribe_proxy_name: 'one' }
      ]
    },
    rpc: { namespaces: [{ name: 'calls', proxy_enabled: true, proxy_name: 'one' }, { name: 'off' }] },
    proxies: [{ name: 'one', endpoint: ENDPOINT, http_headers: ['Cookie', 'X-User', 'cookie'] }]
  })

  t.same([client.connectProxy, client.refreshProxy], [true, false])
  const room = channels.namespaces.get('room')
  t.same([room?.subscribeProxy, room?.publishProxy, room?.subRefreshProxy], ['one', 'default', null])
  t.equal(channels.namespaces.get('hall')?.subscribeProxy, null)
  t.equal(channels.withoutNamespace.subscribeProxy, 'default')
  t.same(
    [...rpc.namespaces],
    [
      ['calls', 'one'],
      ['off', null]
    ]
  )
  t.equal(rpc.withoutNamespace, null)
  const { events } = proxies
  t.equal(events.subscribe.get('one'), events.rpc.get('one'), 'one proxy serves several events')
  t.match(events.connect.get('default'), { origin: 'https://backend', path: '/connect?a=1', timeoutMs: 1000 })
  t.same([...events.publish.keys(), ...events.refresh.keys(), ...events.sub_refresh.keys()], ['default'])
  t.same(proxies.requestHeaders, ['cookie', 'x-user'])
})

t.test('values of a proxy', async (t) => {
  const optionsOf = (options: object) => {
    const { proxies } = configWith({
      ...named(options),
      rpc: { without_namespace: { proxy_enabled: true, proxy_name: 'one' } }
    })
    const proxy = proxies.events.rpc.get('one')
    if (proxy === undefined) throw new Error('no proxy')
    return proxy
  }

  t.test('the endpoint is used as written', async (t) => {
    const ENDPOINTS: readonly (readonly [endpoint: string, origin: string, path: string])[] = [
      ['http://Backend:80/a/../b/%7e?x=%20&y', 'http://backend', '/a/../b/%7e?x=%20&y'],
      ['https://backend:8443', 'https://backend:8443', '/'],
      ['http://[::1]:3000?x', 'http://[::1]:3000', '/?x']
    ]
    for (const [endpoint, origin, path] of ENDPOINTS) t.match(optionsOf({ endpoint }), { origin, path })
  })

  t.test('a user in the endpoint becomes a header, unless there is a static one', async (t) => {
    const endpoint = 'http://a%40b:s%C3%A9:cret@backend/'
    t.equal(
      optionsOf({ endpoint }).staticHeaders.get('authorization'),
      `Basic ${Buffer.from('a@b:sé:cret').toString('base64')}`
    )
    const http = { static_headers: { Authorization: 'Bearer x' } }
    t.equal(optionsOf({ endpoint, http }).staticHeaders.get('authorization'), 'Bearer x')
    t.notMatch(JSON.stringify([optionsOf({ endpoint }).origin, optionsOf({ endpoint }).path]), /cret/)
  })

  t.test('transforms become errors and disconnects', async (t) => {
    const { statusTransforms } = optionsOf({
      http: {
        status_to_code_transforms: [
          { status_code: 404, to_error: { code: 404, message: 'no', temporary: true } },
          { status_code: '403', to_error: { code: 0 }, to_disconnect: { code: 4503, reason: 'banned' } }
        ]
      }
    })
    t.same(
      [...statusTransforms],
      [
        [404, new ReplyError(404, 'no', true)],
        [403, new Disconnect(4503, 'banned')]
      ]
    )
  })

  t.test('a number in a static header is text', async (t) => {
    t.same([...optionsOf({ http: { static_headers: { 'X-Version': 6 } } }).staticHeaders], [['x-version', '6']])
  })

  t.test('an unusable certificate is reported as PEM text, as base64, and as a path', async (t) => {
    const pem = '-----BEGIN CERTIFICATE-----\n'
    const path = join(t.testdir(), 'ca.pem')
    writeFileSync(path, pem)
    for (const server_ca_pem of [pem, Buffer.from(pem).toString('base64'), path]) {
      t.match(fileErrors(named({ http: { tls: { enabled: true, server_ca_pem } } })), [
        /^proxies\[0\]\.http\.tls\.server_ca_pem cannot be used/
      ])
    }
  })
})
