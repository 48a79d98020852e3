import t, { type Test } from 'tap'
import { startRedis } from '../helper/redis.js'
import { collect, event, officialClient, startRelay } from '../helper/relay.js'

const NAMESPACES = {
  channel: {
    namespaces: [
      {
        name: 'chat',
        allow_subscribe_for_client: true,
        history_size: 100,
        history_ttl: '300s',
        force_recovery: true,
        presence: true,
        join_leave: true,
        force_push_join_leave: true
      }
    ]
  }
}

t.test('two relays on one Redis', async (t) => {
  const { url } = await startRedis(t)
  const start = (t: Test) => startRelay(t, NAMESPACES, { RELAY_ENGINE: 'redis', REDIS_URL: url })
  const [one, other] = [await start(t), await start(t)]

  t.test('deliver at both what is published at either, in one order', async (t) => {
    const heard = await Promise.all(
      [one, other].map(async (edge) => {
        const client = officialClient(t, edge, 'websocket')
        const subscription = client.newSubscription('chat:1')
        const subscribed = event(subscription, 'subscribed')
        subscription.subscribe()
        client.connect()
        await subscribed
        return collect(subscription)
      })
    )
    const published = await Promise.all(
      Array.from({ length: 40 }, (_, n) => (n % 2 === 0 ? one : other).publish('chat:1', { n }))
    )
    for (const { until } of heard) await until(({ length }) => length >= 40)

    const order = published.map(({ offset }, n) => [offset, n] as const).sort(([a], [b]) => a - b)
    for (const { publications } of heard) {
      t.same(
        publications.map(({ offset, data }) => [offset, data.n]),
        order
      )
    }
  })
})
