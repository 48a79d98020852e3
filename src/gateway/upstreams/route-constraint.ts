import type { FastifyServerOptions } from 'fastify'
import type { Upstream } from './upstream.js'
import type { UpstreamSelector } from './upstream-selector.js'

const CONSTRAINT = 'upstream'

/** Rows without an OpenAPI document share routes: the router allows only 31 different ones for a path. */
const SHARED_GROUP = '*'

/** The routes that requests of a row can match; undefined for the routes of the gateway and of `BACKEND_URL`. */
const routeGroup = (row: Upstream | null): string | undefined =>
  row === null ? undefined : row.description === null ? SHARED_GROUP : row.name

/** For routes of one row, or of all rows without a document if it is null. */
export const constraintOf = (row: Upstream | null): Readonly<Record<string, string>> => ({
  [CONSTRAINT]: row?.name ?? SHARED_GROUP
})

type Strategies = NonNullable<NonNullable<FastifyServerOptions['routerOptions']>['constraints']>
type RouteStorage = ReturnType<Strategies[string]['storage']>

/** Lets the router match a request of a row with routes of rows only, and other requests with other routes only. */
export const upstreamConstraints = (selector: UpstreamSelector<Upstream>): Strategies => ({
  [CONSTRAINT]: {
    name: CONSTRAINT,
    mustMatchWhenDerived: true,
    storage: routeStorage,
    // Contrary to its type, the router takes undefined for a request without the constraint.
    deriveConstraint: (request) => routeGroup(selector.select(request)) as string,
    validate: () => undefined
  }
})

/** The handlers of a path by group. */
const routeStorage = (): RouteStorage => {
  const handlers = new Map<string, ReturnType<RouteStorage['get']>>()
  return {
    get: (group) => handlers.get(group) ?? null,
    set: (group, handler) => void handlers.set(group, handler)
  }
}
