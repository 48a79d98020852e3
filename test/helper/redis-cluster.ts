import { Redis } from 'ioredis'
import type { Teardown } from './child.js'
import { eventually } from './eventually.js'
import { freePort, LOOPBACK } from './free-port.js'
import { startRedis, type TestRedis } from './redis.js'

const SLOTS = 16_384
const SERVERS = 3

export interface TestCluster {
  readonly url: string
  readonly servers: readonly TestRedis[]
  /** A connection to each server, in the same order. It does not follow MOVED redirects. */
  readonly redis: readonly Redis[]
}

/** A Redis Cluster of three servers, each with a third of the slots. */
export const startRedisCluster = async (t: Teardown): Promise<TestCluster> => {
  const servers = await Promise.all(
    Array.from({ length: SERVERS }, async (_, index) => {
      const busPort = await freePort()
      const args = ['--cluster-enabled', 'yes', '--cluster-config-file', `nodes-${index}.conf`]
      const server = await startRedis(t, {
        args: [...args, '--cluster-port', `${busPort}`, '--cluster-node-timeout', '2000']
      })
      return { ...server, busPort }
    })
  )
  const redis = servers.map(({ port }) => new Redis(port, LOOPBACK))
  // Tests kill servers.
  for (const each of redis) each.on('error', () => undefined)
  t.teardown(() => {
    for (const each of redis) each.disconnect()
  })
  for (const [index, each] of redis.entries()) {
    const [from, to] = [index, index + 1].map((part) => Math.floor((part * SLOTS) / SERVERS)) as [number, number]
    await each.call('CLUSTER', 'ADDSLOTSRANGE', from, to - 1)
    await each.call('CLUSTER', 'SET-CONFIG-EPOCH', index + 1)
  }
  for (const { port, busPort } of servers.slice(1)) await redis[0]?.call('CLUSTER', 'MEET', LOOPBACK, port, busPort)
  await eventually(async () => {
    const states = await Promise.all(redis.map((each) => each.call('CLUSTER', 'INFO')))
    return states.every((state) => String(state).includes('cluster_state:ok'))
  })
  return { url: servers.map(({ url }) => url).join(','), servers, redis }
}
