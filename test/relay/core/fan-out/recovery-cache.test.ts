import t from 'tap'
import type { Codec, SentPublication } from '../../../../src/relay/core/codec/codec.js'
import { jsonCodec } from '../../../../src/relay/core/codec/json-codec.js'
import { isInParts, partsOf } from '../../../../src/relay/core/codec/message-parts.js'
import { Snapshot } from '../../../../src/relay/core/fan-out/merged-history.js'
import { Outbox } from '../../../../src/relay/core/fan-out/outbox.js'
import { RecoveryCache, type SizedPublications } from '../../../../src/relay/core/fan-out/recovery-cache.js'
import { protobufCodec } from '../../../../src/relay/protobuf/protobuf-codec.js'
import { repliesIn } from '../../../helper/protobuf.js'
import { coreRelay, FakeSink, type Message, publicationAt, withNamespace } from '../../../helper/relay-core.js'
import { required } from '../../../helper/required.js'

const MANY_BYTES = 1_000_000
const LONG = 'ä'.repeat(5000)

const longPublicationAt = (offset: number) => ({ ...publicationAt(offset), data: JSON.stringify(`${offset}${LONG}`) })

/** Reads the publications from one offset to another, as often as the test wants. */
const readerOf = (cache: RecoveryCache) => {
  return (channel: string, from: number, to: number, maxBytes = MANY_BYTES): SizedPublications | null => {
    const publications = Array.from({ length: to - from + 1 }, (_, index) => longPublicationAt(from + index))
    return cache.find({ channel, epoch: 'e', publications, takesDelta: false, patches: null }, jsonCodec, maxBytes)
  }
}

t.test('clients that recover the same publications receive the same list', async (t) => {
  const read = readerOf(new RecoveryCache())
  const first = required(read('chat:1', 3, 5))

  t.same(
    first.publications.map(({ publication }) => publication.offset),
    [3, 4, 5]
  )
  t.equal(read('chat:1', 3, 5), first)
})

t.test('other publications, channels, epochs and codecs have other lists', async (t) => {
  const cache = new RecoveryCache()
  const read = readerOf(cache)
  const publications = [longPublicationAt(3)]
  const found = [
    read('chat:1', 3, 3),
    read('chat:1', 3, 4),
    read('chat:1', 2, 3),
    read('chat:2', 3, 3),
    cache.find(
      { channel: 'chat:1', epoch: 'f', publications, takesDelta: false, patches: null },
      jsonCodec,
      MANY_BYTES
    ),
    cache.find(
      { channel: 'chat:1', epoch: 'e', publications, takesDelta: false, patches: null },
      protobufCodec,
      MANY_BYTES
    )
  ]

  t.equal(new Set(found).size, found.length)
  t.notOk(found.includes(null))
})

t.test('a list is not sent to a client with less space', async (t) => {
  const read = readerOf(new RecoveryCache())
  const { bytes } = required(read('chat:1', 1, 10))

  t.equal(read('chat:1', 1, 10, bytes - 1), null)
  t.ok(read('chat:1', 1, 10, bytes))
})

t.test('short lists are not cached', async (t) => {
  const cache = new RecoveryCache()
  const list = { channel: 'chat:1', epoch: 'e', publications: [publicationAt(1)], takesDelta: false, patches: null }

  t.not(cache.find(list, jsonCodec, MANY_BYTES), cache.find(list, jsonCodec, MANY_BYTES))
})

t.test('the cache is bounded, and the least recently used lists are evicted', async (t) => {
  const read = readerOf(new RecoveryCache(200_000))
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

const subscribeReply = (codec: Codec, id: number, publications: readonly SentPublication[]) =>
  codec.reply(id, 'subscribe', {
    ttl: 60,
    recoverable: true,
    positioned: true,
    position: { epoch: 'e', offset: 2 },
    publications,
    recovered: true,
    wasRecovering: true,
    data: '{"a":1}',
    delta: false,
    map: null
  })

const decoders: [codec: Codec, decode: (bytes: Buffer) => unknown][] = [
  [jsonCodec, (bytes) => [JSON.parse(bytes.toString())]],
  [protobufCodec, repliesIn]
]
for (const [codec, decode] of decoders) {
  t.test(`a long list is encoded once in ${codec.name}`, async (t) => {
    const publications = [3, 4].map(longPublicationAt)
    const list = { channel: 'chat:1', epoch: 'e', publications, takesDelta: false, patches: null }
    const { publications: sent } = required(new RecoveryCache().find(list, codec, MANY_BYTES))
    const [first, second] = [subscribeReply(codec, 7, sent), subscribeReply(codec, 300, sent)].map(partsOf)
    const shared = required(first).filter((part) => second?.includes(part) && part.length > LONG.length)

    t.equal(shared.length, 1)
    t.equal(shared[0]?.buffer.byteLength, shared[0]?.length, 'it keeps no other memory')
    for (const [id, parts] of [
      [7, first],
      [300, second]
    ] as const) {
      t.match(decode(Buffer.concat(required(parts))), [
        {
          id,
          subscribe: {
            expires: true,
            ttl: 60,
            epoch: 'e',
            offset: 2,
            data: { a: 1 },
            publications: [
              { offset: 3, data: `3${LONG}` },
              { offset: 4, data: `4${LONG}` }
            ],
            recovered: true,
            was_recovering: true
          }
        }
      ])
    }
  })

  t.test(`a short list is one part of a reply in ${codec.name}`, async (t) => {
    const sent = [{ publication: publicationAt(3), epoch: 'e', data: '3', isDelta: false }]

    t.notOk(isInParts(subscribeReply(codec, 7, sent)))
  })

  t.test(`joined replies are one part in ${codec.name}`, async (t) => {
    const publication = longPublicationAt(3)
    const sent = [{ publication, epoch: 'e', data: publication.data, isDelta: false }]
    const short = codec.reply(2, 'unsubscribe', {})
    const joined = codec.join([short, subscribeReply(codec, 3, sent), short])

    t.equal(partsOf(joined).length, 1)
  })
}

t.test('subscribers of a channel receive the same snapshot list', async (t) => {
  const snapshot = new Snapshot(publicationAt(4), '{"a":1}')
  const at = (offset: number, codec = jsonCodec, takesDelta = false) =>
    snapshot.toSend(codec, takesDelta, { epoch: 'e', offset })
  const first = at(4)

  t.equal(at(4), first)
  t.match(first, [{ publication: { offset: 4 }, data: '{"a":1}' }])
  t.match(at(0), [{ publication: { offset: 0 } }])
  t.match(at(5), [{ publication: { offset: 5 } }])
  t.match(at(5, jsonCodec, true), [{ data: '"{\\"a\\":1}"' }])
  t.not(at(5, protobufCodec), at(5))
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
    relay.publish('chat:1', `${n}${LONG}`, { delta: true, tags: n === 3 ? null : '{"kind":"a"}' })
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
