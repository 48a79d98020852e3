import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { respond } from './respond.js'

/**
 * Ends the HTTP connections of a server that is closing. A server that closes ends only connections that wait for their
 * next request. It would wait for connections without any request, for requests that never become complete, and for
 * connections that wait for their next request later.
 */
export class ConnectionDrain {
  /** The last request of each connection, which is answered last. */
  readonly #connections = new Map<Socket, readonly [IncomingMessage, ServerResponse] | null>()
  readonly #forget: (this: Socket) => void
  #isDraining = false

  constructor(server: Server) {
    const connections = this.#connections
    // One function for all connections, so that none has to keep its own.
    this.#forget = function forget(this: Socket): void {
      connections.delete(this)
    }
    server.on('connection', (socket: Socket) => {
      connections.set(socket, null)
      socket.once('close', this.#forget)
    })
    server.on('request', (request: IncomingMessage, response: ServerResponse) => {
      connections.set(request.socket, [request, response])
      if (this.#isDraining) endAfter(response, request.socket)
    })
  }

  /** The connection has become a WebSocket, which is closed in its own way. */
  release(socket: Socket): void {
    socket.off('close', this.#forget)
    this.#connections.delete(socket)
  }

  /** Requests that have arrived are answered; incomplete ones are answered with 503. */
  drain(): void {
    this.#isDraining = true
    for (const [socket, exchange] of this.#connections) {
      if (exchange === null || exchange[1].closed) socket.destroySoon()
      else endAnswering(socket, ...exchange)
    }
  }
}

const endAnswering = (socket: Socket, request: IncomingMessage, response: ServerResponse): void => {
  endAfter(response, socket)
  if (request.complete) return
  if (response.headersSent) socket.destroySoon()
  else respond(response, 503, '', ['Connection', 'close'])
}

const endAfter = (response: ServerResponse, socket: Socket): void => {
  response.once('close', () => socket.destroySoon())
}
