import t from 'tap'
import { MAX_FILTERS } from '../../../../src/relay/core/fan-out/channel-filters.js'
import { createDelta } from '../../../../src/relay/core/fan-out/fossil.js'
import {
  CHANNEL,
  EPHEMERAL,
  loadMap,
  MapModel,
  mapRelay,
  RECOVERABLE,
  rejectedMap,
  subscribeMap
} from '../../../helper/map-relay.js'
import { type FakeClient, type Message, publicationAt } from '../../../helper/relay-core.js'
import { required } from '../../../helper/required.js'

const DELTA = { allowed_delta_types: ['fossil'] }
const LONG = 'a long text that has much in common with the next one '

const patch = (from: unknown, to: unknown): string =>
  Buffer.from(createDelta(Buffer.from(JSON.stringify(from)), Buffer.from(JSON.stringify(to)))).toString()

const publications = (client: FakeClient) => client.received().map(({ push }) => push?.pub)

t.test('a live push is a delta to the previous value of its key, from the first one on', async (t) => {
  const relay = mapRelay(RECOVERABLE, DELTA)
  relay.write('a', `${LONG}1`)
  relay.write('b', `${LONG}of another key`)
  const client = await relay.connected('42')
  t.match(await subscribeMap(client, { phase: 2, delta: 'fossil' }), {
    delta: true,
    state: [{ data: JSON.stringify(`${LONG}1`) }, { data: JSON.stringify(`${LONG}of another key`) }]
  })
  relay.write('a', `${LONG}2`)
  relay.write('c', `${LONG}new`)
  relay.remove('a')
  relay.write('a', `${LONG}3`)
  t.same(publications(client), [
    { key: 'a', data: patch(`${LONG}1`, `${LONG}2`), delta: true, offset: 3 },
    { key: 'c', data: JSON.stringify(`${LONG}new`), offset: 4 },
    { key: 'a', removed: true, data: 'null', offset: 5 },
    { key: 'a', data: JSON.stringify(`${LONG}3`), offset: 6 }
  ])
})

t.test('changes while a client reads its reply are deltas to the values that it has', async (t) => {
  const later: (() => void)[] = []
  const relay = mapRelay(RECOVERABLE, DELTA, {}, { delayPushAfterReply: (task) => void later.push(task) })
  relay.write('a', `${LONG}1`)
  const client = await relay.connected('42')
  await subscribeMap(client, { phase: 2, delta: 'fossil' })
  for (const n of [2, 3]) relay.write('a', `${LONG}${n}`)
  for (const task of later) task()

  t.same(publications(client), [
    { key: 'a', data: patch(`${LONG}1`, `${LONG}2`), delta: true, offset: 2 },
    { key: 'a', data: patch(`${LONG}2`, `${LONG}3`), delta: true, offset: 3 }
  ])
})

t.test('writes of a key of an ephemeral map between the reply and live delivery arrive as whole values', async (t) => {
  const held: (() => void)[] = []
  const relay = mapRelay(EPHEMERAL, DELTA, {}, { delayPushAfterReply: (task) => void held.push(task) })
  const client = await relay.connected('42')
  await subscribeMap(client, { phase: 2, delta: 'fossil' })
  for (const n of [1, 2]) relay.write('a', `${LONG}${n}`)
  for (const task of held) task()

  t.same(
    publications(client),
    [1, 2].map((n) => ({ key: 'a', data: JSON.stringify(`${LONG}${n}`) }))
  )
})

const LONG_LIST = 'x'.repeat(5000)
for (const [title, entry, change] of [
  ['long entries and short changes', LONG_LIST, 'short'],
  ['short entries and long changes', 'short', LONG_LIST]
] as const) {
  t.test(`a reply with ${title} has all of them`, async (t) => {
    const relay = mapRelay()
    for (const key of ['a', 'b']) relay.write(key, 0)
    relay.write('c', entry)
    const client = await relay.connected('42')
    const { cursor, offset, epoch } = await subscribeMap(client, { phase: 2 })
    relay.write('a', change)

    t.match(await subscribeMap(client, { phase: 2, cursor, offset, epoch }), {
      phase: undefined,
      state: [{ key: 'c', data: entry }],
      publications: [{ key: 'a', data: change }]
    })
  })
}

t.test('a client does not receive the versions of entries, which only order their writes', async (t) => {
  const relay = mapRelay()
  relay.write('a', 1, { version: 7 })
  const client = await relay.connected('42')
  const { state } = await subscribeMap(client, { phase: 2 })
  relay.write('a', 2, { version: 8 })

  t.same(state, [{ key: 'a', data: 1, offset: 1 }])
  t.same(publications(client), [{ key: 'a', data: 2, offset: 2 }])
})

