import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Test } from 'tap'
import { type WebSocket, WebSocketServer } from 'ws'
import { urlOf } from '../../helper/address.js'

export interface WebSocketBackend {
  url: string
  /** The handshakes so far. */
  readonly handshakes: IncomingMessage[]
  readonly sockets: Duplex[]
  readonly webSockets: WebSocketServer
  /** Codes and reasons of closed WebSockets. */
  readonly closed: string[]
  /** Called for each WebSocket; by default it sends every message back. */
  onOpen: (ws: WebSocket) => void
  /** Replaces the response to a handshake. */
  respond: ((socket: Duplex, request: IncomingMessage) => void) | null
}

/** A backend that accepts WebSockets with the official library. */
export const startWebSocketBackend = async (t: Test): Promise<WebSocketBackend> => {
  const webSockets = new WebSocketServer({
    noServer: true,
    perMessageDeflate: { threshold: 0 },
    handleProtocols: (offered) => (offered.has('chat') ? 'chat' : false)
  })
  const server = createServer((_request, response) => response.end('page'))
  const backend: WebSocketBackend = {
    url: '',
    handshakes: [],
    sockets: [],
    webSockets,
    closed: [],
    onOpen: (ws) => ws.on('message', (data, isBinary) => ws.send(data, { binary: isBinary })),
    respond: null
  }
  server.on('upgrade', (request, socket, head) => {
    socket.on('error', () => undefined)
    backend.handshakes.push(request)
    backend.sockets.push(socket)
    if (backend.respond !== null) return backend.respond(socket, request)
    webSockets.handleUpgrade(request, socket, head, (ws) => {
      ws.on('error', () => undefined)
      ws.on('close', (code, reason) => backend.closed.push(`${code} ${reason}`.trim()))
      backend.onOpen(ws)
    })
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => {
    for (const ws of webSockets.clients) ws.terminate()
    for (const socket of backend.sockets) socket.destroy()
    server.closeAllConnections()
    server.close()
  })
  backend.url = urlOf(server)
  return backend
}
