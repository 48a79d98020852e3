import type { FastifyReply } from 'fastify'
import type { Logger } from 'pino'
import { type Refusal, type RefusalCode, refusalBody, refusalOf } from './errors.js'

export type Refuse = (error: unknown, reply: FastifyReply) => void

/**
 * The only place where a refusal becomes an answer, but for those to requests that no hook ever sees: these are in
 * `http-edge.ts`. Faults of ours and of the backend are logged, faults of the caller only counted; and so is what is too
 * much, because a line with a stack for each would make it more.
 */
export const refuser =
  (count: (code: RefusalCode) => void, log: Pick<Logger, 'error'>): Refuse =>
  (error, reply) => {
    const refusal = refusalOf(error)
    const requestId = reply.request.id
    reply.request.refusalCode = refusal.code
    // A body that ends because its sender left is nobody's fault, and nobody is there to be told.
    const gone = reply.raw.destroyed || reply.request.raw.errored !== null
    if (!gone) count(refusal.code)
    if (!gone && refusal.statusCode >= 500 && refusal.code !== 'OVERLOADED') {
      log.error({ requestId, code: refusal.code, err: refusal.cause ?? refusal }, 'refused')
    }
    reply.code(refusal.statusCode).headers(refusalHeaders(refusal)).send(refusalBody(refusal, requestId))
  }

/** What every refusal carries besides its body. */
export const refusalHeaders = (refusal: Refusal): Readonly<Record<string, string>> => ({
  ...refusal.headers,
  // Lets an operator tell our refusals from the backend's errors.
  'x-gateway-error': refusal.code,
  'cache-control': 'no-store'
})
