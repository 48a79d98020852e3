import type { FastifyInstance, FastifyRequest } from 'fastify'
import { SERVED_METHODS } from '../access.js'
import { mountOperations } from '../custom-routes/mount-operations.js'
import { GatewayError } from '../errors.js'
import { createForwarder, type Forward, type ForwarderOptions } from '../proxy/forward.js'
import { catchAll, undeclaredReads } from '../routes/catch-all.js'
import { rejectedRoute, type UnknownPaths } from '../routes/mount-routes.js'
import { constraintOf } from '../upstreams/route-constraint.js'
import type { Upstream } from '../upstreams/upstream.js'
import type { Upstreams } from '../upstreams/upstreams.js'
import { UpstreamWebSockets, type UpstreamWebSocketsOptions } from './upstream-websockets.js'

export interface MountUpstreamsOptions {
  readonly upstreams: Upstreams
  readonly forwarder: Omit<ForwarderOptions, 'backend' | 'metrics' | 'user' | 'extraHeaders'>
  readonly metricsOf: (upstream: string) => ForwarderOptions['metrics']
  readonly uploadBytes: number
  readonly unknownPaths: UnknownPaths
  /** The access token of the provider session of a request; null if it has none. */
  readonly providerToken: (request: FastifyRequest) => Promise<string | null>
  /** Null if no backend takes WebSockets. */
  readonly webSockets: UpstreamWebSocketsOptions | null
}

/** Registers the routes of all rows. */
export const mountUpstreams = (app: FastifyInstance, options: MountUpstreamsOptions): void => {
  const { rows } = options.upstreams
  const described = rows.filter(({ description }) => description !== null)
  const others = rows.filter(({ description }) => description === null)
  const webSockets = options.webSockets && new UpstreamWebSockets(options.webSockets)
  app.addHook('preClose', async () => webSockets?.close())
  for (const row of described) mountRows(app, constraintOf(row), [row], webSockets, options)
  if (others.length > 0) mountRows(app, constraintOf(null), others, webSockets, options)
}

/** The routes of rows in a scope of their own. They match only requests of these rows. */
const mountRows = (
  app: FastifyInstance,
  constraints: Readonly<Record<string, string>>,
  rows: readonly Upstream[],
  webSockets: UpstreamWebSockets | null,
  options: MountUpstreamsOptions
): void => {
  app.register(async (scope) => {
    scope.addHook('onRoute', (route) => {
      route.constraints = { ...route.constraints, ...constraints }
      route.schema = { ...route.schema, hide: true }
    })
    if (rows.some(({ user }) => user.token === 'provider')) addProviderTokens(scope, options)
    webSockets?.addHooks(scope)
    const { uploadBytes, unknownPaths } = options
    const forward = rowForwarder(rows, options)
    const paths = [...new Set(rows.flatMap((row) => row.paths))].flatMap(routerPaths)
    const description = rows[0]?.description ?? null
    if (description !== null) mountOperations(scope, description, { forward, uploadBytes, unknownPaths })
    if (description !== null && unknownPaths === 'refuse')
      for (const path of paths) rejectedRoute(scope, [...SERVED_METHODS], path, () => new GatewayError('NOT_FOUND'))
    else catchAll(scope, { forward, uploadBytes, paths, reads: undeclaredReads(description?.paths ?? []) })
  })
}

/** After the session exchange, whose token tells that the user has an account. */
const addProviderTokens = (scope: FastifyInstance, { providerToken }: MountUpstreamsOptions): void => {
  scope.addHook('onRequest', async (request) => {
    if (request.upstream?.user.token !== 'provider') return
    if (request.auth === null && request.exchangedToken === null) return
    request.providerToken = await providerToken(request)
  })
}

/** Forwards each request to the backend of its row. */
const rowForwarder = (rows: readonly Upstream[], options: MountUpstreamsOptions): Forward => {
  const { upstreams, forwarder, metricsOf } = options
  const forwarders = new Map(
    rows.map((row) => {
      const { name, backend, user } = row
      const extraHeaders = ['via', upstreams.via]
      return [row, createForwarder({ ...forwarder, backend, user, extraHeaders, metrics: metricsOf(name) })]
    })
  )
  return (request, reply, body) => {
    // The router has matched a route of these rows, because the request belongs to one of them.
    const forward = request.upstream === null ? undefined : forwarders.get(request.upstream)
    if (forward === undefined) throw new GatewayError('NOT_FOUND')
    forward(request, reply, body)
  }
}

/** The router compares decoded text. A prefix of a row has none of the characters that are special to it. */
const routerPaths = (prefix: string): string[] => {
  const path = decodeURIComponent(prefix)
  return path === '/' ? ['/*'] : [path, `${path}/*`]
}
