import { Redis } from 'ioredis'
import t, { type Test } from 'tap'
import { PLAIN_PUBLICATION } from '../../../src/relay/core/publish/publish.js'
import { eventually } from '../../helper/eventually.js'
import { startRedis, type TestRedis } from '../../helper/redis.js'
import { startTcpProxy } from '../../helper/tcp-proxy.js'
import { ALL, Delivered, WITH_HISTORY } from './contract.js'
import { redisEngine } from './redis-fixture.js'

const PREFIX = 'restart'
// With the default, `everysec`, Redis postpones writes to the file while a slow disk is busy, and a crash loses them.
const APPEND_ONLY = ['--appendonly', 'yes', '--appendfsync', 'always']

/** A node that is subscribed to `ns:1`. */
const startNode = async (t: Test, port: number) => {
  const under = redisEngine(t, `redis://127.0.0.1:${port}`, { prefix: PREFIX })
  const delivered = new Delivered()
  await under.broker.start(delivered)
  await under.broker.subscribe('ns:1')
  const publish = async (data: string) => under.broker.publish('ns:1', { ...PLAIN_PUBLICATION, data }, WITH_HISTORY)
  const read = async () => under.history.read('ns:1', ALL, WITH_HISTORY)
  return { ...under, delivered, publish, read }
}

type Node = Awaited<ReturnType<typeof startNode>>

const raw = (t: Test, { url }: TestRedis): Redis => {
  const redis = new Redis(url)
  redis.on('error', () => undefined)
  t.teardown(() => redis.disconnect())
  return redis
}

/** Restarts the server after it has been stopped in some way, and waits until all nodes use it again. */
const restart = async (redis: TestRedis, nodes: readonly Node[], stop: () => Promise<void>): Promise<void> => {
  await stop()
  await eventually(() => nodes.every(({ engine }) => !engine.isReady))
  await redis.restart()
  await eventually(() => nodes.every(({ engine }) => engine.isReady))
}

const PERSISTENCE: [title: string, args: readonly string[], stop: (redis: TestRedis) => Promise<void>][] = [
  ['with an append-only file after a crash', APPEND_ONLY, (redis) => redis.kill()],
  ['with a dump at shutdown', [], (redis) => redis.shutdown()]
]
for (const [title, args, stop] of PERSISTENCE) {
  t.test(`the epoch stays when Redis is restarted ${title}`, async (t) => {
    const redis = await startRedis(t, { args })
    const nodes = [await startNode(t, redis.port), await startNode(t, redis.port)] as const
    const [one, other] = nodes
    await one.publish('1')
    const before = await other.publish('2')
    for (const { delivered } of nodes) await delivered.until(2)
    await restart(redis, nodes, () => stop(redis))

    t.match(await one.read(), { epoch: before.epoch, offset: 2, publications: [{ data: '1' }, { data: '2' }] })
    t.match(await one.publish('3'), { epoch: before.epoch, offset: 3 })
    for (const { delivered } of nodes) await delivered.until(3)
    await restart(redis, nodes, () => stop(redis))
    t.match(await other.publish('4'), { epoch: before.epoch, offset: 4 }, 'after the second restart too')
    for (const { record } of nodes) t.match(record.lines.join('\n'), '"areStreamsKept":true')
  })
}

t.test('a new epoch begins when Redis restarts with an older dump', async (t) => {
  const redis = await startRedis(t)
  const [one, other] = [await startNode(t, redis.port), await startNode(t, redis.port)]
  await one.publish('1')
  await raw(t, redis).save()
  const before = await one.publish('2')
  for (const { delivered } of [one, other]) await delivered.until(2)
  await restart(redis, [one, other], () => redis.kill())

  // The node that did not publish reconnects first.
  const { epoch, offset } = await other.publish('another')
  t.not(epoch, before.epoch)
  t.equal(offset, 1)
  t.match(await one.read(), { epoch, offset: 1 })
  t.match(one.record.lines.join('\n'), '"areStreamsKept":false')
})

