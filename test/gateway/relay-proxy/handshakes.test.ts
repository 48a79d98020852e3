import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import t, { type Test } from 'tap'
import { WebSocket, WebSocketServer } from 'ws'
import { urlOf } from '../../helper/address.js'
import { eventually } from '../../helper/eventually.js'
import { openSocket, sendBytes } from '../../helper/exact-http.js'
import { startGateway, type TestGateway } from '../../helper/gateway.js'

const PATH = '/connection/websocket'
const KEY = 'dGhlIHNhbXBsZSBub25jZQ=='

const handshake = (headers: Readonly<Record<string, string>> = {}, line = `GET ${PATH}`): string => {
  const all = {
    Host: 'app.example.com',
    Connection: 'Upgrade',
    Upgrade: 'websocket',
    'Sec-WebSocket-Version': '13',
    'Sec-WebSocket-Key': KEY,
    ...headers
  }
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
  return `${line} HTTP/1.1\r\n${lines.join('')}\r\n`
}

/** A frame of a client, with a mask of zeros. */
const frame = (opcode: number, payload: Buffer): Buffer =>
  Buffer.concat([Buffer.from([0x80 | opcode, 0x80 | payload.length, 0, 0, 0, 0]), payload])

const textFrame = (text: string): Buffer => frame(1, Buffer.from(text))
const closeFrame = frame(8, Buffer.from([0x03, 0xe8]))

interface Handshake {
  readonly request: IncomingMessage
  readonly socket: Duplex
  accept(): WebSocket
}

