import t, { type Test } from 'tap'
import { connectedClient, type Json } from '../helper/raw-client.js'
import { startRedis } from '../helper/redis.js'
import { event, officialClient, startRelay } from '../helper/relay.js'
import { startWorkers } from '../helper/relay-workers.js'

// The contract of snapshots: every engine produces the same ones, at every node.

const NAMESPACES = {
  channel: {
    namespaces: [
      {
        name: 'floor',
        allow_subscribe_for_client: true,
        history_size: 4,
        history_ttl: '3600s',
        force_recovery: true,
        conflate: 'data[].id',
        entry_time: 'at',
        snapshot: true
      }
    ]
  }
}

interface World {
  /** One for each node. With workers, connections are distributed over them. */
  readonly urls: readonly string[]
  api(method: string, request: Json): Promise<unknown>
}

const WORLDS: Readonly<Record<string, (t: Test) => Promise<World>>> = {
  'a relay in one process': async (t) => {
    const edge = await startRelay(t, NAMESPACES)
    return { urls: [edge.url, edge.url], api: (method, request) => edge.api(method, request) }
  },
  'two relays on one Redis': async (t) => {
    const { url } = await startRedis(t)
    const start = () => startRelay(t, NAMESPACES, { RELAY_ENGINE: 'redis', REDIS_URL: url })
    const [one, other] = [await start(), await start()]
    // Through one node; the clients of the other must see the same.
    return { urls: [one.url, other.url], api: (method, request) => one.api(method, request) }
  },
  'two workers': async (t) => {
    const workers = await startWorkers(t, 2, NAMESPACES)
    return { urls: [workers.url, workers.url, workers.url, workers.url], api: workers.api }
  }
}

const PUBLICATIONS: readonly Json[] = [
  { n: 1, data: [{ id: 'gone', at: 1 }] },
  {
    n: 2,
    data: [
      { id: 17, at: 20 },
      { id: '17', at: 1 }
    ]
  },
  { n: 3, data: [{ id: 17, at: '1970-01-01T00:00:00.010Z' }] },
  { n: 4, data: [{ id: 'é', at: 5, text: '"\\\u2028' }] },
  { other: true }
]

const SNAPSHOT = {
  n: 4,
  data: [
    { id: 17, at: 20 },
    { id: '17', at: 1 },
    { id: 'é', at: 5, text: '"\\\u2028' }
  ]
}

for (const [name, start] of Object.entries(WORLDS)) {
  t.test(`snapshots of ${name} are the retained history merged by key`, async (t) => {
    const { urls, api } = await start(t)
    const subscribed = async (url: string): Promise<Json> => {
      const client = await connectedClient(t, url)
      return (await client.request({ id: 2, subscribe: { channel: 'floor:1' } })).subscribe as Json
    }
    for (const data of PUBLICATIONS) await api('publish', { channel: 'floor:1', data })
    // The first subscriber of a node, and one that uses its result.
    for (const url of [...urls, ...urls]) {
      const { offset, publications } = await subscribed(url)
      t.same([offset, publications], [5, [{ data: SNAPSHOT, offset: 5 }]])
    }
    await api('publish', { channel: 'floor:1', data: { n: 6, data: [{ id: 'new', at: 6 }] } })
    for (const url of urls) {
      const { offset, publications } = await subscribed(url)
      t.match(publications, [
        {
          data: {
            n: 6,
            data: [{ id: 17, at: '1970-01-01T00:00:00.010Z' }, { id: 'é' }, { id: 'new' }]
          },
          offset: 6
        }
      ])
      t.equal(offset, 6)
    }
    await api('history_remove', { channel: 'floor:1' })
    for (const url of urls) {
      const { offset, publications } = await subscribed(url)
      t.same([offset, publications], [6, undefined])
    }
    await api('publish', { channel: 'floor:1', data: { n: 7, data: [] } })
    for (const url of urls) t.same((await subscribed(url)).publications, [{ data: { n: 7, data: [] }, offset: 7 }])
  })
}

t.test('the official client receives a snapshot larger than queue_max_size over every transport', async (t) => {
  const edge = await startRelay(t, { ...NAMESPACES, client: { queue_max_size: 10_000 } })
  const data = { data: Array.from({ length: 5000 }, (_, id) => ({ id, filler: 'x'.repeat(100) })) }
  await edge.publish('floor:1', data)
  for (const transport of ['websocket', 'http_stream', 'sse'] as const) {
    const client = officialClient(t, edge, transport)
    const subscription = client.newSubscription('floor:1')
    const received = event<{ data: unknown }>(subscription, 'publication')
    subscription.subscribe()
    client.connect()

    t.same((await received).data, data, transport)
    client.disconnect()
  }
})
