import { once } from 'node:events'
import t, { type Test } from 'tap'
import { eventually } from '../../helper/eventually.js'
import { connectedClient, type RawClient } from '../../helper/raw-client.js'
import { startRedis } from '../../helper/redis.js'
import { startRelay } from '../../helper/relay.js'
import { startWorkers } from '../../helper/relay-workers.js'
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

interface Subject {
  readonly url: string
  /** Connections, subscriptions and open channels. */
  counts(): Promise<readonly number[]>
}

type Env = Readonly<Record<string, string>>

const oneProcess = async (t: Test, env: Env): Promise<Subject> => {
  const edge = await startRelay(t, FILE, env)
  await writeMany(edge, 'fleet:1', 8)
  return {
    url: edge.url,
    counts: async () => {
      const { clients, subscriptions, channels } = edge.relay.stats()
      return [clients, subscriptions, channels]
    }
  }
}

const workers = async (t: Test, env: Env): Promise<Subject> => {
  const { url, api, nodes } = await startWorkers(t, 2, FILE, env)
  for (let key = 0; key < 8; key++) await api('map_publish', { channel: 'fleet:1', key: `k${key}`, data: {} })
  return {
    url,
    counts: async () =>
      (await nodes()).reduce<number[]>(
        ([clients = 0, subscriptions = 0, channels = 0], node) => [
          clients + node.num_clients,
          subscriptions + node.num_subs,
          channels + node.num_channels
        ],
        []
      )
  }
}

const redis = await startRedis(t)
const REDIS = { RELAY_ENGINE: 'redis', REDIS_URL: redis.url }
const SUBJECTS: Readonly<Record<string, (t: Test) => Promise<Subject>>> = {
  memory: (t) => oneProcess(t, {}),
  redis: (t) => oneProcess(t, REDIS),
  'two workers': (t) => workers(t, {}),
  'two workers on redis': (t) => workers(t, REDIS)
}

const ENDS: Readonly<Record<string, (client: RawClient) => void>> = {
  'a close frame': ({ ws }) => ws.close(),
  'the end of its connection': ({ ws }) => ws.terminate(),
  'a malformed frame': (client) => client.send('{'),
  'an unexpected pong': (client) => client.send('{}')
}

for (const [subject, start] of Object.entries(SUBJECTS)) {
  t.test(`clients that close while they load a map leave nothing behind on ${subject}`, async (t) => {
    const { url, counts } = await start(t)
    for (const [title, end] of Object.entries(ENDS)) {
      for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
        const client = await connectedClient(t, url)
        const subscribe = { channel: 'fleet:1', type: 1, limit: 2 }
        const { subscribe: page } = await client.request({ id: 2, subscribe: { ...subscribe, phase: 2 } })
        const position = { offset: Number(page?.offset), epoch: page?.epoch }
        // In one segment with the end: the relay reads both before its engine answers.
        client.send({ id: 3, subscribe: { ...subscribe, ...position, phase: 1 } })
        end(client)
        if (client.ws.readyState !== client.ws.CLOSED) await once(client.ws, 'close')
      }
      await eventually(async () => (await counts()).every((count) => count === 0), {
        label: `nothing is left after ${title}`
      })
    }
  })
}
