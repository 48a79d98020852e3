import t from 'tap'
import { MAX_VIEWS } from '../../../../src/relay/core/fan-out/channel-views.js'
import { EntryPlaces } from '../../../../src/relay/core/fan-out/entry-places.js'
import { parseView } from '../../../../src/relay/core/fan-out/view.js'
import { conflator } from '../../../../src/relay/core/merging/keyed-list.js'
import { webSocketBinaryFraming } from '../../../../src/relay/transport/framing.js'
import { NO_METRICS } from '../../../helper/no-metrics.js'
import { frameOf } from '../../../helper/protobuf.js'
import {
  coreRelay,
  type FakeClient,
  FakeSink,
  type Message,
  publicationAt,
  settled,
  type TestRelay,
  withNamespace
} from '../../../helper/relay-core.js'
import { configOf } from '../../../helper/relay-rules.js'
import { required } from '../../../helper/required.js'
import type { SubscribeResult } from '../../../helper/server-message.js'

const OPTIONS = {
  allow_subscribe_for_client: true,
  history_size: 100,
  history_ttl: '60s',
  force_recovery: true,
  allowed_delta_types: ['fossil'],
  conflate: 'data[].id',
  snapshot: true,
  allow_max_rate: true,
  allow_tags_filter: true,
  view_x: 'x',
  view_y: 'y',
  view_cell: 10
}

const relayWith = (more: Message = {}, client: Message = {}): TestRelay =>
  coreRelay(withNamespace({ ...OPTIONS, ...more }, client))

/** The granted view is x from 0 to 20 and y from 0 to 10. */
const VIEW = { x: 2, y: 0, w: 12, h: 10 }
const GRANTED = { x: 0, y: 0, w: 20, h: 10 }

const subscribe = (data: unknown, more: Message = {}): Message => ({
  id: 2,
  subscribe: { channel: 'chat:1', data, ...more }
})

interface Viewer extends FakeClient {
  readonly reply: SubscribeResult
}

const viewer = async (relay: TestRelay, view: unknown = VIEW, more: Message = {}): Promise<Viewer> => {
  const client = await relay.connected('42')
  const [reply] = await client.send(subscribe({ view, ...more }))
  return { ...client, reply: reply?.subscribe ?? {} }
}

interface Entry {
  readonly id: number | string
  readonly x?: number
  readonly y?: number
  readonly at?: number
  readonly n?: number
  readonly key?: string
}

const at = (id: number, x: number, more: Partial<Entry> = {}): Entry => ({ id, x, y: 5, ...more })

const publish = (relay: TestRelay, ...data: readonly Entry[]): unknown => relay.publish('chat:1', { data })

/** The publications since the last call. */
const pubs = (client: FakeClient): Message[] =>
  client.received().flatMap(({ push }) => (push?.pub === undefined ? [] : [{ ...push.pub }]))

/** The lists of entries since the last call. */
const lists = (client: FakeClient): unknown[] => pubs(client).map(({ data }) => (data as Message).data)

const REQUESTS: readonly (readonly [asked: Message, cell: number, granted: Message])[] = [
  [{ x: 2, y: 0, w: 12, h: 10 }, 10, { x: 0, y: 0, w: 20, h: 10 }],
  [{ x: 0, y: 0, w: 10, h: 10 }, 10, { x: 0, y: 0, w: 10, h: 10 }],
  [{ x: -1, y: -10, w: 2, h: 1 }, 10, { x: -10, y: -10, w: 20, h: 10 }],
  [{ x: 5, y: 5, w: 1e-30, h: 1e-30 }, 10, { x: 0, y: 0, w: 10, h: 10 }],
  [{ x: 10, y: 10, w: 1e-30, h: 1e-30 }, 10, { x: 10, y: 10, w: 10, h: 10 }],
  [{ x: 1e9, y: -1e9, w: 1, h: 1 }, 10, { x: 1e9, y: -1e9, w: 10, h: 10 }],
  [{ x: 0.25, y: 0, w: 0.5, h: 1 }, 0.25, { x: 0.25, y: 0, w: 0.5, h: 1 }],
  [{ x: 0, y: 0, w: 640, h: 1 }, 10, { x: 0, y: 0, w: 640, h: 10 }]
]
for (const [asked, cell, granted] of REQUESTS) {
  t.test(`the view ${JSON.stringify(asked)} is rounded outward to cells of ${cell}`, async (t) => {
    const { reply } = await viewer(relayWith({ view_cell: cell }), asked)

    t.same(reply, { data: { view: granted } }, 'and the reply has no position')
  })
}