t.test('a client without deltas receives whole values beside one with deltas', async (t) => {
  const relay = mapRelay(RECOVERABLE, DELTA)
  relay.write('a', `${LONG}1`)
  const [plain, delta] = [await relay.connected('1'), await relay.connected('2')]
  await subscribeMap(plain, { phase: 2 })
  await subscribeMap(delta, { phase: 2, delta: 'fossil' })
  relay.write('a', `${LONG}2`)
  relay.remove('a')
  t.same(publications(plain), [
    { key: 'a', data: `${LONG}2`, offset: 2 },
    { key: 'a', removed: true, offset: 3 }
  ])
  t.match(publications(delta), [{ delta: true }, { removed: true, data: 'null' }])
})

t.test(
  'recovered changes are deltas to the previous one of their key, and the first of each key is whole',
  async (t) => {
    const relay = mapRelay({ ...RECOVERABLE, max_page_size: 50 }, DELTA)
    for (const [key, value] of ['a0', 'a1', 'b1', 'a2', 'b2'].map((text) => [text[0] ?? '', `${LONG}${text}`] as const))
      relay.write(key, value)
    relay.remove('a')
    relay.write('a', `${LONG}a3`)
    const client = await relay.connected('42')
    const request = { phase: 1, limit: 50, delta: 'fossil', recover: true, epoch: 'epoch1', offset: 1 }
    t.match(await subscribeMap(client, request), {
      delta: true,
      publications: [
        { key: 'a', data: JSON.stringify(`${LONG}a1`), delta: undefined },
        { key: 'b', data: JSON.stringify(`${LONG}b1`), delta: undefined },
        { key: 'a', data: patch(`${LONG}a1`, `${LONG}a2`), delta: true },
        { key: 'b', data: patch(`${LONG}b1`, `${LONG}b2`), delta: true },
        { key: 'a', removed: true, data: 'null' },
        { key: 'a', data: JSON.stringify(`${LONG}a3`), delta: undefined }
      ]
    })
  }
)

t.test('pages of the stream and ephemeral maps have whole values in the form for deltas', async (t) => {
  const relay = mapRelay(RECOVERABLE, DELTA)
  for (const key of ['a', 'b', 'c']) relay.write(key, `${LONG}0`)
  const client = await relay.connected('42')
  const { cursor, epoch, offset } = await subscribeMap(client, { phase: 2, delta: 'fossil' })
  for (let round = 1; round < 7; round++) relay.write('a', `${LONG}${round}`)
  await subscribeMap(client, { phase: 2, delta: 'fossil', cursor, epoch, offset })
  t.match(await subscribeMap(client, { phase: 1, delta: 'fossil', epoch, offset }), {
    phase: 1,
    publications: [{ data: JSON.stringify(`${LONG}1`), delta: undefined }, { data: JSON.stringify(`${LONG}2`) }]
  })

  const ephemeral = mapRelay(EPHEMERAL, DELTA)
  ephemeral.write('a', `${LONG}1`)
  const other = await ephemeral.connected('42')
  t.match(await subscribeMap(other, { phase: 2, delta: 'fossil' }), {
    delta: true,
    state: [{ data: JSON.stringify(`${LONG}1`) }]
  })
  ephemeral.write('a', `${LONG}2`)
  t.same(publications(other), [{ key: 'a', data: JSON.stringify(`${LONG}2`) }])
})

t.test('a delta that the namespace does not allow is not granted', async (t) => {
  const relay = mapRelay()
  relay.write('a', 1)
  const client = await relay.connected('42')
  t.match(await subscribeMap(client, { phase: 2, delta: 'fossil' }), { delta: undefined, state: [{ data: 1 }] })
})

const FILTER = { tf: { key: 'kind', cmp: 'eq', val: 'car' } }
const car = { tags: '{"kind":"car"}' }
const bus = { tags: '{"kind":"bus"}' }

