import fp from 'fastify-plugin'
import { onceClosed } from '../http/response-close.js'

/** Requests of one connection that may wait, so that their memory is bounded. The connection is closed after them. */
const MAX_REQUESTS = 100

/**
 * Serves the requests of a connection one after the other. Node would start all of them at once, and a response that closes
 * the connection would leave the later ones executed without a response, so that their client cannot know whether to repeat
 * them.
 */
export const pipelinedRequests = fp(
  async (app) => {
    app.addHook('onRequest', ({ raw: { socket } }, reply, done) => {
      const proceed = (): void => {
        // On a closing connection the request is dropped: no response could be sent.
        if (!socket.destroyed && !socket.writableEnded) done()
      }
      const replies = reply.openOn?.replies ?? []
      const earlier = replies.at(-2)
      if (earlier === undefined) proceed()
      else if (replies.length <= MAX_REQUESTS) onceClosed(earlier.raw, proceed)
      else {
        socket.pause()
        if (!earlier.raw.headersSent) earlier.raw.setHeader('connection', 'close')
      }
    })
  },
  { name: 'pipelined-requests', fastify: '5.x', dependencies: ['request-log'] }
)
