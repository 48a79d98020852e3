import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { respond } from './respond.js'

/**
 * Closes the HTTP connections of a server that shuts down. `server.close()` closes only connections that are idle at that
 * time; it would wait for connections without any request, for incomplete requests, and for connections that become idle
 * later.
 */
export class HttpDrain {
  /** The last request of each connection, or null before the first. */
  readonly #connections = new Map<Socket, readonly [IncomingMessage, ServerResponse] | null>()
  readonly #remove: (this: Socket) => void
  #isDraining = false
  #isAnnounced = false

  constructor(server: Server) {
    const connections = this.#connections
    // One listener function for all connections saves memory, and so does `on`: `once` adds an object, and the event occurs once.
    this.#remove = function remove(this: Socket): void {
      connections.delete(this)
    }
    server.on('connection', (socket: Socket) => {
      connections.set(socket, null)
      socket.on('close', this.#remove)
    })
    server.on('request', (request: IncomingMessage, response: ServerResponse) => {
      connections.set(request.socket, [request, response])
      if (this.#isDraining) closeAfter(response, request.socket)
    })
  }

  /** Stops tracking a connection that became a WebSocket. */
  release(socket: Socket): void {
    socket.off('close', this.#remove)
    this.#connections.delete(socket)
  }

  /** Each connection ends with its next response, which says so: a proxy sends no further request on it. */
  announce(): void {
    this.#isAnnounced = true
  }

  /** Must be called before the response is sent. */
  beforeResponse(response: ServerResponse): void {
    if (this.#isAnnounced) response.setHeader('Connection', 'close')
  }

  /** Complete requests receive their response; incomplete requests receive 503. */
  drain(): void {
    this.#isDraining = true
    for (const [socket, last] of this.#connections) {
      if (last === null || last[1].closed) socket.destroySoon()
      else closeAfterLast(socket, ...last)
    }
  }
}

const closeAfterLast = (socket: Socket, request: IncomingMessage, response: ServerResponse): void => {
  closeAfter(response, socket)
  if (request.complete) return
  if (response.headersSent) socket.destroySoon()
  else respond(response, 503, '', ['Connection', 'close'])
}

const closeAfter = (response: ServerResponse, socket: Socket): void => {
  response.once('close', () => socket.destroySoon())
}
