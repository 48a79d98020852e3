import { rmSync } from 'node:fs'
import { chown, mkdtemp, readFile, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { postgresql, programOf, thisMachine } from '../../scripts/lib/services.js'
import { type Child, startChild, type Teardown } from './child.js'
import { environment } from './environment.js'
import { LOOPBACK, onFreePort } from './free-port.js'

/** A PostgreSQL of the test's own, empty, that it may treat as badly as it likes. */
export interface TestPostgres {
  /** With a superuser's name and password. */
  readonly url: string
  readonly port: number
  /** At once and without a proper end: connections break. Resolves when it is gone. */
  kill(): Promise<void>
  /** Back on the same port, with all that was committed. */
  restart(): Promise<void>
  /** It keeps its connections, lets new ones come and answers nobody, as a machine that hangs. Needs Linux. */
  pause(): Promise<void>
  resume(): void
}

export interface TestPostgresOptions {
  /** `trust` believes every name without a password; `scram-sha-256` wants the one in `url`. */
  readonly auth?: 'trust' | 'scram-sha-256'
}

const USER = 'test_owner'
const PASSWORD = 'throw-away'
const READY_WITHIN_MS = 60_000

/** It lives for seconds, so its start is what counts. What was committed outlives its processes, not the machine. */
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
  // in the data folder, where nothing outlives a process that was killed
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
  await run(t, 'cp', ['-pR', await template(t), data])

  let paused: readonly number[] = []
  const resume = (): void => {
    for (const pid of paused) process.kill(pid, 'SIGCONT')
    paused = []
  }

  /** PostgreSQL's own way to end at once, which takes its processes and its shared memory along. */
  const stop = async (server: Child): Promise<void> => {
    // who is paused does not hear it
    resume()
    server.signal('SIGQUIT')
    await server.exited
  }

  const start = async (port: number): Promise<Child> => {
    const settings = Object.entries({ ...SETTINGS, port, hba_file: hbaFile })
    const args = settings.flatMap(([name, value]) => ['-c', `${name}=${value}`])
    const child = await startAsOwner(t, (await programs()).postgres, ['-D', data, ...args])
    // before a child's own teardown, whose SIGKILL would leave shared memory behind
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
      // first the one that takes connections: from then on there are no further processes
      server.signal('SIGSTOP')
      paused = [server.pid, ...(await childrenOf(server.pid))]
      for (const pid of paused) process.kill(pid, 'SIGSTOP')
    },
    resume
  }
}

/** For a test that only talks to PostgreSQL, and does not mind what else is in there. */
export const databaseUrl = async (t: Teardown): Promise<string> =>
  environment.databaseUrl ?? (await startPostgres(t)).url

const childrenOf = async (pid: number): Promise<number[]> =>
  (await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8')).split(' ').filter(Boolean).map(Number)

interface Programs {
  readonly postgres: string
  readonly initdb: string
}

const programs = async (): Promise<Programs> => {
  const found = programOf(postgresql, thisMachine({ PATH: environment.path }))
  if (!found) throw new Error('this test starts a PostgreSQL of its own, and there is no program postgres here')
  // a link on the PATH may stand alone: the real ones are side by side, and of one version
  const postgres = await realpath(found)
  return { postgres, initdb: join(dirname(postgres), 'initdb') }
}

let made: Promise<string> | undefined

/** An empty data folder: making one takes a second or two, a copy a tenth of that. One for all tests of a file. */
const template = (t: Teardown): Promise<string> => {
  made ??= makeTemplate(t)
  return made
}

const makeTemplate = async (t: Teardown): Promise<string> => {
  const folder = await ownersFolder()
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  const data = join(folder, 'data')
  const passwordFile = join(folder, 'password')
  await writeFile(passwordFile, PASSWORD)
  const login = ['--username', USER, '--pwfile', passwordFile, '--auth', 'scram-sha-256']
  const content = ['--encoding', 'UTF8', '--locale', 'C', '--wal-segsize', '1']
  await run(t, (await programs()).initdb, ['--no-sync', '--no-instructions', ...login, ...content, data])
  return data
}

const run = async (t: Teardown, command: string, args: readonly string[]): Promise<void> => {
  const child = await startAsOwner(t, command, args)
  const { code, signal } = await child.exited
  if (code !== 0) throw new Error(`${command} ended with ${code ?? signal}:\n${child.stdout}${child.stderr}`)
}

/** PostgreSQL does not run as root: then somebody else owns its folder and its processes. */
const startAsOwner = async (t: Teardown, command: string, args: readonly string[]): Promise<Child> => {
  const env = { PATH: environment.path, TZ: 'UTC' }
  const primary = await stranger()
  if (primary === null) return startChild(t, command, args, env)

  // setpriv becomes the command, so that the pid is the command's; the folder we are in may be closed to its owner
  const asOwner = [`--reuid=${primary.uid}`, `--regid=${primary.gid}`, '--clear-groups', '--', command, ...args]
  return startChild(t, '/bin/sh', ['-c', 'cd / && exec setpriv "$@"', 'setpriv', ...asOwner], env)
}

const ownersFolder = async (): Promise<string> => {
  const folder = await mkdtemp(join(tmpdir(), 'gatehouse-postgres-'))
  const primary = await stranger()
  if (primary !== null) await chown(folder, primary.uid, primary.gid)
  return folder
}

/** Who it is where we are root: the user that Debian's package makes, or the one that is everywhere. */
const stranger = async (): Promise<{ uid: number; gid: number } | null> => {
  if (process.getuid?.() !== 0) return null
  const users = (await readFile('/etc/passwd', 'utf8')).split('\n').map((line) => line.split(':'))
  const entry = ['postgres', 'nobody'].map((name) => users.find((user) => user[0] === name)).find(Boolean)
  if (!entry) throw new Error('PostgreSQL does not run as root, and there is no user postgres and no user nobody')
  return { uid: Number(entry[2]), gid: Number(entry[3]) }
}
