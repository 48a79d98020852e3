import t from 'tap'
import type { CoreMetrics } from '../../../../src/relay/core/core-metrics.js'
import { NO_METRICS } from '../../../helper/no-metrics.js'
import { coreRelay, type FakeSink, type Message, publicationAt, withNamespace } from '../../../helper/relay-core.js'
import { required } from '../../../helper/required.js'
import type { ServerMessage, ServerPublication } from '../../../helper/server-message.js'

const OPEN = { allow_subscribe_for_client: true, history_size: 100, history_ttl: '60s', force_recovery: true }
const DELTA = { ...OPEN, allowed_delta_types: ['fossil'], delta_publish: true }
const MERGED = { ...OPEN, conflate: 'data[].id' }

const setUp = (options: Message, client: Message = {}) => {
  const relay = coreRelay(withNamespace(options, client))
  const subscribed = async (channels: readonly string[] = ['chat:1'], more: Message = {}) => {
    const client = await relay.connected('42')
    for (const [index, channel] of channels.entries())
      await client.send({ id: index + 2, subscribe: { channel, ...more } })
    client.sink.writes.length = 0
    client.received()
    return client
  }
  return { ...relay, subscribed }
}

const pubs = (messages: readonly ServerMessage[]): ServerPublication[] =>
  messages.map(({ push }) => required(push?.pub))

t.test('publications of one turn', async (t) => {
  t.test('the publications of one turn are sent in one write per client, with the same buffer for all', async (t) => {
    const { subscribed, publish, endTurn } = setUp(OPEN)
    const clients = [await subscribed(), await subscribed(), await subscribed()]
    const buffers: Buffer[] = []
    for (const { sink } of clients) sink.write = (bytes) => void buffers.push(bytes)
    for (const data of [1, 2, 3]) publish('chat:1', data)
    t.equal(buffers.length, 0, 'nothing is written before the turn ends')
    endTurn()

    t.equal(buffers.length, 3)
    t.ok(buffers.every((buffer) => buffer === buffers[0]))
  })

  t.test('the publications of one turn on several channels are sent in one write per client', async (t) => {
    const { subscribed, publish, endTurn } = setUp(OPEN)
    const both = [await subscribed(['chat:1', 'chat:2']), await subscribed(['chat:1', 'chat:2'])]
    const one = await subscribed(['chat:2'])
    const writes = new Map<FakeSink, Buffer[]>()
    for (const { sink } of [...both, one]) {
      writes.set(sink, [])
      sink.write = (bytes) => void writes.get(sink)?.push(bytes)
    }
    publish('chat:1', 1)
    publish('chat:2', 2)
    publish('chat:1', 3)
    endTurn()

    t.same(
      [...writes.values()].map(({ length }) => length),
      [1, 1, 1]
    )
    const [first, second] = both.map(({ sink }) => writes.get(sink)?.[0])
    t.equal(first, second)
  })

  t.test('clients on different channels receive their own publications of one turn', async (t) => {
    const { subscribed, publish } = setUp(OPEN)
    const clients = [await subscribed(['chat:1', 'chat:2']), await subscribed(['chat:1', 'chat:3'])]
    for (const n of [1, 2, 3]) publish(`chat:${n}`, n)

    t.same(
      clients.map((client) => pubs(client.received()).map(({ data }) => data)),
      [
        [1, 2],
        [1, 3]
      ]
    )
  })

  t.test('large publications are written in bounded chunks', async (t) => {
    const { subscribed, publish, endTurn } = setUp(OPEN)
    const { sink } = await subscribed()
    for (let n = 0; n < 10; n++) publish('chat:1', 'x'.repeat(100_000))
    endTurn()

    t.equal(sink.writes.length, 5)
    t.ok(sink.writes.every(({ length }) => length < 256 * 1024))
    sink.writes.length = 0
    publish('chat:1', 'x'.repeat(300_000))
    publish('chat:1', 1)
    endTurn()

    t.equal(sink.writes.length, 2, 'a publication that is larger than a chunk has its own')
  })

  t.test('publications reach all remaining subscribers after some have left', async (t) => {
    const { subscribed, publish, endTurn } = setUp(OPEN)
    const [first, second, third] = [await subscribed(), await subscribed(), await subscribed()]
    // The third takes the place of the first, and the fourth that of the third.
    first.client.connectionLost()
    const [fourth, fifth] = [await subscribed(), await subscribed()]
    third.client.connectionLost()
    publish('chat:1', 1)
    endTurn()

    t.same(
      [first, second, third, fourth, fifth].map(({ sink }) => sink.writes.length),
      [0, 1, 0, 1, 1]
    )
  })
})

