import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { chown, mkdir, mkdtemp, readFile, realpath, rename, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { Client } from 'pg'
import { t as root } from 'tap'
import { ROOT } from '../../scripts/lib/root.js'
import { postgresql, programOf, thisMachine } from '../../scripts/lib/services.js'
import { errorCode } from '../../src/shared/error-code.js'
import { type Child, startChild, type Teardown } from './child.js'
import { environment } from './environment.js'
import { LOOPBACK, onFreePort } from './free-port.js'

/** An empty PostgreSQL that belongs to one test, which may kill and pause it. */
export interface TestPostgres {
  /** The address with the name and password of a superuser. */
  readonly url: string
  readonly port: number
  /** Stops the server without a shutdown: connections break. Resolves when it has ended. */
  kill(): Promise<void>
  /** Starts the server again on the same port, with all committed data. */
  restart(): Promise<void>
  /** Suspends the server: it accepts connections but does not respond. Needs Linux. */
  pause(): Promise<void>
  resume(): void
}

export interface TestPostgresOptions {
  /** `trust` accepts every user without a password; `scram-sha-256` requires the password in `url`. */
  readonly auth?: 'trust' | 'scram-sha-256'
}

const USER = 'test_owner'
const PASSWORD = 'throw-away'
const READY_WITHIN_MS = 300_000

/** Optimised for a fast start. Committed data survives the processes, but not a crash of the machine. */
const SETTINGS = {
  listen_addresses: LOOPBACK,
  unix_socket_directories: '',
  fsync: 'off',
  full_page_writes: 'off',
  wal_level: 'minimal',
  max_wal_senders: '0',
  max_logical_replication_workers: '0',
  autovacuum: 'off',
  jit: 'off',
  shared_buffers: '4MB',
  max_connections: '20',
  // In the data folder, so that nothing remains after the process is killed.
  dynamic_shared_memory_type: 'mmap'
}

export const startPostgres = async (
  t: Teardown,
  { auth = 'trust' }: TestPostgresOptions = {}
): Promise<TestPostgres> => {
  const folder = await ownersFolder()
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  const data = join(folder, 'data')
  const hbaFile = join(folder, 'hba.conf')
  await writeFile(hbaFile, `host all all ${LOOPBACK}/32 ${auth}\n`)
  await copy(await template(t), data)

  let paused: readonly number[] = []
  const resume = (): void => {
    // The process that accepts connections last: it would remove those that have ended, which cannot be signalled then.
    for (const pid of paused.toReversed()) process.kill(pid, 'SIGCONT')
    paused = []
  }

  /** PostgreSQL's immediate shutdown, which also ends its processes and frees its shared memory. */
  const stop = async (server: Child): Promise<void> => {
    // A paused process does not handle the signal.
    resume()
    server.signal('SIGQUIT')
    await server.exited
  }

  const start = async (port: number): Promise<Child> => {
    const settings = Object.entries({ ...SETTINGS, port, hba_file: hbaFile })
    const args = settings.flatMap(([name, value]) => ['-c', `${name}=${value}`])
    const child = await startAsOwner(t, (await programs()).postgres, ['-D', data, ...args])
    // Before the child's teardown, whose SIGKILL would leave shared memory behind.
    t.teardown(() => stop(child))
    await child.waitForLine('database system is ready to accept connections', READY_WITHIN_MS)
    return child
  }

  const { port, started } = await onFreePort(start)
  let server = started

  return {
    url: `postgres://${USER}:${PASSWORD}@${LOOPBACK}:${port}/postgres`,
    port,
    kill: () => stop(server),
    async restart() {
      await stop(server)
      server = await start(port)
    },
    async pause() {
      // The process that accepts connections first, so that it starts no further processes.
      server.signal('SIGSTOP')
      paused = [server.pid, ...(await childrenOf(server.pid))]
      for (const pid of paused) process.kill(pid, 'SIGSTOP')
    },
    resume
  }
}

let shared: Promise<TestPostgres> | undefined
let databases = 0

/**
 * The address of an empty database on a server that the tests of a file share, because starting a server takes longer than
 * creating a database.
 */
export const newDatabase = async (): Promise<string> => {
  if (shared === undefined) {
    shared = startPostgres(root)
    root.teardown(() => {
      shared = undefined
    })
  }
  const { url } = await shared
  const name = `test_${++databases}`
  const client = new Client(url)
  await client.connect()
  await client.query(`CREATE DATABASE ${name}`)
  await client.end()
  return url.replace(/[^/]+$/, name)
}

const childrenOf = async (pid: number): Promise<number[]> =>
  (await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8')).split(' ').filter(Boolean).map(Number)

interface Programs {
  readonly postgres: string
  readonly initdb: string
}

const programs = async (): Promise<Programs> => {
  const found = programOf(postgresql, thisMachine({ PATH: environment.path }))
  if (!found) throw new Error('this test starts a PostgreSQL of its own, and there is no program postgres here')
  // The program on the PATH may be a link; its target is in one folder with the other programs of its version.
  const postgres = await realpath(found)
  return { postgres, initdb: join(dirname(postgres), 'initdb') }
}

let made: Promise<string> | undefined

/** An empty data folder for all test files. Copying it takes a tenth of the time of creating one. */
const template = (t: Teardown): Promise<string> => {
  made ??= savedTemplate(t)
  return made
}

const INITDB = [
  ...['--no-sync', '--no-instructions', '--username', USER, '--auth', 'scram-sha-256'],
  ...['--encoding', 'UTF8', '--locale', 'C', '--wal-segsize', '1']
]

/** Kept for later runs, until PostgreSQL is replaced. */
const savedTemplate = async (t: Teardown): Promise<string> => {
  const { initdb } = await programs()
  const { ino, mtimeMs } = await stat(initdb)
  const owner = await unprivilegedUser()
  const key = JSON.stringify([initdb, ino, mtimeMs, owner, INITDB, PASSWORD])
  const hash = createHash('sha256').update(key).digest('hex').slice(0, 16)
  const saved = join(ROOT, 'node_modules/.cache', `postgres-${hash}`)
  if (existsSync(saved)) return saved

  const folder = await ownersFolder()
  const data = join(folder, 'data')
  const passwordFile = join(folder, 'password')
  await writeFile(passwordFile, PASSWORD)
  await run(t, initdb, [...INITDB, '--pwfile', passwordFile, data])
  await mkdir(dirname(saved), { recursive: true })
  const copied = await mkdtemp(`${saved}-`)
  try {
    await copy(data, join(copied, 'data'))
    // Neither initdb nor cp has written to the disk, and later runs rely on a complete folder.
    await promisify(execFile)('sync', ['-f', copied])
    await rename(join(copied, 'data'), saved)
  } catch (error) {
    // Another process was faster. The code depends on the file system.
    if (!['ENOTEMPTY', 'EEXIST'].includes(errorCode(error) ?? '')) throw error
  } finally {
    for (const each of [folder, copied]) await rm(each, { recursive: true })
  }
  return saved
}

/** Copies a folder with its owner. Not as the owner, who may have no access to the folder of the project. */
const copy = async (from: string, to: string): Promise<void> => {
  await promisify(execFile)('cp', ['-pR', from, to])
}

const run = async (t: Teardown, command: string, args: readonly string[]): Promise<void> => {
  const child = await startAsOwner(t, command, args)
  const { code, signal } = await child.exited
  if (code !== 0) throw new Error(`${command} ended with ${code ?? signal}:\n${child.stdout}${child.stderr}`)
}

/** PostgreSQL does not run as root: another user then owns its folder and its processes. */
const startAsOwner = async (t: Teardown, command: string, args: readonly string[]): Promise<Child> => {
  const env = { PATH: environment.path, TZ: 'UTC' }
  const owner = await unprivilegedUser()
  if (owner === null) return startChild(t, command, args, env)

  // setpriv executes the command, so that the pid is the command's. The user may have no access to the current folder.
  const asOwner = [`--reuid=${owner.uid}`, `--regid=${owner.gid}`, '--clear-groups', '--', command, ...args]
  return startChild(t, '/bin/sh', ['-c', 'cd / && exec setpriv "$@"', 'setpriv', ...asOwner], env)
}

const ownersFolder = async (): Promise<string> => {
  const folder = await mkdtemp(join(tmpdir(), 'gatehouse-postgres-'))
  const owner = await unprivilegedUser()
  if (owner !== null) await chown(folder, owner.uid, owner.gid)
  return folder
}

/** The user for a run as root: the one of Debian's package, or `nobody`. */
const unprivilegedUser = async (): Promise<{ uid: number; gid: number } | null> => {
  if (process.getuid?.() !== 0) return null
  const users = (await readFile('/etc/passwd', 'utf8')).split('\n').map((line) => line.split(':'))
  const entry = ['postgres', 'nobody'].map((name) => users.find((user) => user[0] === name)).find(Boolean)
  if (!entry) throw new Error('PostgreSQL does not run as root, and there is no user postgres and no user nobody')
  return { uid: Number(entry[2]), gid: Number(entry[3]) }
}
