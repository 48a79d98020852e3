import fc from 'fast-check'
import t from 'tap'
import { jsonCodec } from '../../../../src/relay/core/codec/json-codec.js'
import { EngineError } from '../../../../src/relay/core/engine.js'
import { ChannelSnapshot } from '../../../../src/relay/core/fan-out/channel-snapshot.js'
import { MergedHistory } from '../../../../src/relay/core/fan-out/merged-history.js'
import { Conflation } from '../../../../src/relay/core/merging/conflation.js'
import { conflator } from '../../../../src/relay/core/merging/keyed-list.js'
import type { Position, Publication } from '../../../../src/relay/core/publication.js'
import { unidirectionalLineFraming, webSocketBinaryFraming } from '../../../../src/relay/transport/framing.js'
import { checkProperty } from '../../../helper/property.js'
import { frameOf } from '../../../helper/protobuf.js'
import {
  coreRelay,
  FakeSink,
  type Message,
  settled,
  type TestRelay,
  withNamespace
} from '../../../helper/relay-core.js'

const OPTIONS = {
  allow_subscribe_for_client: true,
  history_size: 4,
  history_ttl: '60s',
  conflate: 'data[].id',
  snapshot: true
}
const RECOVERABLE = { ...OPTIONS, force_recovery: true }

const relayWith = (options: Message = RECOVERABLE, client: Message = {}): TestRelay =>
  coreRelay(withNamespace(options, client))

const batch = (n: number, ...ids: readonly (number | string)[]): Message => ({
  n,
  data: ids.map((id) => ({ id, n }))
})

const subscribe = (more: Message = {}): Message => ({ id: 2, subscribe: { channel: 'chat:1', ...more } })

interface Result {
  readonly offset?: number
  readonly epoch?: string
  readonly recovered?: boolean
  readonly was_recovering?: boolean
  readonly publications?: readonly { readonly data: Message; readonly offset?: number }[]
}

/** The result of a subscribe command of a new client. */
const subscribed = async (relay: TestRelay, more: Message = {}): Promise<Result> => {
  const [reply] = await (await relay.connected('42')).send(subscribe(more))
  return (reply?.subscribe ?? {}) as Result
}

t.test('a subscriber receives the newest entry of every key in the history', async (t) => {
  const relay = relayWith()
  for (const [n, ids] of [[1, 2], [2, 3], ['3']].entries()) relay.publish('chat:1', batch(n + 1, ...ids))

  t.same(await subscribed(relay), {
    recoverable: true,
    positioned: true,
    epoch: 'epoch1',
    offset: 3,
    publications: [
      {
        data: {
          n: 3,
          data: [
            { id: 1, n: 1 },
            { id: 2, n: 2 },
            { id: 3, n: 2 },
            { id: '3', n: 3 }
          ]
        },
        offset: 3
      }
    ]
  })
})

t.test('live publications follow a snapshot without a gap or repetition', async (t) => {
  const relay = relayWith()
  relay.publish('chat:1', batch(1, 1))
  const client = await relay.connected('42')
  await client.send(subscribe())
  relay.publish('chat:1', batch(2, 1))
  relay.publish('chat:1', batch(3, 2))

  t.match(client.received(), [{ push: { pub: { data: batch(2, 1), offset: 2 } } }, { push: { pub: { offset: 3 } } }])
})

t.test('a recovery is not replaced by a snapshot', async (t) => {
  const relay = relayWith()
  for (const n of [1, 2, 3]) relay.publish('chat:1', batch(n, n))
  const result = await subscribed(relay, { recover: true, epoch: 'epoch1', offset: 1 })

  t.match(result, { recovered: true, was_recovering: true, offset: 1 })
  t.same(
    result.publications?.map(({ offset }) => offset),
    [2, 3]
  )
})

const UNRECOVERABLE: readonly (readonly [what: string, position: Message])[] = [
  ['an offset that has left the history', { epoch: 'epoch1', offset: 0 }],
  ['another epoch', { epoch: 'other', offset: 6 }]
]
for (const [what, position] of UNRECOVERABLE) {
  t.test(`a client that cannot recover from ${what} receives a snapshot`, async (t) => {
    const relay = relayWith()
    for (const n of [1, 2, 3, 4, 5, 6]) relay.publish('chat:1', batch(n, n))
    const result = await subscribed(relay, { recover: true, ...position })

    t.match(result, { was_recovering: true, offset: 6, publications: [{ data: batch(6), offset: 6 }] })
    t.equal(result.recovered, undefined)
    t.equal(result.publications?.length, 1)
  })
}

