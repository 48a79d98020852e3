import t from 'tap'
import {
  coreRelay,
  FakeSink,
  type Message,
  settled,
  type TestRelay,
  withNamespace
} from '../../../helper/relay-core.js'
import { required } from '../../../helper/required.js'
import type { ServerMessage } from '../../../helper/server-message.js'

const WITH_HISTORY = {
  allow_subscribe_for_client: true,
  allow_history_for_client: true,
  allow_presence_for_client: true,
  presence: true,
  history_size: 100,
  history_ttl: '60s',
  force_recovery: true
}
const LIMIT = 20_000

/** A relay with so many publications of this length on a channel. */
const relayWith = (count: number, length: number, options: Message = {}): TestRelay => {
  const relay = coreRelay(withNamespace({ ...WITH_HISTORY, ...options }, { queue_max_size: LIMIT }))
  for (let n = 0; n < count; n++) relay.publish('chat:1', `${n}`.padEnd(length, 'x'), { delta: true })
  return relay
}

const recover = (id: number, more: Message = {}): Message => ({
  id,
  subscribe: { channel: 'chat:1', recover: true, epoch: 'epoch1', offset: 0, ...more }
})
const unsubscribe = (id: number): Message => ({ id, unsubscribe: { channel: 'chat:1' } })

t.test('a recovery that fits into queue_max_size is sent', async (t) => {
  const [reply] = await (await relayWith(10, 1500).connected('42')).send(recover(2))

  t.match(reply, { subscribe: { recovered: true, was_recovering: true } })
  t.equal(reply?.subscribe?.publications?.length, 10)
})

const kinds: [title: string, options: Message, request: Message][] = [
  ['', {}, {}],
  [' of deltas that do not pay', { allowed_delta_types: ['fossil'] }, { delta: 'fossil' }]
]
for (const [title, options, request] of kinds) {
  t.test(
    `a recovery${title} that is larger than queue_max_size is not recovered, and the client goes on from the top`,
    async (t) => {
      const relay = coreRelay(withNamespace({ ...WITH_HISTORY, ...options }, { queue_max_size: LIMIT }))
      for (let n = 0; n < 30; n++)
        relay.publish('chat:1', Buffer.from(`${n}`.repeat(500)).toString('base64'), { delta: true })
      const client = await relay.connected('42')
      const [reply] = await client.send(recover(2, request))

      t.match(reply, { subscribe: { was_recovering: true, recoverable: true, offset: 30, epoch: 'epoch1' } })
      t.equal(reply?.subscribe?.recovered, undefined)
      t.equal(reply?.subscribe?.publications, undefined)
      t.equal(client.closed, null)
      relay.publish('chat:1', 'next')
      t.match(client.received(), [{ push: { pub: { offset: 31 } } }])
    }
  )
}

t.test('a recovery of characters with several bytes is measured in bytes', async (t) => {
  const relay = coreRelay(withNamespace(WITH_HISTORY, { queue_max_size: LIMIT }))
  for (let n = 0; n < 10; n++) relay.publish('chat:1', '\u4e16'.repeat(1000))
  const [reply] = await (await relay.connected('42')).send(recover(2))

  t.match(reply, { subscribe: { was_recovering: true, offset: 10 } })
  t.equal(reply?.subscribe?.recovered, undefined)
})

t.test(
  'a client that wants an error rather than a fresh start gets 112 for a recovery that is too large',
  async (t) => {
    const relay = relayWith(30, 1500)

    t.match(await (await relay.connected('42')).send(recover(2, { flag: 2 })), [{ id: 2, error: { code: 112 } }])
    t.equal(relay.relay.stats().subscriptions, 0)
  }
)

t.test('the channels of a token share the size limit of one reply', async (t) => {
  const relay = relayWith(8, 1500)
  for (let n = 0; n < 8; n++) relay.publish('chat:2', 'x'.repeat(1500))
  const client = relay.client()
  const position = { recover: true, epoch: '', offset: 0 }
  const [reply] = await client.send({
    id: 1,
    connect: {
      token: relay.token({ sub: '42', channels: ['chat:1', 'chat:2'] }),
      subs: { 'chat:1': position, 'chat:2': position }
    }
  })
  const { subs = {} } = reply?.connect ?? {}

  t.equal(subs['chat:1']?.publications?.length, 8)
  t.equal(subs['chat:2']?.recovered, undefined)
  t.match(subs['chat:2'], { was_recovering: true, offset: 8 })
  t.ok(Buffer.byteLength(client.sink.writes[0] ?? '') <= LIMIT)
})

t.test('the replies to one frame are never joined beyond queue_max_size', async (t) => {
  const client = await relayWith(5, 1500).connected('42')
  const commands = Array.from({ length: 20 }, (_, n) => [recover(2 + 2 * n), unsubscribe(3 + 2 * n)]).flat()
  const replies = await client.send(...commands)

  t.same(
    replies.map(({ id }) => id),
    commands.map(({ id }) => id)
  )
  for (const { subscribe } of replies) if (subscribe !== undefined) t.equal(subscribe.publications?.length, 5)
  for (const write of client.sink.writes) t.ok(Buffer.byteLength(write) <= LIMIT, `${Buffer.byteLength(write)} bytes`)
})

