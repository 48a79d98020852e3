import { routeTables } from '../../src/gateway/routes/index.js'
import type { RouteDeclaration } from '../../src/gateway/routes/tables/declare.js'

/** The gateway's route declarations by method and path. */
export const declared: ReadonlyMap<string, RouteDeclaration> = new Map(
  routeTables.flatMap(({ rows }) => rows).map((row) => [`${row.method} ${row.path}`, row])
)
