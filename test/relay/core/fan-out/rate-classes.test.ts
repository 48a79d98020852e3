import t from 'tap'
import { MAX_FILTERS } from '../../../../src/relay/core/fan-out/channel-filters.js'
import { RATES, rateFor } from '../../../../src/relay/core/fan-out/rate-class.js'
import { webSocketBinaryFraming } from '../../../../src/relay/transport/framing.js'
import { frameOf } from '../../../helper/protobuf.js'
import {
  coreRelay,
  type FakeClient,
  FakeSink,
  type Message,
  settled,
  type TestRelay,
  withNamespace
} from '../../../helper/relay-core.js'
import { configOf } from '../../../helper/relay-rules.js'

const OPTIONS = {
  allow_subscribe_for_client: true,
  history_size: 100,
  history_ttl: '60s',
  force_recovery: true,
  conflate: 'data[].id',
  allow_max_rate: true
}

const relayWith = (more: Message = {}, client: Message = {}): TestRelay =>
  coreRelay(withNamespace({ ...OPTIONS, ...more }, client))

const subscribe = (data?: unknown, more: Message = {}): Message => ({
  id: 2,
  subscribe: { channel: 'chat:1', ...(data === undefined ? {} : { data }), ...more }
})

const subscriber = async (relay: TestRelay, data?: unknown, more: Message = {}): Promise<FakeClient> => {
  const client = await relay.connected('42')
  await client.send(subscribe(data, more))
  return client
}

const batch = (n: number, ...ids: readonly number[]): Message => ({ n, data: ids.map((id) => ({ id, n })) })

/** The data in a subscribe reply. */
const dataOf = (reply: Message | undefined): unknown => (reply?.subscribe as Message | undefined)?.data

interface Pub {
  readonly data: Message
  readonly offset?: number
}

const pubs = (client: FakeClient): Pub[] =>
  client.received().flatMap(({ push }) => {
    const { pub } = (push ?? {}) as { pub?: Pub }
    return pub === undefined ? [] : [pub]
  })

const REQUESTS: readonly (readonly [maxRate: unknown, granted: number])[] = [
  [10, 10],
  [1000, 10],
  [9.99, 5],
  [5, 5],
  [3, 2],
  [1.9, 1],
  [1, 1],
  [0.5, 0.5],
  [0.3, 0.2],
  [0.2, 0.2],
  [0.001, 0.2]
]
for (const [maxRate, granted] of REQUESTS) {
  t.test(`a subscriber with max_rate ${maxRate} has the rate ${granted}`, async (t) => {
    const client = await relayWith().connected('42')
    const [reply] = await client.send(subscribe({ max_rate: maxRate }))

    t.same(dataOf(reply), { max_rate: granted })
  })
}

for (const maxRate of [0, -1, '2', null, true, [], {}]) {
  t.test(`a subscriber with max_rate ${JSON.stringify(maxRate)} is refused with error 107`, async (t) => {
    const relay = relayWith()
    const client = await relay.connected('42')

    t.match(await client.send(subscribe({ max_rate: maxRate })), [{ id: 2, error: { code: 107 } }])
    t.equal(relay.relay.stats().subscriptions, 0)
  })
}

for (const data of [undefined, {}, null, 'max_rate', [1], { other: 1 }]) {
  t.test(`a subscriber with the data ${JSON.stringify(data)} has the full rate`, async (t) => {
    const relay = relayWith()
    const client = await relay.connected('42')
    const [reply] = await client.send(subscribe(data))
    t.equal(dataOf(reply), undefined)
    for (const n of [1, 2, 3]) relay.publish('chat:1', batch(n, 1))

    t.equal(pubs(client).length, 3)
  })
}

t.test('without allow_max_rate the field is ignored', async (t) => {
  const relay = relayWith({ allow_max_rate: false })
  const client = await relay.connected('42')
  const [reply] = await client.send(subscribe({ max_rate: 'none' }))

  t.match(reply, { subscribe: { recoverable: true } })
  t.equal(dataOf(reply), undefined)
})

