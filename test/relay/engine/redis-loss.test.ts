import { once } from 'node:events'
import { createServer } from 'node:net'
import { Redis } from 'ioredis'
import t, { type Test } from 'tap'
import { EngineError } from '../../../src/relay/core/engine.js'
import { PLAIN_PUBLICATION } from '../../../src/relay/core/publish/publish.js'
import { portOf } from '../../helper/address.js'
import { eventually } from '../../helper/eventually.js'
import { startRedis, type TestRedis } from '../../helper/redis.js'
import { required } from '../../helper/required.js'
import { startTcpProxy } from '../../helper/tcp-proxy.js'
import { ALL, Delivered, PLAIN, WITH_HISTORY } from './contract.js'
import { type RedisEngineOptions, redisEngine } from './redis-fixture.js'

/** Far longer than the engine's timeouts, for a busy machine. */
const BOUND_MS = 15_000

const listening = async (t: Test, url: string, options: RedisEngineOptions = {}) => {
  const engine = redisEngine(t, url, options)
  const delivered = new Delivered()
  await engine.broker.start(delivered)
  await engine.broker.subscribe('ns:1')
  const publish = async (data: string, channel = 'ns:1', options = WITH_HISTORY) =>
    engine.broker.publish(channel, { ...PLAIN_PUBLICATION, data }, options)
  return { ...engine, delivered, publish }
}

const client = (t: Test, { url }: { readonly url: string }): Redis => {
  const redis = new Redis(url)
  redis.on('error', () => undefined)
  t.teardown(() => redis.disconnect())
  return redis
}

t.test('a Redis server that dies', async (t) => {
  const redis = await startRedis(t)
  const { engine, broker, history, presence, delivered, publish, record } = await listening(t, redis.url)
  const before = await publish('1')
  // The message arrives on another connection than the reply.
  await delivered.until(1)
  await redis.kill()
  await eventually(() => !engine.isReady)

  t.test('every operation fails at once while Redis is down, and the outage is logged once', async (t) => {
    const began = performance.now()
    await t.rejects(publish('2'), EngineError)
    await t.rejects(publish('2', 'ns:1', PLAIN), EngineError)
    await t.rejects(async () => broker.subscribe('ns:2'), EngineError)
    await t.rejects(async () => history.read('ns:1', ALL, WITH_HISTORY), EngineError)
    await t.rejects(presence.read('ns:1'), EngineError)
    await t.rejects(presence.add('ns:1', 'c', 'u', '{}'), EngineError)
    await t.rejects(async () => broker.subscribe('ns:1'), EngineError, 'a known channel is not confirmed either')
    t.notOk(broker.isDelivering('ns:1'))
    t.ok(performance.now() - began < BOUND_MS)
    t.same(await engine.cluster.survey('info', null), [], 'a cluster that was not started has no results')
    const target = { user: 'u', client: '', session: '' }
    const { isConfirmed } = await engine.cluster.apply('unsubscribe', { target, channel: '' })
    t.notOk(isConfirmed, 'and no confirmation')
    t.equal(record.lost, 1)
    t.equal(record.lines.filter((line) => line.startsWith('Redis connection lost')).length, 1)
  })

  t.test('after a restart of an empty Redis all subscriptions are restored and a new epoch begins', async (t) => {
    await redis.restart()
    await eventually(() => engine.isReady)
    t.same(delivered.missed, ['ns:1'])
    t.ok(broker.isDelivering('ns:1'))
    t.ok(record.lines.some((line) => line.startsWith('Redis connection restored')))
    const after = await publish('3')
    t.equal(after.offset, 1)
    t.not(after.epoch, before.epoch)
    await delivered.until(2)
    t.same(
      delivered.publications.map(([, { data }]) => data),
      ['1', '3']
    )
    await eventually(async () => (await presence.count('ns:1')).clients === 1)
  })
})

t.test('a Redis server that is suspended', async (t) => {
  const redis = await startRedis(t)
  const { engine, delivered, publish } = await listening(t, redis.url)
  const before = await publish('1')
  await delivered.until(1)
  redis.pause()
  const began = performance.now()
  await t.rejects(publish('2'), EngineError)
  t.ok(performance.now() - began < BOUND_MS, 'the publication fails after the timeout')
  redis.resume()
  await eventually(() => engine.isReady)

  t.test('the epoch stays when a suspended Redis continues', async (t) => {
    const after = await publish('3')
    t.equal(after.epoch, before.epoch)
    t.ok(after.offset > before.offset)
    await eventually(() => delivered.publications.some(([, { offset }]) => offset === after.offset))
  })
})