t.test('a delta', async (t) => {
  const text = (n: number): Message => ({ n, same: 'the same text in every publication, long enough to be worth it' })

  t.test('a delta follows a full publication, and both are JSON strings', async (t) => {
    const { subscribed, publish } = setUp(DELTA)
    const client = await subscribed(['chat:1'], { delta: 'fossil' })
    publish('chat:1', text(1))
    publish('chat:1', text(2))
    const [first, second] = pubs(client.received())

    t.equal(first?.data, JSON.stringify(text(1)))
    t.equal(first?.delta, undefined)
    t.type(second?.data, 'string')
    t.equal(second?.delta, true)
    t.ok(String(second?.data).length < JSON.stringify(text(2)).length)
  })

  t.test('a reconnected client that missed nothing receives a full publication first', async (t) => {
    const { subscribed, connected, publish } = setUp(DELTA)
    await subscribed(['chat:1'], { delta: 'fossil' })
    publish('chat:1', text(1))
    const client = await connected('42')
    const recover = { recover: true, epoch: 'epoch1', offset: 1 }
    await client.send({ id: 2, subscribe: { channel: 'chat:1', delta: 'fossil', ...recover } })
    publish('chat:1', text(2))
    publish('chat:1', text(3))
    const [first, second] = pubs(client.received())

    t.equal(first?.data, JSON.stringify(text(2)))
    t.equal(first?.delta, undefined)
    t.equal(second?.delta, true)
  })

  t.test('deltas need a request of the client and the namespace option', async (t) => {
    const { subscribed, publish } = setUp(DELTA)
    const [plain, delta] = [await subscribed(), await subscribed(['chat:1'], { delta: 'fossil' })]
    publish('chat:1', text(1))
    publish('chat:1', text(2))
    delta.received()
    t.same(
      pubs(plain.received()).map(({ data }) => data),
      [text(1), text(2)]
    )

    const closed = setUp(OPEN)
    t.match(
      (await (await closed.connected('1')).send({ id: 2, subscribe: { channel: 'chat:1', delta: 'fossil' } }))[0],
      {
        subscribe: { delta: undefined }
      }
    )
  })

  t.test('the channel of a token has deltas only if the client requests them', async (t) => {
    for (const [subs, isDelta] of [
      [{}, false],
      [{ 'chat:1': { delta: 'fossil' } }, true]
    ] as const) {
      const { client, token, publish } = coreRelay(withNamespace(DELTA))
      const connecting = client()
      await connecting.send({ id: 1, connect: { token: token({ sub: '42', channels: ['chat:1'] }), subs } })
      for (const n of [1, 2]) publish('chat:1', { n, text: 'x'.repeat(100) })

      t.equal(pubs(connecting.received())[1]?.delta === true, isDelta)
    }
  })

  t.test('a later subscriber receives a full publication first', async (t) => {
    const { subscribed, publish } = setUp(DELTA)
    const early = await subscribed(['chat:1'], { delta: 'fossil' })
    publish('chat:1', text(1))
    early.received()
    const late = await subscribed(['chat:1'], { delta: 'fossil' })
    publish('chat:1', text(2))

    t.match(pubs(early.received()), [{ delta: true }])
    t.match(pubs(late.received()), [{ delta: undefined, data: JSON.stringify(text(2)) }])
  })

  t.test('a publication without the delta flag is sent in full', async (t) => {
    const { subscribed, publish } = setUp({ ...DELTA, delta_publish: false })
    const client = await subscribed(['chat:1'], { delta: 'fossil' })
    publish('chat:1', text(1))
    publish('chat:1', text(2))
    publish('chat:1', text(3), { delta: true })

    t.match(pubs(client.received()), [{ delta: undefined }, { delta: undefined }, { delta: true }])
  })
})

