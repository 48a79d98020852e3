import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { normalizeIP } from '@fastify/rate-limit'
import type { FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import type { AppClaims } from '../shared/app-token.js'
import { normalAddress } from '../shared/ip-address.js'
import { type Span, traceIdOf } from '../shared/tracing.js'
import type { GatewayErrorCode } from './errors.js'
import type { SessionCookie } from './session/credentials.js'

declare module 'fastify' {
  interface FastifyRequest {
    /** The canonical path without the query: every rule compares with it, and it is forwarded. */
    path: string
    /** The client's address as far as trusted proxies report it. */
    clientAddress: string
    /** The claims of the request's verified app token. */
    auth: AppClaims | null
    /** The content of the `auth_token` cookie; null until it is first read. */
    sessionCookie: SessionCookie | null
    /** The app token that the session exchange obtained. */
    exchangedToken: string | null
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
    app.decorateRequest('sessionCookie', null)
    app.decorateRequest('exchangedToken', null)
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

/** The client's address as far as trusted proxies report it. An invalid value falls back to the socket's peer. */
export const clientAddress = (request: FastifyRequest): string =>
  normalAddress(request.ip ?? '') ?? normalAddress(request.socket.remoteAddress ?? '') ?? 'unknown'

// Households and offices get a /64 network, so its addresses share the limits of one.
const IPV6_PREFIX_LENGTH = 64

/** The key under which limits count an address. */
export const addressGroup = (address: string): string => normalizeIP(address, IPV6_PREFIX_LENGTH)

// A client may choose the id that appears in logs, within these limits.
const VALID_ID = /^[A-Za-z0-9._-]{1,64}$/

/** The request id given by the proxy or client if it is valid, else a new one. */
export const requestId = ({ headers }: Pick<IncomingMessage, 'headers'>): string => {
  const given = headers['x-request-id']
  return typeof given === 'string' && VALID_ID.test(given) ? given : randomUUID()
}

/** Whether the response was sent or can no longer be sent. */
export const isClosed = (response: ServerResponse): boolean =>
  response.closed || (isPipelined(response) && response.req.socket.destroyed)

/** Calls back exactly once: when the response was sent or can no longer be sent, at once if that is the case already. */
export const onceClosed = (response: ServerResponse, callback: () => void): void => {
  if (isClosed(response)) {
    callback()
    return
  }
  if (!isPipelined(response)) {
    response.once('close', callback)
    return
  }
  // Node drops a pipelined response silently when its connection closes. One listener for each of them is not a leak.
  const { socket } = response.req
  const close = (): void => {
    response.off('close', close)
    socket.off('close', close)
    callback()
  }
  response.on('close', close)
  socket.setMaxListeners(0)
  socket.on('close', close)
}

/** Whether it waits for the responses to earlier requests of its connection. */
const isPipelined = (response: ServerResponse): boolean => response.socket === null

// The scheme and host that the browser used, if a trusted proxy forwards them. A proxy may forward values that the client
// sent, so an invalid value counts as absent.

/** A name or address, and a port; empty without a Host header. Anything else may be an attack on a URL that is built from it. */
export const HOST = /^(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])?(?::\d{0,5})?$/

/** `X-Forwarded-Host` of a trusted proxy, else the Host header. */
export const browserHost = (request: FastifyRequest): string => {
  const { host, headers } = request
  const own = headers.host ?? ''
  return host === own || isForwardableHost(host) ? host : own
}

const isForwardableHost = (host: string): boolean =>
  host !== '' && !host.startsWith(':') && HOST.test(host) && URL.canParse(`http://${host}`)

/** `X-Forwarded-Proto` of a trusted proxy, else `http`: the gateway itself does not serve TLS. */
export const browserProtocol = ({ protocol }: FastifyRequest): 'http' | 'https' =>
  // Undefined, contrary to its type, for a request that has lost its socket.
  (protocol as string | undefined)?.toLowerCase() === 'https' ? 'https' : 'http'
