import fp from 'fastify-plugin'
import type { AppClaims } from '../../shared/app-token.js'
import { type Span, traceIdOf } from '../../shared/tracing.js'
import type { GatewayErrorCode } from '../errors.js'
import { clientAddress } from '../http/client-request.js'
import type { AppTokenCookie } from '../session/credentials.js'
// Declares `upstream`.
import type {} from '../upstreams/upstream.js'

declare module 'fastify' {
  interface FastifyRequest {
    /** The canonical path without the query: every rule compares with it, and it is forwarded. */
    path: string
    /** The client's address as far as trusted proxies report it. */
    clientAddress: string
    /** The claims of the request's verified app token. */
    auth: AppClaims | null
    /** The content of the `auth_token` cookie; null until it is first read. */
    appTokenCookie: AppTokenCookie | null
    /** The app token that the session exchange obtained. */
    exchangedToken: string | null
    /** The access token of the identity provider, for a backend that receives it. */
    providerToken: string | null
    /** The code of the error response that the gateway sent. */
    errorCode: GatewayErrorCode | null
    /** Null if the request is not traced. */
    span: Span | null
  }
}

/** Request properties that the steps of the chain share with each other and with the forwarder. */
export const requestContext = fp(
  async (app) => {
    app.decorateRequest('path', '')
    app.decorateRequest('clientAddress', '')
    app.decorateRequest('auth', null)
    app.decorateRequest('appTokenCookie', null)
    app.decorateRequest('exchangedToken', null)
    app.decorateRequest('providerToken', null)
    app.decorateRequest('upstream', null)
    app.decorateRequest('errorCode', null)
    app.decorateRequest('span', null)

    // Before anything else: a request loses its socket, and with it the address, when its response has been sent.
    app.addHook('onRequest', (request, _reply, done) => {
      request.clientAddress = clientAddress(request)
      const traceId = request.span?.traceId ?? traceIdOf(request.headers.traceparent)
      // A child of the server's logger: one of the request's own logger would have a prototype of its own, which V8 cannot
      // optimise (40 µs per request).
      if (traceId !== null) request.log = app.log.child({ requestId: request.id, traceId })
      done()
    })
  },
  { name: 'request-context', fastify: '5.x' }
)
