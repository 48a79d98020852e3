import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { normalAddress } from '../shared/address.js'
import type { AppClaims } from '../shared/app-token.js'
import { hasTooManyHeaderLines } from '../shared/header-lines.js'
import { Refusal, type RefusalCode } from './errors.js'
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
    refusalCode: RefusalCode | null
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
  app.decorateRequest('refusalCode', null)

  // At once, because a request whose answer is out has lost its socket.
  app.addHook('onRequest', (request, reply, done) => {
    beginRequest(request, reply, watch)
    done(tooManyHeaderLines(request))
  })
}

/** Refused before any rule looks at a header. */
export const tooManyHeaderLines = ({ raw }: FastifyRequest): Refusal | undefined =>
  hasTooManyHeaderLines(raw) ? new Refusal('HEADERS_TOO_LARGE', { headers: { connection: 'close' } }) : undefined

/** For those too that the router refuses before any hook runs. */
export const beginRequest = (request: FastifyRequest, reply: FastifyReply, watch: AnswerWatch): void => {
  request.clientAddress = clientAddress(request)
  watch(request, reply)
}

/** What no proxy could have meant falls back to the socket's own peer. */
const clientAddress = (request: FastifyRequest): string =>
  normalAddress(request.ip ?? '') ?? normalAddress(request.socket.remoteAddress ?? '') ?? 'unknown'
