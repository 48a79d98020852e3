import type { FastifyInstance } from 'fastify'

/** Whether the process is up: it asks nobody. */
export const healthRoutes = (app: FastifyInstance): void => {
  app.get('/api/health', async (_request, reply) => {
    reply.header('cache-control', 'no-store')
    return { status: 'ok' }
  })
}