t.test('an emptied Redis begins a new epoch, and scripts are loaded again after SCRIPT FLUSH', async (t) => {
  const redis = await startRedis(t)
  const { publish, history, delivered } = await listening(t, redis.url)
  const before = await publish('1')
  await delivered.until(1)
  await client(t, redis).flushall()
  t.match(await history.read('ns:1', ALL, WITH_HISTORY), { offset: 0, publications: [] })
  const after = await publish('2')
  t.equal(after.offset, 1)
  t.not(after.epoch, before.epoch)
  await client(t, redis).script('FLUSH')
  t.equal((await publish('3')).offset, 2, 'the script was sent again')
  await delivered.until(3)
})

t.test('a replica that takes over', async (t) => {
  const [first, second] = [await startRedis(t), await startRedis(t)]
  const replica = client(t, second)
  await replica.replicaof('127.0.0.1', first.port)
  await eventually(async () => (await replica.info('replication')).includes('master_link_status:up'))
  const proxy = await startTcpProxy(t, first.port)
  const { engine, delivered, publish, record } = await listening(t, `redis://127.0.0.1:${proxy.port}`)
  const before = await publish('1')
  await delivered.until(1)
  proxy.redirect(second.port)

  t.test('the engine does not use a server while it is a replica', async (t) => {
    await eventually(() => record.lines.some((line) => line.startsWith('Redis connection lost')))
    await t.rejects(publish('2'), EngineError)
    t.notOk(engine.isReady)
  })

  t.test('the epoch stays when the promoted replica has everything that was acknowledged and delivered', async (t) => {
    const offsetOf = async (redis: Redis) =>
      /(?:master|slave)_repl_offset:(\d+)/.exec(await redis.info('replication'))?.[1]
    const primary = client(t, first)
    await eventually(async () => (await offsetOf(replica)) === (await offsetOf(primary)))
    await replica.replicaof('NO', 'ONE')
    await eventually(() => engine.isReady)
    t.ok(delivered.missed.includes('ns:1'))
    t.match(await publish('3'), { epoch: before.epoch, offset: before.offset + 1 })
  })

  t.test('a new epoch begins when the promoted replica lacks a write', async (t) => {
    const late = client(t, await startRedis(t))
    await late.replicaof('127.0.0.1', second.port)
    await eventually(async () => (await late.info('replication')).includes('master_link_status:up'))
    await late.replicaof('NO', 'ONE')
    const lacking = await publish('4')
    proxy.redirect(required(late.options.port))
    await eventually(() => !engine.isReady)
    await eventually(() => engine.isReady)
    t.not((await publish('5')).epoch, lacking.epoch)
    proxy.redirect(second.port)
    await eventually(() => !engine.isReady)
    await eventually(() => engine.isReady)
  })

  t.test('the engine stops using a server that is turned into a replica', async (t) => {
    await replica.replicaof('127.0.0.1', first.port)
    await t.rejects(publish('4'), EngineError)
    await eventually(() => !engine.isReady)
    await replica.replicaof('NO', 'ONE')
    await eventually(() => engine.isReady)
    t.ok((await publish('5')).offset > 0)
  })
})

t.test('a server that becomes the master again does not continue epochs from before its last loss', async (t) => {
  const [first, second] = [await startRedis(t), await startRedis(t)]
  const [one, two] = [client(t, first), client(t, second)]
  const copy = async (from: TestRedis, to: Redis): Promise<void> => {
    await to.replicaof('127.0.0.1', from.port)
    await eventually(async () => (await to.info('replication')).includes('master_link_status:up'))
    await to.replicaof('NO', 'ONE')
  }
  const proxy = await startTcpProxy(t, first.port)
  const { engine, publish } = await listening(t, `redis://127.0.0.1:${proxy.port}`)
  const switchTo = async ({ port }: TestRedis): Promise<void> => {
    proxy.redirect(port)
    await eventually(() => !engine.isReady)
    await eventually(() => engine.isReady)
  }
  await publish('1', 'ns:2')
  await copy(first, two)
  const lost = await publish('2', 'ns:2')
  await switchTo(second)
  // Not used here, so that the position of ns:2 stays in the generation that began at the first server.
  await copy(second, one)
  await publish('1', 'ns:3')
  await switchTo(first)

  t.not((await publish('3', 'ns:2')).epoch, lost.epoch)
})

