import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { waitingBytes } from '../../../src/relay/admin/client-queue.js'
import { eventually } from '../../helper/eventually.js'
import { nextData } from '../../helper/exact-http.js'
import { send } from '../../helper/http.js'
import { connectedClient, openClient } from '../../helper/raw-client.js'
import { type EdgeRelay, startRelay } from '../../helper/relay.js'
import { withNamespace } from '../../helper/relay-core.js'
import { relayToken } from '../../helper/relay-rules.js'
import { required } from '../../helper/required.js'

/** Verifies that the relay still serves another client. */
const stillServes = async (t: Test, { url, publish }: EdgeRelay): Promise<void> => {
  const client = await connectedClient(t, url, 'another user')
  await client.request({ id: 2, subscribe: { channel: 'floor:alive' } })
  await publish('floor:alive', 'hello')
  t.match(await client.next(), { push: { pub: { data: 'hello' } } })
}

const CONNECT = JSON.stringify({ id: 1, connect: { token: relayToken({ sub: '42' }) } })

t.test('hostile clients', async (t) => {
  const edge = await startRelay(t)

  const messages: [title: string, message: string | Buffer, closed: RegExp][] = [
    ['garbage', 'hello', /^3501 bad request$/],
    ['an empty message', '', /^3501 bad request$/],
    ['newlines', '\n\n\n', /^3501 bad request$/],
    ['half an object', '{"id":1,"connect":', /^3501 bad request$/],
    ['a text in quotes', '"connect"', /^3501 bad request$/],
    ['binary', Buffer.from([0, 1, 2]), /^3506 inappropriate protocol$/],
    ['a binary message that is no UTF-8', Buffer.from([0x7b, 0xff, 0x7d]), /^3506 inappropriate protocol$/],
    ['a binary message that starts like JSON', Buffer.from('{"id":1,'), /^3501 bad request$/],
    ['a message over the limit', `{"id":1,"connect":{"token":"${'x'.repeat(65_536)}"}}`, /^1009/],
    ['a deeply nested message', `{"id":1,"connect":${'['.repeat(30_000)}${']'.repeat(30_000)}}`, /^3501 bad request$/],
    ['brackets that never close', '['.repeat(60_000), /^3501 bad request$/],
    ['a poisoned prototype', '{"id":1,"__proto__":{"connect":{}}}', /^3501 bad request$/],
    ['commands before connect', '{"id":1,"subscribe":{"channel":"floor:7"}}', /^3501 bad request$/],
    ['two connects', `${CONNECT}\n${CONNECT}`, /^3501 bad request$/],
    ['a token as long as a message', `{"id":1,"connect":{"token":"${'x.'.repeat(30_000)}"}}`, /^3500 invalid token$/]
  ]
  for (const [title, message, closed] of messages) {
    t.test(`a client is closed for ${title}`, async (t) => {
      const client = await openClient(t, edge.url)
      client.ws.send(message, { binary: Buffer.isBuffer(message) })

      t.match(await client.closed, closed)
      await stillServes(t, edge)
    })
  }

  t.test('a client that sends no connect command is closed', async (t) => {
    const edge = await startRelay(t)
    const client = await openClient(t, edge.url)
    edge.advance(10_000)

    t.equal(await client.closed, '3502 stale')
  })

  t.test('a client that does not respond to pings is closed', async (t) => {
    const edge = await startRelay(t)
    const client = await connectedClient(t, edge.url)
    edge.advance(25_000)
    t.same(await client.next(), {})
    edge.advance(8000)

    t.equal(await client.closed, '3012 no pong')
  })

  t.test('a client that requested WebSocket pings and responds to them stays connected', async (t) => {
    const edge = await startRelay(t)
    const client = await openClient(t, `${edge.url}/connection/websocket?cf_ws_frame_ping_pong=true`)
    t.notMatch(await client.request(JSON.parse(CONNECT)), { connect: { ping: Number } })
    const pinged = once(client.ws, 'ping')
    edge.advance(25_000)
    await pinged
    // The pong is sent before this command.
    await client.request({ id: 2, rpc: {} })
    edge.advance(8000)

    t.equal(edge.relay.stats().clients, 1)
  })

  t.test('a client that exceeds commands_per_second is closed, others are not', async (t) => {
    const edge = await startRelay(t, {
      client: { commands_per_second: 100 },
      channel: { namespaces: [{ name: 'floor', allow_subscribe_for_client: true }] }
    })
    const client = await connectedClient(t, edge.url)
    for (let id = 2; id < 5000; id++) client.send({ id, rpc: {} })

    t.equal(await client.closed, '3013 too many requests')
    await stillServes(t, edge)
  })

  t.test('a client that exceeds commands_per_second within one message is closed', async (t) => {
    const edge = await startRelay(t, {
      client: { commands_per_second: 100 },
      channel: { namespaces: [{ name: 'floor', allow_subscribe_for_client: true }] }
    })
    const client = await connectedClient(t, edge.url)
    client.send(...Array.from({ length: 1000 }, (_, index) => ({ id: index + 2, rpc: {} })))

    t.equal(await client.closed, '3013 too many requests')
    await stillServes(t, edge)
  })

  t.test('a client that exceeds channel_limit receives an error', async (t) => {
    const client = await connectedClient(t, edge.url)
    for (let id = 2; id < 130; id++)
      t.match(await client.request({ id, subscribe: { channel: `floor:${id}` } }), { subscribe: {} })

    t.match(await client.request({ id: 130, subscribe: { channel: 'floor:130' } }), { error: { code: 106 } })
  })
})

