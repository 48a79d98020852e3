import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { programOnPath } from '../../scripts/lib/program-on-path.js'
import { redis } from '../../scripts/lib/services.js'
import { type Child, startChild, type Teardown } from './child.js'
import { environment } from './environment.js'
import { LOOPBACK, onFreePort } from './free-port.js'

/** An empty Redis that belongs to one test, which may kill and pause it. */
export interface TestRedis {
  readonly url: string
  readonly port: number
  /** The data folder, used if the arguments enable persistence. */
  readonly folder: string
  /** Kills the server, as a power failure would. Resolves when it has ended. */
  kill(): Promise<void>
  /** Saves all data and shuts down. Resolves when the server has ended. */
  shutdown(): Promise<void>
  /** Starts the server again on the same port, with the data that it has saved. */
  restart(): Promise<void>
  /** Suspends the server: connections stay open, but it does not respond. */
  pause(): void
  resume(): void
}

export interface TestRedisOptions {
  /** Further arguments of redis-server, such as `['--requirepass', 'secret']`. */
  readonly args?: readonly string[]
}

const PROGRAMS = environment.redisProgram === undefined ? redis.programs : [environment.redisProgram]

/** The path of `redis-server`; of `valkey-server` with `npm test -- --valkey` or on a machine that has only Valkey. */
export const redisProgram = (): string => {
  const [program] = PROGRAMS.flatMap((name) => programOnPath(name, environment.path) ?? [])
  if (program === undefined) throw new Error(`this test needs ${PROGRAMS.join(' or ')}, which is not on the PATH`)
  return program
}

export const startRedis = async (t: Teardown, { args = [] }: TestRedisOptions = {}): Promise<TestRedis> => {
  const program = redisProgram()
  const folder = await mkdtemp(join(tmpdir(), 'gatehouse-redis-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))

  const start = async (port: number): Promise<Child> => {
    const own = ['--port', `${port}`, '--bind', LOOPBACK, '--dir', folder, '--save', '', '--appendonly', 'no']
    const child = await startChild(t, program, [...own, ...args], { PATH: environment.path })
    await child.waitForLine('Ready to accept connections')
    await ping(port)
    return child
  }

  const { port, started } = await onFreePort(start)
  let server = started

  const kill = async (): Promise<void> => {
    server.signal('SIGKILL')
    await server.exited
  }

  return {
    url: `redis://${LOOPBACK}:${port}`,
    port,
    folder,
    kill,
    async shutdown() {
      const socket = connect(port, LOOPBACK)
      socket.on('error', () => undefined)
      socket.write('SHUTDOWN SAVE\r\n')
      await server.exited
      socket.destroy()
    },
    async restart() {
      await kill()
      server = await start(port)
    },
    pause: () => server.signal('SIGSTOP'),
    resume: () => server.signal('SIGCONT')
  }
}

/** A Redis for tests that only connect to it and do not depend on its contents. */
export const redisUrl = async (t: Teardown): Promise<string> => environment.redisUrl ?? (await startRedis(t)).url

/** Waits for any response, because a Redis with a password rejects the command. */
const ping = async (port: number): Promise<void> => {
  const socket = connect(port, LOOPBACK)
  socket.write('PING\r\n')
  await once(socket, 'data')
  socket.destroy()
}
