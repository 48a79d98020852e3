import { Redis } from 'ioredis'
import t, { type Test } from 'tap'
import { PLAIN_PUBLICATION } from '../../../src/relay/core/publish/publish.js'
import { SurveyHandlers } from '../../../src/relay/core/surveys.js'
import { channelSlot } from '../../../src/relay/engine/redis/keys.js'
import { eventually } from '../../helper/eventually.js'
import { freePort, LOOPBACK } from '../../helper/free-port.js'
import { startRedis } from '../../helper/redis.js'
import { startRedisCluster } from '../../helper/redis-cluster.js'
import { firstTwo, required } from '../../helper/required.js'
import { channelStateContract } from './channel-state-contract.js'
import { ALL, Delivered, engineContract, WITH_HISTORY } from './contract.js'
import { mapContract, PLAIN_WRITE, RECOVERABLE } from './map-contract.js'
import { type RedisEngineOptions, type RedisEngineUnderTest, redisEngine } from './redis-fixture.js'

const cluster = await startRedisCluster(t)

engineContract('the Redis engine on a cluster', async (t) => redisEngine(t, cluster.url))
mapContract('the Redis engine on a cluster', async (t) => redisEngine(t, cluster.url))
channelStateContract('the Redis engine on a cluster', async (t) => ({
  ...redisEngine(t, cluster.url),
  elapse: () => undefined
}))

/** The engines of two nodes: one subscribes, the other publishes. */
const twoNodes = async (t: Test, channels: readonly string[]) => {
  const listening = redisEngine(t, cluster.url)
  const publishing = redisEngine(t, cluster.url, { prefix: listening.prefix })
  const delivered = new Delivered()
  await listening.broker.start(delivered)
  await publishing.broker.start(new Delivered())
  await Promise.all(channels.map((channel) => listening.broker.subscribe(channel)))
  const publish = async (channel: string, data: string) =>
    publishing.broker.publish(channel, { ...PLAIN_PUBLICATION, data }, WITH_HISTORY)
  /** Retries until the cluster accepts the publication. */
  const publishWithRetries = (channel: string, data: string) => eventually(() => publish(channel, data))
  return { listening, publishing, delivered, publish, publishWithRetries }
}

/** A channel whose hash slot the server with this index has. */
const channelAt = (server: number, namespace = 'ns'): string => {
  const size = 16_384 / 3
  for (let n = 0; ; n++) {
    const slot = channelSlot(`${namespace}:${n}`)
    if (slot >= server * size + 1 && slot < (server + 1) * size - 1) return `${namespace}:${n}`
  }
}

/** Begins to move a hash slot from the first server to the second, one step at a time. */
const startMigration = async (slot: number) => {
  const [from, to] = cluster.redis
  const [fromId, toId] = firstTwo(
    await Promise.all([from, to].map(async (each) => String(await each.call('CLUSTER', 'MYID'))))
  )
  await to.call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', fromId)
  await from.call('CLUSTER', 'SETSLOT', slot, 'MIGRATING', toId)
  return {
    moveKeys: async (): Promise<void> => {
      const keys = [await from.call('CLUSTER', 'GETKEYSINSLOT', slot, 100)].flat().map(String)
      await from.call('MIGRATE', LOOPBACK, cluster.servers[1].port, '', 0, 5000, 'KEYS', ...keys)
    },
    finish: async (): Promise<void> => {
      for (const each of [to, from]) await each.call('CLUSTER', 'SETSLOT', slot, 'NODE', toId)
    }
  }
}

/** Moves a hash slot of the first server to the second, with its keys. */
const moveSlotToSecondServer = async (slot: number): Promise<void> => {
  const { moveKeys, finish } = await startMigration(slot)
  await moveKeys()
  await finish()
}

t.test('hash slots', async (t) => {
  t.test('the slot of a channel is the one that Redis computes', async (t) => {
    const [redis] = cluster.redis
    for (const channel of ['a', 'floor:7', '}', '{', 'a}b', '{a}', 'é', '']) {
      const key = `x{:${channel}}position`
      t.equal(channelSlot(channel), await redis.call('CLUSTER', 'KEYSLOT', key), key)
    }
  })
})

