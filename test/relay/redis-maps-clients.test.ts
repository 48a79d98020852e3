import { Redis } from 'ioredis'
import t, { type Test } from 'tap'
import { eventually } from '../helper/eventually.js'
import { startRedis } from '../helper/redis.js'
import { connectClient, officialClient, startRelay } from '../helper/relay.js'
import { mapPublisher, ShownMap, writeMany } from '../helper/shown-map.js'

const OPEN = { subscription_type: 'map', allow_subscribe_for_client: true }
const PAGES = { default_page_size: 10, min_page_size: 1, max_page_size: 50 }
const FILE = {
  channel: {
    namespaces: [
      { name: 'recoverable', ...OPEN, map: { mode: 'recoverable', key_ttl: '1h', ...PAGES } },
      { name: 'ephemeral', ...OPEN, map: { mode: 'ephemeral', key_ttl: '1h', ...PAGES } }
    ]
  }
}

t.test('clients of two relays on one Redis', async (t) => {
  const { url } = await startRedis(t)
  const start = (t: Test) => startRelay(t, FILE, { RELAY_ENGINE: 'redis', REDIS_URL: url })
  const [one, other] = [await start(t), await start(t)]
  const redis = new Redis(url)
  t.teardown(() => redis.disconnect())

  for (const mode of ['recoverable', 'ephemeral']) {
    const follow = async (t: Test, channel: string) => {
      const client = await connectClient(officialClient(t, one, 'websocket'))
      const options = { pageSize: 7, minResubscribeDelay: 1, maxResubscribeDelay: 20 }
      const subscription = client.newMapSubscription(channel, options)
      const shown = new ShownMap(subscription, (data) => data)
      subscription.subscribe()
      return shown
    }

    t.test(`a client has the entries of a map with the mode ${mode} that the other relay changes`, async (t) => {
      const channel = `${mode}:changing`
      await writeMany(other, channel, 100)
      const { write, remove, entries } = mapPublisher(other, channel)
      const shown = await follow(t, channel)
      for (let round = 0; shown.syncs.length === 0 || round < 40; round++) {
        const key = `k${String((round * 37) % 120).padStart(3, '0')}`
        await (round % 3 === 0 ? remove(key) : write(key, { round }))
      }
      const expected = JSON.stringify(await entries())
      await eventually(() => JSON.stringify(shown.state) === expected)
      t.equal(JSON.stringify(shown.state), expected)
    })

    t.test(`a client of a map with the mode ${mode} misses nothing if the relay is cut off from Redis`, async (t) => {
      const channel = `${mode}:cut`
      await writeMany(other, channel, 30)
      const { write, remove, entries } = mapPublisher(other, channel)
      const shown = await follow(t, channel)
      await eventually(() => shown.syncs.length === 1)
      for (let round = 0; round < 5; round++) {
        await redis.call('CLIENT', 'KILL', 'TYPE', 'pubsub')
        await eventually(async () => !('error' in (await write('k000', { round }))))
        await remove(`k00${round + 1}`)
      }
      const expected = JSON.stringify(await entries())
      await eventually(() => JSON.stringify(shown.state) === expected)
      t.equal(JSON.stringify(shown.state), expected)
    })
  }
})
