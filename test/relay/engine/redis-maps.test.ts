import { Redis } from 'ioredis'
import t, { type Test } from 'tap'
import { EngineError, type MapWrite } from '../../../src/relay/core/engine.js'
import type { MapStorageOptions } from '../../../src/relay/core/options.js'
import { eventually } from '../../helper/eventually.js'
import { startRedis, type TestRedis } from '../../helper/redis.js'
import { ALL, Delivered } from './contract.js'
import { EPHEMERAL, mapContract, PERSISTENT, PLAIN_WRITE, RECOVERABLE } from './map-contract.js'
import { type RedisEngineOptions, redisEngine } from './redis-fixture.js'

const redis = await startRedis(t)
const other = await startRedis(t)

mapContract('the Redis engine', async (t) => redisEngine(t, redis.url))
mapContract('the Redis engine on two servers', async (t) => redisEngine(t, `${redis.url},${other.url}`))

const ALL_ENTRIES = { after: '', limit: -1 }
/** Shorter than any wait of a test for another condition. */
const BRIEF: MapStorageOptions = { ...RECOVERABLE, keyTtlMs: 1 }

const client = (t: Test, { url }: TestRedis): Redis => {
  const raw = new Redis(url)
  raw.on('error', () => undefined)
  t.teardown(() => raw.disconnect())
  return raw
}

const startNode = async (t: Test, url: string, options: RedisEngineOptions = {}) => {
  const under = redisEngine(t, url, options)
  const { maps } = under
  const delivered = new Delivered()
  await under.broker.start(delivered)
  await under.broker.subscribe('ns:1')
  const write = async (
    key: string,
    data = '1',
    mapOptions: MapStorageOptions = RECOVERABLE,
    channel = 'ns:1',
    more: Partial<MapWrite> = {}
  ) => {
    const changed = await maps.write(channel, { ...PLAIN_WRITE, key, data, ...more }, mapOptions)
    if (changed === 'full') throw new Error('the map is full')
    return changed
  }
  const remove = async (key: string, mapOptions: MapStorageOptions = RECOVERABLE, channel = 'ns:1') =>
    maps.removeKey(channel, { key, idempotencyKey: '' }, mapOptions)
  const state = (mapOptions: MapStorageOptions = RECOVERABLE, channel = 'ns:1') =>
    maps.readState(channel, ALL_ENTRIES, mapOptions)
  const keys = async (mapOptions: MapStorageOptions = RECOVERABLE, channel = 'ns:1') =>
    (await state(mapOptions, channel)).entries.map(({ key }) => key)
  return { ...under, delivered, write, remove, state, keys }
}

const twoNodes = async (t: Test, url = redis.url) => {
  const one = await startNode(t, url)
  return [one, await startNode(t, url, { prefix: one.prefix })] as const
}

t.test('a map of several nodes has one epoch and one order of changes', async (t) => {
  const [one, two] = await twoNodes(t)
  const first = await one.write('a', '1')
  t.match(await two.write('b', '2'), { epoch: first.epoch, offset: 2 })
  t.match(await two.write('a', '3', RECOVERABLE, 'ns:1', { keyMode: 'if_new' }), { suppressedBy: 'key_exists' })
  await Promise.all([one, two].flatMap((node) => ['c', 'd', 'e'].map((key) => node.write(key))))
  await one.remove('c')
  for (const { delivered } of [one, two]) await delivered.until(9)

  t.same(one.delivered.publications, two.delivered.publications)
  t.same(
    one.delivered.publications.map(([, { offset }]) => offset),
    [1, 2, 3, 4, 5, 6, 7, 8, 9]
  )
})

t.test('a key expires once if all nodes look for expired keys at the same time', async (t) => {
  const [one, two] = await twoNodes(t)
  const keys = Array.from({ length: 500 }, (_, index) => `k${index}`)
  await Promise.all(keys.map((key) => one.write(key, '1', BRIEF)))
  await eventually(async () => {
    await Promise.all([one.maps.expire(), two.maps.expire()])
    return (await one.maps.count('ns:1', BRIEF)) === 0
  })
  await one.delivered.until(1000)
  await two.delivered.until(1000)

  for (const { delivered } of [one, two]) {
    const removals = delivered.publications.filter(([, { removed }]) => removed)
    t.equal(new Set(removals.map(([, { key }]) => key)).size, 500)
    t.equal(removals.length, 500)
    t.equal(delivered.publications.at(-1)?.[1].offset, 1000)
  }
})

