import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import packageFile from '../../package.json' with { type: 'json' }
import { ROOT } from '../../scripts/lib/root.js'
import { runCli } from '../../src/cli/cli.js'
import { startChild } from '../helper/child.js'
import { environment } from '../helper/environment.js'
import { freePort } from '../helper/free-port.js'

const MAIN = join(ROOT, 'dist/src/cli/main.js')

/** In this process. */
const inProcess = async (args: readonly string[], env: Readonly<Record<string, string>> = {}) => {
  const [stdout, stderr]: [string[], string[]] = [[], []]
  const code = await runCli(args, {
    env: { ...env },
    print: (text) => stdout.push(`${text}\n`),
    printErrors: (lines) => stderr.push(...lines.map((line) => `${line}\n`))
  })
  return { code, stdout: stdout.join(''), stderr: stderr.join('') }
}

/** In a process whose input and output are not a terminal. */
const gatehouse = async (t: Parameters<typeof startChild>[0], args: readonly string[], env = {}) => {
  const child = await startChild(t, process.execPath, [MAIN, ...args], { PATH: environment.path, ...env })
  const { code } = await child.exited
  return { code, stdout: child.stdout, stderr: child.stderr }
}

const filesIn = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(
    (file) => !statSync(join(folder, file)).isDirectory()
  )

t.test('gatehouse init writes a project with secrets of its own, and never replaces a file', async (t) => {
  const folder = join(t.testdir(), 'My Orders')
  const { code, stdout } = await inProcess(['init', folder, '--yes'])

  t.equal(code, 0)
  t.same(filesIn(folder).toSorted(), [
    '.env',
    '.gitignore',
    'backend.js',
    'openapi.yaml',
    'package.json',
    'public/index.html',
    'public/page.js',
    'relay.yaml'
  ])
  const settings = readFileSync(join(folder, '.env'), 'utf8')
  t.equal(statSync(join(folder, '.env')).mode & 0o777, 0o600)
  const secrets = ['API_SECRET', 'REALTIME_HMAC_SECRET', 'REALTIME_API_KEY'].map(
    (name) => new RegExp(`^${name}=([0-9a-f]{64})$`, 'm').exec(settings)?.[1]
  )
  t.equal(new Set(secrets).size, 3)
  t.notOk(secrets.includes(undefined))
  t.match(stdout, `with the password ${/^PASSWORD=(.*)$/m.exec(settings)?.[1]}`)
  t.match(readFileSync(join(folder, '.gitignore'), 'utf8'), /^\.env$/m)
  t.match(JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')), {
    name: 'my-orders',
    dependencies: { 'gatehouse-server': `^${packageFile.version}` }
  })

  const again = await inProcess(['init', folder, '--python', '--yes'])
  t.equal(again.code, 1)
  t.match(again.stderr, `${join(folder, '.env')} exists already\n`)
  t.match(again.stderr, /Nothing was written\.\n$/)
  t.equal(readFileSync(join(folder, '.env'), 'utf8'), settings)
  t.notOk(filesIn(folder).includes('backend.py'))
})

t.test('gatehouse init --python writes a backend in Python, which needs no package for backends', async (t) => {
  const folder = join(t.testdir(), 'orders')
  t.equal((await inProcess(['init', folder, '--python', '--yes'])).code, 0)

  t.ok(filesIn(folder).includes('backend.py'))
  const { scripts, dependencies } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  t.match(scripts.start, /gatehouse dev --env-file \.env -- python3 backend\.py$/)
  t.same(Object.keys(dependencies), ['gatehouse-client', 'gatehouse-server'])
})

t.test('gatehouse init asks nothing without a terminal', async (t) => {
  const { code, stderr } = await gatehouse(t, ['init'])
  t.equal(code, 2)
  t.match(stderr, 'gatehouse init: --yes is required without a terminal\n')
})

const devSettings = async (folder: string) => {
  const secret = 'b1c2d3e4'.repeat(8)
  const backendPort = String(await freePort())
  return {
    GATEWAY_PORT: String(await freePort()),
    RELAY_PORT: String(await freePort()),
    BACKEND_URL: `http://127.0.0.1:${backendPort}`,
    PORT: backendPort,
    AUDIT_LOG_FILE: join(folder, 'audit.jsonl'),
    API_SECRET: 'c3d4e5f6'.repeat(8),
    REALTIME_HMAC_SECRET: secret,
    REALTIME_API_KEY: secret
  }
}

const BACKEND = `
require('node:http').createServer((request, response) => {
  response.writeHead(404).end()
  if (request.url === '/end') process.exit(3)
}).listen(process.env.PORT, '127.0.0.1')`

t.test('gatehouse dev runs all three programs, and stops when one of them ends', async (t) => {
  const folder = t.testdir()
  const file = join(folder, 'backend.cjs')
  writeFileSync(file, BACKEND)
  const settings = await devSettings(folder)
  const env = { PATH: environment.path, ...settings }
  const dev = await startChild(t, process.execPath, [MAIN, 'dev', '--', process.execPath, file], env)
  await dev.waitForLine(`Running at http://localhost:${settings.GATEWAY_PORT}. Stop with Ctrl-C.`)
  t.match(dev.stdout, /^relay {3}│ .* listening at/m)
  t.equal((await fetch(`http://127.0.0.1:${settings.GATEWAY_PORT}/api/health`)).status, 200)
  await fetch(`${settings.BACKEND_URL}/end`).catch(() => undefined)

  t.same(await dev.exited, { code: 1, signal: null })
  t.match(dev.stderr, 'The backend ended with 3, so the others stop too.\n')
  t.match(dev.stdout, /^gateway │ .* stopped$/m)
  t.match(dev.stdout, /^relay {3}│ .* stopped$/m)
})

t.test('gatehouse dev explains why it cannot start', async (t) => {
  const settings = await devSettings(t.testdir())
  const busy = await inProcess(['dev'], { ...settings, RELAY_PORT: settings.GATEWAY_PORT })
  t.match(busy, { code: 1, stderr: 'GATEWAY_PORT and RELAY_PORT must differ' })
  const wrong = await inProcess(['dev', 'node'], settings)
  t.match(wrong, { code: 2, stderr: 'gatehouse dev: unexpected argument: node\n' })
  const missing = await gatehouse(t, ['dev', '--', '/none/backend'], settings)
  t.match(missing, { code: 1, stderr: /The backend cannot be started \(spawn \/none\/backend ENOENT\)/ })
})