t.test('a granted view contains the requested one for all cells and numbers', async (t) => {
  for (const cell of [0.1, 0.3, 1 / 3, 7, 1e-7, 123.456]) {
    const relay = relayWith({ view_cell: cell })
    for (let index = 0; index < 50; index++) {
      const [x, y] = [(Math.random() - 0.5) * 1000 * cell, index * cell]
      const [w, h] = [Math.random() * 60 * cell, cell]
      const { reply, client } = await viewer(relay, { x, y, w, h })
      const { view } = (reply.data ?? {}) as { view?: Record<'x' | 'y' | 'w' | 'h', number> }
      client.connectionLost()
      const isInside =
        view !== undefined && view.x <= x && view.y <= y && view.x + view.w >= x + w && view.y + view.h >= y + h
      t.ok(isInside, JSON.stringify({ x, y, w, h, cell, view }))
    }
  }
})

const NO_VIEWS: readonly unknown[] = [
  null,
  7,
  'all',
  [],
  {},
  { x: 0, y: 0, w: 1 },
  { x: 0, y: 0, w: 0, h: 1 },
  { x: 0, y: 0, w: 1, h: -1 },
  { x: '0', y: 0, w: 1, h: 1 },
  { x: null, y: 0, w: 1, h: 1 },
  { x: 1e300, y: 0, w: 1, h: 1 },
  { x: 0, y: 0, w: 1e300, h: 1 },
  { x: 0, y: -1e17, w: 1, h: 1 }
]
for (const view of NO_VIEWS) {
  t.test(`the view ${JSON.stringify(view)} is rejected with error 107`, async (t) => {
    const relay = relayWith()
    const client = await relay.connected('42')

    t.match(await client.send(subscribe({ view })), [{ id: 2, error: { code: 107 } }])
    t.equal(relay.relay.stats().subscriptions, 0)
  })
}

for (const number of ['1e999', '-1e999', 'NaN']) {
  t.test(`a view with the number ${number} is not accepted`, async (t) => {
    const client = await relayWith().connected('42')
    const text = `{"id":2,"subscribe":{"channel":"chat:1","data":{"view":{"x":${number},"y":0,"w":1,"h":1}}}}`
    const [reply] = await client.send(text)

    t.ok(reply?.error?.code === 107 || client.closed === '3501 bad request')
  })
}

t.test('a view with a tag filter is rejected with error 107', async (t) => {
  const client = await relayWith().connected('42')
  const tf = { key: 'a', cmp: 'eq', val: 'b' }

  t.match(await client.send(subscribe({ view: VIEW }, { tf })), [{ error: { code: 107 } }])
  t.match(await client.send(subscribe({ view: { x: 0, y: 0, w: 1e6, h: 1 } }, { tf })), [{ error: { code: 107 } }])
})

t.test('a namespace without views ignores a view', async (t) => {
  const { view_x, view_y, view_cell, ...others } = OPTIONS
  const relay = coreRelay(withNamespace(others))
  const client = await viewer(relay, 'all')

  t.match(client.reply, { recoverable: true, data: undefined })
})

t.test('a subscriber that asks for more than 64 cells on a side receives everything', async (t) => {
  const relay = relayWith()
  const client = await viewer(relay, { x: 0, y: 0, w: 1, h: 641 })
  publish(relay, at(1, 999))

  t.same(client.reply, {}, 'without a view and, as with one, without a position')
  t.same(pubs(client), [{ data: { data: [at(1, 999)] } }])
  publish(relay, at(1, 9999))
  t.same((await viewer(relay, { x: 0, y: 0, w: 1e6, h: 1 })).reply, {
    publications: [{ data: { data: [at(1, 9999)] } }]
  })
})

