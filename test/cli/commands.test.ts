import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import jwt from 'jsonwebtoken'
import t from 'tap'
import packageFile from '../../package.json' with { type: 'json' }
import { runCli } from '../../src/cli/cli.js'
import { API_SECRET } from '../helper/gateway.js'

const SECRET = 'a'.repeat(64)

const gatehouse = async (args: readonly string[], env: Readonly<Record<string, string>> = {}) => {
  let stdout = ''
  let stderr = ''
  const status = await runCli(args, {
    env: { ...env },
    print: (text) => {
      stdout += `${text}\n`
    },
    printErrors: (lines) => {
      stderr += lines.map((line) => `${line}\n`).join('')
    }
  })
  return { status, stdout, stderr }
}

t.test('gatehouse --help lists the commands, and each command explains its arguments', async (t) => {
  const { status, stdout } = await gatehouse(['--help'])

  t.equal(status, 0)
  for (const command of ['gateway', 'relay', 'check-config', 'token', 'verify-token', 'client-api']) {
    t.match(stdout, command)
    const help = await gatehouse([command, '--help'])
    t.match(help.stdout, `Usage: gatehouse ${command}`)
    t.equal(help.status, 0)
  }
})

t.test('gatehouse --version prints the version of the package', async (t) => {
  t.same(await gatehouse(['--version']), { status: 0, stdout: `${packageFile.version}\n`, stderr: '' })
})

t.test('wrong arguments are rejected with one line and the usage, exit code 2', async (t) => {
  for (const [args, message] of [
    [[], 'gatehouse: a command is required\n'],
    [['gatway'], 'gatehouse: unknown command: gatway\n'],
    [['token', '--user', ''], 'gatehouse token: --user must not be empty\n'],
    [['token'], 'gatehouse token: --user is required\n'],
    [['token', '--user', '7', '--ttl', 'soon'], 'gatehouse token: --ttl must be a duration'],
    [['token', '--usr', '7'], "gatehouse token: Unknown option '--usr'"],
    [['token', '--user', '7', '--app', '--channel', 'a'], '--channel is not an option of app tokens\n'],
    [['token', '--user', '7', '--role', 'admin'], '--role is not an option of connection tokens\n'],
    [['token', '--user', '7', '--subscription', ''], '--subscription must not be empty\n'],
    [['verify-token'], 'gatehouse verify-token: TOKEN is required\n'],
    [['verify-token', ' '], 'gatehouse verify-token: the token is empty\n'],
    [['check-config', 'a', 'b'], 'gatehouse check-config: unexpected argument: b\n'],
    [['check-config', '--gateway', 'a'], 'gatehouse check-config: unexpected argument: a\n'],
    [['gateway', '--port', '1'], "gatehouse gateway: Unknown option '--port'"]
  ] as const) {
    const { status, stdout, stderr } = await gatehouse(args)
    t.equal(status, 2, args.join(' '))
    t.match(stderr, message)
    t.match(stderr, 'Usage: ')
    t.equal(stdout, '')
  }
})

t.test('gatehouse token prints a token that is signed with REALTIME_HMAC_SECRET', async (t) => {
  const args = ['token', '--user', 'u1', '--ttl', '90s', '--channel', 'floor:1', '--info', '{"name":"x"}']
  const { status, stdout } = await gatehouse(args, { REALTIME_HMAC_SECRET: SECRET })

  t.equal(status, 0)
  const claims = jwt.verify(stdout.trim(), SECRET, { algorithms: ['HS256'] })
  t.match(claims, { sub: 'u1', channels: ['floor:1'], info: { name: 'x' } })
  if (typeof claims === 'string') throw new Error('the token has no claims')
  t.equal((claims.exp ?? 0) - (claims.iat ?? 0), 90)
})

t.test('gatehouse token reads the secret from a file, and fails without a secret', async (t) => {
  const file = join(t.testdir(), 'secret')
  writeFileSync(file, `${SECRET}\n`)

  const signed = await gatehouse(['token', '--user', 'u1'], { REALTIME_HMAC_SECRET_FILE: file })
  t.doesNotThrow(() => jwt.verify(signed.stdout.trim(), SECRET))
  const failed = await gatehouse(['token', '--user', 'u1'])
  t.equal(failed.status, 1)
  t.equal(failed.stderr, 'REALTIME_HMAC_SECRET is required\n')
})

