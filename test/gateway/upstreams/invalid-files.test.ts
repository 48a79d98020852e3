import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { ACTING_HEADERS } from '../../../src/gateway/proxy/response-headers.js'
import { freePort } from '../../helper/free-port.js'
import { startGateway } from '../../helper/gateway.js'
import { folderOf } from './upstreams-fixture.js'

/** The lines with which a gateway rejects a file, without the name of the setting. */
const errorsOf = async (
  t: Test,
  files: Readonly<Record<string, string>>,
  env: Readonly<Record<string, string>> = {}
): Promise<readonly string[]> => {
  const [name = ''] = Object.keys(files)
  const file = join(folderOf(t, files), name)
  const error = await startGateway(t, { env: { GATEWAY_UPSTREAMS: file, ...env } }).then(
    () => new Error('the gateway has started'),
    (error: Error) => error
  )
  return error.message.split('\n').map((line) => line.replace('GATEWAY_UPSTREAMS ', ''))
}

t.test('all errors of a file are reported at once, each with its line', async (t) => {
  const file = `
- name: billing
  url: http://127.0.0.1:4001
  paths: [/api/billing]
  tiemout_ms: 5
- name: billing
  url: ftp://127.0.0.1
  paths: []
- name: Reports
  url: http://127.0.0.1:4002
  paths: [/api/reports/, reports, /api/*, /api/:id]
- name: invoices
  url: http://127.0.0.1:4003
  paths:
    - /api/invoices
    - /api/billing
    - /api/auth/login
    - /API/Health
  token: secret
  pass_response_headers: [Refresh, Set-Cookie]
- url: http://127.0.0.1:4004
  name: default
  paths: [/metrics, /auth/oidc, /api/docs/x]
  connections: 0
`
  t.strictSame(await errorsOf(t, { 'rows.yaml': file }), [
    'rows.yaml:5: entry 1, tiemout_ms is not a known field',
    'rows.yaml:7: entry 2, url must be an http or https address without user, query or fragment',
    'rows.yaml:8: entry 2, paths must be a list of paths',
    'rows.yaml:9: entry 3, name must be 1 to 32 lower-case letters, digits and dashes, with no dash at either end',
    'rows.yaml:11: entry 3, paths.0 must be a path such as /reports, without a slash at its end',
    'rows.yaml:11: entry 3, paths.1 must be a path such as /reports, without a slash at its end',
    'rows.yaml:11: entry 3, paths.2 must be a path such as /reports, without a slash at its end',
    'rows.yaml:11: entry 3, paths.3 must be a path such as /reports, without a slash at its end',
    'rows.yaml:19: entry 4, token must be one of app, provider, none',
    `rows.yaml:20: entry 4, pass_response_headers.1 must be X-Accel-… or one of ${ACTING_HEADERS.join(', ')}`,
    'rows.yaml:24: entry 5, connections must be a whole number from 1 to 4096',
    'rows.yaml:6: entry 2, name is also the name of another entry',
    'rows.yaml:16: entry 4, paths.1 must not be /api/billing, which billing has for the same hosts',
    'rows.yaml:17: entry 4, paths.2 must not be /api/auth/login: /api/auth is a path of the gateway',
    'rows.yaml:18: entry 4, paths.3 must not be /API/Health: /api/health is a path of the gateway',
    'rows.yaml:22: entry 5, name must not be default, which is the name of BACKEND_URL',
    'rows.yaml:23: entry 5, paths.0 must not be /metrics: /metrics is a path of the gateway',
    'rows.yaml:23: entry 5, paths.1 must not be /auth/oidc: /auth/oidc is a path of the gateway',
    'rows.yaml:23: entry 5, paths.2 must not be /api/docs/x: /api/docs is a path of the gateway'
  ])
})

const row = (fields: Readonly<Record<string, unknown>>): Record<string, unknown> => ({
  name: 'a',
  url: 'http://127.0.0.1:9',
  paths: ['/a'],
  ...fields
})

