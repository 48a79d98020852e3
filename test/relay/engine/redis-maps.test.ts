import t from 'tap'
import { startRedis } from '../../helper/redis.js'
import { mapContract } from './map-contract.js'
import { redisEngine } from './redis-fixture.js'

const { url } = await startRedis(t)
const other = await startRedis(t)

mapContract('the Redis engine', async (t) => redisEngine(t, url))
mapContract('the Redis engine on two servers', async (t) => redisEngine(t, `${url},${other.url}`))
