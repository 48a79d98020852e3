import t from 'tap'
import { eventually } from '../helper/eventually.js'
import { connectedClient } from '../helper/raw-client.js'
import { startRedis } from '../helper/redis.js'
import { startRelay } from '../helper/relay.js'
import { startTcpProxy } from '../helper/tcp-proxy.js'

const SUBSCRIPTIONS = 'gatehouse-relay-subscriptions'

const FILE = {
  channel: {
    namespaces: [
      { name: 'kept', allow_subscribe_for_client: true, history_size: 10, history_ttl: '60s', force_recovery: true },
      { name: 'plain', allow_subscribe_for_client: true }
    ]
  }
}

for (const namespace of ['kept', 'plain']) {
  t.test(
    `a second subscriber of ${namespace}:1 is not confirmed while the subscriber connection is down`,
    async (t) => {
      const redis = await startRedis(t)
      const proxy = await startTcpProxy(t, redis.port)
      const edge = await startRelay(t, FILE, {
        RELAY_ENGINE: 'redis',
        REDIS_URL: `redis://127.0.0.1:${proxy.port}`
      })
      const channel = `${namespace}:1`
      const first = await connectedClient(t, edge.url, 'first')
      t.match(await first.request({ id: 2, subscribe: { channel } }), { subscribe: {} })
      const second = await connectedClient(t, edge.url, 'second')
      const unblock = proxy.block(SUBSCRIPTIONS)
      await eventually(async () => (await fetch(`${edge.url}/health`)).status === 503)
      t.match(await second.request({ id: 2, subscribe: { channel } }), { error: { code: 100, temporary: true } })
      unblock()
      await eventually(async () => (await fetch(`${edge.url}/health`)).status === 200)

      t.match(await second.request({ id: 3, subscribe: { channel } }), { subscribe: {} })
    }
  )
}
