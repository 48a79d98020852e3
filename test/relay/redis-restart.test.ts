import { Redis } from 'ioredis'
import t, { type Test } from 'tap'
import { eventually } from '../helper/eventually.js'
import { connectedClient } from '../helper/raw-client.js'
import { startRedis } from '../helper/redis.js'
import { collect, type EdgeRelay, event, officialClient, startRelay } from '../helper/relay.js'
import { required } from '../helper/required.js'

const FILE = {
  channel: {
    namespaces: [
      { name: 'seq', allow_subscribe_for_client: true, history_size: 100, history_ttl: '300s', force_recovery: true }
    ]
  }
}

const startRelays = async (t: Test, url: string): Promise<readonly [EdgeRelay, EdgeRelay]> => {
  const start = () => startRelay(t, FILE, { RELAY_ENGINE: 'redis', REDIS_URL: url })
  return [await start(), await start()]
}

const health = async ({ url }: EdgeRelay): Promise<number> => (await fetch(`${url}/health`)).status

t.test('clients of two relays recover when Redis is restarted with all its data', async (t) => {
  const redis = await startRedis(t, { args: ['--appendonly', 'yes'] })
  const relays = await startRelays(t, redis.url)
  const [one, other] = relays
  const clients = await Promise.all(
    relays.map(async (relay) => {
      const client = officialClient(t, relay, 'websocket')
      const subscription = client.newSubscription('seq:1', { minResubscribeDelay: 20, maxResubscribeDelay: 200 })
      const received = collect(subscription)
      const lost: unknown[] = []
      subscription.on('subscribed', (context) => {
        if (context.wasRecovering && !context.recovered) lost.push(context)
      })
      const subscribed = event(subscription, 'subscribed')
      subscription.subscribe()
      client.connect()
      await subscribed
      return { client, received, lost }
    })
  )
  const { epoch } = await one.publish('seq:1', 1)
  const [away] = clients
  await away?.received.until(({ length }) => length === 1)
  away?.client.disconnect()
  await other.publish('seq:1', 2)
  await redis.kill()
  for (const relay of relays) await eventually(async () => (await health(relay)) === 503)
  await redis.restart()
  for (const relay of relays) await eventually(async () => (await health(relay)) === 200)
  t.match(await one.publish('seq:1', 3), { epoch, offset: 3 })
  away?.client.connect()

  for (const { received, lost } of clients) {
    await received.until(({ length }) => length === 3)
    t.same(received.data, [1, 2, 3])
    t.same(lost, [])
  }
})

t.test(
  'a client that was ahead of a Redis that lost data is not recovered, whatever was published since',
  async (t) => {
    const redis = await startRedis(t)
    const relays = await startRelays(t, redis.url)
    const [one, other] = relays
    await one.publish('seq:1', 'kept')
    const raw = new Redis(redis.url)
    raw.on('error', () => undefined)
    t.teardown(() => raw.disconnect())
    await raw.save()
    const position = await one.publish('seq:1', 'lost')
    await redis.kill()
    for (const relay of relays) await eventually(async () => (await health(relay)) === 503)
    await redis.restart()
    for (const relay of relays) await eventually(async () => (await health(relay)) === 200)
    for (let n = 0; n < 5; n++) await other.publish('seq:1', `new ${n}`)

    const client = await connectedClient(t, one.url)
    const reply = await client.request({ id: 2, subscribe: { channel: 'seq:1', recover: true, ...position } })
    const result = required(reply.subscribe)
    t.match(result, { was_recovering: true, epoch: /^.+$/ })
    t.notOk(result.recovered)
    t.not(result.epoch, position.epoch)
  }
)
