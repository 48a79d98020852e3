import fp from 'fastify-plugin'
import packageFile from '../../../package.json' with { type: 'json' }
import { type AccessRules, SERVED_METHODS } from '../access.js'
import { apiDocs } from '../api-docs/api-docs.js'
import type { DeclaredRoutes } from '../custom-routes/custom-routes.js'
import { GatewayError } from '../errors.js'
import { type HealthOptions, healthRoutes } from '../health/health-routes.js'
import type { Oidc } from '../oidc/oidc.js'
import { createForwarder, type ForwarderOptions } from '../proxy/forward.js'
import { type RelayProxyOptions, relayProxy } from '../relay-proxy/relay-proxy.js'
import { catchAll, undeclaredReads } from '../routes/catch-all.js'
import { type CspReportsOptions, cspReports } from '../routes/csp-reports.js'
import { type DevelopmentRoutesOptions, developmentRoutes } from '../routes/development.js'
import { type ForwardAuthOptions, forwardAuth } from '../routes/forward-auth.js'
import { type MetricsRouteOptions, metricsRoute } from '../routes/metrics-route.js'
import { mountRoutes, rejectedRoute, type UnknownPaths } from '../routes/mount-routes.js'
import { type SessionRouteOptions, sessionRoutes } from '../routes/session-routes.js'
import type { MountUpstreamsOptions } from '../upstream-routes/mount-upstreams.js'

export interface RoutesOptions {
  readonly declared: DeclaredRoutes
  readonly access: AccessRules
  readonly unknownPaths: UnknownPaths
  readonly uploadBytes: number
  /** Whether `/api/docs` is served. */
  readonly hasApiDocs: boolean
  readonly forwarder: ForwarderOptions
  readonly session: SessionRouteOptions
  readonly health: HealthOptions
  readonly development: DevelopmentRoutesOptions
  readonly metrics: MetricsRouteOptions
  /** Null if all requests go to one backend. */
  readonly upstreams: Omit<MountUpstreamsOptions, 'uploadBytes' | 'unknownPaths'> | null
  /** Null if no relay is configured. */
  readonly relayProxy: RelayProxyOptions | null
  /** Null if the policy does not name the address for reports. */
  readonly cspReports: CspReportsOptions | null
  /** Null if proxies cannot ask for the user of a request. */
  readonly forwardAuth: ForwardAuthOptions | null
  /** Null if no identity provider is configured. */
  readonly oidc: Pick<Oidc, 'addRoutes'> | null
  /** The folder of a web application; null if there is none. */
  readonly webRoot: string | null
}

/** Everything that responds to a request which passed the chain. */
export const routes = fp<RoutesOptions>(
  async (app, options) => {
    const { declared, access, unknownPaths, uploadBytes } = options
    const { tables, description } = declared
    const forward = createForwarder(options.forwarder)
    const version = options.hasApiDocs ? packageFile.version : null
    const rows = options.upstreams?.upstreams.rows ?? []
    await apiDocs(app, { declared, access, upstreams: rows, unknownPaths, version })
    const local = new Map([...sessionRoutes(options.session), ...healthRoutes(options.health)])
    mountRoutes(app, tables, { access, forward, local, uploadBytes, unknownPaths })
    const paths = description?.paths ?? []
    if (description !== null) {
      const { mountOperations } = await import('../custom-routes/mount-operations.js')
      mountOperations(app, description, { forward, uploadBytes, unknownPaths })
    }
    developmentRoutes(app, options.development)
    options.oidc?.addRoutes(app, options.session.signOut)
    if (options.cspReports !== null) cspReports(app, options.cspReports)
    if (options.forwardAuth !== null) forwardAuth(app, options.forwardAuth)
    metricsRoute(app, options.metrics)
    if (unknownPaths === 'forward')
      catchAll(app, { uploadBytes, forward, paths: ['/api/*'], reads: undeclaredReads(paths) })
    else rejectedRoute(app, [...SERVED_METHODS], '/api/*', () => new GatewayError('NOT_FOUND'))
    if (options.upstreams !== null) {
      const { mountUpstreams } = await import('../upstream-routes/mount-upstreams.js')
      mountUpstreams(app, { ...options.upstreams, uploadBytes, unknownPaths })
    }
    if (options.relayProxy !== null) await app.register(relayProxy, options.relayProxy)
    if (options.webRoot !== null) await (await import('../routes/web-root.js')).webRoot(app, options.webRoot)
  },
  { name: 'routes', fastify: '5.x', dependencies: ['session-exchange'] }
)