t.test('a client that is behind', async (t) => {
  const batch = (...entries: readonly (readonly [id: string, n: number])[]): Message => ({
    data: entries.map(([id, n]) => ({ id, n }))
  })

  t.test('a client that is behind receives one merged publication with the newest entries and offset', async (t) => {
    const { subscribed, publish, endTurn } = setUp(MERGED)
    const client = await subscribed()
    client.sink.isStuck = true
    publish('chat:1', batch(['a', 1]))
    endTurn()
    for (const each of [batch(['a', 2], ['b', 2]), batch(['c', 3]), batch(['a', 4])]) {
      publish('chat:1', each)
      endTurn()
    }
    t.equal(client.sink.writes.length, 1)
    client.sink.drain()

    t.same(pubs(client.received()), [
      { data: batch(['a', 1]), offset: 1, epoch: 'epoch1' },
      { data: batch(['b', 2], ['c', 3], ['a', 4]), offset: 4 }
    ])
    publish('chat:1', batch(['d', 5]))
    t.same(pubs(client.received()), [{ data: batch(['d', 5]), offset: 5 }])
  })

  t.test('a publication that cannot be merged is sent separately, in order', async (t) => {
    const { subscribed, publish, endTurn } = setUp(MERGED)
    const client = await subscribed()
    client.sink.isStuck = true
    publish('chat:1', 0)
    endTurn()
    for (const data of [batch(['a', 1]), batch(['a', 2]), 'other', batch(['a', 4]), batch(['b', 5])])
      publish('chat:1', data)
    endTurn()
    client.sink.drain()

    t.match(pubs(client.received()).slice(1), [
      { data: batch(['a', 2]), offset: 3 },
      { data: 'other', offset: 4 },
      { data: batch(['a', 4], ['b', 5]), offset: 6 }
    ])
  })

  t.test('a client that is behind does not delay others or share their backlog', async (t) => {
    const { subscribed, publish, endTurn } = setUp(MERGED)
    const [fast, first, second] = [await subscribed(), await subscribed(), await subscribed()]
    first.sink.isStuck = true
    for (let n = 1; n <= 3; n++) {
      publish('chat:1', batch([`k${n}`, n]))
      endTurn()
      if (n === 1) second.sink.isStuck = true
    }
    first.sink.drain()
    second.sink.drain()

    t.match(pubs(fast.received()), [{ offset: 1 }, { offset: 2 }, { offset: 3 }])
    t.match(pubs(first.received()), [{ offset: 1 }, { data: batch(['k2', 2], ['k3', 3]), offset: 3 }])
    t.match(pubs(second.received()), [{ offset: 1 }, { offset: 2 }, { data: batch(['k3', 3]), offset: 3 }])
  })

  t.test('the offset of a merged publication ignores publications without history', async (t) => {
    const { subscribed, publish, endTurn } = setUp(MERGED)
    const client = await subscribed()
    client.sink.isStuck = true
    for (const data of [0, batch(['a', 2]), batch(['a', 3])]) {
      publish('chat:1', data)
      endTurn()
    }
    publish('chat:1', batch(['b', 4]), { skipHistory: true })
    endTurn()
    client.sink.drain()

    t.same(pubs(client.received()).slice(1), [{ data: batch(['a', 3], ['b', 4]), offset: 3 }])
  })

  t.test('a merged publication at the first offset has the epoch', async (t) => {
    const { subscribed, publish, endTurn } = setUp(MERGED)
    const client = await subscribed()
    client.sink.isStuck = true
    for (const skipHistory of [true, false, true]) {
      publish('chat:1', batch(['a', 1]), { skipHistory })
      endTurn()
    }
    client.sink.drain()

    t.same(pubs(client.received()).slice(1), [{ data: batch(['a', 1]), offset: 1, epoch: 'epoch1' }])
  })

  t.test('publications that wait for a client are counted when they are sent', async (t) => {
    const traffic = { messages: { value: 0 }, bytes: { value: 0 } }
    const metrics = { ...NO_METRICS, sent: () => traffic }
    const relay = coreRelay(withNamespace(MERGED), { metrics })
    const clients = [await relay.connected('1'), await relay.connected('2')] as const
    for (const client of clients) await client.send({ id: 2, subscribe: { channel: 'chat:1' } })
    clients[0].sink.isStuck = true
    traffic.messages.value = 0
    for (const n of [1, 2, 3]) {
      relay.publish('chat:1', batch(['a', n]))
      relay.endTurn()
    }
    t.equal(traffic.messages.value, 4, 'three to one client, the first to the other')
    clients[0].sink.drain()

    t.equal(traffic.messages.value, 5)
  })

  t.test('clients that fell behind at different times receive no older offsets', async (t) => {
    const { subscribed, publish, endTurn } = setUp(MERGED)
    const clients = await Promise.all(Array.from({ length: 6 }, async () => subscribed()))
    const publishData = (data: unknown): void => {
      publish('chat:1', data)
      endTurn()
    }
    for (const [n, { sink }] of clients.entries()) {
      sink.isStuck = true
      for (const data of [batch(['a', n]), 'other', batch(['a', n + 0.5])]) await publishData(data)
    }
    for (const { sink } of clients) sink.drain()

    for (const client of clients) {
      const offsets = pubs(client.received()).map(({ offset }) => Number(offset))
      t.same(
        offsets,
        [...new Set(offsets)].sort((left, right) => left - right)
      )
      t.equal(offsets.at(-1), 18)
    }
  })

  t.test('four backlogs are merged separately, and a client that falls behind later shares the newest', async (t) => {
    const { subscribed, publish, endTurn } = setUp(MERGED)
    const clients = await Promise.all(Array.from({ length: 5 }, async () => subscribed()))
    for (let n = 1; n <= 6; n++) {
      const stuck = clients[n - 1]
      if (stuck !== undefined) stuck.sink.isStuck = true
      publish('chat:1', batch([`k${n}`, n]))
      endTurn()
    }
    for (const { sink } of clients) sink.drain()

    t.same(
      clients.map((client) => pubs(client.received()).at(-1)?.data),
      [
        batch(['k2', 2], ['k3', 3], ['k4', 4], ['k5', 5], ['k6', 6]),
        batch(['k3', 3], ['k4', 4], ['k5', 5], ['k6', 6]),
        batch(['k4', 4], ['k5', 5], ['k6', 6]),
        batch(['k5', 5], ['k6', 6]),
        // It has received the entry k5 before.
        batch(['k5', 5], ['k6', 6])
      ]
    )
  })

  t.test('a client with deltas receives the publication after a backlog in full', async (t) => {
    const { subscribed, publish, endTurn } = setUp({ ...DELTA, conflate: 'data[].id' })
    const client = await subscribed(['chat:1'], { delta: 'fossil' })
    const long = (n: number): Message => batch(['a', n], ['the same key in every publication', 1])
    publish('chat:1', long(1))
    endTurn()
    client.sink.isStuck = true
    for (const n of [2, 3, 4]) {
      publish('chat:1', long(n))
      endTurn()
    }
    client.sink.drain()
    publish('chat:1', long(5))
    endTurn()
    publish('chat:1', long(6))

    t.match(pubs(client.received()), [
      { offset: 1, delta: undefined },
      { offset: 2, delta: true },
      { offset: 4, delta: undefined },
      { offset: 5, delta: undefined },
      { offset: 6, delta: true }
    ])
  })

  t.test('a client that is behind is closed if too much waits and nothing can be merged', async (t) => {
    const { subscribed, publish, endTurn } = setUp(OPEN, { queue_max_size: 1000 })
    const client = await subscribed()
    client.sink.isStuck = true
    publish('chat:1', 'x'.repeat(2000))
    endTurn()
    t.equal(client.closed, null, 'the first write is always allowed')
    publish('chat:1', 'y')
    endTurn()
    endTurn()

    t.equal(client.closed, '3008 slow')
  })

  t.test('a client that is behind is closed if its merged publications exceed the limit', async (t) => {
    const { subscribed, publish, endTurn } = setUp(MERGED, { queue_max_size: 1000 })
    const client = await subscribed()
    client.sink.isStuck = true
    for (let n = 0; n < 100; n++) {
      publish('chat:1', batch([`key ${n}`, n]))
      endTurn()
    }
    endTurn()

    t.equal(client.closed, '3008 slow')
  })

  t.test('a client that is behind on several channels receives the backlog of each', async (t) => {
    const { subscribed, publish, endTurn } = setUp(MERGED)
    const client = await subscribed(['chat:1', 'chat:2'])
    client.sink.isStuck = true
    publish('chat:1', batch(['a', 1]))
    endTurn()
    for (const n of [2, 3]) {
      publish('chat:1', batch(['a', n]))
      publish('chat:2', batch(['b', n]))
      endTurn()
    }
    client.sink.drain()

    t.match(
      client.received().map(({ push }) => [push?.channel, push?.pub?.offset]),
      [
        ['chat:1', 1],
        ['chat:1', 3],
        ['chat:2', 2]
      ]
    )
  })

  t.test('a command after a drain does not send a publication before the backlog that it belongs to', async (t) => {
    const { subscribed, publish, endTurn } = setUp(MERGED)
    const client = await subscribed(['chat:1', 'chat:2'])
    client.sink.isStuck = true
    publish('chat:1', batch(['a', 1]))
    endTurn()
    publish('chat:1', batch(['a', 2]))
    endTurn()
    // A subscribe command waits for the network, and so does what follows.
    await client.send({ id: 8, subscribe: { channel: 'chat:2' } }, { id: 9, unsubscribe: { channel: 'chat:2' } })
    publish('chat:1', batch(['b', 3]))
    client.sink.drain()

    t.match(client.received(), [
      { id: 8, error: { code: 105 } },
      { id: 9, unsubscribe: {} },
      { push: { pub: { data: batch(['a', 2], ['b', 3]), offset: 3 } } }
    ])
  })

  t.test('the backlog of a channel goes on merging while the client reads that of another', async (t) => {
    const { subscribed, publish, endTurn } = setUp(MERGED)
    const client = await subscribed(['chat:1', 'chat:2'])
    const { sink } = client
    const write = sink.write.bind(sink)
    sink.write = (bytes) => {
      sink.isStuck = true
      write(bytes)
    }
    for (const n of [1, 2, 3]) {
      for (const channel of ['chat:1', 'chat:2']) {
        publish(channel, batch(['a', n]))
        endTurn()
      }
      if (n === 2) sink.drain()
    }
    sink.drain()

    t.match(
      client.received().map(({ push }) => [push?.channel, push?.pub?.offset]),
      [
        ['chat:1', 1],
        ['chat:1', 2],
        ['chat:2', 3]
      ]
    )
  })
})

