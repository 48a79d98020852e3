import { once } from 'node:events'
import t, { type Test } from 'tap'
import { WebSocket } from 'ws'
import { eventually } from '../../helper/eventually.js'
import { send } from '../../helper/http.js'
import { commandBytes, emulationBytes, frameOf, repliesIn, varint } from '../../helper/protobuf.js'
import type { Json } from '../../helper/raw-client.js'
import { type EdgeRelay, startRelay } from '../../helper/relay.js'
import { relayToken } from '../../helper/relay-rules.js'
import type { ServerMessage } from '../../helper/server-message.js'

const OPEN = { channel: { without_namespace: { allow_subscribe_for_client: true, allow_publish_for_client: true } } }

const [VARINT, FIXED64, BYTES, GROUP, END_GROUP, FIXED32] = [0, 1, 2, 3, 4, 5]
const tag = (field: number, wireType: number | undefined): Buffer => varint((field << 3) | (wireType ?? 0))
const bytesField = (field: number, content: Buffer): Buffer =>
  Buffer.concat([tag(field, BYTES), varint(content.length), content])

const [ID, SUBSCRIBE, CHANNEL, RECOVER, TF, NODES] = [1, 5, 1, 3, 13, 6]

/** A subscribe command whose request is the given bytes. */
const subscribeWith = (...request: readonly Buffer[]): Buffer =>
  frameOf(Buffer.concat([tag(ID, VARINT), varint(2), bytesField(SUBSCRIBE, Buffer.concat(request))]))

const channelField = bytesField(CHANNEL, Buffer.from('a'))
const subscribe = frameOf({ id: 2, subscribe: { channel: 'a' } })

const nested = (depth: number): Buffer => {
  let node: Buffer = Buffer.alloc(0)
  for (let level = 0; level < depth; level++) node = bytesField(NODES, node)
  return node
}

const MALFORMED: readonly (readonly [title: string, frame: Buffer])[] = [
  ['an empty frame', Buffer.alloc(0)],
  ['a pong without a ping', Buffer.from([0])],
  ['a frame of zeros', Buffer.alloc(60_000)],
  ['text', Buffer.from('{"id":2,"subscribe":{"channel":"a"}}')],
  ['a command without its last byte', subscribe.subarray(0, -1)],
  ['a command with a byte too many', Buffer.concat([subscribe, Buffer.from([9])])],
  ['a length of 2 GB', Buffer.concat([varint(2 ** 31), subscribe])],
  ['a length of 2^32', Buffer.concat([varint(2 ** 32), subscribe])],
  ['a length of 2^63-1', Buffer.concat([varint(2n ** 63n - 1n), subscribe])],
  ['a length of 2^64', Buffer.concat([varint(2n ** 64n), subscribe])],
  ['an endless varint', Buffer.alloc(20, 0xff)],
  ['a request of 2 GB', frameOf(Buffer.concat([tag(SUBSCRIBE, BYTES), varint(2 ** 31), channelField]))],
  ['a channel of 2^63-1 bytes', subscribeWith(tag(CHANNEL, BYTES), varint(2n ** 63n - 1n), Buffer.from('a'))],
  ['a channel that ends after its message', subscribeWith(tag(CHANNEL, BYTES), varint(2), Buffer.from('a'))],
  ['a channel that is not UTF-8', subscribeWith(bytesField(CHANNEL, Buffer.from([0xff])))],
  ['a channel of type varint', subscribeWith(tag(CHANNEL, VARINT), varint(1))],
  ['a flag of type bytes', subscribeWith(channelField, bytesField(RECOVER, Buffer.from([1])))],
  ['a flag of type fixed32', subscribeWith(channelField, tag(RECOVER, FIXED32), Buffer.alloc(4))],
  ['a flag of type fixed64', subscribeWith(channelField, tag(RECOVER, FIXED64), Buffer.alloc(8))],
  ['a flag of type group', subscribeWith(channelField, tag(RECOVER, GROUP), tag(RECOVER, END_GROUP))],
  ['an id of type bytes', frameOf(Buffer.concat([bytesField(ID, Buffer.from([2])), commandBytes({ rpc: {} })]))],
  [
    'a mistyped field in a filter',
    subscribeWith(channelField, bytesField(TF, Buffer.concat([tag(1, VARINT), varint(1)])))
  ],
  ['wire type 6', subscribeWith(channelField, tag(100, 6))],
  ['field number 0', subscribeWith(channelField, tag(0, VARINT), varint(1))],
  ['a group without an end', subscribeWith(channelField, tag(100, GROUP))],
  ['10,000 open groups', subscribeWith(channelField, Buffer.alloc(20_000, tag(100, GROUP)))],
  ['filters nested 5,000 levels deep', subscribeWith(channelField, bytesField(TF, nested(5000)))],
  ['a command without a request', frameOf({ id: 2 })],
  ['a command without an id', frameOf({ subscribe: { channel: 'a' } })],
  ['a command with unknown fields only', frameOf(bytesField(100, Buffer.from('x')))],
  ['two connect commands', frameOf({ id: 2, connect: {} })]
]

