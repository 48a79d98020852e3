import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { AddressSet } from '../../shared/address.js'
import { Refusal } from '../errors.js'
import type { GatewayMetrics } from '../metrics.js'

/** The gateway's numbers, for those on the network that may see them; for all others there is no such page. */
export const metricsRoute = (app: FastifyInstance, metrics: GatewayMetrics, allowed: AddressSet): void => {
  app.get('/metrics', async (request, reply) => {
    if (!mayRead(request, allowed)) throw new Refusal('NOT_FOUND')
    reply.header('content-type', metrics.contentType).header('cache-control', 'no-store')
    return metrics.text()
  })
}

/** The other end of the socket counts, not what a header says; and what a proxy passes on comes from outside. */
const mayRead = ({ raw: { headers, socket } }: FastifyRequest, allowed: AddressSet): boolean =>
  headers['x-forwarded-for'] === undefined && headers.forwarded === undefined && allowed.has(socket.remoteAddress)