t.test('channels on all servers of a Redis Cluster', async (t) => {
  t.test('all publications are delivered in order', async (t) => {
    const channels = [0, 1, 2]
      .map((server) => channelAt(server))
      .concat(Array.from({ length: 40 }, (_, n) => `spread:${n}`))
    const { delivered, publish } = await twoNodes(t, channels)
    await Promise.all(['1', '2', '3'].flatMap((data) => channels.map((channel) => publish(channel, data))))
    await delivered.until(channels.length * 3)

    for (const channel of channels) {
      const received = delivered.publications.filter(([each]) => each === channel)
      t.same(
        received.map(([, { data, offset }]) => [data, offset]),
        [
          ['1', 1],
          ['2', 2],
          ['3', 3]
        ]
      )
    }
    for (const redis of cluster.redis) t.ok((await redis.dbsize()) > 0, 'every server has keys')
  })
})

t.test('a command over a Redis Cluster is confirmed by every node and applied once at each', async (t) => {
  const { listening, publishing } = await twoNodes(t, [])
  const applied: string[] = []
  const handlersOf = (node: string): SurveyHandlers => {
    const handlers = new SurveyHandlers()
    handlers.set('disconnect', () => {
      applied.push(node)
      return null
    })
    return handlers
  }
  const missed = (): void => void t.fail('no command is missed')
  await listening.engine.cluster.start('one', handlersOf('one'), missed)
  await publishing.engine.cluster.start('other', handlersOf('other'), missed)
  const target = { user: 'u', client: '', session: '' }
  const params = { target, whitelist: [], code: 3503, reason: 'force disconnect' }

  t.match(await listening.engine.cluster.apply('disconnect', params), { isConfirmed: true, results: [null, null] })
  t.match(await publishing.engine.cluster.apply('disconnect', params), { isConfirmed: true, results: [null, null] })
  t.same(applied.sort(), ['one', 'one', 'other', 'other'])
})

t.test('a slot that moves to another server', async (t) => {
  t.test('subscriptions move with a hash slot, and missed publications are checked', async (t) => {
    const channel = channelAt(0)
    const slot = channelSlot(channel)
    const { delivered, publish, publishWithRetries } = await twoNodes(t, [channel])
    await publish(channel, '1')
    await delivered.until(1)
    await moveSlotToSecondServer(slot)

    const { offset } = await publishWithRetries(channel, '2')
    await eventually(() => delivered.missed.includes(channel))
    t.ok(offset > 0)
    await publishWithRetries(channel, '3')
    await eventually(() => delivered.publications.some(([, { data }]) => data === '3'))
  })
})

t.test('a hash slot that is being moved', async (t) => {
  /** Longer than any machine needs for the steps of a migration. */
  const slotTimeoutMs = 60_000
  const channels = Array.from({ length: 1_000 }, (_, n) => `migrating:${n}`).filter((channel) => {
    const slot = channelSlot(channel)
    return slot > 1 && slot < 16_384 / 3 - 1
  })
  const started = async (t: Test, options: RedisEngineOptions) => {
    const engine = redisEngine(t, cluster.url, options)
    await engine.broker.start(new Delivered())
    return engine
  }

  t.test('commands follow the keys that have already been moved', async (t) => {
    const [channel = ''] = channels
    const { presence } = await started(t, { slotTimeoutMs })
    await presence.add(channel, 'client', 'user', '{}')
    const { moveKeys, finish } = await startMigration(channelSlot(channel))
    await moveKeys()
    t.same([...(await presence.read(channel))], [['client', '{}']])
    await finish()
    t.same([...(await presence.read(channel))], [['client', '{}']])
  })

  t.test('a publication waits until all keys have been moved', async (t) => {
    const [, channel = ''] = channels
    const { broker, history } = await started(t, { slotTimeoutMs })
    const publish = async (data: string) =>
      broker.publish(channel, { ...PLAIN_PUBLICATION, data, idempotencyKey: data }, WITH_HISTORY)
    await publish('1')
    const { moveKeys, finish } = await startMigration(channelSlot(channel))
    const publishing = publish('2')
    await moveKeys()
    await finish()
    t.ok((await publishing).offset > 0)
    const { publications } = await history.read(channel, ALL, WITH_HISTORY)
    t.equal(publications.filter(({ data }) => data === '2').length, 1, 'published once')
  })

  t.test('a publication fails if the migration takes too long', async (t) => {
    const [, , channel = ''] = channels
    const { broker } = await started(t, { slotTimeoutMs: 100 })
    const publish = async (data: string) => broker.publish(channel, { ...PLAIN_PUBLICATION, data }, WITH_HISTORY)
    await publish('1')
    const { moveKeys, finish } = await startMigration(channelSlot(channel))
    await t.rejects(publish('2'), { message: /TRYAGAIN/ })
    await moveKeys()
    await finish()
  })
})

