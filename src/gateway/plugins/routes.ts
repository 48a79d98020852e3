import fp from 'fastify-plugin'
import packageFile from '../../../package.json' with { type: 'json' }
import { AddressSet } from '../../shared/ip-address.js'
import { type AccessRules, SERVED_METHODS } from '../access.js'
import { apiDocs } from '../api-docs/api-docs.js'
import type { GatewayConfig } from '../config.js'
import type { DeclaredRoutes } from '../custom-routes/custom-routes.js'
import { GatewayError } from '../errors.js'
import { backendReachable } from '../health/backend-health.js'
import type { DatabaseHealth } from '../health/database-health.js'
import { healthRoutes } from '../health/health-routes.js'
import type { HeaderTable } from '../http/header-table.js'
import type { OpenReplies, RequestEnded } from '../http/open-replies.js'
import { backendMetrics, type GatewayMetrics } from '../metrics.js'
import type { Oidc } from '../oidc/oidc.js'
import { createForwarder } from '../proxy/forward.js'
import { relayProxy } from '../relay-proxy/relay-proxy.js'
import { catchAll, undeclaredReads } from '../routes/catch-all.js'
import { type DevelopmentRoutesOptions, developmentRoutes } from '../routes/development.js'
import { metricsRoute } from '../routes/metrics-route.js'
import { mountRoutes, rejectedRoute } from '../routes/mount-routes.js'
import { type SessionRouteOptions, sessionRoutes } from '../routes/session-routes.js'

export interface RoutesOptions
  extends Omit<SessionRouteOptions, 'oidc' | 'metrics' | 'config'>,
    DevelopmentRoutesOptions {
  readonly config: GatewayConfig
  readonly access: AccessRules
  readonly declared: DeclaredRoutes
  readonly metrics: GatewayMetrics
  readonly headerTable: HeaderTable
  readonly database: DatabaseHealth | null
  readonly isStopping: () => boolean
  readonly oidc: Oidc | null
  readonly openReplies: OpenReplies
  readonly requestEnded: RequestEnded
}

/** Everything that responds to a request which passed the chain. */
export const routes = fp<RoutesOptions>(
  async (app, options) => {
    const { config, access, declared, metrics, headerTable, backend, database, isStopping, oidc, log } = options
    const proxyMetrics = backendMetrics(metrics)
    const forward = createForwarder({ backend, publicHost: config.publicHost, headerTable, metrics: proxyMetrics, log })
    const { tables, description } = declared
    const { unknownPaths } = config.routes
    const { uploadBytes } = config.limits
    await apiDocs(app, {
      declared,
      access,
      unknownPaths,
      version: config.apiDocs ? packageFile.version : null
    })
    mountRoutes(app, tables, {
      access,
      forward,
      local: new Map([
        ...sessionRoutes({ ...options, metrics: proxyMetrics }),
        ...healthRoutes({ isStopping, database, backend: backendReachable(backend) })
      ]),
      uploadBytes,
      unknownPaths
    })
    const paths = description?.paths ?? []
    if (description !== null) {
      const { mountOperations } = await import('../custom-routes/mount-operations.js')
      mountOperations(app, description, { forward, uploadBytes, unknownPaths })
    }
    developmentRoutes(app, options)
    oidc?.addRoutes(app)
    metricsRoute(app, metrics, new AddressSet(config.metricsAllow))
    if (unknownPaths === 'forward') catchAll(app, { uploadBytes, backend, forward, reads: undeclaredReads(paths) })
    else rejectedRoute(app, [...SERVED_METHODS], '/api/*', () => new GatewayError('NOT_FOUND'))
    if (config.relay !== null) {
      await app.register(relayProxy, {
        ...options,
        relay: config.relay,
        bodyBytes: config.limits.bodyBytes,
        csrf: config.csrf
      })
    }
    if (config.webRoot !== null) await (await import('../routes/web-root.js')).webRoot(app, config.webRoot)
  },
  { name: 'routes', fastify: '5.x', dependencies: ['session-exchange'] }
)
