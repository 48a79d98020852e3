import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { normalAddress } from '../shared/address.js'
import type { AppClaims } from '../shared/app-token.js'
import { hasTooManyHeaderLines } from '../shared/header-lines.js'
import { GatewayError, type GatewayErrorCode } from './errors.js'
import type { SessionCookie } from './session/credentials.js'

declare module 'fastify' {
  interface FastifyRequest {
    /** The path with exactly one reading, without the query: what every rule compares with and what is forwarded. */
    path: string
    /** Who is asking, as far as trusted proxies tell. */
    clientAddress: string
    /** The claims of a verified app token, where the request carries one. */
    auth: AppClaims | null
    /** What the `auth_token` cookie holds, once somebody has looked. */
    sessionCookie: SessionCookie | null
    /** The app token that the session exchange put in place of a missing one. */
    exchangedToken: string | null
    /** The code of the refusal that the gateway answered with. */
    errorCode: GatewayErrorCode | null
  }
}

/** Told of every request before anything can refuse it. */
export type AnswerWatch = (request: FastifyRequest, reply: FastifyReply) => void

/** What hooks leave on the request for each other and for the forwarder. */
export const decorateRequestContext = (app: FastifyInstance, watch: AnswerWatch): void => {
  app.decorateRequest('path', '')
  app.decorateRequest('clientAddress', '')
  app.decorateRequest('auth', null)
  app.decorateRequest('sessionCookie', null)
  app.decorateRequest('exchangedToken', null)
  app.decorateRequest('errorCode', null)

  // At once, because a request whose answer is out has lost its socket.
  app.addHook('onRequest', (request, reply, done) => {
    beginRequest(request, reply, watch)
    done(tooManyHeaderLines(request))
  })
}

/** Refused before any rule looks at a header. */
export const tooManyHeaderLines = ({ raw }: FastifyRequest): GatewayError | undefined =>
  hasTooManyHeaderLines(raw) ? new GatewayError('HEADERS_TOO_LARGE', { headers: { connection: 'close' } }) : undefined

/** For those too that the router refuses before any hook runs. */
export const beginRequest = (request: FastifyRequest, reply: FastifyReply, watch: AnswerWatch): void => {
  request.clientAddress = clientAddress(request)
  watch(request, reply)
}

/** What no proxy could have meant falls back to the socket's own peer. */
const clientAddress = (request: FastifyRequest): string =>
  normalAddress(request.ip ?? '') ?? normalAddress(request.socket.remoteAddress ?? '') ?? 'unknown'

// What somebody may choose for our logs, and no more than that.
const SANE_ID = /^[A-Za-z0-9._-]{1,64}$/

/** The id that a proxy or client gave the request, where it is sane; else a new one. */
export const requestId = ({ headers }: Pick<IncomingMessage, 'headers'>): string => {
  const given = headers['x-request-id']
  return typeof given === 'string' && SANE_ID.test(given) ? given : randomUUID()
}

// A response says itself that it is over, except one that still waits behind another on its connection when the connection
// breaks: Node.js drops it without a word, and whoever holds something until its end would hold it for ever.

/** Who wants to know: one listener for all of them, because each listener costs a microsecond. */
const callbacks = Symbol('callbacks')

interface WatchedResponse extends ServerResponse {
  [callbacks]?: (() => void)[]
}

/** Whether the answer is out, or can no longer go out. */
export const isClosed = (response: ServerResponse): boolean =>
  response.closed || (isWaiting(response) && response.req.socket.destroyed)

/** Calls back exactly once: when the answer is out or can no longer go out, and at once where it is so already. */
export const onceClosed = (response: WatchedResponse, callback: () => void): void => {
  if (isClosed(response)) {
    callback()
    return
  }
  const waiting = response[callbacks]
  if (waiting !== undefined) {
    waiting.push(callback)
    return
  }
  response[callbacks] = [callback]
  if (isWaiting(response)) watchConnectionToo(response)
  response.on('close', callBack)
}

/** For its turn on the connection: the client sent several requests without waiting for answers. */
const isWaiting = (response: ServerResponse): boolean => response.socket === null

function callBack(this: WatchedResponse): void {
  const waiting = this[callbacks] ?? []
  this[callbacks] = []
  for (const callback of waiting) callback()
}

const watchConnectionToo = (response: WatchedResponse): void => {
  const { socket: connection } = response.req
  const closed = (): void => callBack.call(response)
  // As many as wait: that is no leak, and needs no warning.
  connection.setMaxListeners(0)
  connection.on('close', closed)
  response.on('close', () => connection.off('close', closed))
}

// The scheme and host that the browser used, where a trusted proxy forwards them. A proxy may pass on what a client
// wrote into these headers, so an invalid value counts as absent.

/** A name or address, and a port; empty without a Host header. Anything else is meant for a program that builds a URL from it. */
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
  // Undefined, whatever its type says, for a request that has lost its socket.
  (protocol as string | undefined)?.toLowerCase() === 'https' ? 'https' : 'http'
