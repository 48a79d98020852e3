import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import t from 'tap'
import type { WebSocket } from 'ws'
import { eventually } from '../../helper/eventually.js'
import { send } from '../../helper/http.js'
import { type EdgeRelay, startRelay } from '../../helper/relay.js'
import { type ConfigFile, relayToken } from '../../helper/relay-rules.js'
import { required } from '../../helper/required.js'
import {
  connectQuery,
  connectResult,
  firstMessage,
  openUnidirectionalWebSocket,
  type Receiver,
  UNIDIRECTIONAL_KINDS,
  uniHttpStream
} from '../../helper/unidirectional.js'

const NAMESPACES = [
  { name: 'floor', history_size: 10, history_ttl: '60s', force_recovery: true },
  { name: 'plain' },
  { name: 'open', allow_subscribe_for_client: true, history_size: 10, history_ttl: '60s', force_recovery: true },
  { name: 'bytes', publication_data_format: 'binary' }
]
const CONFIG: ConfigFile = {
  channel: { namespaces: NAMESPACES },
  uni_sse: { enabled: true },
  uni_http_stream: { enabled: true },
  uni_websocket: { enabled: true }
}

const withChannels = (...channels: string[]): string => relayToken({ sub: '42', channels })

/** The HTTP status of a rejected upgrade. */
const statusOf = async (socket: WebSocket): Promise<number | undefined> => {
  const [, { statusCode }] = await once(socket, 'unexpected-response')
  return statusCode
}

const pubs = ({ messages }: Receiver): unknown[] =>
  messages.flatMap(({ channel, pub }) => (pub === undefined ? [] : [[channel, pub.data]]))

