import { once } from 'node:events'
import type { Socket } from 'node:net'
import t, { type Test } from 'tap'
import { type ClientOptions, WebSocket } from 'ws'
import { createAppToken } from '../../../src/shared/app-token.js'
import { eventually } from '../../helper/eventually.js'
import { openSocket, sendBytes } from '../../helper/exact-http.js'
import { apiKey, type TestGateway, tokenOf } from '../../helper/gateway.js'
import { startUpstreams } from '../upstreams/upstreams-fixture.js'
import { startWebSocketBackend, type WebSocketBackend } from './websocket-backend.js'

const KEY = 'dGhlIHNhbXBsZSBub25jZQ=='

const startBoth = async (
  t: Test,
  row: Readonly<Record<string, unknown>> = {},
  env: Readonly<Record<string, string>> = {}
): Promise<{ backend: WebSocketBackend; gateway: TestGateway }> => {
  const backend = await startWebSocketBackend(t)
  const rows = [
    { name: 'live', url: backend.url, paths: ['/live'], websocket: true, admin_paths: ['/live/admin'], ...row },
    { name: 'quiet', url: backend.url, paths: ['/quiet'] }
  ]
  return { backend, gateway: await startUpstreams(t, rows, { env }) }
}

const cookieOf = (role = 'operator'): Record<string, string> => ({ cookie: `auth_token=${tokenOf(role)}; other=1` })

const connect = (gateway: TestGateway, path = '/live/x', options: ClientOptions & { protocols?: string[] } = {}) => {
  const ws = new WebSocket(`${gateway.url.replace('http', 'ws')}${path}`, options.protocols ?? [], {
    headers: cookieOf(),
    ...options
  })
  return ws.on('error', () => undefined)
}

const open = async (...args: Parameters<typeof connect>): Promise<WebSocket> => {
  const ws = connect(...args)
  await once(ws, 'open')
  return ws
}

/** Status and code of the response with which a handshake is rejected. */
const rejection = async (...args: Parameters<typeof connect>): Promise<readonly [number, unknown]> => {
  const [, response] = await once(connect(...args), 'unexpected-response')
  response.resume()
  return [response.statusCode, response.headers['x-gateway-error']]
}

const openCount = async ({ send }: TestGateway): Promise<number> =>
  Number(/^gateway_websockets\{upstream="live"\} (\d+)$/m.exec((await send('/metrics')).body)?.[1])

t.test('a handshake that the backend has not answered is not an open WebSocket', async (t) => {
  const { backend, gateway } = await startBoth(t)
  backend.respond = () => undefined
  const waiting = connect(gateway)
  await eventually(() => backend.handshakes.length === 1)
  t.equal(await openCount(gateway), 0)
  backend.respond = null
  const ws = await open(gateway)
  t.equal(await openCount(gateway), 1)
  waiting.terminate()
  ws.terminate()
  await eventually(async () => (await openCount(gateway)) === 0)
})

t.test('messages, subprotocol, compression, pings and close codes pass between browser and backend', async (t) => {
  const { backend, gateway } = await startBoth(t)
  const ws = await open(gateway, '/live/x?a=b', { protocols: ['other', 'chat'] })
  t.equal(ws.protocol, 'chat')
  t.match(ws.extensions, 'permessage-deflate')
  t.equal(backend.handshakes[0]?.url, '/live/x?a=b')
  const big = 'x'.repeat(200_000)
  for (const message of ['hello', '', big]) {
    ws.send(message)
    t.equal(String((await once(ws, 'message'))[0]), message)
  }
  ws.send(Buffer.from([1, 2, 3]))
  const [data, isBinary] = await once(ws, 'message')
  t.strictSame([[...data], isBinary], [[1, 2, 3], true])
  ws.ping('are you there')
  t.equal(String((await once(ws, 'pong'))[0]), 'are you there')
  t.equal(await openCount(gateway), 1)
  ws.close(4321, 'enough')
  const [code] = await once(ws, 'close')
  t.equal(code, 4321)
  await eventually(() => backend.closed.length === 1)
  t.strictSame(backend.closed, ['4321 enough'])
  await eventually(async () => (await openCount(gateway)) === 0)

  backend.onOpen = (server) => server.close(3005, 'expired')
  const closing = connect(gateway)
  t.strictSame((await once(closing, 'close')).map(String), ['3005', 'expired'])
})

