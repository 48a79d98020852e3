import type { FastifyInstance } from 'fastify'
import type { HeaderTable } from '../security-header-table.js'

/** First: whatever happens to the request later, its answer carries these. */
export const securityHeaders = (app: FastifyInstance, table: HeaderTable): void => {
  app.addHook('onRequest', (request, reply, done) => {
    reply.headers(table)
    reply.header('x-request-id', request.id)
    done()
  })
}
