import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { type Child, startChild, type Teardown } from './child.js'
import { environment } from './environment.js'
import { eventually } from './eventually.js'
import { LOOPBACK, onFreePort } from './free-port.js'
import { redisProgram, startRedis, type TestRedis } from './redis.js'

const SENTINELS = 3
const QUORUM = 2
export const MASTER_NAME = 'mymaster'

export interface TestSentinel {
  readonly port: number
  kill(): Promise<void>
}

export interface TestSentinels {
  /** The address of the sentinels, without credentials. */
  readonly url: string
  /** The first is the master at the start; the other replicates it. */
  readonly servers: readonly [TestRedis, TestRedis]
  /** Connections to the servers, in the same order. */
  readonly redis: readonly [Redis, Redis]
  readonly sentinels: readonly TestSentinel[]
  /** The port of the master, according to the sentinels that respond. Null while they disagree. */
  masterPort(): Promise<number | null>
  /** Starts a failover of a master that works, as an operator does before maintenance. */
  switchMaster(): Promise<void>
}

export interface TestSentinelOptions {
  /** A master that is silent for this long counts as down. Longer than this machine may be busy. */
  readonly downAfterMs?: number
  readonly serverArgs?: readonly string[]
  /** The password of servers and sentinels. */
  readonly password?: string
}

/** A master, a replica, and three sentinels that watch them. */
export const startSentinels = async (
  t: Teardown,
  { downAfterMs = 2_000, serverArgs = [], password = '' }: TestSentinelOptions = {}
): Promise<TestSentinels> => {
  const passwordArgs = password === '' ? [] : ['--requirepass', password, '--masterauth', password]
  // The default delay before a replication without a disk file is 5 s.
  const args = ['--repl-diskless-sync-delay', '0', ...passwordArgs, ...serverArgs]
  const servers = [await startRedis(t, { args }), await startRedis(t, { args })] as const
  const connect = (port: number): Redis => {
    const redis = new Redis({ port, host: LOOPBACK, retryStrategy: () => 50, ...(password === '' ? {} : { password }) })
    // Tests kill servers.
    redis.on('error', () => undefined)
    t.teardown(() => redis.disconnect())
    return redis
  }
  const [master, replica] = [connect(servers[0].port), connect(servers[1].port)]
  await replica.replicaof(LOOPBACK, servers[0].port)
  await eventually(async () => (await replica.info('replication')).includes('master_link_status:up'))

  const sentinels: (TestSentinel & { readonly redis: Redis })[] = []
  for (let index = 0; index < SENTINELS; index++) {
    const sentinel = await startSentinel(t, servers[0].port, downAfterMs, password)
    sentinels.push({ ...sentinel, redis: connect(sentinel.port) })
  }
  await eventually(async () => {
    for (const { redis } of sentinels) {
      const state = await masterState(redis)
      if (state['num-other-sentinels'] !== String(SENTINELS - 1) || state['num-slaves'] !== '1') return false
    }
    return true
  })
  const masterPort = async (): Promise<number | null> => {
    const live = sentinels.filter(({ redis }) => redis.status === 'ready')
    const ports = await Promise.all(live.map(async ({ redis }) => Number((await masterState(redis)).port)))
    return new Set(ports).size === 1 ? (ports[0] ?? null) : null
  }
  return {
    url: `redis+sentinel://${sentinels.map(({ port }) => `${LOOPBACK}:${port}`).join(',')}/${MASTER_NAME}`,
    servers,
    redis: [master, replica],
    sentinels,
    masterPort,
    switchMaster: async () => {
      // Sentinel rejects the command until it has chosen a replica that it may promote.
      await eventually(() => sentinels[0]?.redis.call('SENTINEL', 'FAILOVER', MASTER_NAME))
    }
  }
}

const startSentinel = async (
  t: Teardown,
  masterPort: number,
  downAfterMs: number,
  password: string
): Promise<TestSentinel> => {
  const folder = await mkdtemp(join(tmpdir(), 'gatehouse-sentinel-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  const { port, started } = await onFreePort(async (port): Promise<Child> => {
    // A sentinel writes its state into its configuration file.
    const file = join(folder, 'sentinel.conf')
    const lines = [
      `port ${port}`,
      `bind ${LOOPBACK}`,
      `dir ${folder}`,
      `sentinel monitor ${MASTER_NAME} ${LOOPBACK} ${masterPort} ${QUORUM}`,
      `sentinel down-after-milliseconds ${MASTER_NAME} ${downAfterMs}`,
      `sentinel failover-timeout ${MASTER_NAME} 5000`,
      ...(password === ''
        ? []
        : [
            `sentinel auth-pass ${MASTER_NAME} ${password}`,
            `requirepass ${password}`,
            `sentinel sentinel-pass ${password}`
          ])
    ]
    await writeFile(file, `${lines.join('\n')}\n`)
    const child = await startChild(t, redisProgram(), [file, '--sentinel'], { PATH: environment.path })
    await child.waitForLine('+monitor')
    return child
  })
  return {
    port,
    kill: async () => {
      started.signal('SIGKILL')
      await started.exited
    }
  }
}

const masterState = async (sentinel: Redis): Promise<Readonly<Record<string, string>>> => {
  const reply = await sentinel.call('SENTINEL', 'MASTER', MASTER_NAME)
  const fields = (Array.isArray(reply) ? reply : []).map(String)
  return Object.fromEntries(fields.flatMap((name, at) => (at % 2 === 0 ? [[name, fields[at + 1] ?? '']] : [])))
}
