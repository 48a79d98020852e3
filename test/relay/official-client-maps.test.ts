import type { Centrifuge, MapSubscriptionOptions } from 'centrifuge'
import t, { type Test } from 'tap'
import { DISCONNECT_SHUTDOWN } from '../../src/relay/core/codes.js'
import { eventually } from '../helper/eventually.js'
import {
  connectClient,
  type EdgeRelay,
  event,
  officialClient,
  officialProtobufClient,
  startRelay
} from '../helper/relay.js'
import { relayToken } from '../helper/relay-rules.js'
import { mapPublisher, ShownMap, writeMany } from '../helper/shown-map.js'
import type { ClientKind } from './official-client-contract.js'

const OPEN = { subscription_type: 'map', allow_subscribe_for_client: true }
const SMALL_PAGES = { default_page_size: 10, min_page_size: 1, max_page_size: 50 }
const RECOVERABLE = { mode: 'recoverable', key_ttl: '1h', ...SMALL_PAGES }
const FILE = {
  channel: {
    namespaces: [
      {
        name: 'fleet',
        ...OPEN,
        map: { ...RECOVERABLE, allow_publish_for_subscriber: true, allow_remove_for_subscriber: true },
        allow_tags_filter: true,
        allowed_delta_types: ['fossil'],
        delta_publish: true
      },
      { name: 'short', ...OPEN, map: { ...RECOVERABLE, stream_size: 2 } },
      { name: 'gone', ...OPEN, map: { mode: 'ephemeral', key_ttl: '1h', ...SMALL_PAGES } },
      { name: 'closed', subscription_type: 'map', map: RECOVERABLE }
    ]
  }
}

const KINDS: readonly Pick<ClientKind, 'name' | 'transports' | 'create' | 'encode' | 'decode'>[] = [
  {
    name: 'the client',
    transports: ['websocket', 'http_stream', 'sse'],
    create: officialClient,
    encode: (value) => value,
    decode: (data) => data
  },
  {
    name: 'the protobuf client',
    transports: ['websocket', 'http_stream'],
    create: officialProtobufClient,
    encode: (value) => Buffer.from(JSON.stringify(value)),
    decode: (data) => (data instanceof Uint8Array ? JSON.parse(Buffer.from(data).toString()) : data)
  }
]