t.test('a subscriber whose token has data that is no object receives everything', async (t) => {
  const relay = relayWith()
  const client = await relay.connected('42')
  const token = relay.token({ sub: '42', channel: 'chat:1', data: [7] })
  const [reply] = await client.send(subscribe({ view: VIEW }, { token }))

  t.same(reply?.subscribe, { data: [7], expires: true, ttl: 3600 })
})

t.test('view and rate are added to the data of a subscription token', async (t) => {
  const relay = relayWith()
  const client = await relay.connected('42')
  const token = relay.token({ sub: '42', channel: 'chat:1', data: { room: 7 } })
  const [reply] = await client.send(subscribe({ view: VIEW, max_rate: 1 }, { token }))

  t.same(reply?.subscribe?.data, { room: 7, max_rate: 1, view: GRANTED })
})

t.test('a protobuf client asks for a view with JSON in its data', async (t) => {
  const relay = relayWith()
  const sink = new FakeSink(false, webSocketBinaryFraming)
  const { client } = relay.client(sink)
  client.handleFrame(frameOf({ id: 1, connect: { token: relay.token({ sub: '42' }) } }))
  await settled()
  const data = Buffer.from(JSON.stringify({ view: VIEW }))
  client.handleFrame(frameOf({ id: 2, subscribe: { channel: 'chat:1', data } }))
  await settled()
  publish(relay, at(1, 5, { n: 71 }), at(2, 25, { n: 72 }))
  relay.endTurn()

  const received = Buffer.concat(sink.frames).toString()
  t.ok(received.includes(JSON.stringify(GRANTED)))
  t.ok(received.includes('"n":71') && !received.includes('"n":72'))
})

t.test('a delta is not granted together with a view', async (t) => {
  const relay = relayWith()
  const client = await relay.connected('42')
  const [reply] = await client.send(subscribe({ view: VIEW }, { delta: 'fossil' }))
  publish(relay, at(1, 5))

  t.equal(reply?.subscribe?.delta, undefined)
  t.same(pubs(client), [{ data: { data: [at(1, 5)] } }])
})

t.test('the snapshot of a view has the entries in it, and no position', async (t) => {
  const relay = relayWith()
  publish(relay, at(1, 5), at(2, 25), at(3, 19.99))
  publish(relay, at(4, 20), at(1, 6), { id: 'note' })
  const { reply } = await viewer(relay)

  t.same(reply, {
    publications: [{ data: { data: [at(3, 19.99), at(1, 6), { id: 'note' }] } }],
    data: { view: GRANTED }
  })
})

t.test('a view without entries has no snapshot', async (t) => {
  const relay = relayWith()
  publish(relay, at(2, 25))

  t.same((await viewer(relay)).reply, { data: { view: GRANTED } })
})

t.test('a client that asks for a recovery with a view receives the snapshot', async (t) => {
  const relay = relayWith()
  publish(relay, at(1, 5))
  const client = await relay.connected('42')
  const [reply] = await client.send(subscribe({ view: VIEW }, { recover: true, offset: 1, epoch: 'epoch1', flag: 1 }))

  t.same(reply?.subscribe, {
    publications: [{ data: { data: [at(1, 5)] } }],
    was_recovering: true,
    data: { view: GRANTED }
  })
})

t.test('a subscriber receives the entries in its view, and those that leave it once', async (t) => {
  const relay = relayWith()
  const client = await viewer(relay)
  publish(relay, at(1, 5), at(2, 25))
  publish(relay, at(2, 26))
  t.same(lists(client), [[at(1, 5)]])
  publish(relay, at(1, 20), at(2, 19))
  t.same(lists(client), [[at(1, 20), at(2, 19)]], 'one leaves, one enters')
  publish(relay, at(1, 21))
  t.same(lists(client), [], 'silence until it enters again')
  publish(relay, at(1, 0), at(2, 0, { y: 10 }))
  t.same(lists(client), [[at(1, 0), at(2, 0, { y: 10 })]], 'it enters at the start of a side; the end is outside')
})