t.test('gatehouse verify-token names the kind of each token, and why it is rejected', async (t) => {
  const env = { REALTIME_HMAC_SECRET: SECRET, API_SECRET }
  const kindOf = async (args: readonly string[]) => {
    const token = (await gatehouse(['token', '--user', 'u1', ...args], env)).stdout.trim()
    return await gatehouse(['verify-token', token], env)
  }
  for (const [args, kind, claims] of [
    [['--channel', 'a:1'], 'connection token', { channels: ['a:1'] }],
    [['--subscription', 'orders:42'], 'subscription token', { channel: 'orders:42' }],
    [
      ['--app', '--role', 'admin', '--permission', 'a.b', '--email', 'a@example.com'],
      'app token',
      { role: 'admin', permissions: ['a.b'], email: 'a@example.com' }
    ]
  ] as const) {
    const { status, stdout } = await kindOf(args)
    t.equal(status, 0)
    t.match(stdout, new RegExp(`^${kind}: valid\nissued: .* ago\\)\nexpires: .* \\(in .*\\)\nclaims: {\n`))
    t.match(JSON.parse(stdout.slice(stdout.indexOf('{'))), { sub: 'u1', ...claims })
    t.notMatch(stdout, SECRET)
  }
  const expired = jwt.sign({ sub: 'u1', exp: 1_700_000_000 }, SECRET)
  t.match(await gatehouse(['verify-token', expired], env), {
    status: 1,
    stdout: /^connection token: rejected, expired: its time is over\nissued: .*\nexpires: 2023-11-14T22:13:20.000Z/
  })
  t.match(await gatehouse(['verify-token', jwt.sign({ sub: 'u1' }, SECRET)], env), {
    status: 1,
    stdout: /^connection token: rejected, no-expiry: /
  })
  const foreign = await gatehouse(['verify-token', jwt.sign({ sub: 'u1' }, 'x'.repeat(64), { expiresIn: 60 })], env)
  t.equal(foreign.status, 1)
  t.match(foreign.stdout, /^connection token: rejected, bad-signature: .*\napp token: rejected, bad-signature: /)
  t.match(foreign.stdout, 'claims (not verified')
  t.match(await gatehouse(['verify-token', 'a.b'], env), { status: 1, stdout: /^app token: rejected, malformed: / })
  t.match(await gatehouse(['verify-token', 'a']), {
    status: 1,
    stderr: 'API_SECRET, REALTIME_HMAC_SECRET or RELAY_CONFIG'
  })
})

t.test('gatehouse verify-token applies the rules of the config file of the relay', async (t) => {
  const folder = t.testdir({ 'relay.yaml': 'client: { token: { audience: shop } }' })
  const env = { REALTIME_HMAC_SECRET: SECRET, RELAY_CONFIG: join(folder, 'relay.yaml') }
  const token = (claims: object) => jwt.sign({ sub: 'u1', ...claims }, SECRET, { expiresIn: 60 })
  t.match((await gatehouse(['verify-token', token({})], env)).stdout, 'connection token: rejected, bad-claims')
  t.match((await gatehouse(['verify-token', token({ aud: 'shop' })], env)).stdout, 'connection token: valid')
})

t.test('a command reads variables from --env-file, which the environment overrides', async (t) => {
  const folder = t.testdir({
    one: `REALTIME_HMAC_SECRET='${'b'.repeat(64)}' # comment\n`,
    two: `export REALTIME_HMAC_SECRET="${SECRET}"\n`
  })
  const files = [`--env-file=${join(folder, 'one')}`, '--env-file', join(folder, 'two')]
  const signed = async (args: readonly string[], env = {}) => (await gatehouse(args, env)).stdout.trim()
  t.ok(jwt.verify(await signed(['token', '--user', 'u1', ...files]), SECRET))
  t.ok(jwt.verify(await signed([...files, 'token', '--user', 'u1']), SECRET))
  const fromEnvironment = { REALTIME_HMAC_SECRET: 'c'.repeat(64) }
  t.ok(jwt.verify(await signed(['token', '--user', 'u1', ...files], fromEnvironment), 'c'.repeat(64)))
  const missing = await gatehouse(['check-config', '--env-file', join(folder, 'three')])
  t.same(missing, {
    status: 1,
    stdout: '',
    stderr: `gatehouse: --env-file must name a readable file (ENOENT): ${join(folder, 'three')}\n`
  })
  t.match(await gatehouse(['gateway', '--env-file']), { status: 2, stderr: 'gatehouse: --env-file needs a file\n' })
})