const RULES: readonly (readonly [title: string, rows: readonly Record<string, unknown>[], error: string])[] = [
  ['the name of BACKEND_URL', [row({ name: 'default' })], 'name must not be default, which is the name of BACKEND_URL'],
  ['a repeated name', [row({}), row({ paths: ['/b'] })], 'name is also the name of another entry'],
  ['a repeated path', [row({ paths: ['/a', '/a'] })], 'paths.1 must not be /a again'],
  [
    'a path of another row',
    [row({}), row({ name: 'b', paths: ['/b', '/a'] })],
    'paths.1 must not be /a, which a has for the same hosts'
  ],
  [
    'another spelling of the path of another row',
    [row({}), row({ name: 'b', paths: ['/A'] })],
    'paths.0 must not be /A, which a has for the same hosts'
  ],
  [
    'a path of another row for one of its hosts',
    [row({ hosts: ['x.example', 'y.example'] }), row({ name: 'b', hosts: ['Y.example'] })],
    'paths.0 must not be /a, which a has for the same hosts'
  ],
  ...[
    '/api/auth',
    '/api/auth/login',
    '/auth/oidc/callback',
    '/auth/verify',
    '/api/health',
    '/api/docs',
    '/metrics'
  ].map(
    (path) =>
      [
        `the path ${path}`,
        [row({ paths: [path] })],
        `paths.0 must not be ${path}: ${path.replace(/\/(?:login|callback)$/, '')} is a path of the gateway`
      ] as const
  ),
  [
    'strip_prefix: true with several paths',
    [row({ paths: ['/a', '/b'], strip_prefix: true })],
    'strip_prefix must be a path, because the entry has several paths'
  ],
  [
    'strip_prefix that a path does not begin with',
    [row({ paths: ['/a/x', '/ab'], strip_prefix: '/a' })],
    'strip_prefix must be a path that all paths of the entry begin with'
  ],
  [
    'an access path outside of the row',
    [row({ strict_paths: ['/ab'] })],
    'strict_paths.0 must be below a path of the entry, not /ab'
  ],
  [
    'an access path in two lists',
    [row({ public_paths: ['/a/x'], admin_paths: ['/a/x'] })],
    'admin_paths.0 must not be /a/x, which is also in public_paths'
  ],
  [
    'a public path that needs the token of an admin at all backends',
    [row({ paths: ['/api/admin'], public_paths: ['/api/admin'] })],
    'public_paths.0 must not be /api/admin, which is also in GATEWAY_ADMIN_PATHS'
  ],
  [
    'an identity header with another meaning',
    [row({ identity_headers: { user: 'X-Forwarded-For' } })],
    'identity_headers user must not be the header X-Forwarded-For, which has another meaning'
  ],
  [
    'two identity headers with one name',
    [row({ identity_headers: { user: 'X-User', email: 'x-user' } })],
    'identity_headers email must not be x-user, which is also the header of user'
  ],
  [
    'a token of an identity provider that is not configured',
    [row({ token: 'provider' })],
    'token must not be provider without an identity provider'
  ]
]

for (const [title, rows, error] of RULES) {
  t.test(`a gateway does not start with ${title}`, async (t) => {
    const index = rows.length
    t.strictSame(await errorsOf(t, { 'rows.json': JSON.stringify(rows) }), [`rows.json:1: entry ${index}, ${error}`])
  })
}

t.test('errors of single fields and of several rows are reported together', async (t) => {
  const rows = [row({ colour: 'red' }), row({ name: 'b' }), row({ name: 'c', paths: ['/api/auth'] }), row({ name: 7 })]
  t.strictSame(await errorsOf(t, { 'rows.json': JSON.stringify(rows, null, 1) }), [
    'rows.json:8: entry 1, colour is not a known field',
    'rows.json:25: entry 4, name must be 1 to 32 lower-case letters, digits and dashes, with no dash at either end',
    'rows.json:14: entry 2, paths.0 must not be /a, which a has for the same hosts',
    'rows.json:21: entry 3, paths.0 must not be /api/auth: /api/auth is a path of the gateway',
    'rows.json:28: entry 4, paths.0 must not be /a, which a has for the same hosts'
  ])
})