t.test('keys of a node that has died are expired by another node', async (t) => {
  const [one, two] = await twoNodes(t)
  await one.write('a', '1', BRIEF)
  one.close()
  await eventually(async () => (await two.maps.expire()).keys === 1)
  await two.delivered.until(2)

  t.match(two.delivered.publications[1]?.[1], { key: 'a', removed: true, offset: 2 })
})

t.test('a key that is written again and again does not keep other keys from expiring', async (t) => {
  const { maps, write, keys, advance } = await startNode(t, redis.url)
  await write('busy')
  await write('idle')
  for (const step of [1, 2, 3]) {
    await advance(25_000)
    await write('busy', String(step))
    await maps.expire()
  }

  t.same(await keys(), ['busy'])
})

t.test('the index has only maps with deadlines', async (t) => {
  const { maps, write, remove, prefix, advance } = await startNode(t, redis.url)
  const raw = client(t, redis)
  const indexed = () => raw.zrange(`${prefix}!{all}maps`, '0', '-1')
  await write('a', '1', PERSISTENT, 'ns:persistent')
  await write('a')
  await write('a', '1', EPHEMERAL, 'ns:ephemeral')
  t.same((await indexed()).toSorted(), [`${prefix}{:ns:1}`, `${prefix}{:ns:ephemeral}`])
  await remove('a', EPHEMERAL, 'ns:ephemeral')
  await maps.clear('ns:1', RECOVERABLE)
  t.same(await indexed(), [`${prefix}{:ns:ephemeral}`], 'checked at its time')
  await advance(61_000)
  t.match(await maps.expire(), { keys: 0 })

  t.same(await indexed(), [])
})

t.test('every key in Redis of a map that expires has a TTL', async (t) => {
  const { write, remove, state, prefix } = await startNode(t, redis.url)
  const raw = client(t, redis)
  const options = { ...RECOVERABLE, metaTtlMs: 600_000 }
  for (const mode of [options, EPHEMERAL]) {
    const channel = `ns:${mode.mode}`
    await write('a', '1', mode, channel)
    await write('b', '1', mode, channel, { version: mode.mode === 'ephemeral' ? 0 : 3 })
    await remove('a', mode, channel)
    await state(mode, channel)
    const keys = await raw.keys(`${prefix}{:${channel}}*`)
    t.ok(keys.length >= 4)
    for (const key of keys) t.ok((await raw.pttl(key)) > 0, key)
  }
})

t.test('the position of a persistent map stays, and that of an unused one does not', async (t) => {
  const { state, write, prefix } = await startNode(t, redis.url)
  const raw = client(t, redis)
  await state(PERSISTENT)
  t.ok((await raw.pttl(`${prefix}{:ns:1}position`)) > 0)
  await write('a', '1', PERSISTENT)
  await state(PERSISTENT)

  for (const key of ['position', 'entries', 'names']) t.equal(await raw.pttl(`${prefix}{:ns:1}${key}`), -1, key)
})

t.test('the keys of a map stay if its namespace becomes persistent', async (t) => {
  const { maps, write, keys, state, advance, prefix } = await startNode(t, redis.url)
  const raw = client(t, redis)
  const { epoch } = await write('a', '1', RECOVERABLE, 'ns:1', { version: 5 })
  t.match(await state(PERSISTENT), { epoch, offset: 1 })
  await advance(24 * 3_600_000)
  t.match(await maps.expire(), { keys: 0 })

  t.same(await keys(PERSISTENT), ['a'])
  t.equal(await raw.exists(`${prefix}{:ns:1}deadlines`), 0)
  t.match(await write('a', '1', PERSISTENT, 'ns:1', { version: 5 }), { suppressedBy: 'version' })
})

t.test('a namespace that was one of streams, or of ephemeral maps, begins with an empty map', async (t) => {
  const { broker, write, state, maps } = await startNode(t, redis.url)
  const publication = { ...PLAIN_WRITE, data: '1', skipHistory: false }
  const published = await broker.publish('ns:1', publication, {
    historySize: 3,
    historyTtlMs: 60_000,
    historyMetaTtlMs: 60_000
  })
  const { epoch, offset } = await state()
  t.not(epoch, published.epoch)
  t.equal(offset, 0)
  t.match(await maps.readStream('ns:1', ALL, RECOVERABLE), { epoch, publications: [] })
  await write('a', '1', EPHEMERAL, 'ns:2')

  t.match(await state(RECOVERABLE, 'ns:2'), { offset: 0, entries: [] })
})