t.test('gatehouse check-config names every error of a file', async (t) => {
  const file = join(t.testdir(), 'relay.json')
  writeFileSync(
    file,
    JSON.stringify({ client: { ping_interval: 'often' }, channel: { namespaces: [{ name: 'a b' }] } }, null, 2)
  )
  const invalid = await gatehouse(['check-config', file])
  t.equal(invalid.status, 1)
  t.equal(
    invalid.stderr,
    [
      'relay.json:3: client.ping_interval must be a duration such as "300s"',
      'relay.json:8: channel.namespaces[0].name must be two or more letters, digits, "-", "_" or "."',
      ''
    ].join('\n')
  )

  writeFileSync(file, JSON.stringify({ client: { ping_interval: '20s' } }))
  const valid = await gatehouse(['check-config', file])
  t.same(valid, { status: 0, stdout: `${file} is valid\n`, stderr: '' })

  t.same(await gatehouse(['check-config', `${file}.missing`]), {
    status: 1,
    stdout: '',
    stderr: `${file}.missing cannot be read (ENOENT)\n`
  })
  writeFileSync(file, JSON.stringify({ client: { insecure: true } }))
  t.equal((await gatehouse(['check-config', file])).status, 0)
  t.match(await gatehouse(['check-config', file, '--production']), {
    status: 1,
    stderr: 'relay.json:1: client.insecure is not allowed in production\n'
  })
})

t.test('gatehouse check-config --gateway checks settings and routes, and lists public operations', async (t) => {
  const file = join(t.testdir(), 'openapi.json')
  const paths = {
    '/news': { get: { security: [] }, query: {} },
    '/admin/news': { get: { security: [] } },
    '/login': { post: { 'x-gatehouse-access': 'public' } }
  }
  writeFileSync(file, JSON.stringify({ openapi: '3.1.0', paths }))
  const env = { NODE_ENV: 'production', BACKEND_URL: 'http://127.0.0.1:9', GATEWAY_ROUTES: file, BODY_LIMTI: '1kb' }

  t.same(await gatehouse(['check-config', '--gateway'], { ...env, API_SECRET }), {
    status: 0,
    stdout: 'the settings of the gateway are valid\n',
    stderr: [
      'warning: BODY_LIMTI is not a setting. Did you mean BODY_LIMIT?',
      'warning: openapi.json#/paths/~1news/query: unknown method or field ignored',
      'warning: public: GET /api/news',
      'warning: public: POST /api/login',
      ''
    ].join('\n')
  })
  const insecure = { NODE_ENV: 'test', BACKEND_URL: env.BACKEND_URL, API_SECRET, COOKIE_SECURE: 'false' }
  t.equal((await gatehouse(['check-config', '--gateway'], insecure)).stderr, '')
  t.match(await gatehouse(['check-config', '--gateway', '--production'], insecure), {
    status: 0,
    stderr: /^warning: NODE_ENV is test: [^\n]*NODE_ENV=production[^\n]*\nwarning: COOKIE_SECURE is false: /
  })
  const { NODE_ENV: _, ...unset } = insecure
  t.match(await gatehouse(['check-config', '--gateway', '--production'], unset), {
    status: 0,
    stderr: /^warning: NODE_ENV is not set: /
  })
  t.match(await gatehouse(['check-config', '--gateway'], unset), { status: 1, stderr: /^NODE_ENV is required: / })
  const local = { ...insecure, NODE_ENV: 'production', PUBLIC_URL: 'http://localhost:3000' }
  t.equal((await gatehouse(['check-config', '--gateway', '--production'], local)).stderr, '')
  const invalid = await gatehouse(['check-config', '--gateway'], { ...env, GATEWAY_PORT: 'x' })
  t.equal(invalid.status, 1)
  t.match(invalid.stderr, /^GATEWAY_PORT [^\n]+\nAPI_SECRET is required in production\nwarning: BODY_LIMTI/)
  t.match(await gatehouse(['check-config', '--gateway'], { NODE_ENV: 'test', GATEWAY_ROUTES: `${file}.yaml` }), {
    status: 1,
    stderr: `GATEWAY_ROUTES must name a readable file (ENOENT): ${file}.yaml\n`
  })
})

