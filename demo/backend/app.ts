import rateLimit from '@fastify/rate-limit'
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import { HttpError, httpErrorOf, notFound } from './errors.js'
import { mount } from './mount.js'
import { eventRoutes } from './relay.js'
import type { Backend } from './route.js'
import { accountRoutes } from './routes/accounts.js'
import { alertRoutes } from './routes/alerts.js'
import { batteryRoutes } from './routes/battery.js'
import { carrierRoutes } from './routes/carriers.js'
import { contextRoutes } from './routes/context.js'
import { dashboardRoutes } from './routes/dashboard.js'
import { emergencyRoutes } from './routes/emergency.js'
import { floorRoutes } from './routes/floors.js'
import { journalRoutes } from './routes/journal.js'
import { managementRoutes } from './routes/management.js'
import { phoneBeaconRoutes } from './routes/phone-beacon.js'
import { positionRoutes } from './routes/positions.js'
import { siteRoutes } from './routes/site.js'
import { weatherRoutes } from './routes/weather.js'
import { acceptForms } from './uploads.js'

const REQUESTS_PER_MINUTE = 6000

const routes = {
  ...accountRoutes,
  ...siteRoutes,
  ...floorRoutes,
  ...carrierRoutes,
  ...emergencyRoutes,
  ...dashboardRoutes,
  ...alertRoutes,
  ...batteryRoutes,
  ...weatherRoutes,
  ...phoneBeaconRoutes,
  ...journalRoutes,
  ...positionRoutes,
  ...managementRoutes,
  ...contextRoutes
}

/** Builds the server. The tables must exist. */
export const buildDemoBackend = async (
  backend: Backend,
  log: Logger,
  trustedProxies: readonly string[]
): Promise<FastifyInstance> => {
  const sendError = (error: unknown, request: FastifyRequest, reply: FastifyReply) => {
    const known = httpErrorOf(error)
    if (known === null) log.error({ err: error, requestId: request.id }, 'request failed')
    const { status, code, message, details } =
      known ?? new HttpError(500, 'INTERNAL', 'An internal error occurred. Try again.')
    return reply.code(status).send({ success: false, error: { code, message, ...(details && { details }) } })
  }
  const app = fastify({
    // Malformed URLs.
    frameworkErrors: sendError,
    // The gateway sends the client address; it is on this machine or a trusted proxy.
    trustProxy: ['loopback', ...trustedProxies],
    requestIdHeader: 'x-request-id',
    routerOptions: { maxParamLength: 128 }
  })
  acceptForms(app)
  await app.register(rateLimit, { max: REQUESTS_PER_MINUTE, timeWindow: '1 minute' })

  app.addHook('onResponse', async ({ method, routeOptions, id }, { statusCode, elapsedTime }) => {
    const ms = Math.round(elapsedTime * 10) / 10
    log.info({ requestId: id, method, route: routeOptions.url ?? null, status: statusCode, ms }, 'request')
  })
  app.setErrorHandler(sendError)
  app.setNotFoundHandler(async () => {
    throw notFound('route')
  })
  app.get('/api/health', async () => ({ success: true, data: { status: 'ok' } }))
  mount(app, routes, backend)
  if (backend.eventsSecret !== null) eventRoutes(app, backend, backend.eventsSecret)
  return app
}