t.test('a client with the flag for errors receives error 112 instead of a snapshot', async (t) => {
  const relay = relayWith()
  relay.publish('chat:1', batch(1, 1))
  const client = await relay.connected('42')

  t.match(await client.send(subscribe({ recover: true, epoch: 'other', offset: 1, flag: 2 })), [
    { id: 2, error: { code: 112 } }
  ])
})

t.test('without a publication of the configured shape there is no snapshot', async (t) => {
  const relay = relayWith()
  t.equal((await subscribed(relay)).publications, undefined)
  relay.publish('chat:1', { other: true })

  const result = await subscribed(relay)
  t.equal(result.publications, undefined)
  t.equal(result.offset, 1)
})

t.test('the envelope is that of the newest publication with the shape', async (t) => {
  const relay = relayWith()
  relay.publish('chat:1', batch(1, 1), { tags: '{"a":"1"}' })
  relay.publish('chat:1', batch(2), { tags: '{"a":"2"}' })
  relay.publish('chat:1', { other: true }, { tags: '{"a":"3"}' })

  t.match(await subscribed(relay), {
    offset: 3,
    publications: [{ data: { n: 2, data: [{ id: 1, n: 1 }] }, tags: { a: '2' }, offset: 3 }]
  })
})

t.test('publications with skip_history are not in a snapshot', async (t) => {
  const relay = relayWith()
  relay.publish('chat:1', batch(1, 1))
  const first = await relay.connected('42')
  await first.send(subscribe())
  relay.publish('chat:1', batch(2, 1, 2), { skipHistory: true })

  t.same((await subscribed(relay)).publications?.[0]?.data, batch(1, 1))
})

/** Ways in which publications leave the history while the snapshot is cached. */
const LEAVING: readonly (readonly [how: string, leave: (relay: TestRelay) => Promise<unknown>, rest: number[]])[] = [
  [
    'history_size',
    async (relay) => {
      for (const n of [3, 4, 5]) relay.publish('chat:1', batch(n, 9))
    },
    [2, 9]
  ],
  ['history_remove', (relay) => relay.relay.removeHistory('chat:1'), []],
  ['age', (relay) => relay.advance(30_000), [2]],
  ['the age of all publications', (relay) => relay.advance(60_000), []]
]
for (const [how, leave, rest] of LEAVING) {
  t.test(`a cached snapshot drops what leaves the history by ${how}`, async (t) => {
    const relay = relayWith()
    relay.publish('chat:1', batch(1, 1))
    await relay.advance(30_000)
    relay.publish('chat:1', batch(2, 2))
    const first = await relay.connected('42')
    await first.send(subscribe())
    t.equal((await subscribed(relay)).publications?.length, 1)
    await leave(relay)
    const ids = (await subscribed(relay)).publications?.flatMap(({ data }) =>
      (data.data as { id: number }[]).map(({ id }) => id)
    )

    t.same(ids ?? [], rest)
  })
}

t.test(
  'an entry becomes the newest again when the newer one of an earlier publication leaves the history',
  async (t) => {
    const relay = relayWith({ ...RECOVERABLE, entry_time: 'at' })
    const first = await relay.connected('42')
    await first.send(subscribe())
    relay.publish('chat:1', { data: [{ id: 1, at: 9 }] })
    for (const at of [3, 5, 4]) relay.publish('chat:1', { data: [{ id: 1, at }] })
    t.same((await subscribed(relay)).publications?.[0]?.data, { data: [{ id: 1, at: 9 }] })
    relay.publish('chat:1', { data: [{ id: 2, at: 1 }] })

    t.same((await subscribed(relay)).publications?.[0]?.data, {
      data: [
        { id: 1, at: 5 },
        { id: 2, at: 1 }
      ]
    })
  }
)

t.test('a client without a position receives a snapshot without an offset, and no publication twice', async (t) => {
  const relay = relayWith(OPTIONS)
  relay.publish('chat:1', batch(1, 1))
  const client = await relay.connected('42')
  const [reply] = await client.send(subscribe())
  t.same(reply, { id: 2, subscribe: { publications: [{ data: batch(1, 1) }] } })
  relay.publish('chat:1', batch(2, 2))

  t.match(client.received(), [{ push: { pub: { data: batch(2, 2), offset: 2 } } }])
})

