import t, { type Test } from 'tap'
import type { LiveMap, MapChange } from '../../../src/client/realtime/live-map.js'
import type { Realtime } from '../../../src/client/realtime/realtime.js'
import { RelayError } from '../../../src/client/realtime/relay-error.js'
import { eventually } from '../../helper/eventually.js'
import { openRealtime } from '../../helper/realtime.js'
import { type EdgeRelay, startRelay } from '../../helper/relay.js'

const CHANNEL = 'fleet:1'

const FILE = {
  channel: {
    namespaces: [
      {
        name: 'fleet',
        subscription_type: 'map',
        allow_subscribe_for_client: true,
        map: {
          mode: 'recoverable',
          key_ttl: '60s',
          default_page_size: 2,
          min_page_size: 1,
          allow_publish_for_subscriber: true
        },
        view_x: 'x',
        view_y: 'y',
        view_cell: 10
      },
      { name: 'global', allow_subscribe_for_client: true }
    ]
  }
}

interface Vehicle {
  readonly x: number
  readonly y: number
}

interface Setup extends EdgeRelay {
  readonly realtime: Realtime
  write(key: string, data: unknown): Promise<void>
  remove(key: string): Promise<void>
}

const setUp = async (t: Test): Promise<Setup> => {
  const relay = await startRelay(t, FILE)
  const realtime = openRealtime(t, relay)
  return {
    ...relay,
    realtime,
    write: async (key, data) => void (await relay.api('map_publish', { channel: CHANNEL, key, data })),
    remove: async (key) => void (await relay.api('map_remove', { channel: CHANNEL, key }))
  }
}

const contentOf = (map: LiveMap): Readonly<Record<string, unknown>> => Object.fromEntries(map)

const live = (map: { readonly state: string }): Promise<unknown> => eventually(() => map.state === 'live')

t.test('a map contains all entries, and follows writes and removals', async (t) => {
  const { realtime, write, remove } = await setUp(t)
  for (const key of ['a', 'b', 'c']) await write(key, { x: 1, y: 1 })
  const map = realtime.map<Vehicle>(CHANNEL)
  t.equal(map.state, 'loading')
  const changes: MapChange<Vehicle>[] = []
  map.onChange((change) => void changes.push(...change))
  await live(map)
  t.same([...map.keys()].sort(), ['a', 'b', 'c'])
  t.equal(map.size, 3)

  changes.length = 0
  await write('b', { x: 2, y: 2 })
  await remove('a')
  await eventually(() => !map.has('a'))
  t.same(map.get('b'), { x: 2, y: 2 })
  t.same(changes, [
    { key: 'b', value: { x: 2, y: 2 }, previous: { x: 1, y: 1 } },
    { key: 'a', value: undefined, previous: { x: 1, y: 1 } }
  ])
})

t.test('a map keeps its entries while it is disconnected, and recovers what it missed', async (t) => {
  const { realtime, api, write, remove } = await setUp(t)
  await write('a', { x: 1, y: 1 })
  await write('b', { x: 1, y: 1 })
  const map = realtime.map(CHANNEL)
  await live(map)
  const states: [string, number][] = []
  map.onState((state) => void states.push([state, map.size]))
  const closed = api('disconnect', { user: '42', disconnect: { code: 3001, reason: 'a restart' } })
  await Promise.all([closed, remove('a'), write('c', { x: 3, y: 3 })])
  await eventually(() => states.length >= 2)
  t.match(states, [['stale'], ['live']])
  t.ok(states.every(([, size]) => size > 0))
  await eventually(() => map.has('c') && !map.has('a'))
  t.same(contentOf(map), { b: { x: 1, y: 1 }, c: { x: 3, y: 3 } })
})

t.test('handles of one channel share a subscription until the last one is closed', async (t) => {
  const { realtime, relay, write } = await setUp(t)
  await write('a', { x: 1, y: 1 })
  const one = realtime.map(CHANNEL)
  const other = realtime.map(CHANNEL)
  await live(one)
  t.same(contentOf(other), { a: { x: 1, y: 1 } })
  one.close()
  one.close()
  await write('b', { x: 1, y: 1 })
  await eventually(() => other.has('b'))
  other.close()
  t.equal(other.state, 'closed')
  await eventually(() => !relay.openChannels.has(CHANNEL))
  t.throws(() => {
    const open = realtime.map(CHANNEL)
    t.teardown(() => open.close())
    realtime.map(CHANNEL, { delta: true })
  }, TypeError)
})

t.test('a client writes where the namespace allows it, and receives the error where it does not', async (t) => {
  const { realtime } = await setUp(t)
  const map = realtime.map<Vehicle>(CHANNEL)
  await live(map)
  await map.publish('mine', { x: 5, y: 5 })
  await eventually(() => map.has('mine'))
  const error = await map.remove('mine').catch((error: unknown) => error)
  t.ok(error instanceof RelayError)
  t.match(error, { code: 103 })
})

t.test('a rejected map is closed, and the rejection is reported', async (t) => {
  const { realtime } = await setUp(t)
  const refused = new Promise((resolve) => realtime.on('refused', resolve))
  const map = realtime.map('global:all-of-it')
  t.match(await refused, { channel: 'global:all-of-it', code: 103, retryable: false })
  t.equal(map.state, 'closed')
  t.match(map.error, { code: 103 })
})

t.test('a view limits a map to the entries inside, and follows the screen', async (t) => {
  const { realtime, write } = await setUp(t)
  await write('near', { x: 5, y: 5 })
  await write('far', { x: 500, y: 500 })
  await write('nowhere', {})
  const map = realtime.map<Vehicle>(CHANNEL, { view: { x: 0, y: 0, w: 10, h: 10 } })
  await live(map)
  t.same([...map.keys()].sort(), ['near', 'nowhere'])

  await write('near', { x: 300, y: 300 })
  await eventually(() => !map.has('near'))
  map.setView({ x: 495, y: 495, w: 10, h: 10 })
  await eventually(() => map.has('far'))
  t.same([...map.keys()].sort(), ['far', 'nowhere'])
  map.setView(null)
  await eventually(() => map.has('near'))
  t.same([...map.keys()].sort(), ['far', 'near', 'nowhere'])
})
