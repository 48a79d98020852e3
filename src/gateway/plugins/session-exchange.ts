import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { removeConditions } from '../http/caching.js'
import type { SessionExchanger } from '../oidc/session-exchange.js'
import { appTokenCookie, usesSession } from '../session/credentials.js'
import { isWebSocketRequest } from '../upstreams/upstream.js'

export interface SessionExchangeOptions {
  /** Null if no identity provider is configured. */
  readonly exchange: Pick<SessionExchanger, 'exchange'> | null
  readonly oidc: { addRenewalHook(app: FastifyInstance): void } | null
}

/** After authentication: the request that triggers the exchange continues with the new token. */
export const sessionExchange = fp<SessionExchangeOptions>(
  async (app, { exchange, oidc }) => {
    if (exchange !== null) {
      app.addHook('onRequest', async (request, reply) => {
        if (!usesSession(request) || appTokenCookie(request).kind !== 'absent') return
        // A WebSocket has no response that could set the cookies.
        if (isWebSocketRequest(request)) return
        request.exchangedToken = await exchange.exchange(request, reply)
      })
    }
    oidc?.addRenewalHook(app)
    // After all hooks that write cookies.
    app.addHook('onRequest', (request, reply, done) => {
      if (reply.hasHeader('set-cookie')) removeConditions(request.raw.headers)
      done()
    })
  },
  { name: 'session-exchange', fastify: '5.x', dependencies: ['api-auth'] }
)