t.test('a new epoch begins when Redis restarts with an older dump, even if nothing was published since', async (t) => {
  const redis = await startRedis(t)
  const node = await startNode(t, redis.port)
  const before = await node.publish('1')
  const client = raw(t, redis)
  await client.save()
  // A relay that is gone may have published since. The heartbeats in the ledger show that time has passed.
  const seen = async () => (await client.hgetall(`${PREFIX}!{all}ledger`)) as Record<string, string>
  const then = JSON.stringify(await seen())
  await eventually(async () => JSON.stringify(await seen()) !== then)
  await restart(redis, [node], () => redis.kill())

  t.not((await node.publish('2')).epoch, before.epoch)
})

t.test('a new epoch begins when Redis restarts empty', async (t) => {
  const redis = await startRedis(t)
  const node = await startNode(t, redis.port)
  const before = await node.publish('1')
  await restart(redis, [node], () => redis.kill())

  t.not((await node.publish('2')).epoch, before.epoch)
})

t.test('a new epoch begins when a stream lacks delivered publications', async (t) => {
  const redis = await startRedis(t, { args: APPEND_ONLY })
  const proxy = await startTcpProxy(t, redis.port)
  const node = await startNode(t, proxy.port)
  const before = await node.publish('1')
  await node.publish('2')
  await node.delivered.until(2)
  const restore = proxy.block('gatehouse-relay-')
  await redis.kill()
  await redis.restart()
  await raw(t, redis).hset(`${PREFIX}{:ns:1}position`, 'o', '1')
  restore()
  await eventually(() => node.engine.isReady)

  t.not((await node.publish('3')).epoch, before.epoch)
})

t.test('a relay that starts after a Redis restart waits for nodes that can confirm the data', async (t) => {
  const redis = await startRedis(t, { args: APPEND_ONLY })
  const proxy = await startTcpProxy(t, redis.port)
  const witness = await startNode(t, proxy.port)
  const before = await witness.publish('1')
  const restore = proxy.block('gatehouse-relay-')
  await redis.kill()
  await redis.restart()
  const starting = startNode(t, redis.port)
  const ledger = raw(t, redis)
  t.ok(await ledger.exists(`${PREFIX}!{all}ledger`))
  restore()
  const fresh = await starting

  t.match(await fresh.publish('2'), { epoch: before.epoch, offset: 2 })
})

t.test('a new epoch begins when a relay that wrote is missing after the restart', async (t) => {
  const redis = await startRedis(t, { args: APPEND_ONLY })
  const proxy = await startTcpProxy(t, redis.port)
  const [node, missing] = [await startNode(t, redis.port), await startNode(t, proxy.port)]
  const before = await missing.publish('1')
  const restore = proxy.block('gatehouse-relay-')
  await restart(redis, [node], () => redis.kill())
  const after = await node.publish('2')
  t.not(after.epoch, before.epoch)
  restore()
  await eventually(() => missing.engine.isReady)

  t.match(
    await missing.publish('3'),
    { epoch: after.epoch, offset: 2 },
    'it continues with the new epoch after reconnecting'
  )
})

t.test('a new epoch begins when no relay from before the restart is left', async (t) => {
  const redis = await startRedis(t, { args: APPEND_ONLY })
  const stopped = await startNode(t, redis.port)
  const before = await stopped.publish('1')
  stopped.close()
  await redis.kill()
  await redis.restart()
  const fresh = await startNode(t, redis.port)

  t.not((await fresh.publish('2')).epoch, before.epoch)
})

t.test('the epoch stays when only the connections were lost', async (t) => {
  const redis = await startRedis(t)
  const node = await startNode(t, redis.port)
  const before = await node.publish('1')
  await raw(t, redis).call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
  await eventually(() => node.record.lost > 0)
  await eventually(() => node.engine.isReady)

  t.match(await node.publish('2'), { epoch: before.epoch, offset: 2 })
})
