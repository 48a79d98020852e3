import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { sessionCookie } from '../session/app-session.js'

/** Turns an identity-provider session into an app session at the backend. */
export interface SessionExchange {
  /**
   * Called for a request without an app token. Resolves to a new app token, whose cookies it has set on the reply, or to
   * null where there is no provider session or the backend knows no such account. It never refuses the request.
   */
  exchange(request: FastifyRequest, reply: FastifyReply): Promise<string | null>
}

/** Fifth, where an identity provider is configured: this very request already goes on with the new token. */
export const sessionExchange = (app: FastifyInstance, provider: SessionExchange | null): void => {
  if (provider === null) return

  app.addHook('onRequest', async (request, reply) => {
    if (sessionCookie(request).kind !== 'absent') return
    request.exchangedToken = await provider.exchange(request, reply)
  })
}