t.test('the backend receives the token and the identity of the user, and no cookie', async (t) => {
  const { backend, gateway } = await startBoth(t, { identity_headers: { user: 'X-User' } })
  const headers = {
    ...cookieOf(),
    'x-user': 'root',
    x_user: 'root',
    origin: 'http://app.example.com',
    host: 'app.example.com'
  }
  ;(await open(gateway, '/live/x', { headers })).terminate()
  const { headers: received = {} } = backend.handshakes[0] ?? {}
  t.match(received, {
    authorization: /^Bearer ey/,
    'x-user': 'operator-1',
    host: 'app.example.com',
    origin: 'http://app.example.com',
    'x-forwarded-for': '127.0.0.1'
  })
  t.notOk('cookie' in received || 'x_user' in received)
})

t.test('origin, token and role are checked before the upgrade, with an audit record', async (t) => {
  const { backend, gateway } = await startBoth(t)
  const FOREIGN = { ...cookieOf(), origin: 'https://evil.example' }
  t.strictSame(await rejection(gateway, '/live/x', { headers: FOREIGN }), [403, 'ORIGIN_REFUSED'])
  t.strictSame(await rejection(gateway, '/live/x', { headers: {} }), [401, 'UNAUTHENTICATED'])
  t.strictSame(await rejection(gateway, '/live/x', { headers: { authorization: `Bearer ${tokenOf('admin')}` } }), [
    401,
    'UNAUTHENTICATED'
  ])
  t.strictSame(await rejection(gateway, '/live/admin/x'), [403, 'FORBIDDEN'])
  t.strictSame(await rejection(gateway, '/live/Admin/x'), [400, 'AMBIGUOUS_PATH'])
  ;(await open(gateway, '/live/admin/x', { headers: cookieOf('admin') })).terminate()
  t.equal(backend.handshakes.length, 1)
  t.match(await gateway.auditRecords(), [
    { event: 'forbidden_access', reason: 'foreign-origin', status: 403, resource: '/live/x', method: 'GET' },
    { event: 'unauthorized_access', reason: 'token-absent', status: 401 },
    { event: 'unauthorized_access', reason: 'token-absent', status: 401 },
    { event: 'forbidden_access', reason: 'not-admin', status: 403, user: { id: 'operator-1' } }
  ])
})

t.test('outside production a WebSocket needs no token, and its page must be one of this machine', async (t) => {
  const { gateway } = await startBoth(t, {}, { NODE_ENV: 'development' })
  t.strictSame(await rejection(gateway, '/live/x', { headers: { origin: 'https://evil.example' } }), [
    403,
    'ORIGIN_REFUSED'
  ])
  ;(await open(gateway, '/live/x', { headers: { origin: 'http://localhost:5173' } })).terminate()
})

t.test('a public path of a row takes WebSockets without a token', async (t) => {
  const { gateway } = await startBoth(t, { public_paths: ['/live/public'] })
  ;(await open(gateway, '/live/public/x', { headers: {} })).terminate()
})

t.test('a row without websocket serves a handshake as an ordinary request', async (t) => {
  const { backend, gateway } = await startBoth(t)
  t.strictSame(await rejection(gateway, '/quiet/x'), [200, undefined])
  t.strictSame(await rejection(gateway, '/api/zones'), [200, undefined])
  t.equal(backend.handshakes.length, 0)
})

const handshake = (lines: readonly string[], version = 'HTTP/1.1', path = '/live/x'): string =>
  [
    `GET ${path} ${version}`,
    'Host: a',
    `Cookie: auth_token=${tokenOf('operator')}`,
    ...lines.filter((line) => line !== ''),
    '',
    ''
  ].join('\r\n')

const UPGRADE = ['Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13', `Sec-WebSocket-Key: ${KEY}`]

const without = (name: string): string[] => UPGRADE.filter((line) => !line.startsWith(name))

