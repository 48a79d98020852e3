import { isUtf8 } from 'node:buffer'
import { type IncomingMessage, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { type RawData, type ServerOptions, type WebSocket, WebSocketServer } from 'ws'
import type { Client } from '../core/client.js'
import { DISCONNECT_INAPPROPRIATE_PROTOCOL, type Disconnect } from '../core/codes.js'
import { PING } from '../core/protocol.js'
import type { Relay } from '../core/relay.js'
import type { ClientTransport } from '../core/transport.js'
import { type Admitted, asksForProtobuf, type ClientAdmission } from './admission.js'
import { webSocketFraming } from './framing.js'
import { type FailureDependencies, reportFailure } from './respond.js'
import type { Upgrade } from './upgrade.js'

const NOTHING = Buffer.alloc(0)
const PROTOCOL_PING = webSocketFraming.frame(PING)
/** FIN and the opcode of a ping, no payload. */
const FRAME_PING = Buffer.from([0x89, 0])

/**
 * The way out through a WebSocket. Frames come ready-made and go to the TCP socket itself: `ws.send` would make a header
 * for each receiver, which is twice the CPU time of the write. What `ws` writes by itself (pongs, the close) are whole
 * frames too, so the two never mix within one.
 */
export class WebSocketTransport implements ClientTransport {
  readonly framing = webSocketFraming
  readonly name = 'websocket'
  readonly isEmulated = false
  readonly address: string
  readonly hasOwnPings: boolean
  readonly stream: Socket
  readonly #ws: WebSocket

  constructor(ws: WebSocket, socket: Socket, address: string, hasOwnPings: boolean) {
    this.#ws = ws
    this.stream = socket
    this.address = address
    this.hasOwnPings = hasOwnPings
  }

  get pingBytes(): Buffer {
    return this.hasOwnPings ? FRAME_PING : PROTOCOL_PING
  }

  onceDrained(then: () => void): void {
    // The socket's own event comes only after larger backlogs; a write of nothing comes back after any.
    this.stream.write(NOTHING, (error) => {
      if (!error) then()
    })
  }

  pause(): void {
    this.#ws.pause()
  }

  resume(): void {
    this.#ws.resume()
  }

  close({ code, reason }: Disconnect): void {
    // The client's own close frame is behind what has not been read.
    this.#ws.resume()
    this.#ws.close(code, reason)
  }
}

/** How long a client may take to answer a close. */
const CLOSE_TIMEOUT_MS = 5000

/** Lets WebSocket clients in, and hands over what they say. */
export const webSocketUpgrade = (relay: Relay, admission: ClientAdmission, failures: FailureDependencies): Upgrade => {
  // The types do not know the last one yet.
  const options: ServerOptions & { closeTimeout: number } = {
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    autoPong: false,
    // The official client asks for none, and there is nothing to choose between.
    handleProtocols: (offered) => (offered.has('centrifuge-json') ? 'centrifuge-json' : false),
    maxPayload: relay.clientOptions.messageSizeLimit,
    closeTimeout: CLOSE_TIMEOUT_MS
  }
  const server = new WebSocketServer(options)

  const open = (
    request: IncomingMessage,
    socket: Socket,
    head: Buffer,
    { address, release: leave }: Admitted
  ): void => {
    socket.once('close', leave)
    // The operator may have changed it.
    server.options.maxPayload = relay.clientOptions.messageSizeLimit
    const { url = '', headers } = request
    // The Python SDK up to 0.6.0 sends this header with an empty value; `ws` answers that with 400.
    if (headers['sec-websocket-protocol']?.trim() === '') delete headers['sec-websocket-protocol']
    const hasOwnPings = url.includes('cf_ws_frame_ping_pong=true')
    server.handleUpgrade(request, socket, head, (ws) =>
      listen(ws, relay.connect(new WebSocketTransport(ws, socket, address, hasOwnPings)))
    )
  }

  const admit = async (request: IncomingMessage, socket: Socket, head: Buffer): Promise<void> => {
    try {
      const entered = asksForProtobuf(request) ? 400 : await admission.admit(request)
      if (typeof entered === 'number') refuse(socket, entered)
      // Gone while it waited.
      else if (socket.destroyed) entered.release()
      else open(request, socket, head, entered)
    } catch (error) {
      reportFailure(failures, error)
      socket.destroy()
    }
  }

  return (request, duplex, head) => {
    const socket = duplex as Socket
    socket.on('error', ignore)
    void admit(request, socket, head)
  }
}

const ignore = (): void => undefined

/** `ws` itself would pile up pongs without end for a client that pings and never reads. */
const MAX_UNSENT_FOR_PONG = 64 * 1024

/** Some clients send JSON in binary frames, in which `ws` does not check the UTF-8. `ws` hands over a `Buffer` by default. */
const mayBeJson = (data: RawData): boolean =>
  Buffer.isBuffer(data) && isUtf8(data) && data.toString().trimStart().startsWith('{')

/** One function for all connections, so that none has to keep its own. */
function pong(this: WebSocket, data: Buffer): void {
  if (this.bufferedAmount < MAX_UNSENT_FOR_PONG) this.pong(data)
}

const listen = (ws: WebSocket, client: Client): void => {
  ws.on('message', (data: RawData, isBinary: boolean) => {
    if (isBinary && !mayBeJson(data)) client.close(DISCONNECT_INAPPROPRIATE_PROTOCOL)
    else client.handleFrame(data.toString())
  })
  if (client.transport.hasOwnPings) {
    ws.on('pong', () => client.contain(() => void client.pong()))
  }
  ws.on('ping', pong)
  // What is no WebSocket at all is closed by ws, with a code of its own.
  ws.on('error', ignore)
  ws.on('close', () => client.connectionLost())
}

/** A response without a body, for a socket that has no `ServerResponse`. */
export const emptyResponse = (status: number): string =>
  `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`

const refuse = (socket: Socket, status: number): void => {
  socket.end(emptyResponse(status), () => socket.destroy())
}

/** For a handshake that breaks a limit of HTTP. */
export const rejectUpgrade = (socket: Duplex, status: number): void => {
  socket.on('error', ignore)
  refuse(socket as Socket, status)
}