t.test('gatehouse check-config names the line of an error in an OpenAPI description', async (t) => {
  const folder = t.testdir({
    'openapi.yaml': [
      'openapi: 3.1.0',
      'paths:',
      '  /api/a:',
      '    get: { x-gatehouse-access: nobody }',
      '  /api/b:',
      '    post:',
      '      requestBody:',
      '        content:',
      '          application/json:',
      '            schema: { $ref: "schemas.json#/Note" }'
    ].join('\n'),
    'schemas.json': '{\n  "Note": {\n    "type": "nothing"\n  }\n}'
  })
  const { status, stderr } = await gatehouse(['check-config', '--gateway'], {
    NODE_ENV: 'test',
    GATEWAY_ROUTES: join(folder, 'openapi.yaml')
  })
  t.equal(status, 1)
  t.match(stderr, /^openapi\.yaml:4#\/paths\/~1api~1a\/get\/x-gatehouse-access: must be one of/m)
  t.match(stderr, /^schemas\.json:3#\/Note\/type: /m)
})

t.test('gatehouse check-config checks both programs, and reports every missing file', async (t) => {
  const folder = t.testdir({
    'relay.toml': '[client]\nping_interval = "often"\n',
    '.env': 'GATEWAY_ROUTES=none.yaml\nGATEWAY_UPSTREAMS=none-2.yaml\nREALTIME_API_KEY=from-the-file\nLOG_LEVEL=info\n'
  })
  const env = {
    GATEWAY_LIMITS: 'none-3.yaml',
    OIDC_PROVIDERS: 'none-4.yaml',
    API_SECRET_FILE: '/none-5',
    RELAY_CONFIG: join(folder, 'relay.toml'),
    REALTIME_HMAC_SECRET: SECRET,
    REALTIME_HMAC_SECRET_PREVIOUS_FILE: '/none-6',
    LOG_LEVEL: 'loud'
  }
  const file = join(folder, '.env')
  const { status, stderr } = await gatehouse(['check-config', '--env-file', file, '--production'], env)
  t.equal(status, 1)
  const [unset = '', ...others] = stderr.trimEnd().split('\n').toSorted().reverse()
  t.match(unset, /^warning: NODE_ENV is not set: /)
  t.same(others.reverse(), [
    'LOG_LEVEL must be one of trace, debug, info, warn, error, fatal, silent, not "loud"',
    `gateway: ${file}:1: GATEWAY_ROUTES must name a readable file (ENOENT): none.yaml`,
    `gateway: ${file}:2: GATEWAY_UPSTREAMS must name a readable file (ENOENT): none-2.yaml`,
    'gateway: API_SECRET_FILE must name a readable file (ENOENT): /none-5',
    'gateway: BACKEND_URL is required in production',
    'gateway: EXCHANGE_SECRET is required with an identity provider in production',
    'gateway: GATEWAY_LIMITS must name a readable file (ENOENT): none-3.yaml',
    'gateway: OIDC_PROVIDERS must name a readable file (ENOENT): none-4.yaml',
    'gateway: PUBLIC_URL is required with OIDC_PROVIDERS',
    'gateway: SESSION_SECRET is required with OIDC_PROVIDERS',
    'relay: REALTIME_HMAC_SECRET_PREVIOUS_FILE must name a readable file (ENOENT): /none-6',
    'relay: RELAY_CONFIG relay.toml: client.ping_interval must be a duration such as "300s"'
  ])
  const yaml = join(t.testdir({ 'relay.yaml': '# x\nclient:\n  ping_interval: often\n' }), 'relay.yaml')
  writeFileSync(file, `RELAY_CONFIG=${yaml}\n# the end\n`)
  const inEnvFile = await gatehouse(['check-config', '--relay', '--env-file', file], {
    REALTIME_HMAC_SECRET: SECRET,
    REALTIME_API_KEY: SECRET
  })
  t.equal(inEnvFile.stderr, 'RELAY_CONFIG relay.yaml:3: client.ping_interval must be a duration such as "300s"\n')
  t.match(await gatehouse(['check-config', '--relay'], { ...env, RELAY_CONFIG: '/none-7.yaml' }), {
    status: 1,
    stderr: 'RELAY_CONFIG must name a readable file (ENOENT): /none-7.yaml\n'
  })
})

t.test('gatehouse check-config compares the settings of both programs', async (t) => {
  const valid = {
    NODE_ENV: 'test',
    PUBLIC_URL: 'http://localhost:3000',
    RELAY_UPSTREAM: 'http://127.0.0.1:8100',
    API_SECRET,
    REALTIME_HMAC_SECRET: SECRET,
    REALTIME_API_KEY: SECRET
  }
  const warningsOf = async (env: Readonly<Record<string, string>>) => {
    const { status, stdout, stderr } = await gatehouse(['check-config'], { ...valid, ...env })
    t.same({ status, stdout }, { status: 0, stdout: 'the settings of the gateway and the relay are valid\n' })
    return stderr
  }
  t.equal(await warningsOf({}), '')
  t.equal(await warningsOf({ RELAY_UPSTREAM: '' }), '', 'in development, pages of this machine may connect')
  const page = { PUBLIC_URL: 'https://a.example' }
  t.match(
    await warningsOf({ ...page, RELAY_UPSTREAM: '' }),
    /^warning: RELAY_ALLOWED_ORIGINS does not contain https:..a.example: /
  )
  t.match(
    await warningsOf({ ...page, RELAY_ALLOWED_ORIGINS: 'https://b.example' }),
    'does not contain https://a.example'
  )
  t.equal(await warningsOf({ ...page, RELAY_UPSTREAM: '', RELAY_ALLOWED_ORIGINS: 'https://a.example' }), '')
  t.equal(
    await warningsOf({ RELAY_PORT: '8200' }),
    'warning: RELAY_UPSTREAM has port 8100, but the relay listens on port 8200\n'
  )
  const client = 'ws://localhost:3000/connection/websocket'
  for (const [env, warning] of [
    [{ GATEWAY_PORT: '3001' }, 'PUBLIC_URL has port 3000, but the gateway listens on port 3001'],
    [{ GATEWAY_PORT: '3001', TRUST_PROXY: 'loopback', GATEWAY_ALLOW_DEVELOPMENT: 'true' }, null],
    [{ GATEWAY_PORT: '3001', PUBLIC_URL: 'https://localhost' }, null],
    [{ GATEWAY_PORT: '3001', PUBLIC_URL: 'http://app.example.com' }, null],
    [{ REALTIME_CLIENT_URL: client, CSP_CONNECT_HOSTS: 'ws://localhost:3000,ws://localhost:8100' }, null],
    [
      { REALTIME_CLIENT_URL: 'ws://localhost:3009/connection/websocket' },
      'REALTIME_CLIENT_URL has port 3009, but the gateway listens on port 3000 and relay listens on port 8100'
    ],
    [
      { CSP_CONNECT_HOSTS: 'ws://localhost:3009,https://localhost:9' },
      'CSP_CONNECT_HOSTS has port 3009, but the gateway listens on port 3000 and relay listens on port 8100'
    ],
    [
      { REALTIME_PUBLISH_URL: 'http://127.0.0.1:8200/api' },
      'REALTIME_PUBLISH_URL has port 8200, but the relay listens on port 8100'
    ],
    [
      { BACKEND_URL: 'http://127.0.0.1:4000', PORT: '4001' },
      'BACKEND_URL has port 4000, but the backend listens on port 4001'
    ],
    [{ BACKEND_URL: 'http://127.0.0.1:4000', PORT: '4000' }, null]
  ] as const)
    t.equal(await warningsOf(env), warning === null ? '' : `warning: ${warning}\n`, JSON.stringify(env))
  t.match(await warningsOf({ REALTIME_HMAC_SECRET: API_SECRET }), 'API_SECRET and REALTIME_HMAC_SECRET are equal')
  t.match(await gatehouse(['check-config'], { ...valid, RELAY_PORT: '3000' }), {
    status: 1,
    stderr: /^GATEWAY_PORT and RELAY_PORT must differ/
  })
})

t.test('gatehouse check-config names the options whose defaults differ for a file of Centrifugo', async (t) => {
  const file = join(t.testdir(), 'config.yaml')
  writeFileSync(
    file,
    'client: {token: {hmac_secret_key: x}}\nchannel: {namespaces: [{name: aa, subscribe_stream_proxy_enabled: true}]}'
  )
  const { status, stderr } = await gatehouse(['check-config', file])

  t.equal(status, 1)
  const [error, ...warnings] = stderr.trim().split('\n')
  t.match(error, /^config.yaml:2: channel.namespaces\[0\].subscribe_stream_proxy_enabled is not supported: /)
  t.match(warnings, [
    /^warning: client.token.expiry_required /,
    /^warning: client.disallow_anonymous_connection_tokens /
  ])
})

t.test('gatehouse client-api writes a module, or every error of the description', async (t) => {
  const folder = t.testdir()
  const [description, output] = [join(folder, 'openapi.json'), join(folder, 'api.ts')]
  const paths = { '/floors/{id}': { get: { operationId: 'getFloor', responses: { 200: { description: '' } } } } }
  writeFileSync(description, JSON.stringify({ openapi: '3.1.0', paths }))
  t.equal((await gatehouse(['client-api', description, '-o', output])).status, 0)
  t.match(readFileSync(output, 'utf8'), 'getFloor: (path: { readonly id: string | number }, options?: CallOptions) =>')

  writeFileSync(description, JSON.stringify({ openapi: '2.0' }))
  const invalid = await gatehouse(['client-api', description])
  t.equal(invalid.status, 1)
  t.match(invalid.stderr, 'openapi.json: "openapi" is 2.0')
})