t.test('many large entries are read in pages, and a whole state in several steps', async (t) => {
  const { maps, write, state } = await startNode(t, redis.url)
  const data = JSON.stringify('é'.repeat(20_000))
  const keys = Array.from({ length: 250 }, (_, index) => `k${String(index).padStart(3, '0')}`)
  await Promise.all(keys.map((key) => write(key, data)))
  const page = await maps.readState('ns:1', { after: '', limit: 1000 }, RECOVERABLE)
  t.ok(page.entries.length < 250)
  t.equal(page.next, page.entries.at(-1)?.key)
  const all = await state()

  t.same(
    all.entries.map(({ key }) => key),
    keys
  )
  t.ok(all.entries.every((entry) => entry.data === data))
  t.match(all, { offset: 250, next: '' })
})

t.test('equal reads of a map in one event loop turn are one script call', async (t) => {
  const own = await startRedis(t)
  const { maps, write, keys } = await startNode(t, own.url)
  await write('a')
  await keys()
  await maps.readStream('ns:1', ALL, RECOVERABLE)
  const raw = client(t, own)
  await raw.config('RESETSTAT')
  const range = { after: '', limit: 100 }
  const pages = await Promise.all(Array.from({ length: 50 }, () => maps.readState('ns:1', range, RECOVERABLE)))
  await Promise.all(Array.from({ length: 50 }, () => maps.readStream('ns:1', ALL, RECOVERABLE)))

  t.ok(pages.every(({ entries }) => entries.length === 1))
  // A heartbeat may come in between.
  const calls = Number(/cmdstat_evalsha:calls=(\d+),/.exec(await raw.info('commandstats'))?.[1])
  t.ok(calls >= 2 && calls < 20, String(calls))
})

t.test('foreign data in Redis', async (t) => {
  const node = await startNode(t, redis.url)
  const { maps, write, remove, keys, delivered, record, prefix } = node
  const foreign = client(t, redis)

  t.test('malformed changes on the topic of a map are ignored and counted', async (t) => {
    const { epoch } = await write('a')
    await delivered.until(1)
    const messages = ['m', 'me,0,', `m${epoch},0,2,5,1,0,1`, `m${epoch},1,2,16,1,0,1,-1,0\n\na1`, 'm,2,1,1,x']
    for (const message of messages) await foreign.publish(`${prefix}{:ns:1}`, message)
    await write('b')
    await delivered.until(2)
    t.equal(delivered.publications.length, 2)
    t.equal(record.malformed, messages.length)
  })

  const wrong: [key: string, write: (key: string) => Promise<unknown>][] = [
    ...['position', 'stream', 'entries', 'names', 'deadlines', 'versions'].map(
      (key): [string, (key: string) => Promise<unknown>] => [key, (each) => foreign.set(each, 'garbage')]
    ),
    ['position', (key) => foreign.hset(key, 'e', 'e', 'r', 'r', 'o', 'garbage', 'm', RECOVERABLE.mode)],
    ['position', (key) => foreign.hset(key, 'm', 'r,1,1,1,1,1,1')],
    ['entries', (key) => foreign.hset(key, 'a', 'garbage', 'b', '1,5,abc')]
  ]
  for (const [index, [key, damage]] of wrong.entries()) {
    t.test(`a malformed key ${key} (${index}) affects its own map only`, async (t) => {
      const channel = `wrong:${index}`
      await damage(`${prefix}{:${channel}}${key}`)
      const isEngineError = (error: unknown) => t.type(error, EngineError)
      const attempts = [
        () => write('a', '1', RECOVERABLE, channel, { version: 1 }),
        () => remove('a', RECOVERABLE, channel),
        () => keys(RECOVERABLE, channel),
        () => maps.readKey(channel, 'a', RECOVERABLE),
        () => maps.readStream(channel, ALL, RECOVERABLE),
        () => maps.count(channel, RECOVERABLE)
      ]
      for (const attempt of attempts) await attempt().catch(isEngineError)
      t.ok((await write('c')).offset)
      await maps.clear(channel, RECOVERABLE)
      t.match(await write('a', '1', RECOVERABLE, channel), { offset: 1 }, 'clearing the map repairs it')
    })
  }

  t.test('a map whose keys cannot expire does not keep those of other maps', async (t) => {
    const damaged = await startNode(t, redis.url)
    await damaged.write('a', '1', BRIEF, 'ns:damaged')
    await foreign.set(`${damaged.prefix}{:ns:damaged}entries`, 'garbage')
    await damaged.write('a', '1', BRIEF)
    await eventually(async () => {
      await damaged.maps.expire().catch((error) => t.match(error, EngineError))
      return (await damaged.maps.count('ns:1', BRIEF)) === 0
    })
  })

  t.test('an index with foreign members or of another type is reported', async (t) => {
    const damaged = await startNode(t, redis.url)
    const index = `${damaged.prefix}!{all}maps`
    await damaged.write('a', '1', BRIEF)
    await foreign.zadd(index, 0, 'garbage', 0, `${damaged.prefix}{:ns:absent}`)
    await eventually(async () => (await damaged.maps.expire()).keys === 1)
    t.same(await foreign.zrange(index, '0', '-1'), [])
    await foreign.set(index, 'garbage')
    await t.rejects(damaged.maps.expire(), EngineError)
  })
})