t.test('a broadcast reaches a channel whose slot has moved to another server', async (t) => {
  const channels = Array.from({ length: 200 }, (_, n) => `moving:${n}`)
  const slot = required(channels.map(channelSlot).find((slot) => slot > 1 && slot < 16_384 / 3 - 1))
  const { publishing } = await twoNodes(t, [])
  const targets = channels.map((channel) => ({ channel, options: WITH_HISTORY }))
  const broadcast = async (data: string) => publishing.broker.publishToMany?.(targets, { ...PLAIN_PUBLICATION, data })
  await broadcast('1')
  await moveSlotToSecondServer(slot)
  const results = await broadcast('2')

  for (const [index, channel] of channels.entries()) {
    const result = results?.[index]
    t.ok(result !== undefined && 'offset' in result && result.offset > 0, channel)
  }
  for (const channel of channels) {
    const { publications } = await publishing.history.read(channel, ALL, WITH_HISTORY)
    t.equal(publications.filter(({ data }) => data === '2').length, 1, `${channel} once`)
  }
})

t.test('maps on a Redis Cluster', async (t) => {
  const BRIEF = { ...RECOVERABLE, keyTtlMs: 1 }
  const writeTo = async ({ maps }: Pick<RedisEngineUnderTest, 'maps'>, channel: string, key: string, options = BRIEF) =>
    maps.write(channel, { ...PLAIN_WRITE, key, data: '1' }, options)

  t.test('keys of maps on all servers expire, each once', async (t) => {
    const channels = [0, 1, 2].map((server) => channelAt(server))
    const { listening, publishing, delivered } = await twoNodes(t, channels)
    for (const channel of channels) for (const key of ['a', 'b']) await writeTo(publishing, channel, key)
    await eventually(async () => {
      await Promise.all([listening.maps.expire(), publishing.maps.expire()])
      const counts = await Promise.all(channels.map((channel) => publishing.maps.count(channel, BRIEF)))
      return counts.every((count) => count === 0)
    })
    await delivered.until(4 * channels.length)

    for (const channel of channels) {
      const changes = delivered.publications.filter(([each]) => each === channel).map(([, change]) => change)
      t.same(
        changes.map(({ offset }) => offset),
        [1, 2, 3, 4]
      )
      t.same(changes.flatMap(({ key, removed }) => (removed ? [key] : [])).toSorted(), ['a', 'b'])
    }
  })

  t.test('a write waits while its hash slot is being moved, and is made once', async (t) => {
    const channel = required(
      Array.from({ length: 1_000 }, (_, n) => `moving-map:${n}`).find((name) => {
        const slot = channelSlot(name)
        return slot > 1 && slot < 16_384 / 3 - 1
      })
    )
    const engine = redisEngine(t, cluster.url, { slotTimeoutMs: 60_000 })
    await engine.broker.start(new Delivered())
    await writeTo(engine, channel, 'a', RECOVERABLE)
    const { moveKeys, finish } = await startMigration(channelSlot(channel))
    const writing = writeTo(engine, channel, 'b', RECOVERABLE)
    // A map whose keys are at two servers is left alone.
    await engine.maps.expire()
    await moveKeys()
    await finish()
    t.match(await writing, { offset: 2 })

    t.match(await engine.maps.readState(channel, { after: '', limit: 10 }, RECOVERABLE), {
      offset: 2,
      entries: [{ key: 'a' }, { key: 'b' }]
    })
  })

  t.test('a map moves to another server with its entries and deadlines', async (t) => {
    const channel = required(
      Array.from({ length: 1_000 }, (_, n) => `map:${n}`).find((name) => {
        const slot = channelSlot(name)
        return slot > 1 && slot < 16_384 / 3 - 1
      })
    )
    const { publishing } = await twoNodes(t, [channel])
    const options = { ...RECOVERABLE, keyTtlMs: 3_000 }
    await eventually(() => writeTo(publishing, channel, 'a', options))
    const before = await publishing.maps.readState(channel, { after: '', limit: 10 }, options)
    await publishing.maps.expire()
    await moveSlotToSecondServer(channelSlot(channel))
    const after = await publishing.maps.readState(channel, { after: '', limit: 10 }, options)
    t.match(after, { offset: 1, entries: before.entries })
    t.not(after.epoch, before.epoch, 'a server of a cluster cannot know whether another one had more')
    await eventually(async () => (await publishing.maps.expire()).keys === 1)

    t.match(await publishing.maps.readStream(channel, ALL, options), {
      epoch: after.epoch,
      offset: 2,
      oldest: 2,
      publications: [{ key: 'a', removed: true }]
    })
  })
})