t.test('hosts tell rows with the same paths apart', async (t) => {
  const rows = [row({}), row({ name: 'b', hosts: ['x.example'] }), row({ name: 'c', hosts: ['y.example'] })]
  t.strictSame(await errorsOf(t, { 'rows.json': JSON.stringify(rows) }), ['the gateway has started'])
})

const MALFORMED: readonly (readonly [title: string, text: string, error: string])[] = [
  ['no content', '', 'rows.yaml: must contain one list'],
  ['an object', 'name: a', 'rows.yaml:1: must be a list with at least one entry'],
  ['an empty list', '[]', 'rows.yaml:1: must be a list with at least one entry'],
  ['two documents', '[]\n---\n[]', 'rows.yaml: must contain one list'],
  [
    'a field twice',
    '- name: a\n  name: b',
    'rows.yaml:2: is not valid YAML or JSON without aliases (duplicated mapping key)'
  ],
  ['an open bracket', '- [', 'rows.yaml:1: is not valid YAML or JSON without aliases']
]

for (const [title, text, error] of MALFORMED) {
  t.test(`a gateway does not start with a file that has ${title}`, async (t) => {
    const [found = ''] = await errorsOf(t, { 'rows.yaml': text })
    t.ok(found.startsWith(error), found)
  })
}

t.test('a missing file stops the start', async (t) => {
  t.strictSame(await errorsOf(t, { 'rows.json': '[]' }, { GATEWAY_UPSTREAMS: '/none/rows.json' }), [
    'must name a readable file (ENOENT): /none/rows.json'
  ])
})

t.test('errors of all OpenAPI documents are reported with the names of their rows', async (t) => {
  const rows = [row({ routes: 'one.yaml' }), row({ name: 'b', paths: ['/b'], routes: 'two.yaml' })]
  const files = { 'rows.json': JSON.stringify(rows), 'one.yaml': 'openapi: 2.0.0' }
  const errors = await errorsOf(t, files)
  t.match(errors, [/^routes of a: one\.yaml/, /^routes of b: two\.yaml: cannot be read \(ENOENT\)$/])
})

t.test('a row whose address is that of the gateway itself stops the start', async (t) => {
  const port = await freePort()
  const outside = Object.values(networkInterfaces())
    .flatMap((addresses = []) => addresses)
    .find(({ internal, family }) => !internal && family === 'IPv4')?.address
  const hosts = ['127.0.0.1', 'localhost', '[::ffff:127.0.0.1]', '0.0.0.0', ...(outside === undefined ? [] : [outside])]
  for (const host of hosts) {
    const rows = JSON.stringify([row({ url: `http://${host}:${port}/x` })])
    const env = { GATEWAY_HOST: '0.0.0.0', GATEWAY_PORT: String(port), GATEWAY_ALLOW_DEVELOPMENT: 'true' }
    const expected = 'rows.json:1: entry 1, url must not be the address of the gateway itself'
    t.strictSame(await errorsOf(t, { 'rows.json': rows }, env), [expected], host)
  }
  const internal = await freePort()
  const settings = {
    GATEWAY_PORT: String(port),
    BACKEND_URL: `http://localhost:${port}`,
    GATEWAY_INTERNAL_PORT: String(internal),
    GATEWAY_INTERNAL_KEY: 'an-internal-key-for-tests-0123456789'
  }
  const toInternal = JSON.stringify([row({ url: `http://127.0.0.1:${internal}` })])
  t.strictSame(await errorsOf(t, { 'rows.json': toInternal }, settings), [
    'BACKEND_URL must not be the address of the gateway itself',
    'rows.json:1: entry 1, url must not be the address of the gateway itself'
  ])
  const rows = JSON.stringify([row({ url: 'https://app.example.com/x' })])
  t.match(await errorsOf(t, { 'rows.json': rows }, { PUBLIC_URL: 'https://app.example.com' }), [
    /url must not be PUBLIC_URL: the gateway would forward requests to itself$/
  ])
})