t.test('an entry of the snapshot that leaves the view is sent once', async (t) => {
  const relay = relayWith()
  publish(relay, at(1, 5), at(2, 25))
  const client = await viewer(relay)
  publish(relay, at(1, 25), at(2, 30))

  t.same(lists(client), [[at(1, 25)]])
})

t.test('an entry whose history has expired still leaves the view', async (t) => {
  const relay = relayWith({ history_ttl: '10s', history_meta_ttl: '1h' })
  const client = await viewer(relay)
  publish(relay, at(1, 5))
  await relay.advance(60_000)
  client.received()
  const late = await viewer(relay)
  t.equal(late.reply.publications, undefined)
  publish(relay, at(1, 25))

  t.same([lists(client), lists(late)], [[[at(1, 25)]], [[at(1, 25)]]])
})

t.test('an entry without coordinates keeps its last place', async (t) => {
  const relay = relayWith()
  const client = await viewer(relay)
  publish(relay, at(1, 25), at(2, 5))
  t.same(lists(client), [[at(2, 5)]])
  publish(relay, { id: 1, n: 1 }, { id: 2, n: 2 }, { id: 2, x: 50, n: 3 })

  t.same(lists(client), [
    [
      { id: 2, n: 2 },
      { id: 2, x: 50, n: 3 }
    ]
  ])
})

t.test('an entry that never had coordinates goes to every view, also when it gets them', async (t) => {
  const relay = relayWith()
  const client = await viewer(relay)
  publish(relay, { id: 1 })
  publish(relay, at(1, 25))
  publish(relay, at(1, 26))

  t.same(lists(client), [[{ id: 1 }], [at(1, 25)]])
})

t.test('an older entry is not sent, and does not move its key', async (t) => {
  const relay = relayWith({ entry_time: 'at' })
  const client = await viewer(relay)
  publish(relay, at(1, 5, { at: 10 }))
  publish(relay, at(1, 25, { at: 9 }), at(2, 5, { at: 1 }))
  publish(relay, at(1, 26, { at: 11 }))

  t.same(lists(client), [[at(1, 5, { at: 10 })], [at(2, 5, { at: 1 })], [at(1, 26, { at: 11 })]])
})

t.test('a publication of another shape goes to every view', async (t) => {
  const relay = relayWith()
  const client = await viewer(relay)
  const data = [{ other: true }, { data: [{ noId: 1 }] }, 7, 'text']
  for (const each of data) relay.publish('chat:1', each)
  relay.publish('chat:1', { data: [] })

  t.same(
    pubs(client),
    data.map((each) => ({ data: each }))
  )
})

t.test('the text of entries and of what surrounds them is not changed', async (t) => {
  const relay = relayWith()
  const client = await viewer(relay)
  const entry = '{"id" : 1, "x":1.50e1,"y":5 , "big":12345678901234567890}'
  relay.publish('chat:1', null, { data: `{ "n" : 1.0, "data":[ ${entry} , {"id":2,"x":99,"y":5}], "z":"\\u0041" }` })
  relay.endTurn()

  t.match(client.sink.writes.at(-1), `{ "n" : 1.0, "data":[${entry}], "z":"\\u0041" }`)
})

t.test('tags, info and version stay on the parts of a publication', async (t) => {
  const relay = relayWith()
  const client = await viewer(relay)
  relay.publish('chat:1', { data: [at(1, 5), at(2, 99)] }, { tags: '{"a":"b"}', version: 3 })

  t.same(pubs(client), [{ data: { data: [at(1, 5)] }, tags: { a: 'b' }, version: 3 }])
})

