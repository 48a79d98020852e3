import t from 'tap'
import { startRedis } from '../../helper/redis.js'
import { channelStateContract } from './channel-state-contract.js'
import { channelStateModel } from './channel-state-model.js'
import { engineContract } from './contract.js'
import { engineModel } from './model.js'
import { redisEngine } from './redis-fixture.js'

const { url } = await startRedis(t)
const other = await startRedis(t)

engineContract('the Redis engine', async (t) => redisEngine(t, url))
engineModel('the Redis engine', async (t) => redisEngine(t, url))
engineContract('the Redis engine on two servers', async (t) => redisEngine(t, `${url},${other.url}`))
channelStateContract('the Redis engine', async (t) => ({ ...redisEngine(t, url), elapse: () => undefined }))
channelStateContract('the Redis engine on two servers', async (t) => ({
  ...redisEngine(t, `${url},${other.url}`),
  elapse: () => undefined
}))
channelStateModel('the Redis engine', async (t) => ({ ...redisEngine(t, url), elapse: () => undefined }), { runs: 50 })
engineModel('the Redis engine on two servers', async (t) => redisEngine(t, `${other.url},${url}`), { runs: 30 })