t.test('a subscriber that has left is not counted for its tag filter', async (t) => {
  const filteredOut: number[] = []
  const metrics = { ...NO_METRICS, filteredOut: (_namespace: string, count: number) => void filteredOut.push(count) }
  const relay = coreRelay(withNamespace({ ...OPEN, allow_tags_filter: true }), { metrics })
  const clients = [await relay.connected('1'), await relay.connected('2')]
  for (const [index, { send }] of clients.entries())
    await send({ id: 2, subscribe: { channel: 'chat:1', tf: { key: 'side', cmp: 'eq', val: `${index}` } } })
  clients[0]?.client.connectionLost()
  relay.publish('chat:1', 1)

  t.same(filteredOut, [1])
})

t.test('publications that a tag filter rejects right after the subscribe reply are counted', async (t) => {
  const filteredOut: number[] = []
  const metrics = { ...NO_METRICS, filteredOut: (_namespace: string, count: number) => void filteredOut.push(count) }
  const held: (() => void)[] = []
  const relay = coreRelay(withNamespace({ ...OPEN, allow_tags_filter: true }), {
    metrics,
    delayPushAfterReply: (task) => void held.push(task)
  })
  const { send } = await relay.connected('1')
  await send({ id: 2, subscribe: { channel: 'chat:1', tf: { key: 'side', cmp: 'eq', val: 'left' } } })
  relay.publish('chat:1', 1, { tags: '{"side":"left"}' })
  relay.publish('chat:1', 2, { tags: '{"side":"right"}' })
  relay.publish('chat:1', 3)
  for (const task of held) task()

  t.same(filteredOut, [1, 1])
})

