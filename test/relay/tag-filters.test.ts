import type { Centrifuge, Subscription } from 'centrifuge'
import t, { type Test } from 'tap'
import { eventually } from '../helper/eventually.js'
import { send } from '../helper/http.js'
import { connectedClient } from '../helper/raw-client.js'
import { type EdgeRelay, event, officialClient, officialProtobufClient, startRelay } from '../helper/relay.js'
import { relayToken } from '../helper/relay-rules.js'

const CONFIG = {
  channel: {
    namespaces: [
      {
        name: 'floor',
        allow_subscribe_for_client: true,
        allow_tags_filter: true,
        history_size: 100,
        history_ttl: '60s',
        force_recovery: true,
        allowed_delta_types: ['fossil']
      },
      { name: 'closed', allow_subscribe_for_client: true }
    ]
  }
}

const CELL = { key: 'cell', cmp: 'eq', val: '12' } as const

const publish = async ({ api }: EdgeRelay, data: unknown, tags?: Record<string, string>): Promise<void> => {
  await api('publish', { channel: 'floor:1', data, ...(tags && { tags }) })
}

const jsonOf = (data: unknown): unknown =>
  data instanceof Uint8Array ? JSON.parse(Buffer.from(data).toString()) : data

for (const [codec, create] of [
  ['JSON', officialClient],
  ['protobuf', officialProtobufClient]
] as const) {
  const subscribe = async (t: Test, relay: EdgeRelay, options = {}) => {
    const client: Centrifuge = create(t, relay, 'websocket', { token: relayToken({ sub: '42' }) })
    const subscription: Subscription = client.newSubscription('floor:1', { tagsFilter: CELL, ...options })
    const received: unknown[] = []
    subscription.on('publication', ({ data }) => received.push(jsonOf(data)))
    const subscribed = event(subscription, 'subscribed')
    subscription.subscribe()
    client.connect()
    await subscribed
    return { client, subscription, received }
  }

  t.test(`the official client with ${codec} receives only publications that its tag filter matches`, async (t) => {
    const relay = await startRelay(t, CONFIG)
    const filtered = await subscribe(t, relay)
    const unfiltered = await subscribe(t, relay, { tagsFilter: null })
    await publish(relay, 'a', { cell: '12' })
    await publish(relay, 'b', { cell: '13' })
    await publish(relay, 'c')
    await publish(relay, 'd', { cell: '12', other: 'x' })

    await eventually(() => unfiltered.received.length === 4 && filtered.received.length === 2)
    t.same(filtered.received, ['a', 'd'])
    const { body } = await send(relay.url, '/metrics', {})
    t.match(body, 'centrifugo_node_tags_filter_dropped_publications{channel_namespace="floor"} 2')
  })

  t.test(`a filtered client with ${codec} recovers what its filter matches, and stays positioned`, async (t) => {
    const relay = await startRelay(t, CONFIG)
    const { client, subscription, received } = await subscribe(t, relay)
    await publish(relay, 'a', { cell: '12' })
    await eventually(() => received.length === 1)
    client.disconnect()
    await publish(relay, 'b', { cell: '13' })
    await publish(relay, 'c', { cell: '12' })
    await publish(relay, 'd', { cell: '13' })
    const subscribed = event<{ recovered: boolean }>(subscription, 'subscribed')
    client.connect()

    t.equal((await subscribed).recovered, true)
    await publish(relay, 'e', { cell: '13' })
    await publish(relay, 'f', { cell: '12' })
    await eventually(() => received.includes('f'))
    // A position check would end the subscription if skipped publications counted as lost.
    relay.advance(41_000)
    relay.advance(41_000)
    await publish(relay, 'g', { cell: '12' })
    await eventually(() => received.includes('g'))
    t.same(received, ['a', 'c', 'f', 'g'])
  })
}

t.test('subscribers whose filters differ receive their own publications, and leave nothing behind', async (t) => {
  const relay = await startRelay(t, CONFIG)
  const clients = await Promise.all(
    Array.from({ length: 20 }, async (_, cell) => {
      const client = await connectedClient(t, relay.url)
      const filter = { key: 'cell', cmp: 'eq', val: String(cell) }
      await client.request({ id: 2, subscribe: { channel: 'floor:1', tf: filter } })
      return client
    })
  )
  for (let cell = 0; cell < 20; cell++) await publish(relay, cell, { cell: String(cell) })

  for (const [cell, client] of clients.entries())
    t.match(await client.next(), { push: { channel: 'floor:1', pub: { data: cell } } })
  for (const { ws } of clients) ws.close()
  await eventually(() => relay.relay.openChannels.size === 0)
})

t.test('the first publication to a filtered subscriber has the epoch of the stream', async (t) => {
  const relay = await startRelay(t, CONFIG)
  const client = await connectedClient(t, relay.url)
  const { subscribe } = await client.request({ id: 2, subscribe: { channel: 'floor:1', tf: CELL } })
  await publish(relay, 'a', { cell: '12' })

  t.same(await client.next(), {
    push: { channel: 'floor:1', pub: { data: 'a', offset: 1, tags: { cell: '12' }, epoch: subscribe?.epoch } }
  })
})

for (const [title, subscribe] of [
  ['an invalid tag filter', { channel: 'floor:1', tf: { key: 'cell', cmp: 'near', val: '1' } }],
  ['a tag filter on a namespace that does not allow it', { channel: 'closed:1', tf: CELL }],
  ['a tag filter together with deltas', { channel: 'floor:1', tf: CELL, delta: 'fossil' }]
] as const) {
  t.test(`${title} is error 107`, async (t) => {
    const { url } = await startRelay(t, CONFIG)
    const client = await connectedClient(t, url)
    t.match(await client.request({ id: 2, subscribe }), { error: { code: 107 } })
  })
}
