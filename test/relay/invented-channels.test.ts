import { queryObjects } from 'node:v8'
import { Redis } from 'ioredis'
import t, { type Test } from 'tap'
import { ChannelStream } from '../../src/relay/engine/memory-stream.js'
import { connectedClient } from '../helper/raw-client.js'
import { startRedis } from '../helper/redis.js'
import { type EdgeRelay, startRelay } from '../helper/relay.js'

const NAMES = 100
const FILE = {
  channel: {
    namespaces: [
      {
        name: 'room',
        allow_subscribe_for_client: true,
        allow_history_for_client: true,
        history_size: 10,
        history_ttl: '300s',
        force_recovery: true
      }
    ]
  }
}

/** A client that subscribes to invented names, reads their history and leaves them again. */
const inventNames = async (t: Test, { url }: EdgeRelay): Promise<void> => {
  const client = await connectedClient(t, url)
  for (let n = 0; n < NAMES; n++) {
    const channel = `room:invented-${n}`
    const { subscribe } = await client.request({ id: 3 * n + 2, subscribe: { channel } })
    t.match(subscribe, { positioned: true, epoch: /./ })
    await client.request({ id: 3 * n + 3, history: { channel, limit: 1 } })
    await client.request({ id: 3 * n + 4, unsubscribe: { channel } })
  }
}

/** A client that was away during the first publication of a channel. */
const recoversFirst = async (t: Test, relay: EdgeRelay): Promise<void> => {
  const client = await connectedClient(t, relay.url)
  const channel = 'room:new'
  const { subscribe } = await client.request({ id: 2, subscribe: { channel } })
  client.ws.terminate()
  await client.closed
  await relay.publish(channel, 1)
  const again = await connectedClient(t, relay.url)
  const since = { recover: true, epoch: subscribe?.epoch, offset: 0 }
  const reply = await again.request({ id: 2, subscribe: { channel, ...since } })

  t.match(reply.subscribe, { recovered: true, epoch: subscribe?.epoch, publications: [{ data: 1, offset: 1 }] })
}

t.test('the memory engine', async (t) => {
  const relay = await startRelay(t, FILE)

  t.test('stores nothing for channels that have never had a publication', async (t) => {
    const streams = (): number => queryObjects(ChannelStream, { format: 'count' })
    const before = streams()
    await inventNames(t, relay)
    // Other relays in this process may make some meanwhile.
    t.ok(streams() < before + NAMES / 2, `${streams()} streams, ${before} before`)
  })

  t.test('recovers the first publication of a channel', (t) => recoversFirst(t, relay))
})

t.test('the Redis engine', async (t) => {
  const { url } = await startRedis(t)
  const redis = new Redis(url)
  t.teardown(() => redis.disconnect())
  const relay = await startRelay(t, FILE, { RELAY_ENGINE: 'redis', REDIS_URL: url })

  t.test('stores nothing for channels that have never had a publication', async (t) => {
    await inventNames(t, relay)
    t.same(await redis.keys('*invented*'), [])
  })

  t.test('recovers the first publication of a channel', (t) => recoversFirst(t, relay))
})