t.test('the lag of a publication from a node whose clock is ahead is 0', async (t) => {
  const lags: (number | null)[] = []
  const metrics = {
    ...NO_METRICS,
    delivered: (...[, , , lag]: Parameters<CoreMetrics['delivered']>) => void lags.push(lag)
  }
  const relay = coreRelay(withNamespace(OPEN), { metrics })
  await (await relay.connected('42')).send({ id: 2, subscribe: { channel: 'chat:1' } })
  relay.delivery.publication('chat:1', { ...publicationAt(1), time: relay.clock.nowMs + 5000 }, 'epoch1')
  relay.endTurn()

  t.same(lags, [0])
})

t.test(
  'a publication carries the version that its publisher gave it, live, recovered and in the history',
  async (t) => {
    const { connected, publish } = coreRelay(
      withNamespace({
        allow_subscribe_for_client: true,
        allow_history_for_client: true,
        history_size: 10,
        history_ttl: '60s',
        force_recovery: true
      })
    )
    const client = await connected('42')
    await client.send({ id: 2, subscribe: { channel: 'chat:1' } })
    publish('chat:1', 1, { version: 7 })
    publish('chat:1', 2)
    const pubs = [
      { data: 1, offset: 1, version: 7 },
      { data: 2, offset: 2 }
    ]

    t.match(
      client.received().map(({ push }) => push?.pub),
      pubs
    )
    const since = { recover: true, epoch: 'epoch1', offset: 0 }
    const [recovered] = await (await connected('43')).send({ id: 2, subscribe: { channel: 'chat:1', ...since } })
    t.match(recovered, { subscribe: { publications: pubs } })
    const [history] = await client.send({ id: 3, history: { channel: 'chat:1', limit: 10 } })
    t.match(history, { history: { publications: pubs } })
  }
)