/** A relay whose handshakes the test completes: at once if `respond` does so. */
const startFakeRelay = async (t: Test) => {
  const webSockets = new WebSocketServer({
    noServer: true,
    handleProtocols: (offered) => (offered.has('centrifuge-json') ? 'centrifuge-json' : false)
  })
  const handshakes: Handshake[] = []
  const relay = { url: '', handshakes, webSockets, respond: (_handshake: Handshake): void => undefined }
  const server = createServer((_request, response) => response.end())
  server.on('upgrade', (request, socket, head) => {
    socket.on('error', () => undefined)
    const accept = (): WebSocket => {
      let accepted: WebSocket | undefined
      webSockets.handleUpgrade(request, socket, head, (ws) => {
        accepted = ws.on('error', () => undefined)
      })
      if (accepted === undefined) throw new Error('not accepted')
      return accepted
    }
    handshakes.push({ request, socket, accept })
    relay.respond({ request, socket, accept })
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => {
    for (const ws of webSockets.clients) ws.terminate()
    for (const { socket } of handshakes) socket.destroy()
    server.closeAllConnections()
    server.close()
  })
  relay.url = urlOf(server)
  return relay
}

const startBoth = async (t: Test, env: Readonly<Record<string, string>> = {}) => {
  const relay = await startFakeRelay(t)
  const gateway = await startGateway(t, { env: { RELAY_UPSTREAM: relay.url, ...env } })
  const sockets: Socket[] = []
  gateway.gateway.app.server.on('connection', (socket: Socket) => sockets.push(socket))
  return { relay, gateway, sockets }
}

const connectionsOf = async ({ send }: TestGateway): Promise<number> =>
  Number(/^gateway_relay_connections (\d+)$/m.exec((await send('/metrics')).body)?.[1])

const statusOf = (response: string): number => Number(/^HTTP\/1\.1 (\d{3})/.exec(response)?.[1])

/** Fails if anything warns about a listener leak. */
const watchWarnings = (t: Test): void => {
  const warn = ({ message }: Error): boolean => t.fail(message)
  process.on('warning', warn)
  t.teardown(() => process.off('warning', warn))
}

const FOREIGN: readonly (readonly [origin: string, site: string])[] = [
  ['https://evil.example.com', 'cross-site'],
  ['https://evil.example.com', 'same-site'],
  ['https://app.example.com.evil.example', 'cross-site'],
  ['null', 'cross-site']
]

t.test(
  'in development a WebSocket of another port of this machine is passed on, and one of a foreign page is not',
  async (t) => {
    const { relay, gateway } = await startBoth(t, { NODE_ENV: 'development' })
    relay.respond = ({ accept }) => accept().close(1000)
    for (const [Origin] of FOREIGN) t.equal(statusOf(await sendBytes(gateway.url, handshake({ Origin }))), 403)
    t.equal(relay.handshakes.length, 0)
    t.equal(statusOf(await sendBytes(gateway.url, handshake({ Origin: 'http://localhost:5173' }))), 101)
  }
)

t.test('a WebSocket of a foreign page is 403 ORIGIN_REFUSED before the relay is asked', async (t) => {
  const { relay, gateway } = await startBoth(t, {
    PUBLIC_URL: 'https://public.example.com',
    ALLOWED_ORIGINS: 'https://partner.example.com'
  })
  relay.respond = ({ accept }) => accept().close(1000)
  for (const [Origin, site] of FOREIGN) {
    const response = await sendBytes(gateway.url, handshake({ Origin, 'Sec-Fetch-Site': site }))
    t.equal(statusOf(response), 403, Origin)
    t.match(response, 'x-gateway-error: ORIGIN_REFUSED')
    t.match(response, 'x-frame-options: DENY')
  }
  t.equal(relay.handshakes.length, 0)
  for (const Origin of ['https://app.example.com', 'https://public.example.com', 'https://partner.example.com']) {
    const socket = await openSocket(gateway.url)
    socket.write(handshake({ Origin }))
    t.equal(statusOf(String((await once(socket, 'data'))[0])), 101, Origin)
    socket.destroy()
  }
  t.equal(relay.handshakes.length, 3)
})

t.test('the response with which the relay rejects a WebSocket is passed on', async (t) => {
  const { relay, gateway } = await startBoth(t)
  relay.respond = ({ socket }) =>
    socket.end('HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\nSet-Cookie: a=b\r\nRetry-After: 7\r\n\r\nno')
  const response = await sendBytes(gateway.url, handshake())
  t.equal(statusOf(response), 403)
  t.match(response, /\r\n\r\nno$/)
  t.match(response, 'retry-after: 7')
  t.match(response, 'x-frame-options: DENY')
  t.match(response, 'connection: close')
  t.notMatch(response, /set-cookie/i)
  t.equal(await connectionsOf(gateway), 0)
  t.match(
    gateway.logs.find(({ msg }) => msg === 'WebSocket rejected by the relay'),
    { status: 403 }
  )
  t.match(
    gateway.logs.find(({ path }) => path === PATH),
    { status: 403 }
  )
})

const MALFORMED: readonly (readonly [title: string, headers: Readonly<Record<string, string>>])[] = [
  ['no key', { 'Sec-WebSocket-Key': '' }],
  ['a short key', { 'Sec-WebSocket-Key': 'short' }],
  ['an unknown version', { 'Sec-WebSocket-Version': '99' }],
  ['version 8', { 'Sec-WebSocket-Version': '8' }],
  ['a subprotocol with spaces', { 'Sec-WebSocket-Protocol': 'a b' }],
  ['a subprotocol with brackets', { 'Sec-WebSocket-Protocol': '<script>' }],
  ['a no-break space around a subprotocol', { 'Sec-WebSocket-Protocol': 'a,\u00a0b' }],
  ['an empty subprotocol in a list', { 'Sec-WebSocket-Protocol': 'a,,b' }],
  ['a repeated subprotocol', { 'Sec-WebSocket-Protocol': 'a, a' }]
]

t.test('a malformed WebSocket handshake is 400 MALFORMED_REQUEST in the format of the gateway', async (t) => {
  const { relay, gateway } = await startBoth(t)
  for (const [title, headers] of MALFORMED) {
    const response = await sendBytes(gateway.url, handshake(headers))
    t.equal(statusOf(response), 400, title)
    t.match(response, 'x-gateway-error: MALFORMED_REQUEST')
    t.match(response, 'x-frame-options: DENY')
    t.match(response, 'content-type: application/json')
  }
  t.equal(relay.handshakes.length, 0)
  t.equal(await connectionsOf(gateway), 0)
})

t.test(
  'other upgrades below /connection/ are ordinary requests and add no listeners to their connection',
  async (t) => {
    watchWarnings(t)
    const { gateway, sockets } = await startBoth(t)
    const socket = await openSocket(gateway.url)
    let text = ''
    socket.setEncoding('latin1').on('data', (more: string) => {
      text += more
    })
    const statuses = (): string[] => text.match(/HTTP\/1\.1 \d{3}/g) ?? []
    const OTHERS = [
      handshake({ 'Content-Length': '2', 'Content-Type': 'application/json' }, `POST ${PATH}`).concat('{}'),
      handshake({ Upgrade: 'h2c', Connection: 'Upgrade, HTTP2-Settings' }),
      handshake({ Upgrade: 'h2c' }, 'GET /api/health')
    ]
    for (let count = 1; count <= 30; count++) {
      socket.write(OTHERS[count % OTHERS.length] ?? '')
      await eventually(() => statuses().length === count)
    }
    t.same(new Set(statuses()), new Set(['HTTP/1.1 200']))
    t.notMatch(text, 'text/html')
    const [connection] = new Set(sockets)
    for (const event of ['error', 'close', 'end', 'drain']) {
      t.ok((connection?.listenerCount(event) ?? 99) <= 5, `${connection?.listenerCount(event)} listeners of ${event}`)
    }
    socket.destroy()
  }
)

t.test('a WebSocket has the subprotocol that the relay selects', async (t) => {
  const { relay, gateway } = await startBoth(t)
  relay.respond = ({ accept }) => void accept()
  const client = new WebSocket(`${gateway.url.replace('http', 'ws')}${PATH}`, ['unknown', 'centrifuge-json'])
  await once(client, 'open')
  t.equal(client.protocol, 'centrifuge-json')
  t.equal(relay.handshakes[0]?.request.headers['sec-websocket-protocol'], 'unknown,centrifuge-json')
  client.terminate()
})

t.test('messages that a browser sends before the relay has accepted are delivered in order', async (t) => {
  watchWarnings(t)
  const { relay, gateway } = await startBoth(t)
  const messages = Array.from({ length: 200 }, (_, index) => `"${index}"`)
  const socket = await openSocket(gateway.url)
  socket.write(Buffer.concat([Buffer.from(handshake()), ...messages.map(textFrame)]))
  await eventually(() => relay.handshakes.length === 1)
  const received: string[] = []
  relay.handshakes[0]?.accept().on('message', (data) => received.push(String(data)))
  await eventually(() => received.length === messages.length)
  t.same(received, messages)
  socket.destroy()
})

t.test('messages that the relay sends with its handshake reach the browser', async (t) => {
  const { relay, gateway } = await startBoth(t)
  relay.respond = ({ accept }) => {
    const ws = accept()
    ws.send('first')
    ws.close(3005, 'expired')
  }
  const client = new WebSocket(`${gateway.url.replace('http', 'ws')}${PATH}`)
  const received: string[] = []
  client.on('message', (data) => received.push(String(data)))
  const [code, reason] = await once(client, 'close')
  t.same([received, code, String(reason)], [['first'], 3005, 'expired'])
  await eventually(async () => (await connectionsOf(gateway)) === 0)
})

/** Everything that a browser can do before the relay has accepted its WebSocket. */
const DISCONNECTS: readonly (readonly [title: string, disconnect: (socket: Socket) => void])[] = [
  ['sends upgrade, close frame and FIN together', (socket) => socket.end(Buffer.concat([upgrade, closeFrame]))],
  ['sends upgrade and FIN together', (socket) => socket.end(upgrade)],
  [
    'sends upgrade, message and an invalid frame together',
    (socket) => socket.write(Buffer.concat([upgrade, textFrame('a'), Buffer.from([0xff, 0xff, 0xff])]))
  ],
  ['sends the upgrade and resets the connection', (socket) => socket.write(upgrade, () => socket.resetAndDestroy())]
]
const upgrade = Buffer.from(handshake())

const RELAYS: readonly (readonly [title: string, respond: (handshake: Handshake) => void])[] = [
  ['accepts', ({ accept, socket }) => void (socket.destroyed || accept())],
  ['accepts later', ({ accept, socket }) => setImmediate(() => socket.destroyed || accept())],
  ['rejects', ({ socket }) => socket.end('HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n')],
  ['resets', ({ socket }) => socket.destroy()],
  ['accepts and closes', ({ accept, socket }) => void (socket.destroyed || accept().close(3000))]
]

t.test('a browser that disconnects at any time leaves no connection, log line or listener', async (t) => {
  watchWarnings(t)
  const { relay, gateway, sockets } = await startBoth(t, { RELAY_UPSTREAM_IDLE_MS: '1000' })
  const ROUNDS = 10
  for (const [relayTitle, respond] of RELAYS) {
    relay.respond = respond
    for (const [title, disconnect] of DISCONNECTS) {
      const before = relay.handshakes.length
      const clients = await Promise.all(Array.from({ length: ROUNDS }, () => openSocket(gateway.url)))
      for (const client of clients) {
        client.resume()
        disconnect(client)
      }
      await Promise.all(clients.map((client) => client.closed || once(client, 'close')))
      await eventually(async () => (await connectionsOf(gateway)) === 0)
      t.ok(relay.handshakes.length <= before + ROUNDS, `the browser ${title}, the relay ${relayTitle}`)
    }
  }
  await eventually(() => relay.webSockets.clients.size === 0)
  await eventually(() => relay.handshakes.every(({ socket }) => socket.destroyed))
  await eventually(() => sockets.filter(({ destroyed }) => !destroyed).length <= 1)
  t.same(
    [...gateway.gateway.openReplies].filter(({ replies }) => replies.length > 0),
    []
  )
  t.notOk(gateway.logs.some(({ msg }) => msg === 'silent WebSocket closed'))
})

t.test('a browser that resets its connection ends the handshake with the relay', async (t) => {
  const { relay, gateway } = await startBoth(t)
  const arrived = new Promise<Duplex>((resolve) => {
    relay.respond = ({ socket }) => resolve(socket.resume())
  })
  const socket = await openSocket(gateway.url)
  socket.write(upgrade)
  const ended = once(await arrived, 'end')
  t.equal(await connectionsOf(gateway), 1)
  socket.resetAndDestroy()
  await ended
  await eventually(async () => (await connectionsOf(gateway)) === 0)
})

t.test('a WebSocket behind a pipelined request is opened after its response', async (t) => {
  const { relay, gateway } = await startBoth(t)
  relay.respond = ({ accept }) => accept().send('hello')
  let respond = (): void => undefined
  gateway.backend.respond = (_request, response) => {
    respond = () => response.end('{"first":true}')
  }
  const socket = await openSocket(gateway.url)
  let text = ''
  socket.setEncoding('latin1').on('data', (more: string) => {
    text += more
  })
  socket.write(`GET /api/zones HTTP/1.1\r\nHost: a\r\n\r\n${handshake({ Upgrade: 'h2c' }, 'GET /api/health')}`)
  await eventually(() => gateway.backend.requests.length === 1)
  t.equal(text, '')
  respond()
  await eventually(() => text.includes('"status":"ok"'))
  socket.write(`GET /api/zones HTTP/1.1\r\nHost: a\r\n\r\n${handshake()}`)
  await eventually(() => gateway.backend.requests.length === 2)
  t.equal(relay.handshakes.length, 0)
  respond()
  await eventually(() => text.includes('hello'))
  t.same(text.match(/HTTP\/1\.1 \d{3}/g), ['HTTP/1.1 200', 'HTTP/1.1 200', 'HTTP/1.1 200', 'HTTP/1.1 101'])
  socket.destroy()
})