const MALFORMED: readonly (readonly [title: string, request: string, status: number])[] = [
  ['without a key', handshake(without('Sec-WebSocket-Key')), 400],
  ['with a short key', handshake([...without('Sec-WebSocket-Key'), 'Sec-WebSocket-Key: abc']), 400],
  ['of version 8', handshake([...without('Sec-WebSocket-Version'), 'Sec-WebSocket-Version: 8']), 400],
  ['with an invalid subprotocol', handshake([...UPGRADE, 'Sec-WebSocket-Protocol: a b']), 400],
  ['in HTTP/1.0', handshake(UPGRADE, 'HTTP/1.0'), 200],
  ['without Connection: Upgrade', handshake(without('Connection')), 400],
  ['for another protocol', handshake([...without('Upgrade'), 'Upgrade: h2c']), 200],
  ['for two protocols', handshake([...without('Upgrade'), 'Upgrade: websocket, h2c']), 200],
  ['with a body', handshake([...UPGRADE, 'Content-Length: 5']).concat('GET /'), 200],
  ['with both kinds of length', handshake([...UPGRADE, 'Content-Length: 5', 'Transfer-Encoding: chunked']), 400]
]

t.test('a malformed handshake opens no tunnel', async (t) => {
  const { backend, gateway } = await startBoth(t)
  for (const [title, request, status] of MALFORMED) {
    const closing = request.replace('Host: a', 'Host: a\r\nX-Close: 1')
    const response = await sendBytes(
      gateway.url,
      `${closing}GET /api/health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`
    )
    t.match(response, new RegExp(`^HTTP/1\\.1 ${status} `), title)
    t.notMatch(response, ' 101 ', title)
  }
  t.equal(backend.handshakes.length, 0)
  t.equal(await openCount(gateway), 0)
})

const ACCEPT = 's3pPLMBiTxaQ9kYGzzhZRbK+xOo='
const ANSWERS: readonly (readonly [title: string, answer: string, status: number])[] = [
  ['200 and a body', 'HTTP/1.1 200 OK\r\nContent-Length: 4\r\nSet-Cookie: a=b\r\n\r\npage', 200],
  ['403', 'HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno', 403],
  ['101 without Upgrade', 'HTTP/1.1 101 Switching Protocols\r\n\r\n', 502],
  [
    '101 for another protocol',
    `HTTP/1.1 101 X\r\nConnection: Upgrade\r\nUpgrade: h2c\r\nSec-WebSocket-Accept: ${ACCEPT}\r\n\r\n`,
    502
  ],
  ['101 without an accept header', 'HTTP/1.1 101 X\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n', 502],
  [
    '101 with the accept header of another key',
    'HTTP/1.1 101 X\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: AAAA\r\n\r\n',
    502
  ],
  [
    '101 with a subprotocol that was not offered',
    `HTTP/1.1 101 X\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: ${ACCEPT}\r\nSec-WebSocket-Protocol: x\r\n\r\n`,
    502
  ],
  [
    '101 with an extension that was not offered',
    `HTTP/1.1 101 X\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: ${ACCEPT}\r\nSec-WebSocket-Extensions: x\r\n\r\n`,
    502
  ],
  ['no HTTP', 'SSH-2.0-OpenSSH\r\n', 502],
  ['status 999', 'HTTP/1.1 999 X\r\nContent-Length: 0\r\n\r\n', 502]
]

t.test('a backend that does not accept the WebSocket is an HTTP response and no tunnel', async (t) => {
  const { backend, gateway } = await startBoth(t)
  for (const [title, answer, status] of ANSWERS) {
    backend.respond = (socket) => socket.end(answer)
    // What a browser sends behind its handshake must not reach the backend.
    const response = await sendBytes(
      gateway.url,
      handshake(UPGRADE).concat('GET /api/zones HTTP/1.1\r\nHost: a\r\n\r\n')
    )
    t.match(response, new RegExp(`^HTTP/1\\.1 ${status} `), title)
    t.equal(response.match(/HTTP\/1\.1 /g)?.length, 1, title)
    t.notMatch(response, /set-cookie/i)
    t.match(response, 'connection: close')
    t.match(response, 'x-frame-options: DENY')
  }
  t.equal(await openCount(gateway), 0)
  t.equal(gateway.backend.requests.length, 0)
})

