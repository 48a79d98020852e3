import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import jwt from 'jsonwebtoken'
import t from 'tap'
import packageFile from '../../package.json' with { type: 'json' }
import { ROOT } from '../../scripts/lib/root.js'
import { environment } from '../helper/environment.js'
import { API_SECRET } from '../helper/gateway.js'

const SECRET = 'a'.repeat(64)

const gatehouse = (args: readonly string[], env: Readonly<Record<string, string>> = {}) => {
  const { status, stdout, stderr } = spawnSync(process.execPath, [join(ROOT, 'dist/src/cli/main.js'), ...args], {
    encoding: 'utf8',
    env: { PATH: environment.path, ...env }
  })
  return { status, stdout, stderr }
}

t.test('gatehouse --help lists the commands, and each command explains its arguments', async (t) => {
  const { status, stdout } = gatehouse(['--help'])

  t.equal(status, 0)
  for (const command of ['gateway', 'relay', 'check-config', 'token', 'client-api']) {
    t.match(stdout, command)
    const help = gatehouse([command, '--help'])
    t.match(help.stdout, `Usage: gatehouse ${command}`)
    t.equal(help.status, 0)
  }
})

t.test('gatehouse --version prints the version of the package', async (t) => {
  t.same(gatehouse(['--version']), { status: 0, stdout: `${packageFile.version}\n`, stderr: '' })
})

t.test('wrong arguments are rejected with one line and the usage, exit code 2', async (t) => {
  for (const [args, message] of [
    [[], 'gatehouse: a command is required\n'],
    [['gatway'], 'gatehouse: unknown command: gatway\n'],
    [['token', '--user', ''], 'gatehouse token: --user must not be empty\n'],
    [['token'], 'gatehouse token: --user is required\n'],
    [['token', '--user', '7', '--ttl', 'soon'], 'gatehouse token: --ttl must be a duration'],
    [['token', '--usr', '7'], "gatehouse token: Unknown option '--usr'"],
    [['check-config'], 'gatehouse check-config: FILE is required\n'],
    [['check-config', 'a', 'b'], 'gatehouse check-config: unexpected argument: b\n'],
    [['check-config', '--gateway', 'a'], 'gatehouse check-config: unexpected argument: a\n'],
    [['gateway', '--port', '1'], "gatehouse gateway: Unknown option '--port'"]
  ] as const) {
    const { status, stdout, stderr } = gatehouse(args)
    t.equal(status, 2, args.join(' '))
    t.match(stderr, message)
    t.match(stderr, 'Usage: ')
    t.equal(stdout, '')
  }
})

t.test('gatehouse token prints a token that is signed with REALTIME_HMAC_SECRET', async (t) => {
  const args = ['token', '--user', 'u1', '--ttl', '90s', '--channel', 'floor:1', '--info', '{"name":"x"}']
  const { status, stdout } = gatehouse(args, { REALTIME_HMAC_SECRET: SECRET })

  t.equal(status, 0)
  const claims = jwt.verify(stdout.trim(), SECRET, { algorithms: ['HS256'] })
  t.match(claims, { sub: 'u1', channels: ['floor:1'], info: { name: 'x' } })
  if (typeof claims === 'string') throw new Error('the token has no claims')
  t.equal((claims.exp ?? 0) - (claims.iat ?? 0), 90)
})

t.test('gatehouse token reads the secret from a file, and fails without a secret', async (t) => {
  const file = join(t.testdir(), 'secret')
  writeFileSync(file, `${SECRET}\n`)

  const signed = gatehouse(['token', '--user', 'u1'], { REALTIME_HMAC_SECRET_FILE: file })
  t.doesNotThrow(() => jwt.verify(signed.stdout.trim(), SECRET))
  const failed = gatehouse(['token', '--user', 'u1'])
  t.equal(failed.status, 1)
  t.equal(failed.stderr, 'REALTIME_HMAC_SECRET is required\n')
})

t.test('gatehouse check-config names every error of a file', async (t) => {
  const file = join(t.testdir(), 'relay.json')
  writeFileSync(
    file,
    JSON.stringify({ client: { ping_interval: 'often' }, channel: { namespaces: [{ name: 'a b' }] } })
  )
  const invalid = gatehouse(['check-config', file])
  t.equal(invalid.status, 1)
  t.equal(invalid.stderr.trim().split('\n').length, 2)
  t.match(invalid.stderr, 'client.ping_interval')
  t.match(invalid.stderr, 'channel.namespaces[0].name')

  writeFileSync(file, JSON.stringify({ client: { ping_interval: '20s' } }))
  const valid = gatehouse(['check-config', file])
  t.same(valid, { status: 0, stdout: `${file} is valid\n`, stderr: '' })

  t.same(gatehouse(['check-config', `${file}.missing`]), {
    status: 1,
    stdout: '',
    stderr: `${file}.missing cannot be read (ENOENT)\n`
  })
  t.notMatch(invalid.stderr, 'RELAY_CONFIG')
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

  t.same(gatehouse(['check-config', '--gateway'], { ...env, API_SECRET }), {
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
  const invalid = gatehouse(['check-config', '--gateway'], { ...env, GATEWAY_PORT: 'x' })
  t.equal(invalid.status, 1)
  t.match(invalid.stderr, /^GATEWAY_PORT [^\n]+\nAPI_SECRET is required in production\nwarning: BODY_LIMTI/)
  t.match(gatehouse(['check-config', '--gateway'], { GATEWAY_ROUTES: `${file}.yaml` }), {
    status: 1,
    stderr: `GATEWAY_ROUTES must name a readable file (ENOENT): ${file}.yaml\n`
  })
})

t.test('gatehouse check-config names the options whose defaults differ for a file of Centrifugo', async (t) => {
  const file = join(t.testdir(), 'config.yaml')
  writeFileSync(
    file,
    'client: {token: {hmac_secret_key: x}}\nchannel: {namespaces: [{name: aa, subscribe_stream_proxy_enabled: true}]}'
  )
  const { status, stderr } = gatehouse(['check-config', file])

  t.equal(status, 1)
  const [error, ...warnings] = stderr.trim().split('\n')
  t.match(error, /^channel.namespaces\[0\].subscribe_stream_proxy_enabled is not supported: /)
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
  t.equal(gatehouse(['client-api', description, '-o', output]).status, 0)
  t.match(readFileSync(output, 'utf8'), 'getFloor: (path: { readonly id: string | number }, options?: CallOptions) =>')

  writeFileSync(description, JSON.stringify({ openapi: '2.0' }))
  const invalid = gatehouse(['client-api', description])
  t.equal(invalid.status, 1)
  t.match(invalid.stderr, 'openapi.json: "openapi" is 2.0')
})