interface ProtobufClient {
  readonly ws: WebSocket
  readonly closed: Promise<string>
  request(command: Json): Promise<Json>
}

const connected = async (t: Test, { port }: EdgeRelay): Promise<ProtobufClient> => {
  const ws = new WebSocket(`ws://127.0.0.1:${port}/connection/websocket`, 'centrifuge-protobuf')
  t.teardown(() => ws.terminate())
  const closed = new Promise<string>((resolve) => ws.once('close', (code, reason) => resolve(`${code} ${reason}`)))
  await once(ws, 'open')
  const request = async (command: Json): Promise<ServerMessage> => {
    ws.send(frameOf(command))
    const data = await nextMessage(ws)
    return repliesIn(data)[0] ?? {}
  }
  await request({ id: 1, connect: { token: relayToken({ sub: '42' }) } })
  return { ws, closed, request }
}

const nextMessage = async (ws: WebSocket): Promise<Buffer> => (await once(ws, 'message'))[0]

const memoryBytes = (): number => {
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

t.test('malformed protobuf', async (t) => {
  const edge = await startRelay(t, OPEN)
  const bystander = await connected(t, edge)
  for (const [title, frame] of MALFORMED) {
    t.test(`${title} closes the connection with 3501 and no other connection`, async (t) => {
      const { ws, closed } = await connected(t, edge)
      ws.send(frame)

      t.equal(await closed, '3501 bad request')
      t.match(await bystander.request({ id: 7, rpc: {} }), { id: 7, error: { code: 108 } })
    })
  }

  t.test('unknown fields are ignored', async (t) => {
    const { ws } = await connected(t, edge)
    const unknown = Buffer.concat([
      bytesField(100, Buffer.from('x')),
      tag(101, VARINT),
      varint(2n ** 64n - 1n),
      tag(102, FIXED32),
      Buffer.alloc(4),
      tag(103, FIXED64),
      Buffer.alloc(8),
      tag(104, GROUP),
      tag(1, VARINT),
      varint(1),
      tag(104, END_GROUP)
    ])
    ws.send(subscribeWith(unknown, channelField, unknown))
    const data = await nextMessage(ws)

    t.same(repliesIn(data), [{ id: 2, subscribe: {} }])
  })

  t.test('a frame with several commands receives one frame with all replies', async (t) => {
    const commands = frameOf(
      { id: 2, subscribe: { channel: 'a' } },
      { id: 3, publish: { channel: 'b', data: Buffer.from('1') } }
    )
    // On a busy machine the client's time slice may end between the two commands, which splits the replies.
    const replies = await eventually(async () => {
      const { ws } = await connected(t, edge)
      ws.send(commands)
      const received = repliesIn(await nextMessage(ws))
      return received.length > 1 && received
    })

    t.same(replies, [
      { id: 2, subscribe: {} },
      { id: 3, publish: {} }
    ])
  })

  t.test('malformed frames leave no memory behind', async (t) => {
    const flood = async (): Promise<void> => {
      for (const [, frame] of MALFORMED) {
        const { ws, closed } = await connected(t, edge)
        ws.send(frame)
        await closed
      }
    }
    await flood()
    const before = memoryBytes()
    for (let round = 0; round < 5; round++) await flood()

    t.ok(memoryBytes() - before < 32 * 1024 * 1024, 'not even one of the announced lengths was allocated')
    await eventually(() => edge.relay.clients.length === 1, { label: 'only the bystander remains' })
  })
})

t.test('malformed protobuf over HTTP', async (t) => {
  const headers = { 'content-type': 'application/octet-stream' }

  t.test('an HTTP stream whose body is malformed protobuf ends with a disconnect push', async (t) => {
    const { port } = await startRelay(t)
    const response = await fetch(`http://127.0.0.1:${port}/connection/http_stream`, {
      method: 'POST',
      headers,
      body: Buffer.from([5, 1, 2])
    })

    t.equal(response.headers.get('content-type'), 'application/octet-stream')
    t.same(repliesIn(Buffer.from(await response.arrayBuffer())), [
      { push: { disconnect: { code: 3501, reason: 'bad request' } } }
    ])
  })

  t.test('an emulation request that is malformed protobuf receives 400, an unknown session 404', async (t) => {
    const { url } = await startRelay(t)
    const emulate = async (body: Buffer): Promise<number> =>
      (await send(url, '/emulation', { method: 'POST', headers, body })).status

    t.equal(await emulate(Buffer.from([0xff])), 400)
    t.equal(await emulate(Buffer.from([8, 1])), 400, 'a mistyped field')
    t.equal(await emulate(emulationBytes({ node: 'none', session: 'none', data: Buffer.from([0]) })), 404)
  })
})
