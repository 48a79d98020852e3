import type { FastifyInstance } from 'fastify'
import type { AddressSet } from '../../shared/ip-address.js'
import { mayReadMetrics } from '../../shared/metrics-access.js'
import { GatewayError } from '../errors.js'
import type { GatewayMetrics } from '../metrics.js'

export interface MetricsRouteOptions {
  readonly metrics: GatewayMetrics
  readonly allowed: AddressSet
}

/** The gateway's metrics. A client outside the allowed networks receives 404. */
export const metricsRoute = (app: FastifyInstance, { metrics, allowed }: MetricsRouteOptions): void => {
  app.get('/metrics', async (request, reply) => {
    if (!mayReadMetrics(request.raw, allowed)) throw new GatewayError('NOT_FOUND')
    reply.header('content-type', metrics.contentType).header('cache-control', 'no-store')
    return metrics.text()
  })
}