t.test('many small replies to one frame are sent in frames within queue_max_size', async (t) => {
  const client = await coreRelay({ client: { queue_max_size: 1000 } }).connected('42')
  client.sink.writes.length = 0
  client.received()
  const replies = await client.send(
    ...Array.from({ length: 200 }, (_, index) => ({ id: index + 2, unsubscribe: { channel: 'x' } }))
  )

  t.equal(replies.length, 200)
  t.ok(client.sink.writes.every(({ length }) => length <= 1000))
})

t.test('commands with large replies wait until the client has received the earlier data', async (t) => {
  const client = await relayWith(8, 1500).connected('42')
  const commands = Array.from({ length: 20 }, (_, n) => [recover(2 + 2 * n), unsubscribe(3 + 2 * n)]).flat()
  const received: ServerMessage[] = []
  client.sink.isStuck = true
  received.push(...(await client.send(...commands)))
  for (let round = 0; received.length < commands.length && round < 100; round++) {
    t.ok(client.client.outbox.unsentBytes <= LIMIT, `${client.client.outbox.unsentBytes} bytes wait`)
    client.sink.drain()
    client.sink.isStuck = true
    await settled()
    received.push(...client.received())
  }

  t.equal(client.closed, null)
  t.same(
    received.map(({ id }) => id),
    commands.map(({ id }) => id)
  )
  t.ok(received.every(({ subscribe }) => subscribe === undefined || subscribe.recovered === true))
})

t.test('a client that stops reading a large reply is closed, even while the relay does not read from it', async (t) => {
  const relay = relayWith(8, 1500)
  const client = await relay.connected('42')
  client.sink.isStuck = true
  await client.send(recover(2), unsubscribe(3))
  // Data that it received before the ping gives it no more time.
  client.sink.drain()
  client.sink.isStuck = true
  await client.send(recover(4), unsubscribe(5), recover(6))
  for (let id = 7; id < 400; id++) client.client.handleFrame(JSON.stringify(unsubscribe(id)))
  t.equal(client.sink.isPaused, true)
  await relay.advance(18_750)
  await relay.advance(7999)
  t.equal(client.closed, null)
  await relay.advance(1)

  t.equal(client.closed, '3012 no pong')
})

t.test('replies that are sent together stay within queue_max_size', async (t) => {
  const relay = relayWith(0, 0)
  const client = await relay.connected('42')
  client.sink.isStuck = true
  const subscribe = (id: number): Message => {
    const channel = `chat:${id}`
    return { id, subscribe: { channel, token: relay.token({ sub: '42', channel, data: 'x'.repeat(5000) }) } }
  }
  const replies = await client.send(...[2, 3, 4, 5].map(subscribe))

  t.equal(client.closed, null)
  t.match(replies, [{ subscribe: {} }, { subscribe: {} }, { subscribe: {} }, { id: 5, error: { code: 106 } }])
})

t.test('commands that were run do not count for the limit of those that wait', async (t) => {
  const relay = relayWith(1, 10)
  const client = relay.client(new FakeSink(true))
  await client.send({ id: 1, connect: { token: relay.token({ sub: '42' }) } })
  const history = { id: 2, history: { channel: 'chat:1', limit: 1 } }
  const long = { id: 3, unsubscribe: { channel: 'x'.repeat(60_000) } }
  for (let round = 0; round < 5; round++) {
    client.sink.isStuck = true
    await client.send(history, history)
    for (let count = 0; count < 5; count++) await client.send(long)
    client.sink.drain()
    await settled()
  }

  t.equal(client.closed, null, 'after more than one MiB of commands')
  const replies = await client.send({ ...history, id: 4 })
  t.match(replies.at(-1), { id: 4, history: { offset: 1 } })
})

/** Accepts what was written when the test says so, and becomes full again with the next write. */
class SlowSink extends FakeSink {
  #accepted = (): void => undefined

  override onceDrained(then: () => void): void {
    this.#accepted = then
  }

  accept(): void {
    this.writableLength = 0
    this.#accepted()
  }
}

t.test('a client that the relay does not read from gets time for its pong as long as it receives data', async (t) => {
  const relay = relayWith(8, 1500)
  const sink = new SlowSink()
  const client = relay.client(sink)
  await client.send({ id: 1, connect: { token: relay.token({ sub: '42' }) } })
  sink.isStuck = true
  await client.send(recover(2), unsubscribe(3), recover(4), unsubscribe(5), recover(6))
  for (let id = 7; id < 400; id++) client.client.handleFrame(JSON.stringify(unsubscribe(id)))
  await relay.advance(18_750)
  sink.accept()
  await settled()
  t.equal(sink.isPaused, true)
  await relay.advance(8000)
  t.equal(client.closed, null)
  await relay.advance(7999)
  t.equal(client.closed, null)
  await relay.advance(1)

  t.equal(client.closed, '3012 no pong')
})

