import t, { type Test } from 'tap'
import { EngineError } from '../../../src/relay/core/engine.js'
import { PLAIN_PUBLICATION } from '../../../src/relay/core/publish/publish.js'
import { eventually } from '../../helper/eventually.js'
import { freePort } from '../../helper/free-port.js'
import { startSentinels, type TestSentinels } from '../../helper/redis-sentinel.js'
import { ALL, Delivered, engineContract, WITH_HISTORY } from '../../relay/engine/contract.js'
import { advanceTime, redisEngine } from '../../relay/engine/redis-fixture.js'

const listening = async (t: Test, url: string) => {
  const engine = redisEngine(t, url)
  const delivered = new Delivered()
  await engine.broker.start(delivered)
  await engine.broker.subscribe('ns:1')
  const publish = async (data: string) => engine.broker.publish('ns:1', { ...PLAIN_PUBLICATION, data }, WITH_HISTORY)
  return { ...engine, delivered, publish }
}

/** Waits until the replica has all writes of the master. */
const replicated = async ({ redis: [master, replica] }: TestSentinels): Promise<void> => {
  const offset = async (redis: typeof master): Promise<string | undefined> =>
    /master_repl_offset:(\d+)/.exec(await redis.info('replication'))?.[1]
  await eventually(async () => (await offset(master)) === (await offset(replica)))
}

const sentinels = await startSentinels(t, { downAfterMs: 60_000 })

engineContract('the Redis engine with Sentinel', async (t) => {
  const engine = redisEngine(t, sentinels.url)
  const [master] = sentinels.servers
  return { ...engine, advance: (ms) => advanceTime(master.url, engine.prefix, ms) }
})

t.test('a master that dies is replaced by its replica, and the epoch stays if nothing is lost', async (t) => {
  const sentinels = await startSentinels(t)
  const { engine, delivered, publish, history, record } = await listening(t, sentinels.url)
  const before = await publish('1')
  await delivered.until(1)
  await replicated(sentinels)
  await sentinels.servers[0].kill()
  await eventually(() => !engine.isReady)
  await t.rejects(publish('2'), EngineError)

  await eventually(() => engine.isReady)
  t.match(await publish('3'), { epoch: before.epoch, offset: before.offset + 1 })
  await eventually(() => delivered.publications.some(([, { data }]) => data === '3'))
  t.ok(delivered.missed.includes('ns:1'), 'the core compares its position with the history')
  t.same(
    (await history.read('ns:1', ALL, WITH_HISTORY)).publications.map(({ data }) => data),
    ['1', '3']
  )
  t.equal(record.lost, 1)
})

t.test('after planned failovers to and fro, the epoch stays or a new one begins at offset 1', async (t) => {
  const sentinels = await startSentinels(t, { serverArgs: ['--min-replicas-to-write', '1'] })
  const { engine, delivered, publish } = await listening(t, sentinels.url)
  let last = await publish('1')
  await delivered.until(1)
  // A master without replicas accepts no writes, so each publication shows that the other server has become a replica.
  for (const [index, data] of [
    [1, '2'],
    [0, '3']
  ] as const) {
    await sentinels.switchMaster()
    await eventually(async () => (await sentinels.masterPort()) === sentinels.servers[index].port)
    const next = await eventually(() => publish(data))
    // The old master may have accepted a write after the promotion.
    t.equal(next.offset, next.epoch === last.epoch ? last.offset + 1 : 1)
    await eventually(() => engine.isReady && delivered.publications.some(([, { data: each }]) => each === data))
    last = next
  }
})

t.test('a promoted replica that lacks acknowledged writes begins a new epoch', async (t) => {
  const sentinels = await startSentinels(t)
  const { engine, delivered, publish, record } = await listening(t, sentinels.url)
  await publish('1')
  await delivered.until(1)
  await replicated(sentinels)
  const [, replica] = sentinels.servers
  // The replica loses its connection to the master and cannot open another.
  replica.pause()
  await sentinels.redis[0].call('CLIENT', 'KILL', 'TYPE', 'replica')
  const lost = await publish('2')
  await delivered.until(2)
  await sentinels.servers[0].kill()
  replica.resume()
  await eventually(() => !engine.isReady)
  await eventually(() => engine.isReady)

  const after = await eventually(() => publish('3'))
  t.not(after.epoch, lost.epoch)
  t.equal(after.offset, 1)
  t.ok(
    record.lines.some((line) => line.startsWith('Redis connection restored') && line.includes('"areStreamsKept":false'))
  )
})

t.test('a relay leaves a replaced master that still accepts writes', async (t) => {
  const sentinels = await startSentinels(t)
  const { engine, publish } = await listening(t, sentinels.url)
  await publish('1')
  const [old, promoted] = sentinels.redis
  // The sentinels cannot turn the old master into a replica, as if they could not reach it.
  await old.call('ACL', 'SETUSER', 'default', '-replicaof', '-slaveof')
  await sentinels.switchMaster()
  await eventually(async () => (await sentinels.masterPort()) === sentinels.servers[1].port)
  for (const purpose of ['commands', 'subscriptions'])
    await eventually(async () => String(await promoted.call('CLIENT', 'LIST')).includes(`gatehouse-relay-${purpose}`))
  await eventually(() => engine.isReady)
  t.ok((await eventually(() => publish('2'))).offset > 0)
  t.match(await old.info('replication'), 'role:master')
})

t.test('a relay reaches the master through the sentinels that still respond', async (t) => {
  const sentinels = await startSentinels(t, { password: 'hunter2' })
  const url = sentinels.url.replace('//', '//:hunter2@')
  await sentinels.sentinels[0]?.kill()
  const { publish, record } = await listening(t, `${url}?sentinel_password=hunter2`)
  t.equal((await publish('1')).offset, 1)
  t.notMatch(record.lines.join(), /hunter2/)

  t.test('a wrong password of the sentinels ends the start with a clear error', async (t) => {
    const { broker } = redisEngine(t, `${url}?sentinel_password=wrong-one`)
    await t.rejects(broker.start(new Delivered()), { message: /^Redis at sentinel\/mymaster: .*WRONGPASS/ })
  })

  t.test('an unknown master ends the start with an error', async (t) => {
    const { broker } = redisEngine(t, `${url.replace('mymaster', 'another')}?sentinel_password=hunter2`, {
      startTimeoutMs: 500
    })
    await t.rejects(broker.start(new Delivered()), { message: /^Redis at sentinel\/another: / })
  })
})

t.test('sentinels that cannot be reached end the start with an error', async (t) => {
  const { broker } = redisEngine(t, `redis+sentinel://127.0.0.1:${await freePort()}/mymaster`, { startTimeoutMs: 500 })
  await t.rejects(broker.start(new Delivered()), {
    message: /^Redis at sentinel\/mymaster: All sentinels are unreachable/
  })
})