t.test('every operation on maps fails while Redis is down, and works again afterwards', async (t) => {
  const own = await startRedis(t)
  const { engine, maps, write, remove, keys } = await startNode(t, own.url)
  const before = await write('a')
  await own.kill()
  await eventually(() => !engine.isReady)
  for (const attempt of [
    () => write('a'),
    () => remove('a'),
    () => keys(),
    () => maps.readKey('ns:1', 'a', RECOVERABLE),
    () => maps.readStream('ns:1', ALL, RECOVERABLE),
    () => maps.count('ns:1', RECOVERABLE),
    () => maps.clear('ns:1', RECOVERABLE),
    () => maps.expire()
  ])
    await t.rejects(async () => void (await attempt()), EngineError)
  await own.restart()
  await eventually(() => engine.isReady)

  t.same(await keys(), [], 'a Redis without persistence has lost the map')
  const after = await write('a')
  t.not(after.epoch, before.epoch)
})

t.test('a restart of Redis', async (t) => {
  const restart = async (own: TestRedis, { engine }: Awaited<ReturnType<typeof startNode>>, stop: Promise<void>) => {
    await stop
    await eventually(() => !engine.isReady)
    await own.restart()
    await eventually(() => engine.isReady)
  }

  t.test('without loss keeps the epoch of a map, and its keys still expire', async (t) => {
    const own = await startRedis(t)
    const node = await startNode(t, own.url)
    const { epoch } = await node.write('a')
    await node.write('b', '1', { ...RECOVERABLE, keyTtlMs: 2_000 })
    await node.delivered.until(2)
    await restart(own, node, own.shutdown())
    t.match(await node.state(), { epoch, offset: 2, entries: [{ key: 'a' }, { key: 'b' }] })
    await eventually(async () => (await node.maps.expire()).keys === 1)

    t.match(await node.maps.readStream('ns:1', ALL, RECOVERABLE), { epoch, offset: 3, oldest: 1 })
  })

  for (const options of [PERSISTENT, RECOVERABLE]) {
    t.test(`with loss begins a new epoch of a ${options.mode} map with the entries that Redis has`, async (t) => {
      const own = await startRedis(t)
      const node = await startNode(t, own.url)
      await node.write('kept', '1', options)
      await node.write('removed', '1', options)
      await node.remove('removed', options)
      await client(t, own).save()
      const before = await node.write('lost', '1', options)
      await node.delivered.until(4)
      await restart(own, node, own.kill())
      const after = await node.state(options)
      t.not(after.epoch, before.epoch)
      t.same(
        after.entries.map(({ key }) => key),
        ['kept']
      )
      t.ok(
        after.entries.every(({ offset }) => offset <= after.offset),
        'no entry is newer than the position'
      )
      const stream = await node.maps.readStream('ns:1', ALL, options)
      t.match(stream, { epoch: after.epoch, publications: [], oldest: after.offset + 1 })

      t.match(await node.write('next', '1', options), { epoch: after.epoch, offset: after.offset + 1 })
    })
  }
})
