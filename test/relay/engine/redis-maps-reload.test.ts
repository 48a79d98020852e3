import t from 'tap'
import { PLAIN_PUBLICATION } from '../../../src/relay/core/publish/publish.js'
import { startRedis } from '../../helper/redis.js'
import { ALL, Delivered, WITH_HISTORY } from './contract.js'
import { PLAIN_WRITE, RECOVERABLE } from './map-contract.js'
import { redisEngine } from './redis-fixture.js'

const redis = await startRedis(t)

t.test('a channel that was a map is an empty stream after a reload, and expired keys are not appended', async (t) => {
  const { broker, history, maps } = redisEngine(t, redis.url)
  await broker.start(new Delivered())
  const options = { ...RECOVERABLE, keyTtlMs: 1 }
  const written = await maps.write('ns:1', { ...PLAIN_WRITE, key: 'a', data: '1' }, options)
  const page = await history.read('ns:1', ALL, WITH_HISTORY)
  t.match(page, { offset: 0, publications: [] })
  t.not(page.epoch, written === 'full' ? '' : written.epoch)
  await broker.publish('ns:1', { ...PLAIN_PUBLICATION, data: '2' }, WITH_HISTORY)
  await maps.expire()
  t.match(await history.read('ns:1', ALL, WITH_HISTORY), { offset: 1, publications: [{ data: '2', offset: 1 }] })

  t.same((await maps.readState('ns:1', { after: '', limit: -1 }, options)).entries, [], 'a new map if it is one again')
})
