import type { Socket } from 'node:net'
import type { WebSocket } from 'ws'
import type { ClientSink } from '../core/connection.js'
import type { Disconnect } from '../core/disconnect.js'
import { webSocketText } from '../core/framing.js'
import { PING } from '../core/protocol.js'

const NOTHING = Buffer.alloc(0)
const PROTOCOL_PING = webSocketText(PING)
/** FIN and the opcode of a ping, no payload. */
const FRAME_PING = Buffer.from([0x89, 0])

/**
 * The way out through a WebSocket. Frames come ready-made and go to the TCP socket itself: `ws.send` would make a header
 * for each receiver, which is twice the CPU time of the write. What `ws` writes by itself (pongs, the close) are whole
 * frames too, so the two never mix within one.
 */
export class SocketSink implements ClientSink {
  readonly framing = webSocketText
  readonly transport = 'websocket'
  readonly isEmulated = false
  readonly address: string
  readonly pingsItself: boolean
  readonly wire: Socket
  readonly #ws: WebSocket

  constructor(ws: WebSocket, socket: Socket, address: string, pingsItself: boolean) {
    this.#ws = ws
    this.wire = socket
    this.address = address
    this.pingsItself = pingsItself
  }

  get pingBytes(): Buffer {
    return this.pingsItself ? FRAME_PING : PROTOCOL_PING
  }

  whenDrained(then: () => void): void {
    // The socket's own event comes only after larger backlogs; a write of nothing comes back after any.
    this.wire.write(NOTHING, (error) => {
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
