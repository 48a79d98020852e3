import { once } from 'node:events'
import { setImmediate } from 'node:timers/promises'
import { Redis } from 'ioredis'
import t from 'tap'
import { PLAIN_PUBLICATION } from '../../../src/relay/core/publish/publish.js'
import { WriteBatcher } from '../../../src/relay/engine/redis/batching.js'
import { openConnection } from '../../../src/relay/engine/redis/connection.js'
import { parseRedisUrl } from '../../../src/shared/redis-address.js'
import { startRedis } from '../../helper/redis.js'
import { ALL, Delivered, WITH_HISTORY } from './contract.js'
import { redisEngine } from './redis-fixture.js'

t.test('the commands of one event loop turn leave in one write', async (t) => {
  const { url } = await startRedis(t)
  const [address] = parseRedisUrl(url)
  if (address === undefined) throw new Error('the URL has no address')
  const redis = openConnection(address, 'commands')
  t.teardown(() => redis.disconnect())
  await once(redis, 'ready')
  let sent = false
  const batcher = new WriteBatcher(redis, () => {
    sent = true
  })
  batcher.cork()
  batcher.cork()
  const replies = Promise.all([redis.set('a', '1'), redis.get('a')])
  t.equal(redis.stream.writableCorked, 1)
  t.ok(redis.stream.writableLength > 0, 'both commands wait')
  await setImmediate()

  t.equal(redis.stream.writableCorked, 0)
  t.ok(sent, 'further commands were collected before the write')
  t.same(await replies, ['OK', '1'])
})

t.test('equal reads of the history in one event loop turn are one script call', async (t) => {
  const { url } = await startRedis(t)
  const { broker, history } = redisEngine(t, url)
  await broker.start(new Delivered())
  await broker.publish('ns:1', { ...PLAIN_PUBLICATION, data: '1' }, WITH_HISTORY)
  const redis = new Redis(url)
  t.teardown(() => redis.disconnect())
  // The first read loads the script.
  await history.read('ns:1', ALL, WITH_HISTORY)
  await redis.config('RESETSTAT')

  const pages = await Promise.all([
    ...Array.from({ length: 50 }, () => history.read('ns:1', ALL, WITH_HISTORY)),
    history.read('ns:1', { ...ALL, limit: 0 }, WITH_HISTORY),
    history.read('ns:2', ALL, WITH_HISTORY)
  ])
  t.match(await redis.info('commandstats'), /cmdstat_evalsha:calls=3,/)
  t.same(
    pages.map(({ publications }) => publications.length),
    [...Array.from({ length: 50 }, () => 1), 0, 0]
  )

  await broker.publish('ns:1', { ...PLAIN_PUBLICATION, data: '2' }, WITH_HISTORY)
  t.equal((await history.read('ns:1', ALL, WITH_HISTORY)).publications.length, 2, 'a later read is a new call')
})
