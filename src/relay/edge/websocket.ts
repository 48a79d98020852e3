import { type IncomingMessage, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { type RawData, type ServerOptions, type WebSocket, WebSocketServer } from 'ws'
import type { CommandLine } from '../core/commands.js'
import { INAPPROPRIATE_PROTOCOL } from '../core/disconnect.js'
import { after } from '../core/maybe-promise.js'
import type { Relay } from '../core/relay.js'
import type { Door, Entered } from './door.js'
import { SocketSink } from './socket-sink.js'

/** How long a client may take to answer a close. */
const CLOSE_TIMEOUT_MS = 5000

export type Upgrade = (request: IncomingMessage, socket: Duplex, head: Buffer) => void

/** Lets WebSocket clients in, and hands over what they say. */
export const webSocketUpgrade = (relay: Relay, door: Door): Upgrade => {
  // The types do not know the last one yet.
  const options: ServerOptions & { closeTimeout: number } = {
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    autoPong: false,
    // The official client asks for none, and there is nothing to choose between.
    handleProtocols: (offered) => (offered.has('centrifuge-json') ? 'centrifuge-json' : false),
    maxPayload: relay.context.client.messageSizeLimit,
    closeTimeout: CLOSE_TIMEOUT_MS
  }
  const server = new WebSocketServer(options)

  const open = (request: IncomingMessage, socket: Socket, head: Buffer, { address, leave }: Entered): void => {
    socket.once('close', leave)
    // The operator may have changed it.
    server.options.maxPayload = relay.context.client.messageSizeLimit
    const { url = '' } = request
    const pingsItself = url.includes('cf_ws_frame_ping_pong=true')
    server.handleUpgrade(request, socket, head, (ws) =>
      listen(ws, relay.attach(new SocketSink(ws, socket, address, pingsItself)))
    )
  }

  return (request, duplex, head) => {
    const socket = duplex as Socket
    socket.on('error', ignore)
    void after(wantsProtobuf(request) ? 400 : door.enter(request), (entered) => {
      if (typeof entered === 'number') refuse(socket, entered)
      // Gone while it waited.
      else if (socket.destroyed) entered.leave()
      else open(request, socket, head, entered)
    })
  }
}

const ignore = (): void => undefined

/** `ws` itself would pile up pongs without end for a client that pings and never reads. */
const MAX_UNSENT_FOR_PONG = 64 * 1024

/** One function for all connections, so that none has to keep its own. */
function pong(this: WebSocket, data: Buffer): void {
  if (this.bufferedAmount < MAX_UNSENT_FOR_PONG) this.pong(data)
}

const listen = (ws: WebSocket, client: CommandLine): void => {
  ws.on('message', (data: RawData, isBinary: boolean) => {
    if (isBinary) client.connection.end(INAPPROPRIATE_PROTOCOL)
    else client.receive(data.toString())
  })
  if (client.connection.sink.pingsItself) ws.on('pong', () => client.connection.pong())
  ws.on('ping', pong)
  // What is no WebSocket at all is closed by ws, with a code of its own.
  ws.on('error', ignore)
  ws.on('close', () => client.connection.lost())
}

/** Refused rather than accepted and garbled. */
const wantsProtobuf = ({ url = '', headers }: IncomingMessage): boolean => {
  const protocols = headers['sec-websocket-protocol']
  // Nearly everybody: the official client asks for nothing special.
  if (protocols === undefined && !url.includes('?')) return false
  if (/[?&](?:format|cf_protocol)=protobuf(?:&|$)/.test(url)) return true
  const offered = protocols?.split(',').map((name) => name.trim()) ?? []
  return offered.includes('centrifuge-protobuf') && !offered.includes('centrifuge-json')
}

/** A response without a body, for a socket that has no `ServerResponse`. */
export const emptyAnswer = (status: number): string =>
  `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`

const refuse = (socket: Socket, status: number): void => {
  socket.end(emptyAnswer(status), () => socket.destroy())
}

/** For paths that do not exist. */
export const refuseUpgrade = (socket: Duplex, status: number): void => {
  socket.on('error', ignore)
  refuse(socket as Socket, status)
}