t.test('a subscriber connection that receives no messages is opened again', async (t) => {
  const redis = await startRedis(t)
  const proxy = await startTcpProxy(t, redis.port)
  const { engine, delivered, publish } = await listening(t, `redis://127.0.0.1:${proxy.port}`)
  proxy.stopForwarding('gatehouse-relay-subscriptions')
  t.ok((await publish('1')).offset, 'publications are accepted meanwhile')
  await eventually(() => delivered.missed.includes('ns:1') && engine.isReady)
  await publish('2')
  await eventually(() => delivered.publications.some(([, { data }]) => data === '2'))
})

t.test('a Redis server with foreign data', async (t) => {
  const redis = await startRedis(t)
  const { publish, history, presence, delivered, record, prefix, broker } = await listening(t, redis.url)
  const foreign = client(t, redis)

  t.test('malformed messages are ignored and counted', async (t) => {
    const messages = ['', 'hello', '{"data":1}', 'p1,e,', 'x'.repeat(1_000_000), '\u0000\ufffd']
    for (const message of messages) await foreign.publish(`${prefix}{:ns:1}`, message)
    await publish('1')
    await delivered.until(1)
    t.equal(delivered.publications.length, 1)
    t.equal(record.malformed, messages.length)
  })

  const wrong: [key: string, write: (key: string) => Promise<unknown>][] = [
    ['position', (key) => foreign.set(key, 'garbage')],
    ['position', (key) => foreign.hset(key, 'o', 'garbage', 'e', 'e', 'r', 'r')],
    ['stream', (key) => foreign.set(key, 'garbage')]
  ]
  for (const [index, [key, write]] of wrong.entries()) {
    t.test(`a malformed key ${key} (${index}) affects its own channel only`, async (t) => {
      const channel = `wrong:${index}`
      await write(`${prefix}{:${channel}}${key}`)
      await publish('1', channel).catch((error) => t.type(error, EngineError))
      try {
        await history.read(channel, ALL, WITH_HISTORY)
      } catch (error) {
        t.type(error, EngineError)
      }
      t.ok((await publish('2', 'ns:1')).offset)
    })
  }

  t.test('relays in different databases of one Redis do not receive messages of each other', async (t) => {
    const others = await Promise.all(
      ['/1', '/2'].map((database) => listening(t, `${redis.url}${database}`, { prefix }))
    )
    const published = delivered.publications.length
    for (const [index, other] of others.entries()) {
      await other.publish(`of ${index}`)
      await other.publish(`of ${index} without history`, 'ns:1', PLAIN)
      await other.broker.publish(
        'ns:1',
        { ...PLAIN_PUBLICATION, data: `of ${index}, once`, idempotencyKey: 'k' },
        PLAIN
      )
    }
    await publish('ours')
    await delivered.until(published + 1)
    for (const [index, other] of others.entries()) {
      await other.delivered.until(3)
      t.ok(other.delivered.publications.every(([, { data }]) => data.toString().startsWith(`of ${index}`)))
    }
    t.equal(delivered.publications.length, published + 1)
  })

  t.test('malformed stream entries are ignored', async (t) => {
    const { offset } = await publish('kept', 'ns:2')
    await foreign.xadd(`${prefix}{:ns:2}stream`, `${offset + 5}-0`, 'd', 'garbage')
    await foreign.xadd(`${prefix}{:ns:2}stream`, `${offset + 6}-0`, 'other', 'garbage')
    const { publications } = await history.read('ns:2', ALL, WITH_HISTORY)
    t.same(
      publications.map(({ data }) => data),
      ['kept']
    )
  })

  t.test('presence fails for a key of another type', async (t) => {
    await foreign.set(`${prefix}{:ns:3}presence`, 'garbage')
    await t.rejects(presence.add('ns:3', 'c', 'u', '{}'), EngineError)
    await t.rejects(presence.count('ns:3'), EngineError)
  })

  t.test('a publication of 4 MB on a channel with braces in its name is delivered', async () => {
    const data = JSON.stringify('é'.repeat(2_000_000))
    await broker.subscribe('}{')
    await publish(data, '}{')
    await eventually(() => delivered.publications.some(([channel, { data: got }]) => channel === '}{' && got === data))
  })

  t.test('publishing fails while Redis is out of memory, and the error is logged at intervals', async (t) => {
    await foreign.config('SET', 'maxmemory', '1')
    await t.rejects(publish('3'), /OOM/)
    await t.rejects(publish('3'), EngineError)
    t.ok(record.errorReplies >= 2)
    t.equal(record.lines.filter((line) => line.includes('OOM')).length <= 1, true)
    await foreign.config('SET', 'maxmemory', '0')
    t.ok((await publish('4')).offset)
  })
})

