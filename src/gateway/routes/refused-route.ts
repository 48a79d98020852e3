import type { FastifyInstance } from 'fastify'
import type { Refusal } from '../errors.js'

/** A route that does nothing but refuse. The body is of no interest, whatever it is. */
export const refusedRoute = (
  scope: FastifyInstance,
  method: readonly string[],
  url: string,
  refusal: () => Refusal
): void => {
  scope.route({
    method: [...method],
    url,
    preParsing: async () => {
      throw refusal()
    },
    handler: () => undefined
  })
}
