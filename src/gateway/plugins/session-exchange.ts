import type { FastifyInstance } from 'fastify'
import type { SessionExchange } from '../oidc/exchange.js'
import { sessionCookie } from '../session/credentials.js'

/** Fifth, where an identity provider is configured: this very request already goes on with the new token. */
export const sessionExchange = (app: FastifyInstance, provider: SessionExchange | null): void => {
  if (provider === null) return

  app.addHook('onRequest', async (request, reply) => {
    if (sessionCookie(request).kind !== 'absent') return
    request.exchangedToken = await provider.exchange(request, reply)
  })
}