t.test('a master of a Redis Cluster that dies', async (t) => {
  t.test('after its replica takes over, a new epoch begins and missed publications are checked', async (t) => {
    const busPort = await freePort()
    const args = ['--cluster-enabled', 'yes', '--cluster-config-file', 'nodes.conf', '--cluster-port', `${busPort}`]
    const replica = await startRedis(t, { args })
    const redis = new Redis(replica.url)
    t.teardown(() => redis.disconnect())
    const [first, , last] = cluster.redis
    await first.call('CLUSTER', 'MEET', LOOPBACK, replica.port, busPort)
    const id = String(await last.call('CLUSTER', 'MYID'))
    await eventually(async () => String(await redis.call('CLUSTER', 'NODES')).includes(id))
    await redis.call('CLUSTER', 'REPLICATE', id)
    await eventually(async () => (await redis.info('replication')).includes('master_link_status:up'))

    const channel = channelAt(2)
    const { listening, delivered, publish, publishWithRetries } = await twoNodes(t, [channel])
    const mapChannel = channelAt(2, 'map')
    const { maps } = listening
    const write = async (key: string) => maps.write(mapChannel, { ...PLAIN_WRITE, key, data: '1' }, RECOVERABLE)
    await write('a')
    await write('b')
    await maps.removeKey(mapChannel, { key: 'a', idempotencyKey: '' }, RECOVERABLE)
    const state = () => maps.readState(mapChannel, { after: '', limit: 10 }, RECOVERABLE)
    const map = await state()
    const before = await publish(channel, '1')
    await delivered.until(1)
    const replicated = async (from: Redis) => /_repl_offset:(\d+)/.exec(await from.info('replication'))?.[1]
    await eventually(async () => (await replicated(redis)) === (await replicated(last)))
    await cluster.servers[2].kill()
    await eventually(() => !listening.engine.isReady)
    await redis.call('CLUSTER', 'FAILOVER', 'TAKEOVER')

    const after = await publishWithRetries(channel, '2')
    t.not(after.epoch, before.epoch)
    await eventually(() => listening.engine.isReady && delivered.missed.includes(channel))
    await publishWithRetries(channel, '3')
    await eventually(() => delivered.publications.some(([, { data }]) => data === '3'))
    t.equal(listening.record.lost, 1)
    const kept = await state()
    t.not(kept.epoch, map.epoch)
    t.match(kept, { offset: 3, entries: map.entries }, 'entries stay, and no removed key returns')
  })
})
