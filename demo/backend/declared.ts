import { routeTables } from '../../src/gateway/routes/index.js'
import type { RouteDeclaration } from '../../src/gateway/routes/tables/declare.js'
import { ownRoutes } from './own-routes.js'

/** The route declarations of the gateway, and those of the demo, by method and path. */
export const declared: ReadonlyMap<string, RouteDeclaration> = new Map(
  [...routeTables, ownRoutes].flatMap(({ rows }) => rows).map((row) => [`${row.method} ${row.path}`, row])
)
