import rateLimit from '@fastify/rate-limit'
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import { notFound, Refusal, refusalOf } from './errors.js'
import { mount } from './mount.js'
import type { Backend } from './route.js'
import { accountRoutes } from './routes/accounts.js'
import { batteryRoutes } from './routes/battery.js'
import { carrierRoutes } from './routes/carriers.js'
import { contextRoutes } from './routes/context.js'
import { dashboardRoutes } from './routes/dashboard.js'
import { emergencyRoutes } from './routes/emergency.js'
import { floorRoutes } from './routes/floors.js'
import { journalRoutes } from './routes/journal.js'
import { managementRoutes } from './routes/management.js'
import { phoneBeaconRoutes } from './routes/phone-beacon.js'
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
  ...batteryRoutes,
  ...weatherRoutes,
  ...phoneBeaconRoutes,
  ...journalRoutes,
  ...managementRoutes,
  ...contextRoutes
}

/** The demo's backend, ready to listen. Its tables must be there. */
export const buildDemoBackend = async (
  backend: Backend,
  log: Logger,
  trustedProxies: readonly string[]
): Promise<FastifyInstance> => {
  const refuse = (error: unknown, request: FastifyRequest, reply: FastifyReply) => {
    const refusal = refusalOf(error)
    if (refusal === null) log.error({ err: error, requestId: request.id }, 'request failed')
    const { status, code, message, details } =
      refusal ?? new Refusal(500, 'INTERNAL', 'Something went wrong here. Try again.')
    return reply.code(status).send({ success: false, error: { code, message, ...(details && { details }) } })
  }
  const app = fastify({
    // An address that cannot be read.
    frameworkErrors: refuse,
    // The gateway says who asks: on this machine, or where it is trusted.
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
  app.setErrorHandler(refuse)
  app.setNotFoundHandler(async () => {
    throw notFound('route')
  })
  app.get('/api/health', async () => ({ success: true, data: { status: 'ok' } }))
  mount(app, routes, backend)
  return app
}
