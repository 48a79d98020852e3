import type { FastifyReply } from 'fastify'
import { errorBody, errorHeaders, type GatewayErrorCode, toGatewayError } from '../errors.js'

export type SendError = (error: unknown, reply: FastifyReply) => void

/**
 * Sends an error response. Errors of the gateway and the backend are logged; errors of the client are only counted, and so
 * is OVERLOADED, because a stack trace per rejected request would add to the load.
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
    if (!isDisconnected && statusCode >= 500 && code !== 'OVERLOADED') {
      request.log.error({ code, err: gatewayError.cause ?? gatewayError }, 'request failed')
    }
    reply.code(statusCode).headers(errorHeaders(gatewayError)).send(errorBody(gatewayError, request.id))
  }