for (const path of ['position.x', 'id.x']) {
  t.test(`coordinates are found at ${path}`, async (t) => {
    const [name = ''] = path.split('.')
    const key = name === 'id' ? 'data[].id.key' : 'data[].id'
    const relay = relayWith({ conflate: key, view_x: path, view_y: `${name}.y` })
    const client = await viewer(relay)
    const entry = (id: number, x: unknown): Message =>
      name === 'id' ? { id: { key: id, x, y: 5 } } : { id, position: { x, y: 5 } }
    relay.publish('chat:1', { data: [entry(1, 5), entry(2, 25), entry(3, '5'), entry(4, -0.5)] })

    t.same(lists(client), [[entry(1, 5), entry(3, '5')]])
  })
}

t.test('a client that is behind receives an entry that left meanwhile', async (t) => {
  const relay = relayWith({}, { queue_max_size: 100_000 })
  const client = await viewer(relay)
  publish(relay, at(1, 5), at(2, 6))
  t.same(lists(client).length, 1)
  client.sink.isStuck = true
  publish(relay, at(1, 7), at(3, 8, { n: 0 }))
  client.received()
  for (let n = 0; n < 5; n++) {
    publish(relay, at(1, 25 + n), at(2, 7 + n))
    relay.endTurn()
  }
  client.received()
  client.sink.drain()

  const last = lists(client).flat() as Entry[]
  t.ok(last.some(({ id, x }) => id === 1 && x === 25))
  t.ok(last.some(({ id, x }) => id === 2 && x === 11))
})

t.test('a subscriber with a rate receives an entry that left between two deliveries', async (t) => {
  const relay = relayWith()
  const client = await viewer(relay, VIEW, { max_rate: 1 })
  t.same(client.reply.data, { max_rate: 1, view: GRANTED })
  publish(relay, at(1, 5), at(2, 25))
  await relay.advance(0)
  t.same(lists(client), [[at(1, 5)]])
  publish(relay, at(1, 6), at(2, 26))
  publish(relay, at(1, 25))
  publish(relay, at(1, 26), at(3, 7))
  await relay.advance(999)
  t.same(lists(client), [])
  await relay.advance(1)
  t.same(lists(client), [[at(1, 25), at(3, 7)]])
  await relay.advance(5000)
  t.same(lists(client), [])
  client.client.connectionLost()
  t.equal(relay.pendingTimers, 0)
})

t.test('subscribers with equal cells share their bytes, also with different rates and requests', async (t) => {
  const relay = relayWith()
  const one = await viewer(relay, { x: 1, y: 1, w: 1, h: 1 })
  const same = await viewer(relay, { x: 8, y: 0, w: 2, h: 10 })
  const other = await viewer(relay, { x: 11, y: 0, w: 2, h: 10 })
  publish(relay, at(1, 5), at(2, 15))
  for (const client of [one, same, other]) client.received()

  t.equal(one.sink.frames.at(-1), same.sink.frames.at(-1), 'the same buffer')
  t.not(one.sink.frames.at(-1), other.sink.frames.at(-1))
  relay.publish('chat:1', 'for all')
  for (const client of [one, same, other]) client.received()
  t.equal(one.sink.frames.at(-1), other.sink.frames.at(-1), 'views that receive the same share it too')
})

t.test('subscribers without a view receive complete publications beside those with one', async (t) => {
  const relay = relayWith()
  const plain = await relay.connected('42')
  await plain.send({ id: 2, subscribe: { channel: 'chat:1' } })
  const client = await viewer(relay)
  publish(relay, at(1, 5), at(2, 25))

  t.same(pubs(plain), [{ data: { data: [at(1, 5), at(2, 25)] }, offset: 1, epoch: 'epoch1' }])
  t.same(lists(client), [[at(1, 5)]])
})

t.test('an entry that moves while a client subscribes is not lost', async (t) => {
  const relay = relayWith()
  publish(relay, at(1, 5), at(2, 25))
  const client = await relay.connected('42')
  const { engine } = relay
  const read = engine.read.bind(engine)
  engine.read = (...args) => {
    const page = read(...args)
    engine.read = read
    // After the history was read, before the client has its reply.
    publish(relay, at(1, 26), at(2, 6))
    return page
  }
  const messages = await client.send(subscribe({ view: VIEW }))
  await settled()
  const entries = [...messages, ...client.received()].flatMap(({ subscribe, push }) => {
    const all = [...(subscribe?.publications ?? []), ...(push?.pub === undefined ? [] : [push.pub])]
    return all.flatMap(({ data }) => (data as { data: Entry[] }).data)
  })

  const state = new Map(entries.map((entry) => [entry.id, entry.x]))
  t.not(state.get(1), 5, 'it is not shown at the old place')
  t.equal(state.get(2), 6)
})

