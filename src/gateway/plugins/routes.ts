import fp from 'fastify-plugin'
import packageFile from '../../../package.json' with { type: 'json' }
import { AddressSet } from '../../shared/address.js'
import type { AccessRules } from '../access.js'
import { apiDocs } from '../api-docs.js'
import type { GatewayConfig } from '../config.js'
import { backendReachable, healthRoutes } from '../health.js'
import type { DatabaseHealth } from '../health-database.js'
import { backendMetrics, type GatewayMetrics } from '../metrics.js'
import type { Oidc } from '../oidc/oidc.js'
import { createForwarder } from '../proxy/forward.js'
import type { HeaderTable } from '../proxy/response-headers.js'
import { catchAll } from '../routes/catch-all.js'
import type { RouteTable } from '../routes/declare.js'
import { type DevelopmentRoutesOptions, developmentRoutes } from '../routes/development.js'
import { metricsRoute } from '../routes/metrics.js'
import { mountRoutes } from '../routes/mount.js'
import { type SessionRouteOptions, sessionRoutes } from '../routes/session.js'

export interface RoutesOptions
  extends Omit<SessionRouteOptions, 'oidc' | 'metrics' | 'config'>,
    DevelopmentRoutesOptions {
  readonly config: GatewayConfig
  readonly access: AccessRules
  readonly tables: readonly RouteTable[]
  readonly metrics: GatewayMetrics
  readonly headerTable: HeaderTable
  readonly database: DatabaseHealth | null
  readonly oidc: Oidc | null
}

/** Everything that responds to a request which passed the chain. */
export const routes = fp<RoutesOptions>(
  async (app, options) => {
    const { config, access, tables, metrics, headerTable, backend, database, oidc, log } = options
    const proxyMetrics = backendMetrics(metrics)
    const forward = createForwarder({ backend, publicHost: config.publicHost, headerTable, metrics: proxyMetrics, log })
    await apiDocs(app, { tables, version: config.apiDocs ? packageFile.version : null })
    mountRoutes(app, tables, {
      access,
      forward,
      local: new Map([
        ...sessionRoutes({ ...options, metrics: proxyMetrics }),
        ...healthRoutes({ database, backend: backendReachable(backend) })
      ]),
      uploadBytes: config.limits.uploadBytes
    })
    developmentRoutes(app, options)
    oidc?.addRoutes(app)
    metricsRoute(app, metrics, new AddressSet(config.metricsAllow))
    catchAll(app, config, backend, forward)
    if (config.webRoot !== null) await (await import('../static.js')).webRoot(app, config.webRoot)
  },
  { name: 'routes', fastify: '5.x', dependencies: ['session-exchange'] }
)
