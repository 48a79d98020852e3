import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readlinkSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import packageFile from '../../../package.json' with { type: 'json' }
import { ROOT } from '../../../scripts/lib/root.js'
import { type Child, startChild } from '../../helper/child.js'
import { environment } from '../../helper/environment.js'
import { API_SECRET, browserHeaders } from '../../helper/gateway.js'
import { send } from '../../helper/http.js'
import { startBackend } from '../../helper/recording-backend.js'
import { scriptArguments } from '../../helper/script.js'
import { shipped } from './shipped.js'

const SCRIPT = join(ROOT, 'deploy/systemd/gatehouse-release')
const { version } = packageFile
const NEXT = '99.0.0'

const folder = mkdtempSync(join(tmpdir(), 'gatehouse-release-'))
t.teardown(() => rmSync(folder, { recursive: true, force: true }))
execFileSync(process.execPath, [...scriptArguments('scripts/release.ts'), '--out', folder], { cwd: ROOT })
const archive = join(folder, `gatehouse-${version}.tar.gz`)

/** An archive with the file by which the script recognizes a release. Unpacking a complete one takes two CPU seconds. */
const smallArchive = (of: string, content = 'a program'): string => {
  const parent = mkdtempSync(join(folder, 'small-'))
  mkdirSync(join(parent, `gatehouse-${of}/dist/src/gateway`), { recursive: true })
  writeFileSync(join(parent, `gatehouse-${of}/dist/src/gateway/main.js`), content)
  const file = join(parent, `gatehouse-${of}.tar.gz`)
  execFileSync('tar', ['--create', '--gzip', '--file', file, '--directory', parent, `gatehouse-${of}`])
  return file
}

/** The gateway of an installed release with another version. */
const nextArchive = (root: string): string => {
  const file = join(folder, `gatehouse-${NEXT}.tar.gz`)
  const parts = ['package.json', 'dist/package.json', 'dist/schemas', 'dist/src', 'node_modules']
  execFileSync('tar', [
    '--create',
    '--use-compress-program=gzip -1',
    `--transform=s,^${version}/,gatehouse-${NEXT}/,`,
    '--file',
    file,
    '--directory',
    join(root, 'releases'),
    ...parts.map((part) => join(version, part))
  ])
  return file
}

/** Runs the script for a folder in place of /opt/gatehouse. */
const release = (root: string, ...args: readonly string[]) => {
  const { status, stdout, stderr } = spawnSync(SCRIPT, args, {
    env: { PATH: environment.path, GATEHOUSE_ROOT: root },
    encoding: 'utf8'
  })
  return { status, output: (stdout + stderr).trim() }
}

/** Starts the gateway as its unit does, in the folder of the current release. */
const startGateway = async (t: Test, root: string, backendUrl: string): Promise<{ child: Child; url: string }> => {
  const [, flags = ''] =
    /^ExecStart=\/usr\/bin\/node (.*)$/m.exec(shipped('deploy/systemd/gatehouse-gateway@.service')) ?? []
  const child = await startChild(
    t,
    '/usr/bin/env',
    [`--chdir=${root}/current`, process.execPath, ...flags.split(' ')],
    {
      PATH: environment.path,
      NODE_ENV: 'production',
      GATEWAY_PORT: '0',
      BACKEND_URL: backendUrl,
      API_SECRET,
      AUDIT_LOG_FILE: '/dev/null',
      DATABASE_URL: 'postgres://127.0.0.1:1/none'
    }
  )
  const [, url = ''] = /(http:\/\/[\d.:]+)/.exec(await child.waitForLine('listening at')) ?? []
  return { child, url }
}

const releaseOf = ({ pid }: Child): string => readlinkSync(`/proc/${pid}/cwd`).split('/').at(-1) ?? ''