t.test('a backend that does not answer the handshake in time is 504, and one that is gone 502', async (t) => {
  const { backend, gateway } = await startBoth(t, { timeout_ms: 200 })
  backend.respond = (socket) => void socket.resume()
  t.strictSame(await rejection(gateway), [504, 'BACKEND_TIMEOUT'])
  await eventually(() => backend.sockets.every(({ readableEnded }) => readableEnded))
  backend.respond = (socket) => socket.destroy()
  t.strictSame(await rejection(gateway), [502, 'BACKEND_UNREACHABLE'])
  t.equal(await openCount(gateway), 0)
})

/** A frame with a mask of zeros. */
const frame = (first: number, payload: Buffer, { isMasked = true, length = payload.length } = {}): Buffer => {
  const size =
    length < 126
      ? [length]
      : length < 65_536
        ? [126, length >> 8, length & 255]
        : [127, 0, 0, 0, 0, length >>> 24, (length >> 16) & 255, (length >> 8) & 255, length & 255]
  const [second = 0, ...more] = size
  return Buffer.concat([
    Buffer.from([first, isMasked ? 0x80 | second : second, ...more, ...(isMasked ? [0, 0, 0, 0] : [])]),
    payload
  ])
}

const text = Buffer.from('text')
const INVALID: readonly (readonly [title: string, bytes: Buffer, code: number])[] = [
  ['an unmasked frame', frame(0x81, text, { isMasked: false }), 1002],
  ['a reserved opcode', frame(0x83, text), 1002],
  ['reserved bits without an extension', frame(0xc1, text), 1002],
  ['a long ping', frame(0x89, Buffer.alloc(200)), 1002],
  ['a fragmented ping', frame(0x09, text), 1002],
  ['a continuation of nothing', frame(0x80, text), 1002],
  ['a message inside of another', Buffer.concat([frame(0x01, text), frame(0x81, text)]), 1002],
  ['a close frame with one byte', frame(0x88, Buffer.from([3])), 1002],
  ...[999, 1004, 1005, 1006, 1015, 1016, 2999, 5000].map(
    (code) => [`a close frame with the code ${code}`, frame(0x88, Buffer.from([code >> 8, code & 255])), 1002] as const
  ),
  ['a length of 125 in two bytes', Buffer.from([0x82, 0xfe, 0, 125, 0, 0, 0, 0]), 1002],
  ['a length of 65535 in eight bytes', Buffer.from([0x82, 0xff, 0, 0, 0, 0, 0, 0, 255, 255, 0, 0, 0, 0]), 1002],
  ['a frame above BODY_LIMIT', frame(0x82, text, { length: 70_000 }), 1009],
  ['a frame of 2^63 bytes', Buffer.from([0x82, 0xff, 0x7f, 255, 255, 255, 255, 255, 255, 255, 0, 0, 0, 0]), 1009],
  [
    'fragments above BODY_LIMIT',
    Buffer.concat([frame(0x02, Buffer.alloc(40_000)), frame(0x80, Buffer.alloc(40_000))]),
    1009
  ]
]

const openRaw = async (gateway: TestGateway): Promise<{ socket: Socket; received: () => Buffer }> => {
  const socket = await openSocket(gateway.url)
  let bytes = Buffer.alloc(0)
  socket.on('data', (more) => {
    bytes = Buffer.concat([bytes, more])
  })
  socket.write(handshake(UPGRADE))
  await eventually(() => bytes.includes('\r\n\r\n'))
  return { socket, received: () => bytes.subarray(bytes.indexOf('\r\n\r\n') + 4) }
}

t.test('invalid and too large frames of a browser close the WebSocket, and do not reach the backend', async (t) => {
  const { backend, gateway } = await startBoth(t, {}, { BODY_LIMIT: '65536' })
  const messages: string[] = []
  backend.onOpen = (ws) => ws.on('message', (data) => messages.push(String(data)))
  for (const [title, bytes, code] of INVALID) {
    const { socket, received } = await openRaw(gateway)
    // Byte by byte at the beginning: the header of a frame may be split anywhere.
    for (const byte of bytes.subarray(0, 3)) socket.write(Buffer.from([byte]))
    socket.write(bytes.subarray(3))
    await once(socket, 'close')
    t.strictSame([...received().subarray(0, 4)], [0x88, 2, code >> 8, code & 255], title)
  }
  t.strictSame(messages, [])
  await eventually(async () => (await openCount(gateway)) === 0)
})

