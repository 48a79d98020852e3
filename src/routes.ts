// The package entry `gatehouse-server/routes`: the functions that route tables are made with, and the schemas of their bodies.

export { FormatRegistry, type Static, type TSchema, Type } from '@sinclair/typebox'
export {
  action,
  defineRoutes,
  del,
  download,
  get,
  patch,
  post,
  put,
  type RouteDeclaration,
  type RouteTable,
  upload,
  withAccess,
  withOptionalBody,
  withSecretPath
} from './gateway/routes/tables/declare.js'
export type { AccessLevel } from './shared/access-level.js'
