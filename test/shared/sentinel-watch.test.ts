import { Redis } from 'ioredis'
import t from 'tap'
import { parseRedisUrl } from '../../src/shared/redis-address.js'
import { watchMaster } from '../../src/shared/sentinel-watch.js'
import { eventually } from '../helper/eventually.js'
import { freePort, LOOPBACK } from '../helper/free-port.js'
import { startRedis } from '../helper/redis.js'

t.test('the watch of a master reports the switches that a sentinel publishes', async (t) => {
  // A plain server publishes messages as a sentinel does. The first sentinel of the address does not respond.
  const server = await startRedis(t)
  const [address] = parseRedisUrl(
    `redis+sentinel://${LOOPBACK}:${await freePort()},${LOOPBACK}:${server.port}/mymaster`
  )
  if (address?.kind !== 'sentinel') throw new Error('not a Sentinel address')
  const sentinel = new Redis(server.url)
  t.teardown(() => sentinel.disconnect())
  const switches: string[] = []
  const stop = watchMaster(address, (host, port) => switches.push(`${host}:${port}`))
  t.teardown(stop)
  const publish = (message: string): Promise<number> => sentinel.publish('+switch-master', message)
  await eventually(async () => (await publish('another 10.0.0.1 1 10.0.0.2 2')) === 1)
  await publish('mymaster 10.0.0.1 6379 10.0.0.2 6380')
  await eventually(() => switches.length > 0)
  t.same(switches, ['10.0.0.2:6380'], 'switches of other masters are ignored')

  await sentinel.call('CLIENT', 'KILL', 'TYPE', 'pubsub')
  await eventually(async () => (await publish('mymaster 10.0.0.2 6380 10.0.0.1 6379')) === 1)
  await eventually(() => switches.includes('10.0.0.1:6379'), { label: 'a switch after a connection loss' })

  stop()
  await eventually(async () => (await publish('another 10.0.0.1 1 10.0.0.2 2')) === 0, {
    label: 'the end of the watch'
  })
})