t.test('the rate is added to the data of a subscription token', async (t) => {
  const relay = relayWith()
  const client = await relay.connected('42')
  const token = relay.token({ sub: '42', channel: 'chat:1', data: { room: 7 } })
  const [reply] = await client.send(subscribe({ max_rate: 1 }, { token }))

  t.same(dataOf(reply), { room: 7, max_rate: 1 })
})

t.test('a protobuf client limits its rate with JSON in its data', async (t) => {
  const relay = relayWith()
  const sink = new FakeSink(false, webSocketBinaryFraming)
  const { client } = relay.client(sink)
  client.handleFrame(frameOf({ id: 1, connect: { token: relay.token({ sub: '42' }) } }))
  await settled()
  const data = Buffer.from('{"max_rate":7}')
  client.handleFrame(frameOf({ id: 2, subscribe: { channel: 'chat:1', data } }))
  await settled()

  t.ok(sink.frames.some((frame) => frame.includes('{"max_rate":5}')))
})

for (const rate of RATES) {
  t.test(`a subscriber at ${rate} per second receives one merged publication per interval`, async (t) => {
    const relay = relayWith()
    const [limited, full] = [await subscriber(relay, { max_rate: rate }), await subscriber(relay)]
    const intervalMs = 1000 / rate
    relay.publish('chat:1', batch(1, 1))
    await relay.advance(0)
    t.same(pubs(limited), [{ data: batch(1, 1), offset: 1, epoch: 'epoch1' }], 'the first one at once')
    for (let n = 2; n <= 5; n++) relay.publish('chat:1', batch(n, n, n + 1))
    await relay.advance(intervalMs - 1)
    t.same(pubs(limited), [])
    await relay.advance(1)
    t.same(
      pubs(limited).map(({ offset, data }) => [offset, data]),
      [
        [
          5,
          {
            n: 5,
            data: [
              { id: 2, n: 2 },
              { id: 3, n: 3 },
              { id: 4, n: 4 },
              { id: 5, n: 5 },
              { id: 6, n: 5 }
            ]
          }
        ]
      ]
    )
    await relay.advance(10 * intervalMs)
    t.same(pubs(limited), [], 'and nothing after the latest state')
    t.equal(pubs(full).length, 5)
  })
}

t.test('publications of another shape are passed unmerged and in order, one per interval', async (t) => {
  const relay = relayWith()
  const client = await subscriber(relay, { max_rate: 1 })
  relay.publish('chat:1', batch(1, 1))
  relay.publish('chat:1', { other: 2 })
  relay.publish('chat:1', { other: 3 })
  relay.publish('chat:1', batch(4, 1))
  relay.publish('chat:1', batch(5, 2))
  const received: unknown[] = []
  for (let second = 0; second < 5; second++) {
    await relay.advance(second === 0 ? 0 : 1000)
    received.push(pubs(client).map(({ offset, data }) => [offset, data]))
  }

  t.same(received, [
    [[1, batch(1, 1)]],
    [[2, { other: 2 }]],
    [[3, { other: 3 }]],
    [
      [
        5,
        {
          n: 5,
          data: [
            { id: 1, n: 4 },
            { id: 2, n: 5 }
          ]
        }
      ]
    ],
    []
  ])
})

t.test('many publications of another shape do not delay the others without limit', async (t) => {
  const relay = relayWith()
  const client = await subscriber(relay, { max_rate: 1 })
  for (let n = 1; n <= 100; n++) relay.publish('chat:1', { other: n })
  relay.publish('chat:1', batch(101, 1))
  await relay.advance(17_000)

  t.same(
    pubs(client).map(({ offset }) => offset),
    Array.from({ length: 101 }, (_, index) => index + 1)
  )
})

