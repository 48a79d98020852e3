import t from 'tap'
import { startRedis } from '../../helper/redis.js'
import { engineContract } from './contract.js'
import { redisEngine } from './redis-fixture.js'

const { url } = await startRedis(t)

engineContract('the Redis engine', async (t) => redisEngine(t, url))