t.test('starting the engine', async (t) => {
  const start = async (t: Test, url: string) =>
    redisEngine(t, url, { startTimeoutMs: 3_000 }).broker.start(new Delivered())

  t.test('a wrong password fails without showing the password', async (t) => {
    const { port } = await startRedis(t, { args: ['--requirepass', 'right'] })
    await t.rejects(start(t, `redis://:wr0ng@127.0.0.1:${port}`), /^Redis at 127.0.0.1:\d+: WRONGPASS/)
    await t.rejects(start(t, `redis://127.0.0.1:${port}`), /NOAUTH/)
    await start(t, `redis://:right@127.0.0.1:${port}`)
    await t.rejects(start(t, `redis://:right@127.0.0.1:${port}/99`), /DB index/)
  })

  t.test('the documented ACL rules are sufficient, and an unknown user fails', async (t) => {
    const redis = await startRedis(t)
    // As docs/reference/configuration.md says.
    const rights = '~test-* &test-* +@all -@dangerous +info +cluster|slots'.split(' ')
    await client(t, redis).acl('SETUSER', 'relay', 'on', '>p,w', ...rights)
    const { publish, delivered, presence } = await listening(t, `redis://relay:p%2Cw@127.0.0.1:${redis.port}/3`)
    await publish('1')
    await delivered.until(1)
    await presence.add('ns:1', 'c', 'u', '{}')
    t.same(await presence.count('ns:1'), { clients: 1, users: 1 })
    await t.rejects(start(t, `redis://nobody:secret@127.0.0.1:${redis.port}`), /WRONGPASS/)
  })

  t.test('a server that refuses connections or does not reply fails', async (t) => {
    await t.rejects(start(t, 'redis://127.0.0.1:1'), /ECONNREFUSED/)
    const silent = createServer()
    await once(silent.listen(0, '127.0.0.1'), 'listening')
    t.teardown(() => silent.close())
    await t.rejects(start(t, `redis://127.0.0.1:${portOf(silent)}`), /^Redis at 127.0.0.1:\d+: /)
  })
})

t.test('presence of a relay that dies', async (t) => {
  const redis: TestRedis = await startRedis(t)
  const options = { prefix: 'ghosts', presenceTtlMs: 1_000, nodeTimings: { heartbeatMs: 100, leaseMs: 500 } }
  const [living, dying] = [await listening(t, redis.url, options), await listening(t, redis.url, options)]

  t.test('presence entries of a dead relay expire with their leases, and those of other relays stay', async (t) => {
    await living.presence.add('ns:1', 'living', 'a', '{"user":"a"}')
    await dying.presence.add('ns:1', 'dying', 'b', '{"user":"b"}')
    t.same(await living.presence.count('ns:1'), { clients: 2, users: 2 })
    void dying.engine.close()
    await eventually(async () => (await living.presence.count('ns:1')).clients === 1)
    t.same([...(await living.presence.read('ns:1')).keys()], ['living'])
  })

  t.test('presence entries of a dead relay are removed from Redis without a presence query', async (t) => {
    const raw = client(t, redis)
    const another = await listening(t, redis.url, options)
    await living.presence.add('ns:2', 'living', 'a', '{}')
    await another.presence.add('ns:2', 'dying', 'b', '{}')
    void another.engine.close()
    await eventually(async () => (await raw.hlen('ghosts{:ns:2}presence')) === 1)
    t.same(await raw.zrange('ghosts{:ns:2}leases', '0', '-1'), ['living'])
  })
})
