import t from 'tap'
import {
  CHANNEL,
  EPHEMERAL,
  type MapRelay,
  mapRelay,
  RECOVERABLE,
  rejectedMap,
  subscribeMap
} from '../../../helper/map-relay.js'
import type { Message } from '../../../helper/relay-core.js'
import { configOf } from '../../../helper/relay-rules.js'

const STREAM = { name: 'fleet', allow_subscribe_for_client: true, history_size: 10, history_ttl: '60s' }
/** Another map, so that keys still expire. */
const OTHER = { name: 'other', subscription_type: 'map', map: EPHEMERAL }
const mapOf = (map: Message): Message => ({
  ...STREAM,
  history_size: 0,
  history_ttl: '0s',
  subscription_type: 'map',
  map
})

const reload = ({ relay }: MapRelay, namespace: Message): void =>
  relay.configure(configOf({ client: { ping_interval: '10000000s' }, channel: { namespaces: [namespace, OTHER] } }))

const ENDED = { push: { channel: CHANNEL, unsubscribe: { code: 2500 } } }

for (const [name, namespace] of [
  ['to a stream', STREAM],
  ['to another mode', mapOf(EPHEMERAL)],
  ['to another type', { ...mapOf(RECOVERABLE), subscription_type: 'map_users' }]
] as const) {
  t.test(`a reload that changes a map ${name} ends its subscriptions`, async (t) => {
    const relay = mapRelay()
    relay.write('a', 1)
    const client = await relay.connected('42')
    await subscribeMap(client, { phase: 2 })
    reload(relay, namespace)
    t.match(client.received(), [ENDED])
    t.equal(client.client.channelCount, 0)
  })

  t.test(`a client that loads a map starts again after a reload that changes it ${name}`, async (t) => {
    const relay = mapRelay()
    for (const key of ['a', 'b', 'c']) relay.write(key, 1)
    const client = await relay.connected('42')
    const { cursor, offset, epoch } = await subscribeMap(client, { phase: 2 })
    reload(relay, namespace)
    t.equal(await rejectedMap(client, { phase: 2, cursor, offset, epoch }), 112)
  })
}

t.test('a reload that changes other options of a map keeps its subscriptions', async (t) => {
  const relay = mapRelay()
  for (const key of ['a', 'b', 'c']) relay.write(key, 1)
  const [live, loading] = [await relay.connected('42'), await relay.connected('43')]
  await subscribeMap(live, { phase: 2, limit: 4 })
  const { cursor, offset, epoch } = await subscribeMap(loading, { phase: 2 })
  reload(relay, mapOf({ ...RECOVERABLE, key_ttl: '30s' }))
  t.same(live.received(), [])
  t.match(await subscribeMap(loading, { phase: 2, cursor, offset, epoch }), { recoverable: true })
})

t.test('subscribers of a stream receive no keys of the map that it was before', async (t) => {
  const relay = mapRelay()
  relay.write('a', 1)
  reload(relay, STREAM)
  const client = await relay.connected('42')
  await client.send({ id: 2, subscribe: { channel: CHANNEL, positioned: true } })
  relay.remove('a')
  t.same(client.received(), [])
})
