import type { FastifyError } from 'fastify'
import fp from 'fastify-plugin'
import { GatewayError } from '../errors.js'
import type { SendError } from '../http/error-sender.js'

export interface ErrorHandlingOptions {
  readonly sendError: SendError
}

/** Responds to every error with the gateway's error body. Registered before the steps that reject requests. */
export const errorHandling = fp<ErrorHandlingOptions>(
  async (app, { sendError }) => {
    app.setErrorHandler((error: FastifyError, _request, reply) => sendError(error, reply))
    // Every `/api/` path has a route for each method that is served, so these paths are outside `/api/`.
    app.setNotFoundHandler((_request, reply) => sendError(new GatewayError('NOT_FOUND'), reply))
  },
  { name: 'error-handling', fastify: '5.x', dependencies: ['pipelined-requests'] }
)