t.test('a subscriber that joins between two deliveries receives only what follows its position', async (t) => {
  const relay = relayWith({ snapshot: true })
  const early = await subscriber(relay, { max_rate: 1 })
  relay.publish('chat:1', batch(1, 1))
  await relay.advance(0)
  relay.publish('chat:1', batch(2, 2))
  const late = await relay.connected('42')
  const [reply] = await late.send(subscribe({ max_rate: 1 }))
  t.match(reply, { subscribe: { offset: 2 } })
  relay.publish('chat:1', batch(3, 3))
  await relay.advance(1000)

  t.same(
    pubs(late).map(({ offset, data }) => [offset, data]),
    [[3, batch(3, 3)]]
  )
  t.match(pubs(early).at(-1), { offset: 3, data: { data: [{ id: 2 }, { id: 3 }] } })
  relay.publish('chat:1', batch(4, 4))
  await relay.advance(1000)
  t.match(pubs(late), [{ offset: 4, data: batch(4, 4) }])
  t.match(pubs(early), [{ offset: 4, data: batch(4, 4) }])
})

t.test('a subscriber that joins when nothing waits receives nothing twice', async (t) => {
  const relay = relayWith()
  await subscriber(relay, { max_rate: 1 })
  relay.publish('chat:1', batch(1, 1))
  await relay.advance(1000)
  const late = await subscriber(relay, { max_rate: 1 })
  await relay.advance(5000)

  t.same(pubs(late), [])
})

t.test('a subscriber with a limited rate recovers from the offset of its last delivery', async (t) => {
  const relay = relayWith()
  const client = await subscriber(relay, { max_rate: 0.2 })
  relay.publish('chat:1', batch(1, 1))
  await relay.advance(0)
  const [{ offset = 0 } = {}] = pubs(client)
  relay.publish('chat:1', batch(2, 2))
  client.client.connectionLost()
  const back = await relay.connected('42')
  const [reply] = await back.send(subscribe({ max_rate: 0.2 }, { recover: true, epoch: 'epoch1', offset }))

  t.match(reply, { subscribe: { recovered: true, publications: [{ offset: 2, data: batch(2, 2) }] } })
  await relay.advance(10_000)
  t.same(pubs(back), [])
})

t.test('with deltas a limited subscriber receives full publications as text', async (t) => {
  const relay = relayWith({ allowed_delta_types: ['fossil'], delta_publish: true })
  const client = await subscriber(relay, { max_rate: 1 }, { delta: 'fossil' })
  for (const n of [1, 2]) {
    relay.publish('chat:1', batch(n, 1))
    await relay.advance(1000)
  }

  t.same(
    pubs(client).map(({ data, ...more }) => [JSON.parse(String(data)), (more as { delta?: boolean }).delta]),
    [
      [batch(1, 1), undefined],
      [batch(2, 1), undefined]
    ]
  )
})

t.test('a limited subscriber with a tag filter receives matching publications only', async (t) => {
  const relay = relayWith({ allow_tags_filter: true })
  const client = await subscriber(relay, { max_rate: 1 }, { tf: { key: 'side', cmp: 'eq', val: 'a' } })
  relay.publish('chat:1', batch(1, 1), { tags: '{"side":"a"}' })
  relay.publish('chat:1', batch(2, 1), { tags: '{"side":"b"}' })
  await relay.advance(1000)

  t.same(
    pubs(client).map(({ offset }) => offset),
    [1]
  )
})

t.test('entries that wait during a reload of conflate are not merged again', async (t) => {
  const relay = relayWith()
  const client = await subscriber(relay, { max_rate: 1 })
  relay.publish('chat:1', batch(1, 1))
  await relay.advance(0)
  for (const n of [2, 3]) relay.publish('chat:1', batch(n, 1))
  relay.relay.configure(configOf(withNamespace({ ...OPTIONS, conflate: 'data[].n' })))
  for (const n of [4, 5]) relay.publish('chat:1', batch(n, 1))
  await relay.advance(2000)

  t.same(
    pubs(client).map(({ data }) => data.data),
    [
      [{ id: 1, n: 1 }],
      [{ id: 1, n: 3 }],
      [
        { id: 1, n: 4 },
        { id: 1, n: 5 }
      ]
    ]
  )
})