for (const { name, transports, create, encode, decode } of KINDS) {
  for (const transport of transports) {
    const connected = async (t: Test, edge: EdgeRelay): Promise<Centrifuge> => connectClient(create(t, edge, transport))

    const follow = async (client: Centrifuge, channel: string, options: Partial<MapSubscriptionOptions> = {}) => {
      const subscription = client.newMapSubscription(channel, {
        minResubscribeDelay: 1,
        maxResubscribeDelay: 20,
        ...options
      })
      const shown = new ShownMap(subscription, decode)
      const subscribed = event(subscription as never, 'subscribed')
      subscription.subscribe()
      await subscribed
      return { subscription, shown }
    }

    t.test(`${name} over ${transport} loads a map in pages and follows its changes`, async (t) => {
      const edge = await startRelay(t, FILE)
      const { write, remove, entries } = mapPublisher(edge, 'fleet:1')
      await writeMany(edge, 'fleet:1', 33)
      const { shown } = await follow(await connected(t, edge), 'fleet:1')
      t.equal(shown.syncs.length, 1)
      t.equal(shown.entries.size, 33)
      await write('k000', { index: 'new' })
      await remove('k001')
      await write('a new key', 7)
      await eventually(() => shown.updates.length === 3)
      t.same(shown.state, await entries())
    })

    t.test(`${name} over ${transport} misses nothing that changes while it loads`, async (t) => {
      const edge = await startRelay(t, FILE)
      await writeMany(edge, 'fleet:1', 100)
      await writeMany(edge, 'gone:1', 100)
      const client = await connected(t, edge)
      const [fleet, gone] = [mapPublisher(edge, 'fleet:1'), mapPublisher(edge, 'gone:1')]
      let isLoading = true
      const changing = (async () => {
        for (let round = 0; isLoading || round < 40; round++) {
          const key = `k${String((round * 37) % 120).padStart(3, '0')}`
          for (const { write, remove } of [fleet, gone]) await (round % 3 === 0 ? remove(key) : write(key, { round }))
        }
      })()
      const followed = await Promise.all([
        follow(client, 'fleet:1', { pageSize: 7 }),
        follow(client, 'gone:1', { pageSize: 7 })
      ])
      isLoading = false
      await changing
      for (const [index, { shown }] of followed.entries()) {
        const expected = JSON.stringify(await [fleet, gone][index]?.entries())
        await eventually(() => JSON.stringify(shown.state) === expected)
        t.equal(JSON.stringify(shown.state), expected)
      }
    })

    t.test(`${name} over ${transport} recovers after a cut, without a second sync`, async (t) => {
      const edge = await startRelay(t, FILE)
      const { write, remove, entries } = mapPublisher(edge, 'fleet:1')
      await writeMany(edge, 'fleet:1', 20)
      const client = await connected(t, edge)
      const { subscription, shown } = await follow(client, 'fleet:1')
      const again = event<{ recovered: boolean; wasRecovering: boolean }>(subscription as never, 'subscribed')
      edge.relay.closeClients(10, DISCONNECT_SHUTDOWN)
      for (let round = 0; round < 15; round++) await write(`k00${round % 4}`, { round })
      await remove('k019')
      t.match(await again, { recovered: true, wasRecovering: true })
      const expected = JSON.stringify(await entries())
      await eventually(() => JSON.stringify(shown.state) === expected)
      t.equal(shown.syncs.length, 1)
    })

    t.test(`${name} over ${transport} starts from scratch if its position is lost`, async (t) => {
      const edge = await startRelay(t, FILE)
      const { write, entries } = mapPublisher(edge, 'short:1')
      await writeMany(edge, 'short:1', 5)
      const { shown } = await follow(await connected(t, edge), 'short:1')
      const offline = edge.relay.closeClients(10, DISCONNECT_SHUTDOWN)
      t.equal(offline, 0)
      const commands = Array.from({ length: 6 }, (_, round) => ({
        map_publish: { channel: 'short:1', key: 'k000', data: { round } }
      }))
      await edge.api('batch', { commands })
      await eventually(() => shown.syncs.length === 2)
      await write('after', 1)
      const expected = JSON.stringify(await entries())
      await eventually(() => JSON.stringify(shown.state) === expected)
      t.equal(JSON.stringify(shown.state), expected)
    })

    t.test(`${name} over ${transport} loads an ephemeral map again after a cut`, async (t) => {
      const edge = await startRelay(t, FILE)
      const { write, remove, entries } = mapPublisher(edge, 'gone:1')
      await writeMany(edge, 'gone:1', 12)
      const { shown } = await follow(await connected(t, edge), 'gone:1')
      edge.relay.closeClients(10, DISCONNECT_SHUTDOWN)
      await remove('k003')
      await eventually(() => shown.syncs.length === 2)
      await write('k004', 'new')
      await eventually(() => shown.entries.get('k004') === 'new')
      t.same(shown.state, await entries())
    })

    t.test(`${name} over ${transport} loads a map again after it was cleared`, async (t) => {
      const edge = await startRelay(t, FILE)
      const { write, clear } = mapPublisher(edge, 'fleet:1')
      await writeMany(edge, 'fleet:1', 12)
      const { shown } = await follow(await connected(t, edge), 'fleet:1')
      await clear()
      await write('first', 1)
      await eventually(() => shown.syncs.length === 2)
      t.same(shown.state, { first: 1 })
    })

    t.test(`${name} over ${transport} applies deltas per key, also after a removal and a recovery`, async (t) => {
      const edge = await startRelay(t, FILE)
      const { write, remove, entries } = mapPublisher(edge, 'fleet:1')
      const long = (value: unknown) => ({ text: 'a long text that does not change much', value })
      for (const key of ['a', 'b']) await write(key, long(0))
      const { subscription, shown } = await follow(await connected(t, edge), 'fleet:1', { delta: 'fossil' })
      for (let value = 1; value < 4; value++) for (const key of ['a', 'b', 'c']) await write(key, long(value))
      await remove('a')
      await write('a', long('again'))
      await write('a', long('and again'))
      await eventually(() => shown.updates.length === 12)
      t.same(shown.state, await entries())
      t.ok(subscription.deltaStats().numDeltaPayloads >= 6, 'patches were received')

      const again = event<{ recovered: boolean }>(subscription as never, 'subscribed')
      edge.relay.closeClients(10, DISCONNECT_SHUTDOWN)
      for (const value of [5, 6]) await write('b', long(value))
      await remove('c')
      t.match(await again, { recovered: true })
      await write('b', long(7))
      await eventually(() => JSON.stringify(shown.entries.get('b')) === JSON.stringify(long(7)))
      await eventually(() => !shown.entries.has('c'))
      t.same(shown.state, await entries())
    })

    t.test(`${name} over ${transport} receives the entries that its filter selects`, async (t) => {
      const edge = await startRelay(t, FILE)
      const { write } = mapPublisher(edge, 'fleet:1')
      await write('car', 1, { tags: { kind: 'car' } })
      await write('bus', 1, { tags: { kind: 'bus' } })
      const tagsFilter = { key: 'kind', cmp: 'eq', val: 'car' } as const
      const { shown } = await follow(await connected(t, edge), 'fleet:1', { tagsFilter })
      t.same(shown.state, { car: 1 })
      await write('car', 2, { tags: { kind: 'bus' } })
      await write('bus', 2, { tags: { kind: 'car' } })
      await eventually(() => shown.updates.length === 2)
      t.same(shown.state, { bus: 2 })
    })

    t.test(`${name} over ${transport} writes and removes entries`, async (t) => {
      const edge = await startRelay(t, FILE)
      const { subscription, shown } = await follow(await connected(t, edge), 'fleet:1')
      await subscription.publish('mine', encode({ x: 1 }))
      await eventually(() => shown.entries.has('mine'))
      t.same(shown.state, { mine: { x: 1 } })
      await subscription.remove('mine')
      await eventually(() => !shown.entries.has('mine'))
      t.equal(shown.updates.length, 2)
    })

    // A new subscription: the SDK takes replies of a given-up attempt for those of the next one of the same subscription. Over HTTP
    // each command is a request of its own, and a page may arrive after the unsubscribe command.
    if (transport === 'websocket')
      t.test(`${name} over ${transport} gives up loading, and loads again with a new subscription`, async (t) => {
        const edge = await startRelay(t, FILE)
        await writeMany(edge, 'fleet:1', 30)
        const client = await connected(t, edge)
        const first = client.newMapSubscription('fleet:1', { pageSize: 1 })
        first.subscribe()
        await eventually(() => [...edge.relay.clients].some(({ channelCount }) => channelCount > 0))
        client.removeSubscription(client.getSubscription('fleet:1'))
        const { shown } = await follow(client, 'fleet:1', { pageSize: 1 })
        t.equal(shown.entries.size, 30)
        t.equal(shown.syncs.length, 1)
      })

    t.test(`${name} over ${transport} refreshes the token of a map before it expires`, async (t) => {
      const edge = await startRelay(t, FILE)
      await writeMany(edge, 'closed:1', 15)
      let requests = 0
      const getToken = async (): Promise<string> => {
        requests++
        return relayToken({ sub: '42', channel: 'closed:1' }, { lifetimeSeconds: requests === 1 ? 1 : 3600 })
      }
      const { shown } = await follow(await connected(t, edge), 'closed:1', { getToken })
      t.equal(shown.entries.size, 15)
      await eventually(() => requests === 2)
      await mapPublisher(edge, 'closed:1').write('k000', 'live')
      await eventually(() => shown.entries.get('k000') === 'live')
      t.equal(shown.syncs.length, 1)
    })
  }
}
