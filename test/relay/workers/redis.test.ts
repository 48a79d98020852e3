import t from 'tap'
import { eventually } from '../../helper/eventually.js'
import { send } from '../../helper/http.js'
import { connectedClient } from '../../helper/raw-client.js'
import { startRedis } from '../../helper/redis.js'
import { startWorkers } from '../../helper/relay-workers.js'

const FILE = {
  channel: {
    namespaces: [
      { name: 'seq', allow_subscribe_for_client: true, history_size: 10, history_ttl: '60s', force_recovery: true }
    ]
  }
}

t.test('workers on one Redis', async (t) => {
  const redis = await startRedis(t)
  const relay = await startWorkers(t, 2, FILE, { RELAY_ENGINE: 'redis', REDIS_URL: redis.url })

  t.test('each worker is a node, and clients see one relay', async (t) => {
    // Until each node has received the heartbeat of the other.
    await eventually(async () => (await relay.nodes()).length >= 2)
    const clients = await Promise.all(Array.from({ length: 4 }, () => connectedClient(t, relay.url)))
    for (const client of clients) await client.request({ id: 2, subscribe: { channel: 'seq:1' } })
    t.match(await relay.publish('seq:1', 1), { offset: 1 })
    t.match(await relay.publish('seq:1', 2), { offset: 2 })
    for (const client of clients) {
      t.match(await client.next(), { push: { pub: { data: 1, offset: 1 } } })
      t.match(await client.next(), { push: { pub: { data: 2, offset: 2 } } })
    }
    t.match((await send(relay.url, '/metrics')).body, /^centrifugo_node_num_clients 4$/m)
  })

  t.test('all workers stop with the relay', async (t) => {
    relay.program.signal('SIGTERM')
    t.same(await relay.program.exited, { code: 0, signal: null })
    t.equal(relay.program.stderr, '')
  })
})