t.test('a client that sends JSON in binary frames is served', async (t) => {
  const { url, publish } = await startRelay(t)
  const client = await openClient(t, url)
  client.ws.send(Buffer.from(CONNECT))
  t.match(await client.next(), { id: 1, connect: { client: /./ } })
  client.ws.send(
    Buffer.from('{"id":2,"subscribe":{"channel":"floor:7"}}\n{"id":3,"presence_stats":{"channel":"floor:7"}}')
  )
  t.match(await client.next(), { id: 2, subscribe: {} })
  await client.next()
  await publish('floor:7', 'hello')

  t.match(await client.next(), { push: { pub: { data: 'hello' } } })
})

/** A manual WebSocket handshake, for invalid frames. */
const handshake = async (t: Test, port: number): Promise<Socket> => {
  const socket = connect(port, '127.0.0.1')
  t.teardown(() => socket.destroy())
  socket.on('error', () => undefined)
  await once(socket, 'connect')
  const key = randomBytes(16).toString('base64')
  socket.write(
    `GET /connection/websocket HTTP/1.1\r\nHost: relay\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: ${key}\r\nSec-WebSocket-Version: 13\r\n\r\n`
  )
  const head = await nextData(socket)
  t.match(head.toString(), /^HTTP\/1\.1 101 /)
  return socket
}

const masked = (opcode: number, payload: Buffer, announced = payload.length): Buffer => {
  const mask = [1, 2, 3, 4]
  const length =
    announced < 126 ? Buffer.from([0x80 | announced]) : Buffer.from([0x80 | 126, announced >> 8, announced & 255])
  return Buffer.concat([
    Buffer.from([opcode]),
    length,
    Buffer.from(mask),
    payload.map((byte, index) => byte ^ (mask[index % 4] ?? 0))
  ])
}

/** The close code in the last frame of the relay. */
const closeCode = async (socket: Socket): Promise<number> => {
  const chunks: Buffer[] = []
  socket.on('data', (chunk) => chunks.push(chunk))
  await once(socket, 'close')
  const bytes = Buffer.concat(chunks)
  const at = bytes.lastIndexOf(0x88)
  return at === -1 ? 0 : bytes.readUInt16BE(at + 2)
}

/** The first byte of each complete frame of the relay. */
const opcodes = (bytes: Buffer): readonly number[] => {
  const found: number[] = []
  for (let at = 0; at < bytes.length; ) {
    found.push(bytes.readUInt8(at))
    const short = bytes.readUInt8(at + 1)
    if (short < 126) at += 2 + short
    else if (short === 126) at += 4 + bytes.readUInt16BE(at + 2)
    else at += 10 + Number(bytes.readBigUInt64BE(at + 2))
  }
  return found
}

