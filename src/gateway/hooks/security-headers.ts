import type { FastifyInstance } from 'fastify'
import type { HeaderTable } from '../security-header-table.js'

/**
 * First: whatever happens to the request later, its answer carries these. They are added when an answer leaves; to those of
 * the backend the forwarder adds them itself, because it writes these past the framework.
 */
export const securityHeaders = (app: FastifyInstance, table: HeaderTable): void => {
  app.addHook('onSend', (request, reply, payload, done) => {
    reply.headers(table)
    reply.header('x-request-id', request.id)
    done(null, payload)
  })
}
