import type { Socket } from 'node:net'
import type { FastifyReply } from 'fastify'
import fp from 'fastify-plugin'
import type { OpenReplies } from './open-replies.js'
import { onceClosed } from './response-close.js'

export interface ConnectionDrainOptions {
  readonly openReplies: OpenReplies
}

/**
 * For shutdown. `server.close()` closes idle connections, but neither connections that have not sent a complete request,
 * which browsers open ahead of need, nor connections that become idle later. This closes all of them, busy ones after
 * their response.
 */
export const connectionDrain = fp<ConnectionDrainOptions>(
  async (app, { openReplies }) => {
    const connections = new Set<Socket>()
    app.server.on('connection', (socket: Socket) => {
      // A connection that returns to HTTP after an upgrade is reported again.
      if (connections.has(socket)) return
      connections.add(socket)
      socket.once('close', () => connections.delete(socket))
    })
    const closeAfterReplies = (socket: Socket): void => {
      const replies = openReplies.on(socket)
      const last = replies.at(-1)?.raw
      if (last !== undefined && !last.headersSent) last.setHeader('connection', 'close')
      afterReplies(replies, () => {
        if (socket.destroyed) return
        // Another request may have arrived in the meantime.
        if (openReplies.on(socket).length === 0) socket.destroySoon()
        else closeAfterReplies(socket)
      })
    }
    app.addHook('preClose', async () => connections.forEach(closeAfterReplies))
  },
  { name: 'connection-drain', fastify: '5.x' }
)

/** Responses leave in the order of their requests, so the responses to complete requests must be sent first. */
export const afterReplies = (replies: readonly FastifyReply[], then: () => void): void => {
  const last = replies.at(-1)
  if (last === undefined) then()
  else onceClosed(last.raw, then)
}
