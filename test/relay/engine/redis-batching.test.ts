import { once } from 'node:events'
import { setImmediate } from 'node:timers/promises'
import t from 'tap'
import { WriteBatcher } from '../../../src/relay/engine/redis/batching.js'
import { openConnection } from '../../../src/relay/engine/redis/connection.js'
import { parseRedisUrl } from '../../../src/shared/redis-address.js'
import { startRedis } from '../../helper/redis.js'

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
