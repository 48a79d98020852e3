import type { FastifyReply } from 'fastify'
import fp from 'fastify-plugin'
import { READING_METHODS } from '../access.js'
import { onceClosed } from '../http/response-close.js'

/** Open requests of one connection, so that their memory is bounded. The connection is closed after their responses. */
const MAX_REQUESTS = 100

/**
 * Executes no request behind a response that closes the connection: it would get no response, and its client could not know
 * whether to repeat it. Node starts all pipelined requests at once. Here a request waits for the previous response, unless
 * both are reads (RFC 9112, 9.3.2) and nothing indicates that the connection will be closed.
 */
export const pipelinedRequests = fp(
  async (app) => {
    app.addHook('onRequest', ({ method, raw: { socket } }, reply, done) => {
      const proceed = (): void => {
        // On a closing connection the request is dropped: no response could be sent.
        if (!socket.destroyed && !socket.writableEnded) done()
      }
      const replies = reply.openOn?.replies ?? []
      const earlier = replies.at(-2)
      if (earlier === undefined) proceed()
      else if (replies.length > MAX_REQUESTS) closeAfter(earlier)
      else if (READING_METHODS.has(method) && replies.slice(0, -1).every(isPendingRead)) proceed()
      else onceClosed(earlier.raw, proceed)
    })
  },
  { name: 'pipelined-requests', fastify: '5.x', dependencies: ['request-log'] }
)

/** Whether a read has no response yet, and its response is not known to close the connection. */
const isPendingRead = ({ request, raw }: FastifyReply): boolean =>
  READING_METHODS.has(request.method) && !raw.headersSent && raw.shouldKeepAlive && !raw.hasHeader('connection')

const closeAfter = ({ raw, request: { socket } }: FastifyReply): void => {
  socket.pause()
  if (!raw.headersSent) raw.setHeader('connection', 'close')
  onceClosed(raw, () => socket.destroySoon())
}
