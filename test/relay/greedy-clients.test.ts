import type { Socket } from 'node:net'
import t from 'tap'
import type { RetainedPage } from '../../src/relay/core/engine.js'
import { memoryEngine } from '../../src/relay/engine/memory.js'
import { eventually } from '../helper/eventually.js'
import { connectedClient, type Json, openClient, type RawClient } from '../helper/raw-client.js'
import { startRelay } from '../helper/relay.js'
import { relayToken } from '../helper/relay-rules.js'
import type { ServerMessage } from '../helper/server-message.js'

const OPEN = { allow_subscribe_for_client: true, history_size: 100, history_ttl: '300s', force_recovery: true }
const NAMESPACES = {
  channel: {
    namespaces: [
      { name: 'plain', ...OPEN },
      { name: 'delta', ...OPEN, allowed_delta_types: ['fossil'], delta_publish: true }
    ]
  }
}

/** One message with a connect command and `times` pairs of subscribe with recovery and unsubscribe. */
const greedyMessage = (times: number, subscribe: Json): Json[] => [
  { id: 1, connect: { token: relayToken({ sub: '42' }) } },
  ...Array.from({ length: times }, (_, n) => [
    { id: 2 * n + 2, subscribe: { recover: true, epoch: '', offset: 0, ...subscribe } },
    { id: 2 * n + 3, unsubscribe: { channel: subscribe.channel } }
  ]).flat()
]

const replies = async (client: RawClient, count: number): Promise<ServerMessage[]> => {
  const received: ServerMessage[] = []
  while (received.length < count) {
    const message = await client.next()
    if (message.id !== undefined) received.push(message)
  }
  return received
}

t.test('a frame with 126 recoveries of 4.5 MB each is answered while other clients are served', async (t) => {
  const edge = await startRelay(t, NAMESPACES)
  for (let n = 0; n < 100; n++) await edge.publish('plain:1', `${n}`.padEnd(45_000, 'x'))
  const commands = greedyMessage(126, { channel: 'plain:1' })
  const client = await openClient(t, edge.url)
  client.send(...commands)
  const received = await replies(client, commands.length)

  t.same(
    received.map(({ id }) => id),
    commands.map(({ id }) => id)
  )
  t.match(received[1], { subscribe: { was_recovering: true, offset: 100 } })
  t.notOk(received[1]?.subscribe?.recovered, 'more than may wait for a client is not recovered')
  t.match(await (await connectedClient(t, edge.url)).request({ id: 2, unsubscribe: { channel: 'x' } }), { id: 2 })
})

t.test('a frame with 126 recoveries that fit is answered completely as the client reads', async (t) => {
  const edge = await startRelay(t, NAMESPACES)
  for (let n = 0; n < 20; n++) await edge.publish('plain:1', `${n}`.padEnd(45_000, 'x'))
  const commands = greedyMessage(126, { channel: 'plain:1' })
  const client = await openClient(t, edge.url)
  client.ws.pause()
  client.send(...commands)
  await eventually(() => edge.relay.clients[0]?.outbox.isBehind === true)
  const { outbox } = edge.relay.clients[0] ?? {}
  t.ok((outbox?.unsentBytes ?? 0) <= 1024 * 1024, `${outbox?.unsentBytes} bytes wait`)
  client.ws.resume()
  const received = await replies(client, commands.length)

  t.ok(received.every(({ subscribe }) => subscribe === undefined || subscribe.recovered === true))
})

t.test('a frame with 126 recoveries with deltas is answered completely', async (t) => {
  const edge = await startRelay(t, NAMESPACES)
  for (let n = 0; n < 100; n++) await edge.publish('delta:1', { filler: 'x'.repeat(10_000), n })
  const commands = greedyMessage(126, { channel: 'delta:1', delta: 'fossil' })
  const client = await openClient(t, edge.url)
  client.send(...commands.slice(0, 3))
  await replies(client, 3)
  client.send(...commands.slice(3))
  const received = await replies(client, commands.length - 3)

  t.ok(received.every(({ subscribe }) => subscribe === undefined || subscribe.recovered === true))
})

t.test('reading from a client with too many pending commands is paused until they have run', async (t) => {
  const engine = memoryEngine({ nowMs: Date.now, monotonicMs: () => performance.now(), newEpoch: () => 'epoch' })
  let release = (_page: RetainedPage): void => undefined
  const read = (): Promise<RetainedPage> =>
    new Promise((resolve) => {
      release = resolve
    })
  const edge = await startRelay(
    t,
    NAMESPACES,
    {},
    { engine: { ...engine, history: { read, remove: async () => undefined } } }
  )
  const client = await connectedClient(t, edge.url)
  // The transport's interface has no `isPaused`; the stream of a WebSocket is its socket.
  const socket = edge.relay.clients[0]?.transport.stream as unknown as Socket
  client.send({ id: 2, subscribe: { channel: 'plain:1' } })
  for (let id = 3; id <= 20_000; id++) client.send({ id, unsubscribe: { channel: 'x'.repeat(500) } })
  await eventually(() => socket.isPaused())
  release({ epoch: 'epoch', offset: 0, publications: [], oldest: 0 })
  const received = await replies(client, 19_999)

  t.same(
    received.map(({ id }) => id),
    Array.from({ length: 19_999 }, (_, index) => index + 2),
    'all are answered, in order'
  )
  t.equal(socket.isPaused(), false)
})