for (const [kind, connect] of Object.entries(UNIDIRECTIONAL_KINDS)) {
  t.test(kind, async (t) => {
    t.test(`${kind} receives the channels of its token`, async (t) => {
      const relay = await startRelay(t, CONFIG)
      const receiver = await connect(t, relay.url, { token: withChannels('floor:1', 'plain:a') })

      const connected = await connectResult(receiver)
      t.same(Object.keys(await firstMessage(receiver)), ['connect'], 'a push, which has no id')
      t.match(connected, { client: String, version: 'test', ping: 25, session: String, subs: { 'floor:1': {} } })
      t.notOk('node' in connected)
      t.notOk('pong' in connected)
      await relay.publish('floor:1', { x: 1 })
      await relay.publish('plain:a', { y: 'ü' })

      await eventually(() => pubs(receiver).length === 2)
      t.same(pubs(receiver), [
        ['floor:1', { x: 1 }],
        ['plain:a', { y: 'ü' }]
      ])
    })

    t.test(`${kind} receives the channels of its connect request that it may subscribe to`, async (t) => {
      const relay = await startRelay(t, CONFIG)
      const { epoch } = await relay.publish('open:2', 'a')
      const subs = { 'open:1': {}, 'open:2': { recover: true, epoch, offset: 0 }, 'plain:a': {} }
      const receiver = await connect(t, relay.url, { token: withChannels(), subs })

      t.match(await connectResult(receiver), { subs: { 'open:2': { publications: [{ data: 'a', offset: 1 }] } } })
      t.same(Object.keys(required((await connectResult(receiver)).subs)), ['open:1', 'open:2'])
      await relay.publish('plain:a', 0)
      await relay.publish('open:1', 1)
      await eventually(() => pubs(receiver).length === 1)
      t.same(pubs(receiver), [['open:1', 1]])
    })

    t.test(`${kind} accepts the token as Authorization: Bearer`, async (t) => {
      const relay = await startRelay(t, CONFIG)
      const receiver = await connect(t, relay.url, {}, { authorization: `Bearer ${withChannels('plain:a')}` })

      t.hasProp(await firstMessage(receiver), 'connect')
    })

    t.test(`${kind} recovers the publications after a position`, async (t) => {
      const relay = await startRelay(t, CONFIG)
      const { epoch } = await relay.publish('floor:1', 'a')
      await relay.publish('floor:1', 'b')
      const token = withChannels('floor:1')
      const receiver = await connect(t, relay.url, { token, subs: { 'floor:1': { recover: true, epoch, offset: 1 } } })

      t.match(await firstMessage(receiver), {
        connect: { subs: { 'floor:1': { recovered: true, publications: [{ data: 'b', offset: 2 }] } } }
      })
      await relay.publish('floor:1', 'c')
      await eventually(() => pubs(receiver).length === 1)
      t.same(pubs(receiver), [['floor:1', 'c']])
    })

    t.test(`${kind} receives pings and needs no pongs`, async (t) => {
      const relay = await startRelay(t, CONFIG)
      const receiver = await connect(t, relay.url, { token: withChannels('plain:a') })
      await firstMessage(receiver)
      relay.advance(26_000)
      await eventually(() => receiver.messages.some((message) => Object.keys(message).length === 0))
      relay.advance(9_000)
      relay.advance(9_000)

      await relay.publish('plain:a', 1)
      await eventually(() => pubs(receiver).length === 1)
      t.equal(relay.relay.clients.length, 1)
    })

    for (const [name, request, code, config] of [
      ['a malformed token', { token: 'no token' }, 3500, CONFIG],
      ['an expired token', { token: relayToken({ sub: '42' }, { nowMs: Date.now() - 7_200_000 }) }, 3005, CONFIG],
      ['an expire_at in the past', { token: relayToken({ sub: '42', expire_at: 1 }) }, 3005, CONFIG],
      ['no token', {}, 3501, CONFIG],
      ['subs of an unknown namespace', { token: withChannels(), subs: { 'nowhere:1': {} } }, 3501, CONFIG],
      ['an unknown namespace', { token: withChannels('nowhere:1') }, 3004, CONFIG],
      ['a channel with binary data', { token: withChannels('bytes:1') }, 3506, CONFIG]
    ] as const) {
      t.test(`${kind} with ${name} receives disconnect ${code} and the end`, async (t) => {
        const { url, relay } = await startRelay(t, config)
        const receiver = await connect(t, url, request)

        t.match(await firstMessage(receiver), { disconnect: { code, reason: String } })
        await receiver.ended
        t.equal(receiver.messages.length, 1)
        await eventually(() => relay.clients.length === 0)
      })
    }

    t.test(`${kind} above user_connection_limit receives disconnect 3504`, async (t) => {
      const { url } = await startRelay(t, { ...CONFIG, client: { user_connection_limit: 1 } })
      await firstMessage(await connect(t, url, { token: withChannels() }))
      const second = await connect(t, url, { token: withChannels() })

      t.match(await firstMessage(second), { disconnect: { code: 3504 } })
    })

    t.test(`${kind} receives a disconnect of the API, by its session`, async (t) => {
      const relay = await startRelay(t, CONFIG)
      const receiver = await connect(t, relay.url, { token: withChannels() })
      const { session } = await connectResult(receiver)
      await relay.api('disconnect', { user: '42', session })

      await eventually(() => receiver.messages.length === 2)
      t.match(receiver.messages[1], { disconnect: { code: 3503 } })
      await receiver.ended
    })

    t.test(`${kind} is cut by a disconnect with 3000`, async (t) => {
      const relay = await startRelay(t, CONFIG)
      const receiver = await connect(t, relay.url, { token: withChannels() })
      await connectResult(receiver)
      await relay.api('disconnect', { user: '42', disconnect: { code: 3000, reason: 'anything' } })
      const ended = await receiver.ended

      if (kind.startsWith('uni_websocket')) t.same(ended, [1006, ''], 'no close frame')
      t.equal(receiver.messages.length, 1, 'no disconnect push')
    })

    t.test(`${kind} cannot send commands with its session`, async (t) => {
      const relay = await startRelay(t, CONFIG)
      const receiver = await connect(t, relay.url, { token: withChannels('plain:a') })
      const { session } = await connectResult(receiver)
      const data = JSON.stringify({ id: 1, subscribe: { channel: 'floor:1' } })
      const body = JSON.stringify({ session, node: relay.relay.node, data })

      t.equal((await send(relay.url, '/emulation', { method: 'POST', body })).status, 404)
    })
  })
}

t.test('unidirectional transports that are not enabled respond with 404', async (t) => {
  const { url } = await startRelay(t, { channel: { namespaces: NAMESPACES } })
  for (const path of ['/connection/uni_sse', '/connection/uni_http_stream', '/connection/uni_websocket']) {
    t.equal((await send(url, path, { method: 'POST', body: '{}' })).status, 404)
  }
  const [socket] = openUnidirectionalWebSocket(t, url, '')
  t.equal(await statusOf(socket), 404)
})

