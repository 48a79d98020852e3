import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { programOnPath } from '../../scripts/lib/program-on-path.js'
import { type Child, startChild, type Teardown } from './child.js'
import { environment } from './environment.js'
import { LOOPBACK, onFreePort } from './free-port.js'

/** A Redis of the test's own, empty, that it may treat as badly as it likes. */
export interface TestRedis {
  readonly url: string
  readonly port: number
  /** Where it keeps its data, if it was started with arguments that make it do so. */
  readonly folder: string
  /** As a power cut would: no farewell to clients. Resolves when it is gone. */
  kill(): Promise<void>
  /** As at a planned restart: it saves everything first. Resolves when it is gone. */
  shutdown(): Promise<void>
  /** Back on the same port, with what it has saved: nothing, unless it was told to. */
  restart(): Promise<void>
  /** It keeps its connections and answers nobody, as a machine that hangs. */
  pause(): void
  resume(): void
}

export interface TestRedisOptions {
  /** Further arguments of redis-server, such as `['--requirepass', 'secret']`. */
  readonly args?: readonly string[]
}

export const startRedis = async (t: Teardown, { args = [] }: TestRedisOptions = {}): Promise<TestRedis> => {
  const program = programOnPath('redis-server', environment.path)
  if (!program) throw new Error('this test stops and starts a Redis of its own, and redis-server is not on the PATH')

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
  let redis = started

  const kill = async (): Promise<void> => {
    redis.signal('SIGKILL')
    await redis.exited
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
      await redis.exited
      socket.destroy()
    },
    async restart() {
      await kill()
      redis = await start(port)
    },
    pause: () => redis.signal('SIGSTOP'),
    resume: () => redis.signal('SIGCONT')
  }
}

/** For a test that only talks to Redis, and does not mind what else is in there. */
export const redisUrl = async (t: Teardown): Promise<string> => environment.redisUrl ?? (await startRedis(t)).url

/** Any answer will do: a Redis with a password refuses the word, and is there. */
const ping = async (port: number): Promise<void> => {
  const socket = connect(port, LOOPBACK)
  socket.write('PING\r\n')
  await once(socket, 'data')
  socket.destroy()
}