t.test('a client with a tag filter receives the newest matching entries', async (t) => {
  const relay = relayWith({ ...RECOVERABLE, allow_tags_filter: true })
  relay.publish('chat:1', batch(1, 1, 2), { tags: '{"side":"a"}' })
  relay.publish('chat:1', batch(2, 1), { tags: '{"side":"b"}' })
  const filter = { key: 'side', cmp: 'eq', val: 'a' }

  t.match(await subscribed(relay, { tf: filter }), { offset: 2, publications: [{ data: batch(1, 1, 2), offset: 2 }] })
  t.equal((await subscribed(relay, { tf: { ...filter, val: 'c' } })).publications, undefined)
})

t.test('with deltas the snapshot and the next push are full publications', async (t) => {
  const relay = relayWith({ ...RECOVERABLE, allowed_delta_types: ['fossil'], delta_publish: true })
  relay.publish('chat:1', batch(1, ...Array.from({ length: 50 }, (_, id) => id)))
  const first = await relay.connected('42')
  await first.send(subscribe({ delta: 'fossil' }))
  relay.publish('chat:1', batch(2, ...Array.from({ length: 50 }, (_, id) => id)))
  const client = await relay.connected('42')
  const [reply] = await client.send(subscribe({ delta: 'fossil' }))
  const { publications = [] } = (reply?.subscribe ?? {}) as { publications?: { data: string; delta?: boolean }[] }
  t.equal(publications[0]?.delta, undefined)
  t.match(JSON.parse(publications[0]?.data ?? ''), { n: 2 })
  relay.publish('chat:1', batch(3, ...Array.from({ length: 50 }, (_, id) => id)))
  relay.publish('chat:1', batch(4, ...Array.from({ length: 50 }, (_, id) => id)))
  const pushes = client.received().map(({ push }) => (push as { pub: { data: string; delta?: boolean } }).pub)

  t.same(
    pushes.map(({ delta }) => delta ?? false),
    [false, true]
  )
  t.same(JSON.parse(pushes[0]?.data ?? ''), batch(3, ...Array.from({ length: 50 }, (_, id) => id)))
})

t.test('a snapshot that is larger than queue_max_size does not close the client', async (t) => {
  const relay = relayWith(RECOVERABLE, { queue_max_size: 2000 })
  relay.publish('chat:1', { data: Array.from({ length: 500 }, (_, id) => ({ id, filler: 'xxxxxxxx' })) })
  const client = relay.client()
  await client.send({ id: 1, connect: { token: relay.token({ sub: '42' }) } })
  client.sink.isStuck = true
  await client.send({ id: 2, subscribe: { channel: 'chat:1' } }, { id: 3, presence_stats: { channel: 'chat:1' } })
  for (let n = 0; n < 20; n++) relay.publish('chat:1', batch(n, 1))
  await relay.advance(25_000)
  t.equal(client.closed, null)
  client.sink.drain()
  await settled()
  relay.endTurn()

  t.ok(client.sink.writes.some((write) => write.includes('xxxxxxxx')))
  t.ok(client.sink.writes.some((write) => write.includes('"offset":21')))
  t.equal(client.closed, null)
  client.sink.isStuck = true
  for (let id = 4; id < 200; id++) await client.send({ id, unsubscribe: { channel: 'x' } })
  relay.endTurn()
  t.equal(client.closed, '3008 slow', 'the limit applies again after the snapshot was sent')
})

t.test('a client with a large unsent snapshot is still closed if more than queue_max_size follows', async (t) => {
  const relay = relayWith(RECOVERABLE, { queue_max_size: 2000 })
  relay.publish('chat:1', { data: Array.from({ length: 500 }, (_, id) => ({ id, filler: 'xxxxxxxx' })) })
  const client = await relay.connected('42')
  client.sink.isStuck = true
  await client.send(subscribe())
  for (let n = 0; n < 20; n++) relay.publish('chat:1', { n, other: 'x'.repeat(500) })
  client.received()
  relay.endTurn()

  t.equal(client.closed, '3008 slow')
})

t.test('the channels of a token have snapshots in the connect reply', async (t) => {
  const relay = relayWith(RECOVERABLE, { queue_max_size: 100 })
  relay.publish('chat:1', batch(1, 1))
  const client = relay.client()
  const [reply] = await client.send({ id: 1, connect: { token: relay.token({ sub: '42', channels: ['chat:1'] }) } })

  t.match(reply, { connect: { subs: { 'chat:1': { offset: 1, publications: [{ data: batch(1, 1), offset: 1 }] } } } })
})