t.test('requests that unidirectional transports reject', async (t) => {
  const { url } = await startRelay(t, { ...CONFIG, client: { connection_limit: 1, allowed_origins: [] } })
  const status = async (path: string, method: string, body = '', headers = {}): Promise<number> =>
    (await send(url, path, { method, body, headers })).status

  t.equal(await status('/connection/uni_http_stream', 'GET'), 405)
  t.equal(await status('/connection/uni_sse', 'PUT'), 405)
  for (const body of ['{', '[]', '"x"', '{"token":1}', '{"subs":{"a":1}}']) {
    t.equal(await status('/connection/uni_http_stream', 'POST', body), 400, body)
    t.equal(await status('/connection/uni_sse', 'POST', body), 400, body)
    t.equal(await status(`/connection/uni_sse?cf_connect=${encodeURIComponent(body)}`, 'GET'), 400, body)
  }
  t.equal(await status('/connection/uni_http_stream', 'POST', ' '.repeat(65_537)), 413)
  t.equal(await status('/connection/uni_sse', 'POST', ' '.repeat(65_537)), 413)
  const foreign = { origin: 'https://other.example' }
  const rejected = await send(url, '/connection/uni_sse', { method: 'GET', headers: foreign })
  t.equal(rejected.status, 403)
  t.equal(rejected.headers['access-control-allow-origin'], undefined)

  const [malformed] = openUnidirectionalWebSocket(t, url, '?cf_connect=%7B')
  t.equal(await statusOf(malformed), 400)
  const [foreignSocket] = openUnidirectionalWebSocket(t, url, '', foreign)
  t.equal(await statusOf(foreignSocket), 403)

  await firstMessage(await uniHttpStream(t, url, { token: withChannels() }))
  t.equal(await status('/connection/uni_http_stream', 'POST', '{}'), 503)
  const [full] = openUnidirectionalWebSocket(t, url, '')
  t.equal(await statusOf(full), 503)
})

t.test('a malformed first message closes uni_websocket with 3501, and later messages are ignored', async (t) => {
  const relay: EdgeRelay = await startRelay(t, CONFIG)
  const [malformed, malformedReceiver] = openUnidirectionalWebSocket(t, relay.url, '')
  malformed.once('open', () => malformed.send('{"id":1,"connect":'))
  t.same(await malformedReceiver.ended, [3501, 'bad request'])

  const [socket, receiver] = openUnidirectionalWebSocket(t, relay.url, '')
  socket.once('open', () => socket.send(JSON.stringify({ token: withChannels('plain:a') })))
  await firstMessage(receiver)
  socket.send(JSON.stringify({ id: 2, subscribe: { channel: 'floor:1' } }))
  socket.send('}')
  await relay.publish('plain:a', 1)
  await eventually(() => pubs(receiver).length === 1)
  t.equal(receiver.messages.length, 2)
})

t.test('a uni_websocket without a connect request is closed as stale', async (t) => {
  const relay = await startRelay(t, CONFIG)
  const [socket, { ended }] = openUnidirectionalWebSocket(t, relay.url, '')
  await once(socket, 'open')
  await eventually(() => relay.relay.clients.length === 1)
  relay.advance(11_000)
  t.same(await ended, [3502, 'stale'])
})

t.test('uni_websocket compresses messages for clients that accept it', async (t) => {
  const relay = await startRelay(t, { ...CONFIG, uni_websocket: { enabled: true, compression: true } })
  const [socket, receiver] = openUnidirectionalWebSocket(t, relay.url, connectQuery({ token: withChannels('floor:1') }))
  const upgraded = once(socket, 'upgrade')
  await connectResult(receiver)
  const { socket: connection }: IncomingMessage = (await upgraded)[0]
  const before = connection.bytesRead
  t.match(socket.extensions, 'permessage-deflate')

  const data = 'position '.repeat(1000)
  await relay.publish('floor:1', data)
  await eventually(() => pubs(receiver).length === 1)
  t.same(pubs(receiver), [['floor:1', data]])
  t.ok(connection.bytesRead - before < data.length / 10)
})

t.test('uni_websocket has no compression by default', async (t) => {
  const relay = await startRelay(t, CONFIG)
  const [socket, receiver] = openUnidirectionalWebSocket(t, relay.url, connectQuery({ token: withChannels('floor:1') }))
  await connectResult(receiver)
  t.equal(socket.extensions, '')
})

for (const [isDisabled, pushes] of [
  [false, 1],
  [true, 0]
] as const) {
  t.test(`a disconnect of uni_websocket has ${pushes} push with disable_disconnect_push ${isDisabled}`, async (t) => {
    const uni_websocket = { enabled: true, disable_disconnect_push: isDisabled }
    const relay = await startRelay(t, { ...CONFIG, uni_websocket })
    const [, receiver] = openUnidirectionalWebSocket(t, relay.url, connectQuery({ token: withChannels('floor:1') }))
    await connectResult(receiver)
    await relay.api('disconnect', { user: '42' })
    t.same(await receiver.ended, [3503, 'force disconnect'])
    t.equal(receiver.messages.filter((message) => 'disconnect' in message).length, pushes)
  })
}