t.test('a limited subscriber that does not read receives the latest state when it reads again', async (t) => {
  const relay = relayWith()
  const client = await subscriber(relay, { max_rate: 1 })
  client.sink.isStuck = true
  for (let n = 1; n <= 10; n++) {
    relay.publish('chat:1', batch(n, n % 3))
    await relay.advance(1000)
  }
  client.sink.drain()
  const received = pubs(client)

  t.equal(received.at(-1)?.offset, 10)
  t.same(
    new Map(received.flatMap(({ data }) => (data.data as { id: number; n: number }[]).map(({ id, n }) => [id, n]))),
    new Map([
      [1, 10],
      [2, 8],
      [0, 9]
    ])
  )
})

t.test('the timers of a channel end with its last limited subscriber', async (t) => {
  const relay = relayWith()
  const client = await subscriber(relay, { max_rate: 0.2 })
  await subscriber(relay)
  relay.publish('chat:1', batch(1, 1))
  await relay.advance(0)
  relay.publish('chat:1', batch(2, 1))
  t.equal(relay.pendingTimers, 1)
  await client.send({ id: 3, unsubscribe: { channel: 'chat:1' } })

  t.equal(relay.pendingTimers, 0)
})

t.test('rateFor rounds down to a class', async (t) => {
  for (const [maxRate, granted] of REQUESTS) t.equal(rateFor(Number(maxRate)), granted)
})

t.test('the rate is added to the data of a token that begins with white space', async (t) => {
  const { connected, token } = coreRelay(withNamespace({ conflate: 'data[].id', allow_max_rate: true }))
  const client = await connected('42')
  const b64data = Buffer.from(' {"a":1.50} ').toString('base64')
  const subscribe = {
    channel: 'chat:1',
    token: token({ sub: '42', channel: 'chat:1', b64data }),
    data: { max_rate: 1 }
  }

  t.match(await client.send({ id: 2, subscribe }), [{ subscribe: { data: { a: 1.5, max_rate: 1 } } }])
})

t.test('the tags of a publication are parsed once for all rates and filters', async (t) => {
  const relay = relayWith({ allow_tags_filter: true })
  for (const max_rate of [10, 5, 1])
    for (const val of ['1', '2', '3']) await subscriber(relay, { max_rate }, { tf: { key: 'side', cmp: 'eq', val } })
  const { parse } = JSON
  let parsed = 0
  JSON.parse = (text, reviver) => {
    if (text === '{"side":"2"}') parsed += 1
    return parse(text, reviver)
  }
  t.teardown(() => {
    JSON.parse = parse
  })
  relay.publish('chat:1', batch(1, 1), { tags: '{"side":"2"}' })

  t.equal(parsed, 1)
})

t.test('a channel has at most 256 different tag filters, with all rates together', async (t) => {
  const relay = relayWith({ allow_tags_filter: true })
  const tf = (index: number): Message => ({ tf: { key: 'side', cmp: 'eq', val: String(index) } })
  const first = await subscriber(relay, { max_rate: 1 }, tf(0))
  for (let index = 1; index < MAX_FILTERS; index++) await subscriber(relay, undefined, tf(index))
  const beyond = await relay.connected('42')
  t.match(await beyond.send(subscribe(undefined, tf(MAX_FILTERS))), [{ id: 2, error: { code: 106 } }])
  t.equal(relay.relay.stats().subscriptions, MAX_FILTERS)
  t.match(await beyond.send(subscribe(undefined, tf(7))), [{ subscribe: {} }], 'a known filter is shared')
  await beyond.send({ id: 3, unsubscribe: { channel: 'chat:1' } })
  first.client.connectionLost()
  t.match(await beyond.send(subscribe(undefined, tf(MAX_FILTERS))), [{ subscribe: {} }], 'a filter is free again')
})