t.test('WebSocket protocol violations', async (t) => {
  const edge = await startRelay(t)

  const frames: [title: string, bytes: Buffer, code: number][] = [
    ['a frame without a mask', Buffer.from([0x81, 2, 0x7b, 0x7d]), 1002],
    ['a reserved bit', masked(0xc1, Buffer.from('{}')), 1002],
    ['an unknown opcode', masked(0x83, Buffer.from('{}')), 1002],
    ['a continuation of nothing', masked(0x80, Buffer.from('{}')), 1002],
    ['text that is no UTF-8', masked(0x81, Buffer.from([0xff, 0xfe])), 1007],
    ['a ping that is too long', masked(0x89, Buffer.alloc(126)), 1002],
    ['a message that says it is huge', Buffer.from([0x81, 0xff, 0, 0, 0, 1, 0, 0, 0, 0, 1, 2, 3, 4]), 1009]
  ]
  for (const [title, bytes, code] of frames) {
    t.test(`a WebSocket is closed for ${title}`, async (t) => {
      const socket = await handshake(t, edge.port)
      const closed = closeCode(socket)
      socket.write(bytes)

      t.equal(await closed, code)
      await stillServes(t, edge)
    })
  }

  t.test('a WebSocket message may arrive byte by byte', async (t) => {
    const socket = await handshake(t, edge.port)
    for (const byte of Buffer.concat([
      masked(0x01, Buffer.from(CONNECT.slice(0, 50))),
      masked(0x80, Buffer.from(CONNECT.slice(50)))
    ])) {
      socket.write(Buffer.from([byte]))
    }
    const reply = await nextData(socket)

    t.match(reply.toString(), '"connect":{"client"')
  })

  t.test('a socket that ends within a frame is removed', async (t) => {
    const edge = await startRelay(t)
    const socket = await handshake(t, edge.port)
    socket.write(masked(0x81, Buffer.from(CONNECT), CONNECT.length + 10))
    socket.destroy()
    await eventually(() => edge.relay.stats().clients === 0)

    t.same(edge.relay.stats(), { clients: 0, users: 0, channels: 0, subscriptions: 0 })
  })

  t.test('no data frame follows the close frame, also if data was queued for the client', async (t) => {
    const edge = await startRelay(t, {
      client: { queue_max_size: 50_000_000 },
      channel: { namespaces: [{ name: 'big', allow_subscribe_for_client: true }] }
    })
    const socket = await handshake(t, edge.port)
    socket.write(masked(0x81, Buffer.from(CONNECT)))
    await once(socket, 'data')
    socket.write(masked(0x81, Buffer.from('{"id":2,"subscribe":{"channel":"big:1"}}')))
    await once(socket, 'data')
    socket.pause()
    for (let count = 0; count < 200; count++) await edge.publish('big:1', 'x'.repeat(100_000))
    t.ok(waitingBytes(required(edge.relay.clients[0])) > 2_000_000, 'data is queued in the relay')
    socket.write(masked(0x88, Buffer.from([0x03, 0xe8])))
    // The relay runs in this process and has read the close frame by then.
    for (let turn = 0; turn < 50; turn++) await setImmediate()
    const chunks: Buffer[] = []
    socket.on('data', (chunk) => chunks.push(chunk))
    socket.resume()
    await once(socket, 'close')

    const frames = opcodes(Buffer.concat(chunks))
    t.equal(frames.indexOf(0x88), frames.length - 1)
  })

  t.test('a WebSocket ping receives a pong', async (t) => {
    const socket = await handshake(t, edge.port)
    socket.write(masked(0x89, Buffer.from('hi')))
    const reply = await nextData(socket)

    t.same(reply, Buffer.from([0x8a, 2, 0x68, 0x69]))
  })

  t.test('pongs for a client that does not read are not queued without limit', async (t) => {
    // On a busy machine this takes longer than a client may stay unconnected by default.
    const edge = await startRelay(t, {
      client: { stale_close_delay: '10m' },
      channel: { namespaces: [{ name: 'floor', allow_subscribe_for_client: true }] }
    })
    const socket = await handshake(t, edge.port)
    socket.pause()
    const pings = Buffer.concat(Array.from({ length: 2000 }, () => masked(0x89, Buffer.alloc(125, 'x'))))
    // More than the socket buffers of both sides hold.
    for (let round = 0; round < 100; round++) {
      if (!socket.write(pings)) await once(socket, 'drain')
    }

    const [client] = edge.relay.clients
    t.ok((client?.outbox.unsentBytes ?? 0) < 128 * 1024, `${client?.outbox.unsentBytes} bytes queued`)
    await stillServes(t, edge)
  })
})

// The relay writes publications to the socket itself, beside the frames that `ws` writes to it.
t.test('publications, pongs and the close frame arrive as complete frames', async (t) => {
  const edge = await startRelay(t)
  const client = await connectedClient(t, edge.url)
  await client.request({ id: 2, subscribe: { channel: 'floor:1' } })
  let pongs = 0
  client.ws.on('pong', () => {
    pongs += 1
  })
  client.ws.pause()
  const messages = Array.from({ length: 20 }, (_, index) => `${index} ${'x'.repeat(40_000)}`)
  for (const message of messages) {
    client.ws.ping()
    await edge.publish('floor:1', message)
  }
  await edge.api('disconnect', { user: '42' })
  client.ws.resume()

  for (const data of messages) t.match(await client.next(), { push: { pub: { data } } })
  t.equal(await client.closed, '3503 force disconnect')
  t.ok(pongs > 0)
})

