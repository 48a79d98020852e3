import { connect } from 'node:net'
import { WebSocket } from 'ws'
import { API_KEY, relayToken } from '../../helper/relay-rules.js'

/** A relay may keep a client waiting until one of its timeouts; the soak does not wait for that. */
const LEAVE_MS = 2_000

type Attack = (url: string) => Promise<void>

const lines = (...commands: readonly unknown[]): string => commands.map((command) => JSON.stringify(command)).join('\n')

const login = { id: 1, connect: { token: relayToken({ sub: 'hostile' }) } }

/** Sends these messages on a WebSocket and leaves when the relay closes it or is silent. */
const overWebSocket =
  (...messages: readonly (string | Buffer)[]): Attack =>
  async (url) => {
    const socket = new WebSocket(`${url.replace('http', 'ws')}/connection/websocket`)
    const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
    socket.on('error', () => undefined)
    socket.on('open', () => {
      for (const message of messages) socket.send(message)
    })
    const timer = setTimeout(() => socket.terminate(), LEAVE_MS)
    await closed
    clearTimeout(timer)
  }

/** Sends these bytes on a TCP connection. */
const overTcp =
  (...parts: readonly (string | Buffer)[]): Attack =>
  async (url) => {
    const socket = connect(Number(new URL(url).port), new URL(url).hostname)
    const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
    socket.on('error', () => undefined).resume()
    for (const part of parts) socket.write(part)
    const timer = setTimeout(() => socket.destroy(), LEAVE_MS)
    await closed
    clearTimeout(timer)
  }

const overApi =
  (path: string, body: string, key = API_KEY): Attack =>
  async (url) => {
    try {
      const signal = AbortSignal.timeout(LEAVE_MS)
      const response = await fetch(`${url}${path}`, { method: 'POST', headers: { 'x-api-key': key }, body, signal })
      await response.arrayBuffer()
    } catch {
      // A relay that is away, or that closes the connection in the middle of the body.
    }
  }

const UPGRADE =
  'GET /connection/websocket HTTP/1.1\r\nHost: relay\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n' +
  'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n'

/** Recovers a channel with large publications and leaves it again, as often as one message can hold. */
const recoveries = lines(
  login,
  ...Array.from({ length: 126 }, (_, index) => [
    { id: 2 * index + 2, subscribe: { channel: 'bulk:0', recover: true, offset: 0, epoch: '' } },
    { id: 2 * index + 3, unsubscribe: { channel: 'bulk:0' } }
  ]).flat()
)

/** Malformed and abusive inputs. Each has its own connection and must not affect any other. */
export const ATTACKS: readonly Attack[] = [
  overWebSocket('no JSON'),
  overWebSocket('[]', '{}', '{"id":1}'),
  overWebSocket('['.repeat(60_000)),
  overWebSocket(`{"id":1,"connect":{"token":"${'x'.repeat(70_000)}"}}`),
  overWebSocket(Buffer.from([0, 255, 1, 254])),
  overWebSocket(lines({ id: 1, subscribe: { channel: 'seq:0' } })),
  overWebSocket(lines({ id: 1, connect: { token: 'a.b.c' } })),
  overWebSocket(lines({ id: 1, connect: { token: relayToken({ sub: 'late' }, { nowMs: 0 }) } })),
  overWebSocket(lines(login, { id: 2, connect: {} })),
  overWebSocket(lines(login, { id: 2, subscribe: { channel: 'seq:0', recover: true, offset: -1, epoch: 'x' } })),
  overWebSocket(lines(login, { id: 2, subscribe: { channel: 'seq:0', recover: true, offset: 2 ** 53, epoch: 'x' } })),
  overWebSocket(lines(login, { id: 2, publish: { channel: 'seq:0', data: 1 } }, { send: { data: 1 } })),
  overWebSocket(lines(login, ...Array.from({ length: 600 }, (_, index) => ({ id: index + 2, rpc: { method: 'x' } })))),
  overWebSocket(recoveries),
  overTcp('GET /connection/websocket HTTP/1.1\r\nHost: relay\r\nConnection: Upgr'),
  overTcp(`GET / HTTP/1.1\r\nHost: relay\r\nX-Large: ${'x'.repeat(100_000)}\r\n\r\n`),
  overTcp(`GET /metrics HTTP/1.1\r\nHost: relay\r\n${'X-Line: 1\r\n'.repeat(1_500)}\r\n`),
  overTcp('\u0016\u0003\u0001 no HTTP at all\r\n\r\n'),
  // Unmasked, with reserved bits, and a length that never comes.
  overTcp(UPGRADE, Buffer.from([0xf1, 0x05, 1, 2, 3, 4, 5])),
  overTcp(UPGRADE, Buffer.from([0x81, 0xff, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff])),
  overTcp('POST /connection/http_stream HTTP/1.1\r\nHost: relay\r\nContent-Length: 100\r\n\r\n{'),
  overTcp(`POST /api HTTP/1.1\r\nHost: relay\r\nX-API-Key: ${API_KEY}\r\nContent-Length: 1000\r\n\r\n{"method":`),
  overApi('/api/publish', '{', API_KEY),
  overApi('/api/publish', '{"channel":"seq:0","data":1}', 'wrong'),
  overApi('/api/publish', `{"channel":"unknown:1","data":${'['.repeat(100_000)}${']'.repeat(100_000)}}`),
  overApi('/api/publish', `{"channel":"${'x'.repeat(1_000)}","data":1}`),
  overApi('/api', `${'{"method":"history","params":{"channel":"bulk:0","limit":-1}}\n'.repeat(2_000)}`),
  overApi('/api', '{"method":"info"}\n'.repeat(10_001)),
  overApi('/api/channels', `{"pattern":"${'*'.repeat(500_000)}"}`),
  overApi('/api/publish', 'x'.repeat(2 * 1024 * 1024)),
  overApi('/api/nothing', '{}'),
  overApi('/emulation', '{"session":"x","node":"y","data":"{}"}')
]
