import t from 'tap'
import { programOnPath } from '../../../scripts/lib/program-on-path.js'
import { environment } from '../../helper/environment.js'
import { startRedis } from '../../helper/redis.js'
import { engineContract } from './contract.js'
import { engineModel } from './model.js'
import { redisEngine } from './redis-fixture.js'

const { url } = await startRedis(t)
const other = await startRedis(t)

engineContract('the Redis engine', async (t) => redisEngine(t, url))
engineModel('the Redis engine', async (t) => redisEngine(t, url))
const valkey = programOnPath('valkey-server', environment.path)
if (valkey) {
  const { url } = await startRedis(t, { program: valkey })
  engineContract('the Redis engine with Valkey', async (t) => redisEngine(t, url))
} else {
  // Debian has a package since version 13.
  t.skip('the Redis engine with Valkey: valkey-server is not installed', () => undefined)
}

engineContract('the Redis engine on two servers', async (t) => redisEngine(t, `${url},${other.url}`))
engineModel('the Redis engine on two servers', async (t) => redisEngine(t, `${other.url},${url}`), { runs: 30 })