t.test('a subscription through the API has a snapshot after its push', async (t) => {
  const relay = relayWith()
  relay.publish('chat:1', batch(1, 1))
  const client = await relay.connected('42')
  const target = { user: '42', client: '', session: '' }
  const subscription = { channel: 'chat:1', info: null, data: null, override: {}, expiresAt: 0, recover: null }
  await relay.relay.subscribeUser({ target, subscription } as Parameters<typeof relay.relay.subscribeUser>[0])

  t.match(client.received(), [
    { push: { subscribe: { offset: 1, publications: undefined } } },
    { push: { pub: { data: batch(1, 1) } } }
  ])
})

t.test('a snapshot in protobuf contains the same text', async (t) => {
  const relay = relayWith()
  relay.publish('chat:1', batch(1, 1))
  const sink = new FakeSink(false, webSocketBinaryFraming)
  const { client: connection } = relay.client(sink)
  connection.handleFrame(frameOf({ id: 1, connect: { token: relay.token({ sub: '42' }) } }))
  await settled()
  connection.handleFrame(frameOf({ id: 2, subscribe: { channel: 'chat:1' } }))
  await settled()

  t.ok(Buffer.concat(sink.frames).includes(JSON.stringify(batch(1, 1))))
})

t.test('a unidirectional client receives a snapshot', async (t) => {
  const relay = relayWith()
  relay.publish('chat:1', batch(1, 1))
  const sink = new FakeSink(false, unidirectionalLineFraming)
  const client = relay.relay.connectUnidirectional(sink, '')
  client.handleFrame(JSON.stringify({ token: relay.token({ sub: '42', channels: ['chat:1'] }) }))
  await settled()

  t.match(JSON.parse(sink.writes.join('')), {
    connect: { subs: { 'chat:1': { publications: [{ data: batch(1, 1) }] } } }
  })
})

t.test('many first subscribers share one read of the history', async (t) => {
  let reads = 0
  const relay = relayWith()
  const { engine } = relay
  const read = engine.read.bind(engine)
  engine.read = (...args) => {
    if (args[1].since === null) reads += 1
    return read(...args)
  }
  relay.publish('chat:1', batch(1, 1))
  const clients = await Promise.all(Array.from({ length: 10 }, () => relay.connected('42')))
  const replies = await Promise.all(clients.map((client) => client.send(subscribe())))

  t.equal(reads, 1)
  for (const [reply] of replies) t.match(reply, { subscribe: { publications: [{ data: batch(1, 1) }] } })
})

const publicationOf = (data: unknown, offset: number): Publication => ({
  data: JSON.stringify(data),
  offset,
  info: null,
  tags: null,
  time: 0,
  delta: false,
  version: 0
})

type Step = { readonly data: unknown } | { readonly drop: number }

const anyEntry = fc.record({
  id: fc.integer({ min: 0, max: 4 }),
  at: fc.oneof(fc.integer({ min: 0, max: 6 }), fc.constant(null)),
  n: fc.nat()
})
const anyStep: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ data: fc.record({ n: fc.nat(), data: fc.array(anyEntry, { maxLength: 4 }) }) }) },
  fc.record({ data: fc.constant({ other: true }) }),
  fc.record({ drop: fc.integer({ min: 1, max: 3 }) })
)

t.test('a merged history equals the retained publications merged from the beginning', async (t) => {
  const { read } = conflator('data[].id', 'at')
  await checkProperty(
    t,
    fc.property(fc.array(anyStep, { maxLength: 40 }), (steps) => {
      const merged = new MergedHistory({ read }, 'e')
      let retained: Publication[] = []
      let offset = 0
      for (const step of steps) {
        if ('drop' in step) {
          retained = retained.slice(step.drop)
          merged.dropBefore(retained[0]?.offset ?? offset + 1)
        } else {
          const publication = publicationOf(step.data, ++offset)
          retained.push(publication)
          merged.add(publication)
        }
        const expected = new Conflation()
        for (const { data } of retained) {
          const list = read(String(data))
          if (list !== null) expected.add(list)
        }
        const found = merged.snapshot()?.toSend(jsonCodec, false, { epoch: 'e', offset })[0]?.data ?? ''
        if (found !== expected.toJson()) return false
      }
      return true
    }),
    { numRuns: 1000 }
  )
})