t.test('recovered publications and pongs arrive as complete frames', async (t) => {
  const recovering = { allow_subscribe_for_client: true, history_size: 10, history_ttl: '60s', force_recovery: true }
  const edge = await startRelay(t, withNamespace(recovering))
  const messages = Array.from({ length: 10 }, (_, index) => `${index} ${'ä'.repeat(20_000)}`)
  for (const message of messages) await edge.publish('chat:1', message)
  const client = await connectedClient(t, edge.url)
  let pongs = 0
  client.ws.on('pong', () => {
    pongs += 1
  })
  client.ws.pause()
  const ids = [2, 4, 6, 8, 10, 12, 14, 16]
  for (const id of ids) {
    client.ws.ping()
    client.send({ id, subscribe: { channel: 'chat:1', recover: true, offset: 0, epoch: '' } })
    client.ws.ping()
    client.send({ id: id + 1, unsubscribe: { channel: 'chat:1' } })
  }
  client.ws.resume()

  for (const id of ids) {
    const { id: replied, subscribe } = await client.next()
    t.equal(replied, id)
    t.same(
      subscribe?.publications?.map(({ data }) => data),
      messages
    )
    t.match(await client.next(), { id: id + 1, unsubscribe: {} })
  }
  t.ok(pongs > 0)
})

t.test('malformed HTTP requests', async (t) => {
  const edge = await startRelay(t)

  const requests: [title: string, path: string, message: Parameters<typeof send>[2], status: number][] = [
    ['an unknown path', '/nope', {}, 404],
    ['a path of the prototype', '/toString', {}, 404],
    ['the WebSocket path without an upgrade', '/connection/websocket', {}, 426],
    ['a stream by GET', '/connection/http_stream', {}, 405],
    ['events by PUT', '/connection/sse', { method: 'PUT' }, 405],
    ['a stream over the limit', '/connection/http_stream', { method: 'POST', body: 'x'.repeat(65_537) }, 413],
    ['an emulation over the limit', '/emulation', { method: 'POST', body: 'x'.repeat(65_537) }, 413],
    ['an emulation that is no JSON', '/emulation', { method: 'POST', body: '{' }, 400],
    ['an emulation that is null', '/emulation', { method: 'POST', body: 'null' }, 400],
    [
      'an emulation of an unknown session',
      '/emulation',
      { method: 'POST', body: '{"session":"x","node":"y","data":"{}"}' },
      404
    ],
    ['an emulation by GET', '/emulation', {}, 405],
    ['health by POST', '/health', { method: 'POST', body: '' }, 405]
  ]
  for (const [title, path, message, status] of requests) {
    t.test(`the relay responds with ${status} to ${title}`, async (t) => {
      t.equal((await send(edge.url, path, message)).status, status)
      await stillServes(t, edge)
    })
  }

  t.test('an HTTP stream with a malformed connect command ends with a disconnect push', async (t) => {
    const { body, status } = await send(edge.url, '/connection/http_stream', { method: 'POST', body: 'garbage' })

    t.equal(status, 200)
    t.equal(body, '{"push":{"disconnect":{"code":3501,"reason":"bad request"}}}\n')
  })

  t.test('a server-sent event stream without a connect command ends with a disconnect push', async (t) => {
    const { body, headers } = await send(edge.url, '/connection/sse')

    t.equal(headers['content-type'], 'text/event-stream')
    t.equal(body, '\r\ndata: {"push":{"disconnect":{"code":3501,"reason":"bad request"}}}\n\n')
  })

  t.test('a connection that does not send HTTP receives 400', async (t) => {
    const socket = connect(edge.port, '127.0.0.1')
    socket.write('hello\r\n\r\n')
    const reply = await nextData(socket)

    t.match(reply.toString(), /^HTTP\/1\.1 400 /)
    socket.destroy()
  })

  t.test('a connection that does not send HTTP is closed', async (t) => {
    const edge = await startRelay(t)
    const accepted = once(edge.running.server, 'connection')
    const socket = connect({ port: edge.port, host: '127.0.0.1', allowHalfOpen: true })
    t.teardown(() => socket.destroy())
    socket.resume().write('hello\r\n\r\n')
    const accepting: Socket = (await accepted)[0]

    if (!accepting.destroyed) await once(accepting, 'close')
    t.ok(accepting.destroyed)
  })
})