t.test('a close frame of the backend with a reserved code closes both sides with 1002', async (t) => {
  const { backend, gateway } = await startBoth(t)
  // Unmasked, as servers send.
  backend.respond = (socket) =>
    void socket.write(
      Buffer.concat([
        Buffer.from(
          `HTTP/1.1 101 X\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: ${ACCEPT}\r\n\r\n`
        ),
        frame(0x88, Buffer.from([1005 >> 8, 1005 & 255]), { isMasked: false })
      ])
    )
  const { socket, received } = await openRaw(gateway)
  await eventually(() => received().length > 0)
  t.strictSame([...received()], [0x88, 2, 1002 >> 8, 1002 & 255])
  socket.destroy()
})

t.test('frames that arrive byte by byte reach the backend as they were sent', async (t) => {
  const { gateway } = await startBoth(t)
  const { socket, received } = await openRaw(gateway)
  const bytes = Buffer.concat([frame(0x01, text), frame(0x89, Buffer.from('p')), frame(0x80, Buffer.alloc(300, 'a'))])
  for (const byte of bytes) socket.write(Buffer.from([byte]))
  const expected = Buffer.concat([
    frame(0x8a, Buffer.from('p'), { isMasked: false }),
    frame(0x81, Buffer.concat([text, Buffer.alloc(300, 'a')]), { isMasked: false })
  ])
  await eventually(() => received().length >= expected.length)
  t.strictSame(received(), expected)
  socket.destroy()
})

t.test('a WebSocket is closed with 4401 when its token expires', async (t) => {
  const { backend, gateway } = await startBoth(t)
  const token = createAppToken({ userId: 'u' }, apiKey, { format: 'jwt', lifetimeSeconds: 4 })
  const ws = await open(gateway, '/live/x', { headers: { cookie: `auth_token=${token}` } })
  const closed = once(ws, 'close')
  const other = await open(gateway)
  t.strictSame((await closed).map(String), ['4401', 'session ended'])
  await eventually(() => backend.closed.includes('4401 session ended'))
  t.equal(other.readyState, WebSocket.OPEN)
  t.strictSame(await rejection(gateway, '/live/x', { headers: { cookie: `auth_token=${token}` } }), [
    401,
    'TOKEN_EXPIRED'
  ])
  other.terminate()
})

t.test('limits in total and per address are 503 OVERLOADED', async (t) => {
  const { gateway } = await startBoth(
    t,
    {},
    { GATEWAY_WEBSOCKETS_PER_ADDRESS: '1', GATEWAY_WEBSOCKETS: '2', TRUST_PROXY: 'loopback' }
  )
  const from = (address: string) => ({ headers: { ...cookieOf(), 'x-forwarded-for': address } })
  const first = await open(gateway, '/live/x', from('192.0.2.1'))
  t.strictSame(await rejection(gateway, '/live/x', from('192.0.2.1')), [503, 'OVERLOADED'])
  await open(gateway, '/live/x', from('192.0.2.2'))
  t.strictSame(await rejection(gateway, '/live/x', from('192.0.2.3')), [503, 'OVERLOADED'])
  t.equal((await gateway.send('/live/page', { headers: { 'x-forwarded-for': '192.0.2.1' } })).status, 200)
  first.terminate()
  await eventually(async () => (await openCount(gateway)) === 1)
  await open(gateway, '/live/x', from('192.0.2.1'))
})