t.test('a running gateway survives an upgrade, and its successor runs the new release', async (t) => {
  const root = t.testdir()
  const backend = await startBackend(t)
  t.same(release(root, 'install', archive), {
    status: 0,
    output: `release ${version} is installed\nrelease ${version} is current. Restart the services.`
  })
  const old = await startGateway(t, root, backend.url)
  t.equal((await send(old.url, '/api/zones', { headers: browserHeaders() })).status, 200)

  t.equal(release(root, 'install', nextArchive(root)).output, `release ${NEXT} is installed`)
  t.equal(release(root, 'switch', NEXT).status, 0)
  t.equal(releaseOf(old.child), version)
  t.equal((await send(old.url, '/api/zones', { headers: browserHeaders() })).status, 200)
  t.equal((await send(old.url, '/api/health/database')).status, 503, 'pg and its worker thread are loaded only now')
  t.match(release(root, 'remove', version), { status: 1, output: `used by process ${old.child.pid}` })

  old.child.signal('SIGTERM')
  t.same(await old.child.exited, { code: 0, signal: null })
  const next = await startGateway(t, root, backend.url)
  t.equal(releaseOf(next.child), NEXT)
  t.equal((await send(next.url, '/api/zones', { headers: browserHeaders() })).status, 200)
  t.equal(release(root, 'rollback').output, `release ${version} is current. Restart the services.`)
})

t.test('gatehouse-release lists, switches back and forth, and removes releases', async (t) => {
  const root = t.testdir()
  t.match(release(root, 'rollback'), { status: 1, output: 'no previous release' })
  for (const file of [smallArchive(version), smallArchive(NEXT)]) t.equal(release(root, 'install', file).status, 0)
  t.equal(release(root, 'list').output, `${version} (current)\n${NEXT}`)
  t.equal(release(root, 'switch', NEXT).status, 0)
  t.equal(release(root, 'list').output, `${version} (previous)\n${NEXT} (current)`)
  for (const current of [version, NEXT]) {
    t.equal(release(root, 'rollback').status, 0)
    t.equal(readlinkSync(join(root, 'current')), `releases/${current}`)
  }
  t.match(release(root, 'remove', NEXT), { status: 1, output: 'is current' })
  t.equal(release(root, 'remove', version).status, 0)
  t.equal(release(root, 'list').output, `${NEXT} (current)`)
  t.match(release(root, 'rollback'), { status: 1, output: 'no previous release' })
})

t.test('gatehouse-release changes nothing after a wrong argument', async (t) => {
  const root = t.testdir({ 'broken.tar.gz': 'no archive' })
  const good = smallArchive(version)
  t.equal(release(root, 'install', good).status, 0)
  t.match(release(root, 'install', good), { status: 0, output: 'is installed already' })
  for (const args of [
    ['install', join(root, 'broken.tar.gz')],
    ['install', join(root, 'missing.tar.gz')],
    ['switch', '1.0.0'],
    ['switch', '../..'],
    ['remove', '.'],
    ['remove', '1.0.0']
  ])
    t.equal(release(root, ...args).status, 1, args.join(' '))
  for (const args of [[], ['install'], ['upgrade'], ['list', 'x']])
    t.match(release(root, ...args), { status: 2, output: 'Usage: ' }, args.join(' '))
  t.same(readdirSync(join(root, 'releases')), [version])
})

t.test('another archive of an installed version is rejected', async (t) => {
  const root = t.testdir()
  t.equal(release(root, 'install', smallArchive(version)).status, 0)
  t.match(release(root, 'install', smallArchive(version, 'another program')), { status: 1, output: 'another archive' })
})

t.test('the release archive contains no sources, secrets, tests, development packages or demo', async (t) => {
  const files = execFileSync('tar', ['--list', '--gzip', '--file', archive], { encoding: 'utf8', maxBuffer: 2 ** 26 })
    .trim()
    .split('\n')
    .map((file) => file.slice(`gatehouse-${version}/`.length))
    // `gatehouse init` copies sources of the examples.
    .filter((file) => !file.startsWith('examples/'))
  t.same(
    files.filter((file) => /(?<!\.d)\.ts$|\.map$|\.vue$|^test\/|compose\/secrets|^dist\/(?:demo|web)\//.test(file)),
    []
  )
  t.notOk(files.some((file) => file.startsWith('node_modules/typescript/')))
  for (const file of ['LICENSE', 'deploy/systemd/gatehouse-release', 'dist/src/relay/main.js', 'docs/README.md'])
    t.ok(files.includes(file), file)
})