t.test('after a gap a subscriber with a view starts again', async (t) => {
  const relay = relayWith()
  const client = await viewer(relay)
  publish(relay, at(1, 5))
  client.received()
  relay.delivery.publication('chat:1', publicationAt(3), 'epoch1')

  t.match(client.received(), [{ push: { channel: 'chat:1', unsubscribe: { code: 2500 } } }])
})

t.test('a subscriber with a view starts again when the options of views change', async (t) => {
  for (const change of [{ view_cell: 5 }, { view_x: 'y' }, { entry_time: 'at' }]) {
    const relay = relayWith()
    const client = await viewer(relay)
    const plain = await relay.connected('42')
    await plain.send({ id: 2, subscribe: { channel: 'chat:1' } })
    relay.relay.configure(configOf(withNamespace({ ...OPTIONS, ...change })))

    t.match(client.received(), [{ push: { unsubscribe: { code: 2500 } } }])
    t.same(plain.received(), [])
    const [reply] = await client.send(subscribe({ view: VIEW }))
    t.match(reply?.subscribe, { data: { view: { x: 0 } } })
  }
})

t.test('subscribers beyond 256 different views receive everything, until a view is free again', async (t) => {
  const relay = relayWith()
  const views = (index: number): Message => ({ x: index * 10, y: 0, w: 1, h: 1 })
  const first = await viewer(relay, views(0))
  for (let index = 1; index < MAX_VIEWS; index++) await viewer(relay, views(index))
  const beyond = await viewer(relay, views(MAX_VIEWS))
  t.same(beyond.reply, {})
  t.match((await viewer(relay, views(7))).reply, { data: { view: { x: 70 } } }, 'a known view is shared')
  publish(relay, at(1, 5), at(2, 15))
  t.match(lists(beyond), [[{ id: 1 }, { id: 2 }]])
  t.match(lists(first), [[{ id: 1 }]])
  first.client.connectionLost()

  t.match((await viewer(relay, views(MAX_VIEWS))).reply, { data: { view: { x: 10 * MAX_VIEWS } } })
})

t.test('2,000 views one after the other leave nothing behind', async (t) => {
  const relay = relayWith()
  publish(relay, at(1, 5))
  const client = await relay.connected('42')
  for (let index = 0; index < 2_000; index++) {
    client.client.handleFrame(
      [
        { id: 2, subscribe: { channel: 'chat:1', data: { view: { x: index * 10, y: 0, w: 1, h: 1 } } } },
        { id: 3, unsubscribe: { channel: 'chat:1' } }
      ]
        .map((command) => JSON.stringify(command))
        .join('\n')
    )
    if (index % 100 === 0) await settled()
  }
  await settled()
  t.equal(client.closed, null)
  t.equal(relay.relay.stats().subscriptions, 0)
  client.received()
  const [reply] = await client.send(subscribe({ view: VIEW }))

  t.same(reply?.subscribe?.data, { view: GRANTED })
})

t.test('a channel with more keys than places sends forgotten keys to every view', async (t) => {
  const relay = relayWith({ history_size: 1 })
  const client = await viewer(relay)
  publish(relay, at(1, 5))
  t.same(lists(client), [[at(1, 5)]])
  const filler = 'k'.repeat(100_000)
  for (let index = 0; index < 400; index++) publish(relay, { id: `${filler}${index}`, x: 99, y: 5 })
  client.received()
  publish(relay, at(1, 25))

  t.same(lists(client), [[at(1, 25)]])
})

