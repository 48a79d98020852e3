import t from 'tap'
import { jsonCodec } from '../../../src/relay/core/json-codec.js'
import { Outbox } from '../../../src/relay/core/outbox.js'
import { RecoveredLists, type SizedPublications } from '../../../src/relay/core/recovery.js'
import { protobufCodec } from '../../../src/relay/protobuf/protobuf-codec.js'
import { coreRelay, FakeSink, type Message, publicationAt, withNamespace } from '../../helper/relay-core.js'
import { required } from '../../helper/required.js'

const MANY_BYTES = 1_000_000

/** Reads the publications from one offset to another, as often as the test wants. */
const readerOf = (lists: RecoveredLists) => {
  return (channel: string, from: number, to: number, maxBytes = MANY_BYTES): SizedPublications | null => {
    const publications = Array.from({ length: to - from + 1 }, (_, index) => publicationAt(from + index))
    return lists.sized({ channel, epoch: 'e', publications, patches: null }, jsonCodec, maxBytes)
  }
}

t.test('clients that recover the same publications share one list', async (t) => {
  const read = readerOf(new RecoveredLists())
  const first = required(read('chat:1', 3, 5))

  t.same(
    first.publications.map(({ data }) => data),
    ['3', '4', '5']
  )
  t.equal(read('chat:1', 3, 5), first)
})

t.test('other publications, channels, epochs and codecs have other lists', async (t) => {
  const lists = new RecoveredLists()
  const read = readerOf(lists)
  const publications = [publicationAt(3)]
  const found = [
    read('chat:1', 3, 3),
    read('chat:1', 3, 4),
    read('chat:1', 2, 3),
    read('chat:2', 3, 3),
    lists.sized({ channel: 'chat:1', epoch: 'f', publications, patches: null }, jsonCodec, MANY_BYTES),
    lists.sized({ channel: 'chat:1', epoch: 'e', publications, patches: null }, protobufCodec, MANY_BYTES)
  ]

  t.equal(new Set(found).size, found.length)
  t.notOk(found.includes(null))
})

t.test('a shared list is not sent to a client with less space', async (t) => {
  const read = readerOf(new RecoveredLists())
  const { bytes } = required(read('chat:1', 1, 10))

  t.equal(read('chat:1', 1, 10, bytes - 1), null)
  t.ok(read('chat:1', 1, 10, bytes))
})

t.test('the lists are bounded, and the least recently used ones are evicted', async (t) => {
  const read = readerOf(new RecoveredLists(10_000))
  const hot = read('chat:hot', 1, 2)
  const cold = read('chat:cold', 1, 2)
  const found = new Set<unknown>()
  for (let n = 0; n < 100; n++) {
    read(`chat:${n}`, 1, 2)
    found.add(read('chat:hot', 1, 2))
  }

  t.equal(found.size, 1)
  t.ok(found.has(hot))
  t.not(read('chat:cold', 1, 2), cold)
})

const WITH_HISTORY = {
  allow_subscribe_for_client: true,
  history_size: 10,
  history_ttl: '60s',
  force_recovery: true,
  allowed_delta_types: ['fossil'],
  allow_tags_filter: true
}

const recover = (id: number, channel: string, more: Message = {}): Message => ({
  id,
  subscribe: { channel, recover: true, epoch: '', offset: 1, ...more }
})

/** A relay with four long publications on `chat:1`, all but the third with a tag. */
const relayWithHistory = () => {
  const relay = coreRelay(withNamespace(WITH_HISTORY))
  for (const n of [1, 2, 3, 4])
    relay.publish('chat:1', `${n}${'ä'.repeat(500)}`, { delta: true, tags: n === 3 ? null : '{"kind":"a"}' })
  return relay
}

t.test('each client recovers in its own form', async (t) => {
  const relay = relayWithHistory()
  const filter = { key: 'kind', cmp: 'eq', val: 'a' }
  for (const round of ['first', 'second']) {
    const [all] = await (await relay.connected('42')).send(recover(7, 'chat:1'))
    t.same(
      all?.subscribe?.publications?.map(({ data }) => String(data).slice(0, 2)),
      ['2ä', '3ä', '4ä'],
      `all, ${round} time`
    )
    t.equal(all?.id, 7)
    const [tagged] = await (await relay.connected('42')).send(recover(8, 'chat:1', { tf: filter }))
    t.same(
      tagged?.subscribe?.publications?.map(({ offset }) => offset),
      [2, 4],
      `filtered, ${round} time`
    )
    const [deltas] = await (await relay.connected('42')).send(recover(9, 'chat:1', { delta: 'fossil' }))
    t.same(
      deltas?.subscribe?.publications?.map(({ delta }) => delta),
      [undefined, true, true],
      `deltas, ${round} time`
    )
  }
})

t.test('a recovery and the reply to the next command are sent in one frame', async (t) => {
  const client = await relayWithHistory().connected('42')
  const before = client.sink.writes.length
  const replies = await client.send(recover(2, 'chat:1'), { id: 3, unsubscribe: { channel: 'chat:2' } })

  t.equal(client.sink.writes.length, before + 1)
  t.match(replies, [
    { id: 2, subscribe: { recovered: true, publications: [{ offset: 2 }, { offset: 3 }, { offset: 4 }] } },
    { id: 3, unsubscribe: {} }
  ])
})

t.test('the parts of a frame stay together if the network is busy', async (t) => {
  const sink = new FakeSink()
  const outbox = new Outbox(
    sink,
    { caughtUp: () => undefined, tooSlow: () => void t.fail(), sendFailed: () => void t.fail() },
    100
  )
  const parts = ['a', 'shared', 'b'].map((text) => Buffer.from(text))
  outbox.sendParts(parts)
  sink.isStuck = true
  outbox.sendParts(parts)
  t.equal(outbox.isBehind, true)
  outbox.sendParts(parts)
  t.same(sink.writes, ['asharedb', 'asharedb'])
  t.equal(outbox.unsentBytes, 16)
  sink.drain()
  t.same(sink.writes, ['asharedb', 'asharedb', 'asharedb'])
  t.equal(outbox.isBehind, false)
})