for (const map of [RECOVERABLE, EPHEMERAL]) {
  t.test(`a tag filter selects entries and changes of a map with the mode ${map.mode}`, async (t) => {
    const relay = mapRelay(map, { allow_tags_filter: true })
    relay.write('a', 1, car)
    relay.write('b', 1, bus)
    relay.write('c', 1, car)
    const client = await relay.connected('42')
    const model = new MapModel()
    await loadMap(
      client,
      model,
      ({ phase, cursor }) => {
        if (phase !== 2 || cursor !== 'b') return
        relay.write('d', 1, bus)
        relay.write('a', 2, bus)
        relay.write('a', 3, bus)
        relay.write('e', 1, car)
      },
      FILTER
    )
    t.same(model.entries, { c: 1, e: 1 })
    client.received()

    relay.write('c', 2, bus)
    relay.write('c', 3, bus)
    relay.write('b', 2, car)
    relay.remove('b')
    relay.remove('c')
    relay.remove('e')
    t.match(publications(client), [
      { key: 'c', removed: true, data: undefined, tags: undefined },
      { key: 'b', data: 2 },
      { key: 'b', removed: true, tags: { kind: 'car' } },
      { key: 'e', removed: true }
    ])
  })
}

t.test('a filtered recovery tells which entries do not match any more', async (t) => {
  const relay = mapRelay({ ...RECOVERABLE, max_page_size: 50 }, { allow_tags_filter: true })
  relay.write('a', 1, car)
  relay.write('a', 2, bus)
  relay.write('a', 3, bus)
  relay.write('b', 1, car)
  relay.remove('b')
  const client = await relay.connected('42')
  const recovery = { phase: 1, limit: 50, recover: true, epoch: 'epoch1', offset: 1 }
  t.match(await subscribeMap(client, { ...recovery, ...FILTER }), {
    offset: 5,
    publications: [
      { key: 'a', removed: true, offset: 2 },
      { key: 'b', data: 1, offset: 4 },
      { key: 'b', removed: true, offset: 5 }
    ]
  })
})

t.test('a filter needs the permission of the namespace, and excludes deltas', async (t) => {
  const closed = await mapRelay().connected('42')
  t.equal(await rejectedMap(closed, { phase: 2, ...FILTER }), 107)
  const both = await mapRelay(RECOVERABLE, { ...DELTA, allow_tags_filter: true }).connected('42')
  t.equal(await rejectedMap(both, { phase: 2, delta: 'fossil', ...FILTER }), 107)
})

t.test('a gap in the offsets of a map ends live subscriptions, which then recover', async (t) => {
  const relay = mapRelay()
  relay.write('a', 1)
  const client = await relay.connected('42')
  await subscribeMap(client, { phase: 2 })
  relay.delivery.publication(CHANNEL, { ...publicationAt(5), key: 'a' }, 'epoch1')
  t.match(client.received(), [{ push: { channel: CHANNEL, unsubscribe: { code: 2500 } } }])
  t.match(await subscribeMap(client, { phase: 1, recover: true, epoch: 'epoch1', offset: 1 }), { recovered: true })
})

t.test('a write after a map was cleared ends live subscriptions, whose position is then unrecoverable', async (t) => {
  const relay = mapRelay()
  relay.write('a', 1)
  const client = await relay.connected('42')
  await subscribeMap(client, { phase: 2 })
  await relay.clear()
  relay.write('b', 1)
  t.match(client.received(), [{ push: { unsubscribe: { code: 2500 } } }])
  t.equal(await rejectedMap(client, { phase: 1, recover: true, epoch: 'epoch1', offset: 1 }), 112)
  t.match(await subscribeMap(client, { phase: 2 }), { epoch: 'epoch2', state: [{ key: 'b' }] })
})

t.test('a position check finds changes of a map that were not delivered', async (t) => {
  const relay = mapRelay()
  relay.write('a', 1)
  const client = await relay.connected('42')
  await subscribeMap(client, { phase: 2 })
  relay.delivery.mayHaveMissed(CHANNEL)
  await relay.advance(1000)
  t.same(client.received(), [], 'nothing was lost')
  await relay.clear()
  relay.delivery.mayHaveMissed(CHANNEL)
  await relay.advance(1000)
  t.match(client.received(), [{ push: { unsubscribe: { code: 2500 } } }])
})

t.test('a possible loss ends live subscriptions of an ephemeral map, which has no positions to compare', async (t) => {
  const relay = mapRelay(EPHEMERAL)
  for (const key of ['a', 'b', 'c']) relay.write(key, 1)
  const [live, loading] = [await relay.connected('1'), await relay.connected('2')]
  await loadMap(live, new MapModel())
  const { cursor } = await subscribeMap(loading, { phase: 2 })
  relay.delivery.mayHaveMissed(CHANNEL)
  await relay.advance(1000)
  t.match(live.received(), [{ push: { unsubscribe: { code: 2500 } } }])
  t.equal(await rejectedMap(loading, { phase: 2, cursor }), 112)
  await loadMap(live, new MapModel())
  await relay.advance(1000)
  t.same(live.received(), [], 'the loss is forgotten')
})

