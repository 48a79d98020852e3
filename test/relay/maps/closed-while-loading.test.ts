import { once } from 'node:events'
import t from 'tap'
import { eventually } from '../../helper/eventually.js'
import { connectedClient, type RawClient } from '../../helper/raw-client.js'
import { startRedis } from '../../helper/redis.js'
import { type EdgeRelay, startRelay } from '../../helper/relay.js'
import { writeMany } from '../../helper/shown-map.js'

const FILE = {
  channel: {
    namespaces: [
      {
        name: 'fleet',
        subscription_type: 'map',
        allow_subscribe_for_client: true,
        map: { mode: 'persistent', default_page_size: 2, min_page_size: 1, max_page_size: 50 }
      }
    ]
  }
}
const ATTEMPTS = 20

const redis = await startRedis(t)
const ENGINES: Readonly<Record<string, Record<string, string>>> = {
  memory: {},
  redis: { RELAY_ENGINE: 'redis', REDIS_URL: redis.url }
}

const ENDS: Readonly<Record<string, (client: RawClient) => void>> = {
  'a close frame': ({ ws }) => ws.close(),
  'the end of its connection': ({ ws }) => ws.terminate(),
  'a malformed frame': (client) => client.send('{')
}

const openChannels = ({ relay }: EdgeRelay): number => relay.stats().channels

for (const [engine, env] of Object.entries(ENGINES)) {
  t.test(`clients that close while they load a map leave nothing behind on ${engine}`, async (t) => {
    const edge = await startRelay(t, FILE, env)
    await writeMany(edge, 'fleet:1', 8)
    for (const [title, end] of Object.entries(ENDS)) {
      for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
        const client = await connectedClient(t, edge.url)
        const subscribe = { channel: 'fleet:1', type: 1, limit: 2 }
        const { subscribe: page } = await client.request({ id: 2, subscribe: { ...subscribe, phase: 2 } })
        const position = { offset: Number(page?.offset), epoch: page?.epoch }
        // In one segment with the end: the relay reads both before its engine answers.
        client.send({ id: 3, subscribe: { ...subscribe, ...position, phase: 1 } })
        end(client)
        if (client.ws.readyState !== client.ws.CLOSED) await once(client.ws, 'close')
      }
      await eventually(() => edge.relay.stats().clients === 0)
      await eventually(() => openChannels(edge) === 0)
      t.equal(openChannels(edge), 0, `after ${title}`)
    }
  })
}
