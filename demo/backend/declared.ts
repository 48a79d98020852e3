import type { RouteDeclaration } from '../../src/gateway/routes/declare.js'
import { routeTables } from '../../src/gateway/routes/index.js'

/** What the gateway declares, by method and path. */
export const declared: ReadonlyMap<string, RouteDeclaration> = new Map(
  routeTables.flatMap(({ rows }) => rows).map((row) => [`${row.method} ${row.path}`, row])
)