t.test('a snapshot changes the last place of an entry only if the entry was delivered', async (t) => {
  const rules = conflator('data[].id', 'at', { x: ['x'], y: ['y'] })
  const textOf = (entry: Entry): string => JSON.stringify({ data: [entry] })
  const places = new EntryPlaces(rules, () => undefined)
  places.start(0)
  places.place({ ...publicationAt(1), data: textOf(at(1, 5, { at: 1 })) })

  const [entry] = required(rules.read(textOf({ id: 1, at: 2 }))).entries
  const newer = { ...required(entry), offset: 2 }
  const elsewhere = required(parseView({ x: 100, y: 100, w: 10, h: 10 }, 10))
  t.notOk(places.isInside(newer, elsewhere, 1), 'the place without the newer entry')
  t.ok(places.isInside(newer, elsewhere, 2), 'any view may have the older entry')
})

t.test('an older entry of a key that no view has is not sent', async (t) => {
  const relay = relayWith({ entry_time: 'at' })
  publish(relay, at(1, 25, { at: 9 }))
  const client = await viewer(relay)
  publish(relay, at(1, 5, { at: 3 }), { id: 2, x: 6, y: 5, at: 1 })

  t.same(lists(client), [[{ id: 2, x: 6, y: 5, at: 1 }]])
})

t.test('an entry without coordinates has the place of its key in the history, which no view has', async (t) => {
  const relay = relayWith()
  publish(relay, at(1, 25))
  const client = await viewer(relay)
  publish(relay, { id: 1, n: 1 })

  t.same(lists(client), [])
})

t.test('publications of which nothing is in the view of a subscriber are counted', async (t) => {
  const dropped: unknown[] = []
  const held: (() => void)[] = []
  const relay = coreRelay(withNamespace(OPTIONS), {
    metrics: { ...NO_METRICS, outsideView: (...counted) => void dropped.push(counted) },
    delayPushAfterReply: (task) => void held.push(task)
  })
  await viewer(relay)
  await viewer(relay)
  await viewer(relay, VIEW, { max_rate: 1 })
  for (const task of held.splice(0)) task()
  publish(relay, at(1, 25))
  publish(relay, at(2, 5))
  t.same(dropped.splice(0), [['chat', 3]], 'once for each publication')
  await viewer(relay)
  publish(relay, at(1, 26))
  dropped.length = 0
  for (const task of held) task()
  t.same(dropped, [['chat', 1]], 'between the reply and live delivery too')
})

/** A relay that counts the publications that are taken apart. */
const countingRelay = () => {
  let texts = 0
  const relay = coreRelay(withNamespace(OPTIONS), {
    conflator: (...rules) => {
      const { read } = conflator(...rules)
      return {
        read: (text) => {
          texts += 1
          return read(text)
        }
      }
    }
  })
  return { relay, taken: () => texts }
}

t.test('publications are not taken apart any more after the last view is gone', async (t) => {
  const { relay, taken } = countingRelay()
  const plain = await relay.connected('1')
  await plain.send({ id: 2, subscribe: { channel: 'chat:1' } })
  const [one, other] = [await viewer(relay), await viewer(relay)]
  publish(relay, at(1, 5))
  t.equal(taken(), 1)
  one.client.connectionLost()
  publish(relay, at(1, 6))
  t.equal(taken(), 2, 'another client has the view')
  await other.send({ id: 3, unsubscribe: { channel: 'chat:1' } })
  publish(relay, at(1, 7))
  t.equal(taken(), 2)

  const late = await viewer(relay)
  publish(relay, at(1, 25))
  t.same(late.reply.publications?.[0]?.data, { data: [at(1, 7)] })
  t.same(lists(late), [[at(1, 25)]], 'the entry leaves the new view')
})