t.test('clients of a map are in its presence, and announced, from live delivery on', async (t) => {
  const relay = mapRelay(RECOVERABLE, {
    presence: true,
    join_leave: true,
    force_push_join_leave: true,
    allow_presence_for_subscriber: true
  })
  for (const key of ['a', 'b', 'c']) relay.write(key, 1)
  const [watching, joining] = [await relay.connected('1'), await relay.connected('2')]
  await loadMap(watching, new MapModel())
  watching.received()
  const page = await subscribeMap(joining, { phase: 2 })
  t.same(watching.received(), [])
  await subscribeMap(joining, { phase: 2, cursor: page.cursor })
  t.match(watching.received(), [{ push: { join: { info: { user: '2' } } } }])
  t.match(await watching.send({ id: 9, presence_stats: { channel: CHANNEL } }), [
    { presence_stats: { num_clients: 2 } }
  ])
  await joining.send({ id: 3, unsubscribe: { channel: CHANNEL } })
  t.match(watching.received(), [{ push: { leave: { info: { user: '2' } } } }])
})

t.test(
  'a subscription token is checked with the first page, and its expiry and data are in the last reply',
  async (t) => {
    const relay = mapRelay(RECOVERABLE, { allow_subscribe_for_client: false })
    for (const key of ['a', 'b', 'c']) relay.write(key, 1)
    const client = await relay.connected('42')
    t.equal(await rejectedMap(client, { phase: 2 }), 103)
    const token = relay.token({ sub: '42', channel: CHANNEL, data: { hello: 1 } }, 100)
    const { cursor, ttl } = await subscribeMap(client, { phase: 2, token })
    t.equal(ttl, undefined)
    t.match(await subscribeMap(client, { phase: 2, cursor }), { expires: true, ttl: 100, data: { hello: 1 } })
    await relay.advance(130_000)
    t.match(client.received(), [{ push: { unsubscribe: { code: 2501 } } }])
  }
)

t.test('a token cannot make a server-side subscription to a map', async (t) => {
  const relay = mapRelay()
  const client = relay.client()
  const token = relay.token({ sub: '42', channels: [CHANNEL] })
  t.match(await client.send({ id: 1, connect: { token } }), [
    { error: { code: 107, message: 'bad request: the channel is a map: fleet:1' } }
  ])
})

t.test('keys that are names of object members are keys like others', async (t) => {
  const relay = mapRelay({ ...RECOVERABLE, max_page_size: 50 })
  const keys = ['__proto__', 'constructor', '"quoted"', 'line\nbreak', 'Ünïcode 🚲', '\u2028']
  for (const key of keys) relay.write(key, key)
  const client = await relay.connected('42')
  const { state } = await subscribeMap(client, { phase: 2, limit: 50 })
  t.same(
    (state as readonly { key: string; data: string }[]).map(({ key, data }) => key === data && key).sort(),
    keys.sort()
  )
})

for (const [mode, map] of [
  ['a recoverable', RECOVERABLE],
  ['an ephemeral', EPHEMERAL]
] as const) {
  t.test(`${mode} map has at most 256 different tag filters`, async (t) => {
    const relay = mapRelay(map, { allow_tags_filter: true })
    const filtered = (index: number): Message => ({ phase: 2, tf: { key: 'side', cmp: 'eq', val: String(index) } })
    for (let index = 0; index < MAX_FILTERS; index++) await subscribeMap(await relay.connected('42'), filtered(index))
    const beyond = await relay.connected('42')

    t.equal(await rejectedMap(beyond, filtered(MAX_FILTERS)), 106)
    t.match(await subscribeMap(beyond, filtered(7)), { type: 1 })
  })
}

t.test('clients that load a map with further tag filters are rejected at the end', async (t) => {
  const relay = mapRelay(RECOVERABLE, { allow_tags_filter: true })
  for (const key of ['a', 'b', 'c']) relay.write(key, 1)
  const filtered = (index: number): Message => ({ phase: 2, tf: { key: 'side', cmp: 'eq', val: String(index) } })
  const loading = []
  for (let index = 0; index <= MAX_FILTERS; index++) {
    const client = await relay.connected('42')
    loading.push({ client, page: await subscribeMap(client, filtered(index)) })
  }
  for (const { client, page } of loading.slice(0, MAX_FILTERS))
    await subscribeMap(client, { ...page, phase: 2, publications: undefined, state: undefined })
  const [last] = loading.slice(MAX_FILTERS)

  t.equal(await rejectedMap(required(last).client, { phase: 2, cursor: required(last).page.cursor }), 106)
})
