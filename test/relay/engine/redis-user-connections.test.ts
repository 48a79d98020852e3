import { Redis } from 'ioredis'
import t from 'tap'
import { EngineError } from '../../../src/relay/core/engine.js'
import { RedisKeys } from '../../../src/relay/engine/redis/keys.js'
import { eventually } from '../../helper/eventually.js'
import { startRedis } from '../../helper/redis.js'
import { Delivered } from './contract.js'
import { redisEngine } from './redis-fixture.js'

t.test('a connection that Redis could not count is counted later, also if others were counted before', async (t) => {
  const { url } = await startRedis(t)
  const { engine, prefix } = redisEngine(t, url)
  await engine.broker.start(new Delivered())
  const raw = new Redis(url)
  t.teardown(() => raw.disconnect())
  const { userConnections } = engine
  t.equal(await userConnections.add({ user: '42', node: 'n', client: 'first' }, 10), null)
  const key = new RedisKeys(prefix).user('43')
  await raw.set(key, 'of a wrong type')
  await t.rejects(async () => userConnections.add({ user: '43', node: 'n', client: 'second' }, 10), EngineError)
  await raw.del(key)

  await eventually(async () => (await raw.zcard(key)) === 1)
})