/** A stream of publications with four in its history, and a snapshot whose conflator counts the texts that it reads. */
const countedSnapshot = () => {
  const { read } = conflator('data[].id')
  const counts = { texts: 0 }
  const snapshot = new ChannelSnapshot(
    {
      read: (text) => {
        counts.texts += 1
        return read(text)
      }
    },
    () => 0
  )
  let retained: Publication[] = []
  let offset = 0
  const publish = (...ids: readonly number[]): void => {
    const publication = publicationOf(batch(offset, ...ids), ++offset)
    retained = [...retained, publication].slice(-OPTIONS.history_size)
    snapshot.deliver(publication, 'e', OPTIONS.history_size)
  }
  const keys = async (): Promise<readonly unknown[]> => {
    const history = async (since: Position | null) => ({
      epoch: 'e',
      offset,
      oldest: retained[0]?.offset ?? 0,
      publications: retained.filter((each) => each.offset > (since?.offset ?? 0))
    })
    const delivered = { epoch: 'e', offset }
    const { snapshot: found } = await snapshot.read(history, () => delivered, null)
    const text = found?.toSend(jsonCodec, false, delivered)[0]?.data ?? '{"data":[]}'
    return JSON.parse(String(text)).data.map(({ id }: { readonly id: unknown }) => id)
  }
  return { counts, publish, keys }
}

t.test('a snapshot can be read after the engine has failed at once', async (t) => {
  const snapshot = new ChannelSnapshot(conflator('data[].id'), () => 0)
  const failing = () => {
    throw new EngineError('away')
  }
  const empty = () => ({ epoch: 'e', offset: 0, oldest: 1, publications: [] })

  await t.rejects(async () => snapshot.read(failing, () => null, null), EngineError)
  t.match(await snapshot.read(empty, () => null, null), { position: { epoch: 'e', offset: 0 } })
})

t.test('a snapshot is of the new stream if one begins while the history is read', async (t) => {
  const snapshot = new ChannelSnapshot(conflator('data[].id'), () => 0)
  const page = (epoch: string, ...publications: readonly Publication[]) => ({
    epoch,
    offset: 1,
    oldest: 1,
    publications
  })
  const [first, other] = [publicationOf(batch(1, 1), 1), publicationOf(batch(2, 2), 1)]
  await snapshot.read(
    () => page('e1', first),
    () => null,
    null
  )
  const reading = snapshot.read(
    async (since) => (since === null ? page('e2', other) : page('e1')),
    () => null,
    null
  )
  snapshot.deliver(other, 'e2', OPTIONS.history_size)

  t.match(await reading, { position: { epoch: 'e2', offset: 1 } })
})

t.test('a delivery is merged only when somebody subscribes', async (t) => {
  const { counts, publish, keys } = countedSnapshot()
  publish(1)
  t.same(await keys(), [1])
  publish(2)
  publish(3)
  t.equal(counts.texts, 1)
  t.same(await keys(), [1, 2, 3])
  t.equal(counts.texts, 3, 'what was merged before is not merged again')
})

t.test('a merged history that has left the stream is forgotten', async (t) => {
  const { counts, publish, keys } = countedSnapshot()
  publish(1)
  await keys()
  for (const id of [2, 3, 4, 5]) publish(id)
  t.same(await keys(), [2, 3, 4, 5])
  t.equal(counts.texts, 5)
})

t.test('subscribers that merge a long history at the same time merge each publication once', async (t) => {
  const { counts, publish, keys } = countedSnapshot()
  publish(1)
  await keys()
  publish(2)
  publish(3)
  t.same(await Promise.all([keys(), keys(), keys()]), [
    [1, 2, 3],
    [1, 2, 3],
    [1, 2, 3]
  ])
  t.equal(counts.texts, 3)
})

t.test('a small snapshot is sent after the replies to earlier commands, in one message with them', async (t) => {
  const relay = relayWith()
  relay.publish('chat:1', batch(1, 1))
  // The history is merged for the first subscriber.
  await subscribed(relay)
  const client = await relay.connected('42')
  const before = client.sink.writes.length
  const replies = await client.send({ id: 2, unsubscribe: { channel: 'chat:2' } }, { ...subscribe(), id: 3 })

  t.same(
    replies.map(({ id }) => id),
    [2, 3]
  )
  t.equal(client.sink.writes.length, before + 1)
})
