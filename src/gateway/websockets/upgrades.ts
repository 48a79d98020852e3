import { type IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'
import { returnToHttp, type UpgradeTest } from '../../shared/http-upgrade.js'
import { afterReplies } from '../http/connection-drain.js'
import type { OpenReplies } from '../http/open-replies.js'

/** A connection that Node has taken out of HTTP. */
export interface UpgradedConnection {
  readonly socket: Socket
  /** The bytes that arrived behind the request. */
  readonly head: Buffer
}

/** The upgraded connections of requests that are WebSocket handshakes. */
export type UpgradedConnections = Pick<WeakMap<IncomingMessage, UpgradedConnection>, 'get'>

/**
 * Passes the WebSocket handshakes that the test selects through the router, so that every step of the chain checks them. A rejected
 * handshake gets an ordinary error response. All other requests with `Upgrade` are served as ordinary requests.
 */
export const acceptUpgrades = (
  app: FastifyInstance,
  openReplies: OpenReplies,
  isUpgrade: UpgradeTest
): UpgradedConnections => {
  const { server } = app
  const upgraded = new WeakMap<IncomingMessage, UpgradedConnection>()
  // A connection that returns to HTTP can offer an upgrade again.
  const seen = new WeakSet<Socket>()

  const route = (request: IncomingMessage, socket: Socket, head: Buffer): void => {
    upgraded.set(request, { socket, head })
    const response = new ServerResponse(request)
    response.assignSocket(socket)
    response.setHeader('connection', 'close')
    response.once('finish', () => socket.destroySoon())
    app.routing(request, response)
  }

  server.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
    // Node removes its own listener, and an error without one would end the process.
    if (!seen.has(socket)) socket.on('error', () => socket.destroy())
    seen.add(socket)
    // Responses to earlier requests of the connection are sent first.
    afterReplies(openReplies.on(socket), () => {
      // One of them may have closed the connection.
      if (!socket.writable) return
      if (isUpgrade(request)) route(request, socket, head)
      else returnToHttp(server, request, socket, head)
    })
  })
  return upgraded
}