t.test('a client that is behind can still unsubscribe', async (t) => {
  const relay = relayWith(1, 10)
  const client = await relay.connected('42')
  await client.send({ id: 2, subscribe: { channel: 'chat:1' } })
  client.sink.isStuck = true
  relay.publish('chat:1', 'x')
  client.received()
  t.equal(client.client.outbox.isBehind, true)
  await client.send(unsubscribe(3))

  t.equal(relay.relay.stats().subscriptions, 0)
})

t.test('history larger than queue_max_size is truncated, and the client can continue from there', async (t) => {
  const client = await relayWith(30, 1500).connected('42')
  const offsets: number[] = []
  for (let id = 2; offsets.length < 30; id++) {
    const since = { epoch: 'epoch1', offset: offsets.at(-1) ?? 0 }
    const [reply] = await client.send({ id, history: { channel: 'chat:1', limit: -1, since } })
    const { publications = [] } = reply?.history ?? {}
    if (publications.length === 0) break
    offsets.push(...publications.map(({ offset }) => required(offset)))
  }

  t.same(
    offsets,
    Array.from({ length: 30 }, (_, index) => index + 1)
  )
  for (const write of client.sink.writes) t.ok(Buffer.byteLength(write) <= LIMIT)
})

t.test('history whose first publication exceeds queue_max_size is answered with 106', async (t) => {
  const relay = relayWith(1, LIMIT)
  relay.publish('chat:2', 1, { tags: JSON.stringify({ tag: 'x'.repeat(LIMIT) }) })
  const client = await relay.connected('42')

  for (const channel of ['chat:1', 'chat:2'])
    t.match(await client.send({ id: 2, history: { channel, limit: 10 } }), [{ id: 2, error: { code: 106 } }], channel)
  t.equal(client.closed, null)
})

t.test('presence larger than queue_max_size is answered with 106', async (t) => {
  const relay = relayWith(0, 0)
  const info = 'x'.repeat(3000)
  const clients = await Promise.all(Array.from({ length: 8 }, async (_, n) => relay.connected(`${n}`, { info })))
  for (const each of clients.slice(0, 4)) await each.send({ id: 2, subscribe: { channel: 'chat:1' } })
  t.match(await clients[0]?.send({ id: 3, presence: { channel: 'chat:1' } }), [{ id: 3, presence: {} }])
  for (const each of clients.slice(4)) await each.send({ id: 2, subscribe: { channel: 'chat:1' } })

  t.match(await clients[0]?.send({ id: 4, presence: { channel: 'chat:1' } }), [{ id: 4, error: { code: 106 } }])
})

t.test('a client that is closed with 3008 receives none of its queued data', async (t) => {
  const relay = relayWith(0, 0)
  const client = await relay.connected('42')
  await client.send({ id: 2, subscribe: { channel: 'chat:1' } })
  const before = client.sink.writes.length
  client.sink.isStuck = true
  for (let n = 0; n < 30; n++) {
    relay.publish('chat:1', 'x'.repeat(1500))
    relay.endTurn()
  }

  t.equal(client.closed, '3008 slow')
  t.equal(client.sink.writes.length - before, 1, 'only the frame that was already written')
})

t.test('a client that is closed for another reason receives its queued data first', async (t) => {
  const relay = relayWith(0, 0)
  const client = await relay.connected('42')
  await client.send({ id: 2, subscribe: { channel: 'chat:1' } })
  client.sink.isStuck = true
  for (let n = 0; n < 5; n++) {
    relay.publish('chat:1', n)
    relay.endTurn()
  }
  client.client.handleFrame('garbage')

  t.equal(client.closed, '3501 bad request')
  t.match(client.received().slice(-1), [{ push: { pub: { data: 4 } } }])
})

t.test('a client that catches up receives its queued data in order, in bounded writes', async (t) => {
  const relay = coreRelay(withNamespace(WITH_HISTORY))
  const client = relay.client(new FakeSink())
  await client.send(
    { id: 1, connect: { token: relay.token({ sub: '42' }) } },
    { id: 2, subscribe: { channel: 'chat:1' } }
  )
  client.sink.isStuck = true
  const text = (n: number): string => `${n}`.padEnd(5000, 'x')
  for (let n = 1; n <= 50; n++) {
    relay.publish('chat:1', text(n))
    relay.endTurn()
  }
  client.sink.drain()
  relay.publish('chat:1', text(51))

  t.same(
    client.received().flatMap(({ push }) => push?.pub?.data ?? []),
    Array.from({ length: 51 }, (_, index) => text(index + 1))
  )
  t.ok(client.sink.writes.every(({ length }) => length <= 64 * 1024))
})
