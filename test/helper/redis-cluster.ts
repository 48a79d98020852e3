import { Redis } from 'ioredis'
import type { Teardown } from './child.js'
import { eventually } from './eventually.js'
import { freePort, LOOPBACK } from './free-port.js'
import { startRedis, type TestRedis } from './redis.js'

const SLOTS = 16_384
const SERVERS = 3

const firstSlotOf = (index: number): number => Math.floor((index * SLOTS) / SERVERS)

export interface TestCluster {
  readonly url: string
  readonly servers: readonly [TestRedis, TestRedis, TestRedis]
  /** A connection to each server, in the same order. It does not follow MOVED redirects. */
  readonly redis: readonly [Redis, Redis, Redis]
}

/** A Redis Cluster of three servers, each with a third of the slots. */
export const startRedisCluster = async (t: Teardown): Promise<TestCluster> => {
  const servers = await Promise.all([startServer(t, 0), startServer(t, 1), startServer(t, 2)])
  const redis = [connectionTo(servers[0]), connectionTo(servers[1]), connectionTo(servers[2])] as const
  t.teardown(() => {
    for (const each of redis) each.disconnect()
  })
  for (const [index, each] of redis.entries()) {
    await each.call('CLUSTER', 'ADDSLOTSRANGE', firstSlotOf(index), firstSlotOf(index + 1) - 1)
    await each.call('CLUSTER', 'SET-CONFIG-EPOCH', index + 1)
  }
  for (const { port, busPort } of servers.slice(1)) await redis[0].call('CLUSTER', 'MEET', LOOPBACK, port, busPort)
  await eventually(async () => {
    const states = await Promise.all(redis.map((each) => each.call('CLUSTER', 'INFO')))
    return states.every((state) => String(state).includes('cluster_state:ok'))
  })
  return { url: servers.map(({ url }) => url).join(','), servers, redis }
}

const startServer = async (t: Teardown, index: number): Promise<TestRedis & { readonly busPort: number }> => {
  const busPort = await freePort()
  const args = ['--cluster-enabled', 'yes', '--cluster-config-file', `nodes-${index}.conf`]
  const server = await startRedis(t, {
    args: [...args, '--cluster-port', `${busPort}`, '--cluster-node-timeout', '2000']
  })
  return { ...server, busPort }
}

const connectionTo = ({ port }: TestRedis): Redis => {
  const redis = new Redis(port, LOOPBACK)
  // Tests kill servers.
  redis.on('error', () => undefined)
  return redis
}