t.test('the only subscriber of a channel moves its view without a merge of the whole history', async (t) => {
  const { relay, taken } = countingRelay()
  for (let id = 0; id < 50; id++) publish(relay, at(id, id))
  const client = await viewer(relay)
  const before = taken()
  await client.send({ id: 3, unsubscribe: { channel: 'chat:1' } })
  publish(relay, at(3, 21))
  const [reply] = await client.send(subscribe({ view: { x: 20, y: 0, w: 1, h: 1 } }))

  t.equal(taken() - before, 1, 'the publication meanwhile')
  const { data } = (reply?.subscribe?.publications?.[0]?.data ?? {}) as { readonly data?: readonly Entry[] }
  t.equal(data?.length, 11)
  await client.send({ id: 4, unsubscribe: { channel: 'chat:1' } })
  await relay.advance(10_000)
  t.equal(relay.pendingTimers, 0)
  await client.send(subscribe({ view: VIEW }))
  t.ok(taken() - before > 50, 'it is forgotten after ten seconds')
})

t.test('a kept history is not used after a reload has changed the rules', async (t) => {
  const relay = relayWith()
  publish(relay, at(1, 5, { key: 'a' }), at(2, 6, { key: 'a' }))
  const client = await viewer(relay)
  await client.send({ id: 3, unsubscribe: { channel: 'chat:1' } })
  relay.relay.configure(configOf(withNamespace({ ...OPTIONS, conflate: 'data[].key' })))
  const [reply] = await client.send(subscribe({ view: VIEW }))

  t.same(reply?.subscribe?.publications?.[0]?.data, { data: [at(2, 6, { key: 'a' })] })
})

t.test('a client that moves its view again and again on a large channel waits, and others do not', async (t) => {
  const KEYS = 40_000
  const relay = relayWith()
  relay.publish('chat:1', { data: Array.from({ length: KEYS }, (_, id) => at(id, id)) })
  const client = await viewer(relay)
  const other = await viewer(relay)
  const move = async (n: number): Promise<unknown> => {
    client.client.handleFrame(JSON.stringify({ id: n, unsubscribe: { channel: 'chat:1' } }))
    return client.send(subscribe({ view: { x: n, y: 0, w: 1, h: 1 } }))
  }
  for (let n = 10; n < 15; n++) t.match(await move(n), [{ id: n }, { subscribe: { data: { view: {} } } }])
  t.match(await move(15), [{ id: 15 }], 'the reply to subscribe is late')
  publish(relay, at(7, 16))
  t.match(lists(other), [[{ id: 7 }]])
  t.match(await other.send({ id: 9, unsubscribe: { channel: 'chat:1' } }), [{ id: 9 }])
  await relay.advance(200)
  t.match(client.received(), [{ subscribe: { data: { view: { x: 10 } } } }])
  t.equal(client.closed, null)
})

t.test('a large snapshot of a view is made in slices, and has the changes meanwhile', async (t) => {
  const KEYS = 20_000
  let nowMs = 0
  // Each look at the clock is a millisecond later.
  const relay = coreRelay(withNamespace(OPTIONS), { monotonicMs: () => ++nowMs })
  relay.publish('chat:1', { data: Array.from({ length: KEYS }, (_, id) => at(id, id % 20)) })
  const [client, moving] = [await relay.connected('1'), await relay.connected('2')]
  await client.send(subscribe({ view: { x: 0, y: 0, w: 1, h: 1 } }))
  client.client.handleFrame(JSON.stringify({ id: 3, unsubscribe: { channel: 'chat:1' } }))
  moving.client.handleFrame(JSON.stringify(subscribe({ view: VIEW })))
  await settled()
  await settled()
  t.same(moving.received(), [], 'other clients are served in between')
  publish(relay, at(KEYS - 1, 99), at(KEYS - 2, 7, { n: 1 }))
  const messages = []
  for (let turns = 0; turns < 1000 && messages.length < 2; turns++) {
    await settled()
    messages.push(...moving.received())
  }
  const entries = messages.flatMap(({ subscribe, push }) =>
    [...(subscribe?.publications ?? []), ...(push?.pub === undefined ? [] : [push.pub])].flatMap(
      ({ data }) => (data as { readonly data: readonly Entry[] }).data
    )
  )
  const state = new Map(entries.map((entry) => [entry.id, entry]))

  t.equal(state.size, KEYS)
  t.equal(state.get(KEYS - 1)?.x, 99)
  t.equal(state.get(KEYS - 2)?.n, 1)
})
