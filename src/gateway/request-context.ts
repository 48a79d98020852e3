import type { FastifyInstance, FastifyRequest } from 'fastify'
import { normalAddress } from '../shared/address.js'
import type { AppClaims } from '../shared/app-token.js'

declare module 'fastify' {
  interface FastifyRequest {
    /** The path with exactly one reading, without the query: what every rule compares with and what is forwarded. */
    path: string
    /** Who is asking, as far as trusted proxies tell. */
    clientAddress: string
    /** The claims of a verified app token, where the request carries one. */
    auth: AppClaims | null
    /** The app token that the session exchange put in place of a missing one. */
    exchangedToken: string | null
  }
}

/** What hooks leave on the request for each other and for the forwarder. */
export const decorateRequestContext = (app: FastifyInstance): void => {
  app.decorateRequest('path', '')
  app.decorateRequest('clientAddress', '')
  app.decorateRequest('auth', null)
  app.decorateRequest('exchangedToken', null)

  // At once, because a request whose answer is out has lost its socket.
  app.addHook('onRequest', (request, _reply, done) => {
    request.clientAddress = clientAddress(request)
    done()
  })
}

/** What no proxy could have meant falls back to the socket's own peer. */
const clientAddress = (request: FastifyRequest): string =>
  normalAddress(request.ip ?? '') ?? normalAddress(request.socket.remoteAddress ?? '') ?? 'unknown'
