import type { FastifyReply } from 'fastify'
import { errorBody, errorHeaders, type GatewayErrorCode, toGatewayError } from '../errors.js'

export type SendError = (error: unknown, reply: FastifyReply) => void

/** A stack trace per rejected request would add to the load. */
const NOT_LOGGED: ReadonlySet<GatewayErrorCode> = new Set(['OVERLOADED', 'REVOCATIONS_UNKNOWN'])

/**
 * Sends an error response. Errors of the gateway and the backend are logged; errors of the client and those of
 * `NOT_LOGGED` are only counted.
 */
export const errorSender =
  (count: (code: GatewayErrorCode) => void): SendError =>
  (error, reply) => {
    const gatewayError = toGatewayError(error)
    const { code, statusCode } = gatewayError
    const { request } = reply
    request.errorCode = code
    // A body that ends because the client disconnected is not an error.
    const isDisconnected = reply.raw.destroyed || request.raw.errored !== null
    if (!isDisconnected) count(code)
    if (!isDisconnected && statusCode >= 500 && !NOT_LOGGED.has(code)) {
      request.log.error({ code, err: gatewayError.cause ?? gatewayError }, 'request failed')
    }
    reply.code(statusCode).headers(errorHeaders(gatewayError)).send(errorBody(gatewayError, request.id))
  }