t.test(
  'a browser that leaves during the handshake frees its place and the connection to the backend at once',
  async (t) => {
    const { backend, gateway } = await startBoth(t, {}, { GATEWAY_WEBSOCKETS: '1' })
    backend.respond = (socket) => void socket.resume()
    const WAYS: readonly ((socket: Socket) => unknown)[] = [
      (socket) => socket.end(),
      (socket) => socket.end(Buffer.alloc(2000)),
      (socket) => socket.resetAndDestroy(),
      // Much more than a browser, so that its end could not be noticed.
      (socket) => socket.write(Buffer.alloc(500_000))
    ]
    for (const leave of WAYS) {
      const socket = await openSocket(gateway.url)
      const before = backend.sockets.length
      socket.write(handshake(UPGRADE))
      await eventually(() => backend.sockets.length > before)
      leave(socket)
      await eventually(() => backend.sockets.every(({ readableEnded, destroyed }) => readableEnded || destroyed))
      await eventually(async () => (await openCount(gateway)) === 0)
      socket.destroy()
    }
    backend.respond = null
    ;(await open(gateway)).terminate()
    t.strictSame(
      gateway.logs.filter(({ msg }) => msg === 'request failed'),
      [],
      'no handshake has timed out'
    )
  }
)

t.test('messages that a client sends before its WebSocket is open reach the backend', async (t) => {
  const { backend, gateway } = await startBoth(t)
  const messages: string[] = []
  backend.onOpen = (ws) => ws.on('message', (data) => messages.push(String(data)))
  let accept = (): void => undefined
  backend.respond = (socket, request) => {
    accept = () => backend.webSockets.handleUpgrade(request, socket, Buffer.alloc(0), backend.onOpen)
  }
  const socket = await openSocket(gateway.url)
  socket.write(handshake(UPGRADE))
  await eventually(() => backend.sockets.length === 1)
  socket.write(frame(0x81, text))
  await gateway.send('/api/health')
  accept()
  await eventually(() => messages.length === 1)
  t.strictSame(messages, ['text'])
  socket.destroy()
})

t.test('a silent row does not use up the WebSockets of the others, and max_websockets limits a row', async (t) => {
  const silent = await startWebSocketBackend(t)
  silent.respond = (socket) => void socket.resume()
  const { url } = await startWebSocketBackend(t)
  const row = (name: string, more: Readonly<Record<string, unknown>> = {}) => ({
    name,
    url,
    paths: [`/${name}`],
    websocket: true,
    ...more
  })
  const rows = [row('silent', { url: silent.url }), row('live'), row('small', { max_websockets: 1 })]
  const gateway = await startUpstreams(t, rows, { env: { GATEWAY_WEBSOCKETS: '4' } })
  const waiting = [connect(gateway, '/silent/x'), connect(gateway, '/silent/x')]
  await eventually(() => silent.handshakes.length === 2)
  t.strictSame(await rejection(gateway, '/silent/x'), [503, 'OVERLOADED'])
  const small = await open(gateway, '/small/x')
  t.strictSame(await rejection(gateway, '/small/x'), [503, 'OVERLOADED'])
  const live = await open(gateway, '/live/x')
  t.strictSame(await rejection(gateway, '/live/x'), [503, 'OVERLOADED'], 'the total')
  for (const ws of [...waiting, small, live]) ws.terminate()
})

t.test('a silent side is pinged and closed if it does not respond', async (t) => {
  const { backend, gateway } = await startBoth(t, {}, { GATEWAY_WEBSOCKET_IDLE_MS: '1000' })
  let pings = 0
  const ws = await open(gateway)
  ws.on('ping', () => (pings += 1))
  await eventually(() => pings > 2)
  t.equal(ws.readyState, WebSocket.OPEN)
  ws.terminate()
  const { socket } = await openRaw(gateway)
  await once(socket, 'close')
  t.match(
    gateway.logs.find(({ msg }) => msg === 'silent WebSocket closed'),
    { side: 'browser' }
  )
  await eventually(() => backend.webSockets.clients.size === 0)
})

t.test('a lost backend closes the WebSocket of the browser with 4006, and a shutdown with 3001', async (t) => {
  const { backend, gateway } = await startBoth(t)
  const lost = await open(gateway)
  for (const socket of backend.sockets) socket.destroy()
  t.equal((await once(lost, 'close'))[0], 4006)
  const ws = await open(gateway)
  const closing = gateway.gateway.app.close()
  t.strictSame((await once(ws, 'close')).map(String), ['3001', 'shutdown'])
  await closing
})
