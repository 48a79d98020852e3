import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { request } from 'node:http'
import t, { type Test } from 'tap'
import { type ClientOptions, WebSocket } from 'ws'
import { eventually } from '../../helper/eventually.js'
import { officialClient, officialProtobufClient, startRelay } from '../../helper/relay.js'
import { relayToken } from '../../helper/relay-rules.js'
import type { ServerMessage } from '../../helper/server-message.js'

const NAMESPACES = {
  namespaces: [{ name: 'floor', allow_subscribe_for_client: true, allow_publish_for_client: true }]
}
const config = (websocket: object = {}) => ({
  channel: NAMESPACES,
  websocket: { compression: true, compression_min_size: 100, ...websocket }
})
const LONG = 'position '.repeat(500)

/** A connected and subscribed client, with all bytes that its socket has received. */
const connect = async (t: Test, url: string, options: ClientOptions = {}, request: object = {}) => {
  const ws = new WebSocket(`${url.replace('http', 'ws')}/connection/websocket`, options)
  t.teardown(() => ws.terminate())
  ws.on('error', () => undefined)
  const messages: ServerMessage[] = []
  ws.on('message', (data) => {
    for (const line of data.toString().split('\n')) messages.push(JSON.parse(line))
  })
  const upgraded = once(ws, 'upgrade')
  await once(ws, 'open')
  const { socket }: IncomingMessage = (await upgraded)[0]
  const start = socket.bytesRead
  ws.send(JSON.stringify({ id: 1, connect: { token: relayToken({ sub: '42' }) } }))
  ws.send(JSON.stringify({ id: 2, subscribe: { channel: 'floor:1', ...request } }))
  await eventually(() => messages.length === 2)
  return {
    ws,
    subscribed: () => messages[1]?.subscribe,
    received: () => messages.slice(2).map(({ push }) => push?.pub?.data),
    bytes: () => socket.bytesRead - start,
    socket
  }
}

t.test('clients that accept compression receive compressed messages, others the same messages plain', async (t) => {
  const relay = await startRelay(t, config())
  const compressed = await connect(t, relay.url)
  const plain = await connect(t, relay.url, { perMessageDeflate: false })
  t.match(compressed.ws.extensions, 'permessage-deflate')
  t.equal(plain.ws.extensions, '')
  await relay.publish('floor:1', LONG)
  await relay.publish('floor:1', 'short')

  for (const { received } of [compressed, plain]) {
    await eventually(() => received().length === 2)
    t.same(received(), [LONG, 'short'])
  }
  t.ok(compressed.bytes() < 1000, `${compressed.bytes()} bytes`)
  t.ok(plain.bytes() > LONG.length)
})

for (const [codec, create] of [
  ['JSON', officialClient],
  ['protobuf', officialProtobufClient]
] as const) {
  t.test(`the official client with ${codec} works with compression`, async (t) => {
    const relay = await startRelay(t, config({ compression_min_size: 0 }))
    const client = create(t, relay, 'websocket', { token: relayToken({ sub: '42' }) })
    const subscription = client.newSubscription('floor:1')
    const received: unknown[] = []
    subscription.on('publication', ({ data }) => received.push(data))
    subscription.subscribe()
    client.connect()
    await subscription.ready()
    await relay.publish('floor:1', [LONG])
    const data = codec === 'JSON' ? [1] : Buffer.from('[1]')
    await client.publish('floor:1', data)

    await eventually(() => received.length === 2)
    t.same(
      received.map((each) => (each instanceof Uint8Array ? JSON.parse(Buffer.from(each).toString()) : each)),
      [[LONG], [1]]
    )
  })
}

t.test('recovered publications are compressed', async (t) => {
  const recovering = { name: 'floor', allow_subscribe_for_client: true, history_size: 10, history_ttl: '60s' }
  const namespaces = [{ ...recovering, force_recovery: true }]
  const relay = await startRelay(t, { ...config(), channel: { namespaces } })
  for (const data of [LONG, 'short', LONG]) await relay.publish('floor:1', data)
  const client = await connect(t, relay.url, {}, { recover: true, offset: 0, epoch: '' })

  t.same(
    client.subscribed()?.publications?.map(({ data }) => data),
    [LONG, 'short', LONG]
  )
  t.ok(client.bytes() < 1000, `${client.bytes()} bytes`)
})

t.test('a client that limits the compression window receives plain messages', async (t) => {
  const relay = await startRelay(t, config())
  const { ws, received } = await connect(t, relay.url, { perMessageDeflate: { serverMaxWindowBits: 9 } })
  // The second half refers back to the first one, over more bytes than such a window has.
  const half = randomBytes(1000).toString('hex')
  await relay.publish('floor:1', half + half)

  await eventually(() => received().length === 1)
  t.same(received(), [half + half])
  t.equal(ws.extensions, '')
})

t.test('a client that also offers compression without a limit receives compressed messages', async (t) => {
  const { url } = await startRelay(t, config())
  const OFFERS: readonly (readonly [offers: string, accepted: RegExp | undefined])[] = [
    [
      'permessage-deflate; server_max_window_bits=10, permessage-deflate; client_max_window_bits',
      /^permessage-deflate;/
    ],
    ['permessage-deflate; server_max_window_bits=10, permessage-deflate; server_max_window_bits="9"', undefined]
  ]
  for (const [offers, accepted] of OFFERS) {
    const handshake = request(`${url}/connection/websocket`, {
      headers: {
        connection: 'Upgrade',
        upgrade: 'websocket',
        'sec-websocket-version': '13',
        'sec-websocket-key': randomBytes(16).toString('base64'),
        'sec-websocket-extensions': offers
      }
    })
    const upgraded = once(handshake.end(), 'upgrade')
    const [{ headers }, socket] = await upgraded
    socket.destroy()
    t.match(headers['sec-websocket-extensions'], accepted)
    t.notMatch(headers['sec-websocket-extensions'] ?? '', 'server_max_window_bits')
  }
})

t.test('compression is off by default', async (t) => {
  const { url } = await startRelay(t, { channel: NAMESPACES })
  t.equal((await connect(t, url)).ws.extensions, '')
})

t.test('a message that is too large after decompression closes the connection with 1009', async (t) => {
  const { url } = await startRelay(t, config({ decompressed_message_size_limit: 70_000 }))
  const { ws } = await connect(t, url, { perMessageDeflate: { threshold: 0 } })
  const closed = once(ws, 'close')
  ws.send(JSON.stringify({ id: 3, publish: { channel: 'floor:1', data: 'x'.repeat(10_000_000) } }))
  t.equal((await closed)[0], 1009)
})

t.test('a message that is not valid deflate data closes only its own connection', async (t) => {
  const relay = await startRelay(t, config())
  const malformed = await connect(t, relay.url)
  const other = await connect(t, relay.url)
  const closed = once(malformed.ws, 'close')
  // A masked text frame with RSV1 set and a payload that no deflate stream begins with.
  malformed.socket.write(Buffer.from([0xc1, 0x84, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]))
  t.equal((await closed)[0], 1007)
  await relay.publish('floor:1', 'still here')
  await eventually(() => other.received().length === 1)
})
