import { isUtf8 } from 'node:buffer'
import { type IncomingHttpHeaders, type IncomingMessage, STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import { isDeepStrictEqual } from 'node:util'
import { type RawData, type ServerOptions, WebSocket, WebSocketServer } from 'ws'
import type { UnidirectionalWebSocketOptions } from '../config/transport-options.js'
import type { Codec } from '../core/codec/codec.js'
import type { ClientTransport, Framing, TransportName } from '../core/codec/transport.js'
import { DISCONNECT_INAPPROPRIATE_PROTOCOL, type Disconnect } from '../core/codes.js'
import { parseConnectRequest } from '../core/commands/unidirectional-connect.js'
import type { ClientHeaders } from '../core/event-proxies.js'
import { after, type MaybePromise } from '../core/maybe-promise.js'
import type { ClientOptions } from '../core/options.js'
import type { Relay } from '../core/relay.js'
import type { Client } from '../core/session/client.js'
import { type Admitted, bearerToken, type ClientAdmission, connectInQuery, requestsProtobuf } from './admission.js'
import { forwardedRequestHeaders } from './forwarded-headers.js'
import { compressedFramings, plainFramings, type WebSocketFramings } from './framing.js'

const EMPTY = Buffer.alloc(0)
/** Created once: all connections share them. */
const PROTOCOL_PINGS: ReadonlyMap<Codec, Buffer> = new Map(
  Object.values(plainFramings).map(({ codec, frame }) => [codec, frame(codec.ping)])
)
/** A WebSocket ping frame: FIN and the opcode, no payload. */
const PING_FRAME = Buffer.from([0x89, 0])

/** The facts that a transport keeps of the request that opened it. */
type RequestFacts = Pick<ClientTransport, 'address' | 'requestHeaders'>

/**
 * Sends to a WebSocket client. Encoded frames are written to the upgraded socket directly, one buffer for all receivers:
 * `ws.send` builds a header per receiver, which costs about 20 % more CPU time per delivery. `ws` writes only complete frames
 * (pongs, close) to the same socket, and the parts of a frame are written without a pause between them, so frames are never
 * interleaved; two tests in hostile.test.ts verify that.
 */
class WebSocketTransport implements ClientTransport {
  readonly framing: Framing
  readonly isEmulated = false
  readonly address: string
  readonly requestHeaders: ClientHeaders | null
  readonly hasOwnPings: boolean
  readonly stream: Duplex
  readonly #ws: WebSocket

  constructor(
    ws: WebSocket,
    framing: Framing,
    socket: Duplex,
    { address, requestHeaders }: RequestFacts,
    hasOwnPings: boolean
  ) {
    this.#ws = ws
    this.framing = framing
    this.stream = socket
    this.address = address
    this.requestHeaders = requestHeaders
    this.hasOwnPings = hasOwnPings
  }

  get name(): TransportName {
    return 'websocket'
  }

  get isUnidirectional(): boolean {
    return false
  }

  get pingBytes(): Buffer {
    return this.hasOwnPings ? PING_FRAME : (PROTOCOL_PINGS.get(this.framing.codec) ?? PING_FRAME)
  }

  onceDrained(callback: () => void): void {
    // 'drain' is only emitted above the high-water mark; the callback of an empty write is called in any case.
    this.stream.write(EMPTY, (error) => {
      if (!error) callback()
    })
  }

  pause(): void {
    this.#ws.pause()
  }

  resume(): void {
    this.#ws.resume()
  }

  close(disconnect: Disconnect): void {
    // The client's close frame arrives after its unread messages.
    this.#ws.resume()
    this.#ws.close(disconnect.code, disconnect.reason)
  }

  drop(): void {
    this.#ws.terminate()
  }
}

class UnidirectionalWebSocketTransport extends WebSocketTransport {
  readonly #hasDisconnectPush: boolean

  constructor(ws: WebSocket, framing: Framing, socket: Duplex, facts: RequestFacts, hasDisconnectPush: boolean) {
    super(ws, framing, socket, facts, false)
    this.#hasDisconnectPush = hasDisconnectPush
  }

  override get name(): TransportName {
    return 'uni_websocket'
  }

  override get isUnidirectional(): boolean {
    return true
  }

  override close(disconnect: Disconnect): void {
    // Some libraries for clients that only receive do not report the code of the close frame.
    if (this.#hasDisconnectPush)
      this.stream.write(this.framing.frame(this.framing.codec.push({ kind: 'disconnect', disconnect })))
    super.close(disconnect)
  }
}

/** No data frame may follow a close frame. `ws` calls `close` also to respond to the close frame of the client. */
class ClosingWebSocket extends WebSocket {
  /** Set as soon as the connection is accepted. */
  client: Client | null = null

  override close(code?: number, reason?: string | Buffer): void {
    this.client?.outbox.close()
    super.close(code, reason)
  }
}

/**
 * Handles a WebSocket handshake. Returns the status of the response, 101 for an accepted one, or null if the client
 * disconnected before.
 */
export type Upgrade = (request: IncomingMessage, socket: Duplex, head: Buffer) => MaybePromise<number | null>

/** Time for a client to complete the close handshake. */
const CLOSE_TIMEOUT_MS = 5000

/** Connects an upgraded WebSocket to the relay. */
type Accept = (
  ws: ClosingWebSocket,
  request: IncomingMessage,
  socket: Duplex,
  address: string,
  compressed: WebSocketFramings | null
) => void

type MessageOptions = Pick<ClientOptions, 'messageSizeLimit' | 'compression'>

/** Handles the handshakes of `/connection/websocket`. */
export const webSocketUpgrade = (relay: Relay, admission: ClientAdmission): Upgrade =>
  upgradeWith(
    admission,
    () => relay.clientOptions,
    (ws, request, socket, address, compressed) => {
      const { url = '' } = request
      const hasOwnPings = url.includes('cf_ws_frame_ping_pong=true')
      const isProtobuf = ws.protocol === PROTOBUF_SUBPROTOCOL || requestsProtobuf(url)
      const framings = framingsOf(ws, compressed)
      const framing = isProtobuf ? framings.binary : framings.text
      const facts = { address, requestHeaders: forwardedRequestHeaders(request, relay) }
      receiveFrames(ws, relay.connect(new WebSocketTransport(ws, framing, socket, facts, hasOwnPings)))
    }
  )

/** Handles the handshakes of `/connection/uni_websocket`. The connect request is in the query, or it is the first message. */
export const unidirectionalWebSocketUpgrade = (
  relay: Relay,
  admission: ClientAdmission,
  options: () => UnidirectionalWebSocketOptions
): Upgrade => {
  const messageOptions = (): MessageOptions => {
    const { maxMessageBytes, compression } = options()
    return { messageSizeLimit: maxMessageBytes, compression }
  }
  const upgrade = upgradeWith(admission, messageOptions, (ws, request, socket, address, compressed) => {
    const framing = framingsOf(ws, compressed).unidirectional
    const { hasDisconnectPush } = options()
    const facts = { address, requestHeaders: forwardedRequestHeaders(request, relay) }
    const transport = new UnidirectionalWebSocketTransport(ws, framing, socket, facts, hasDisconnectPush)
    const client = relay.connectUnidirectional(transport, bearerToken(request))
    receiveFrames(ws, client)
    const connect = connectInQuery(request)
    if (connect !== '') client.handleFrame(connect)
  })
  return (request, socket, head) =>
    parseConnectRequest(connectInQuery(request)) === null ? rejectUpgrade(socket, 400) : upgrade(request, socket, head)
}

/** The framings that the client has negotiated. */
const framingsOf = (ws: WebSocket, compressed: WebSocketFramings | null): WebSocketFramings =>
  ws.extensions.includes(DEFLATE) && compressed !== null ? compressed : plainFramings

/** Admits clients and completes their handshakes. */
const upgradeWith = (admission: ClientAdmission, options: () => MessageOptions, connect: Accept): Upgrade => {
  let server = createServer(options())

  const accept = (request: IncomingMessage, socket: Duplex, head: Buffer, { address, release }: Admitted): number => {
    socket.on('close', release)
    // The option may have changed with a reload. Existing connections keep their limit.
    const current = options()
    if (!isSame(current, server.options)) server = createServer(current)
    const { headers } = request
    // The Python SDK up to 0.6.0 sends this header with an empty value, which `ws` would reject with 400.
    if (headers['sec-websocket-protocol']?.trim() === '') delete headers['sec-websocket-protocol']
    declineLimitedWindows(headers)
    const { compressed } = server
    // `ws` responds to a malformed handshake itself, with this status.
    let status = 400
    server.handleUpgrade(request, socket, head, (ws) => {
      status = 101
      connect(ws, request, socket, address, compressed)
    })
    return status
  }

  return (request, socket, head) => {
    socket.on('error', ignore)
    return after(admission.admit(request), (admitted) => {
      if (typeof admitted === 'number') return rejectUpgrade(socket, admitted)
      if (!socket.destroyed) return accept(request, socket, head, admitted)
      // The client disconnected meanwhile.
      admitted.release()
      return null
    })
  }
}

const isSame = (one: MessageOptions, other: MessageOptions): boolean =>
  one.messageSizeLimit === other.messageSizeLimit &&
  (one.compression === other.compression || isDeepStrictEqual(one.compression, other.compression))

const PROTOBUF_SUBPROTOCOL = 'centrifuge-protobuf'
const SUBPROTOCOLS: ReadonlySet<string> = new Set(['centrifuge-json', PROTOBUF_SUBPROTOCOL])

interface UpgradeServer extends Pick<InstanceType<typeof WebSocketServer<typeof ClosingWebSocket>>, 'handleUpgrade'> {
  readonly options: MessageOptions
  /** Shared by all connections of the server, so that their subscribers share groups. */
  readonly compressed: WebSocketFramings | null
}

const DEFLATE = 'permessage-deflate'

const createServer = ({ messageSizeLimit, compression }: MessageOptions): UpgradeServer => {
  // @types/ws does not have `closeTimeout` yet.
  const options: ServerOptions<typeof ClosingWebSocket> & { closeTimeout: number } = {
    noServer: true,
    WebSocket: ClosingWebSocket,
    clientTracking: false,
    // Without context takeover, no connection keeps a compressor, and a compressed message is the same for all clients.
    perMessageDeflate: compression !== null && { serverNoContextTakeover: true, clientNoContextTakeover: true },
    autoPong: false,
    // In the client's order of preference. The official client requests none for JSON.
    handleProtocols: (offered) => [...offered].find((name) => SUBPROTOCOLS.has(name)) ?? false,
    // `ws` applies it before and after decompression, so one limit covers both.
    maxPayload: compression?.maxDecompressedBytes ?? messageSizeLimit,
    closeTimeout: CLOSE_TIMEOUT_MS
  }
  const server = new WebSocketServer(options)
  return {
    options: { messageSizeLimit, compression },
    compressed: compression === null ? null : compressedFramings(compression),
    handleUpgrade: server.handleUpgrade.bind(server)
  }
}

const ignore = (): void => undefined

const receiveFrames = (ws: ClosingWebSocket, client: Client): void => {
  ws.client = client
  if (client.codec.name === 'protobuf') {
    // By default `ws` passes a `Buffer`.
    ws.on('message', (data: Buffer) => client.handleFrame(data))
  } else {
    ws.on('message', (data: RawData, isBinary: boolean) => {
      // A client whose connect failed ignores every frame.
      if (isBinary && client.state !== 'rejected' && !mayBeJson(data)) client.close(DISCONNECT_INAPPROPRIATE_PROTOCOL)
      else client.handleFrame(data.toString())
    })
  }
  if (client.transport.hasOwnPings) {
    ws.on('pong', () => client.closeOnError(() => void client.deadlines.pong()))
  }
  ws.on('ping', pong)
  // `ws` closes the connection after a protocol error, with its own close code.
  ws.on('error', ignore)
  ws.on('close', () => client.connectionLost())
}

/** Some clients send JSON in binary frames, whose UTF-8 `ws` does not validate. By default `ws` passes a `Buffer`. */
const mayBeJson = (data: RawData): boolean =>
  Buffer.isBuffer(data) && isUtf8(data) && data.toString().trimStart().startsWith('{')

/** Limits the pongs queued for a client that sends pings but does not read. */
const MAX_UNSENT_FOR_PONG = 64 * 1024

/** One listener function for all connections saves memory. */
function pong(this: WebSocket, data: Buffer): void {
  if (this.bufferedAmount < MAX_UNSENT_FOR_PONG) this.pong(data)
}

/** A response without a body, for a socket that has no `ServerResponse`. */
export const emptyResponse = (status: number): string =>
  `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`

/** Responds to a handshake with an error status, which is returned, and closes the connection. */
export const rejectUpgrade = (socket: Duplex, status: number): number => {
  socket.on('error', ignore)
  socket.end(emptyResponse(status), () => socket.destroy())
  return status
}

const WINDOW_LIMIT = 'server_max_window_bits'

/**
 * Removes the offers of compression with a smaller window, which `ws` would accept: compressed messages are shared by all
 * receivers, so their window has one size. A client may offer compression without the limit as its second choice.
 */
const declineLimitedWindows = (headers: IncomingHttpHeaders): void => {
  const { 'sec-websocket-extensions': offers } = headers
  if (offers === undefined || !offers.includes(WINDOW_LIMIT)) return
  const others = offers.split(',').filter((offer) => !offer.includes(WINDOW_LIMIT))
  if (others.length > 0) headers['sec-websocket-extensions'] = others.join(',').trim()
  else delete headers['sec-websocket-extensions']
}
