import { Redis } from 'ioredis'
import t, { type Test } from 'tap'
import { PLAIN_PUBLICATION } from '../../../src/relay/core/publish/publish.js'
import { eventually } from '../../helper/eventually.js'
import { connectedClient } from '../../helper/raw-client.js'
import { startRedis, type TestRedis } from '../../helper/redis.js'
import { startRedisCluster } from '../../helper/redis-cluster.js'
import { type EdgeRelay, startRelay } from '../../helper/relay.js'
import { Delivered, WITH_HISTORY } from './contract.js'
import { redisEngine } from './redis-fixture.js'

const MB = 1_000_000
const DATA = JSON.stringify('x'.repeat(MB / 2))
const TARGETS = Array.from({ length: 400 }, (_, index) => ({ channel: `ns:${index}`, options: WITH_HISTORY }))

/** Bytes that Redis has received since its start. */
const received = async (redis: Redis): Promise<number> =>
  Number(/total_net_input_bytes:(\d+)/.exec(await redis.info('stats'))?.[1])

const broadcastTo = async (t: Test, url: string, servers: readonly Redis[]) => {
  const { broker, prefix } = redisEngine(t, url)
  await broker.start(new Delivered())
  const before = await Promise.all(servers.map(received))
  const results = await broker.publishToMany?.(TARGETS, { ...PLAIN_PUBLICATION, data: DATA })
  const bytes = (await Promise.all(servers.map(received))).map((after, index) => after - (before[index] ?? 0))
  const keys = (await Promise.all(servers.map((server) => server.keys(`${prefix}*`)))).flat()
  return { results, bytes, keys }
}

const connect = (t: Test, url: string): Redis => {
  const redis = new Redis(url)
  t.teardown(() => redis.disconnect())
  return redis
}

t.test('a broadcast of 0.5 MB to 400 channels is sent once to each Redis server', async (t) => {
  const servers: readonly TestRedis[] = [await startRedis(t), await startRedis(t)]
  const url = servers.map((server) => server.url).join()
  const { results, bytes, keys } = await broadcastTo(
    t,
    url,
    servers.map((server) => connect(t, server.url))
  )

  t.ok(results?.every((result) => 'offset' in result && result.offset === 1))
  for (const each of bytes) t.ok(each > MB / 2 && each < MB, `${each} bytes`)
  t.same(
    keys.filter((key) => key.includes('body:')),
    [],
    'the stored body is deleted'
  )
})

t.test('a broadcast of 0.5 MB to 400 channels is sent once to each server of a Redis Cluster', async (t) => {
  const cluster = await startRedisCluster(t)
  const { results, bytes, keys } = await broadcastTo(t, cluster.url, cluster.redis)

  t.ok(results?.every((result) => 'offset' in result && result.offset === 1))
  for (const each of bytes) t.ok(each > MB / 2 && each < MB, `${each} bytes`)
  t.same(
    keys.filter((key) => key.includes('body:')),
    []
  )
})

t.test(
  'a large broadcast over Redis reaches the subscribers of every channel, in the order of its request',
  async (t) => {
    const { url } = await startRedis(t)
    const edge: EdgeRelay = await startRelay(t, undefined, { RELAY_ENGINE: 'redis', REDIS_URL: url })
    const client = await connectedClient(t, edge.url)
    const channels = Array.from({ length: 100 }, (_, index) => `floor:${index}`)
    for (const [index, channel] of channels.entries()) await client.request({ id: index + 2, subscribe: { channel } })
    const large = 'x'.repeat(50_000)
    const commands = [
      { publish: { channel: 'floor:99', data: 1 } },
      { broadcast: { channels, data: large } },
      { publish: { channel: 'floor:99', data: 2 } }
    ]
    const { replies } = JSON.parse((await edge.api('batch', { commands })).body)
    t.equal(replies[1].broadcast.responses.length, 100)
    const received = new Map<string, unknown[]>()
    for (let count = 0; count < 102; count++) {
      const { push: { channel = '', pub } = {} } = await client.next()
      received.set(channel, [...(received.get(channel) ?? []), pub?.data])
    }

    t.same(received.get('floor:99'), [1, large, 2])
    for (const channel of channels.slice(0, -1)) t.same(received.get(channel), [large])
  }
)

t.test('a broadcast while Redis is down has an error for each channel', async (t) => {
  const redis = await startRedis(t)
  const { broker, engine } = redisEngine(t, redis.url)
  await broker.start(new Delivered())
  await redis.kill()
  await eventually(() => !engine.isReady)
  const results = await broker.publishToMany?.(TARGETS, { ...PLAIN_PUBLICATION, data: DATA })

  t.equal(results?.length, 400)
  t.ok(results?.every((result) => result instanceof Error))
})
