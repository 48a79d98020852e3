import rateLimit from '@fastify/rate-limit'
import fastify, { type FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import { AuditLog } from './audit.js'
import type { Accounts } from './auth/accounts.js'
import { Tokens } from './auth/tokens.js'
import type { Backend } from './backend.js'
import type { Database } from './database/database.js'
import { Refusal, refusalOf } from './errors.js'
import { mount } from './mount.js'
import type { World } from './records.js'
import type { Handlers } from './route.js'
import { authRoutes } from './routes/auth.js'
import { batteryRoutes } from './routes/battery.js'
import { contextRoutes } from './routes/context.js'
import { dashboardRoutes } from './routes/dashboard.js'
import { emergencyRoutes } from './routes/emergency.js'
import { floorRoutes } from './routes/floors.js'
import { journalRoutes } from './routes/journal.js'
import { managementRoutes } from './routes/management.js'
import { personnelRoutes } from './routes/personnel.js'
import { phoneBeaconRoutes } from './routes/phone-beacon.js'
import { siteRoutes } from './routes/site.js'
import { thingRoutes } from './routes/things.js'
import { userRoutes } from './routes/users.js'
import { weatherRoutes } from './routes/weather.js'
import type { BuildingLayout } from './site/layout.js'
import { acceptForms } from './uploads.js'

export interface AppOptions {
  readonly database: Database
  readonly world: World
  readonly accounts: Accounts
  readonly site: readonly BuildingLayout[]
  readonly log: Logger
  readonly secrets: { readonly app: string; readonly relay: string }
  readonly relayUrl: string
  /** Beside this machine itself. */
  readonly trustedProxies: readonly string[]
}

const REQUESTS_PER_MINUTE = 6000

const routes: readonly ((backend: Backend) => Handlers)[] = [
  authRoutes,
  userRoutes,
  siteRoutes,
  floorRoutes,
  personnelRoutes,
  thingRoutes,
  emergencyRoutes,
  dashboardRoutes,
  batteryRoutes,
  weatherRoutes,
  phoneBeaconRoutes,
  journalRoutes,
  managementRoutes,
  contextRoutes
]

/** The demo's backend, ready to listen. Its tables must be there. */
export const buildDemoBackend = async (options: AppOptions): Promise<FastifyInstance> => {
  const { database, world, accounts, site, log, secrets, relayUrl, trustedProxies } = options
  const app = fastify({
    // The gateway says who asks.
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
  app.setErrorHandler((error, request, reply) => {
    const refusal = refusalOf(error)
    if (refusal === null) log.error({ err: error, requestId: request.id }, 'request failed')
    const { status, code, message, details } =
      refusal ?? new Refusal(500, 'INTERNAL', 'Something went wrong here. Try again.')
    return reply.code(status).send({ success: false, error: { code, message, ...(details && { details }) } })
  })
  app.setNotFoundHandler((_request, reply) =>
    reply.code(404).send({ success: false, error: { code: 'NOT_FOUND', message: 'There is no such route.' } })
  )

  const audit = new AuditLog(database, world)
  const tokens = new Tokens(accounts, world, secrets)
  const backend: Backend = { ...world, database, site, relayUrl, audit, accounts, tokens }
  app.get('/api/health', async () => ({ success: true, data: { status: 'ok' } }))
  mount(app, Object.assign({}, ...routes.map((of) => of(backend))), { tokens, audit })
  return app
}
