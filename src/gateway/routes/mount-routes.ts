import type { Readable } from 'node:stream'
import type { FastifyInstance, FastifyReply, FastifyRequest, FastifySchema } from 'fastify'
import type { AccessLevel } from '../../shared/access-level.js'
import { type AccessRules, AUTH_PREFIX, isUnder, READING_METHODS, SERVED_METHODS } from '../access.js'
import { GatewayError } from '../errors.js'
import { limitedBody } from '../proxy/body-limit.js'
import type { Forward } from '../proxy/forward.js'
import { acceptJsonOnly, jsonBody } from '../proxy/json-body.js'
import { operationIds } from './operation-ids.js'
import { routeSchema } from './route-schema.js'
import type { LocalRoute, RouteDeclaration, RouteTable, UploadRoute } from './tables/declare.js'
import { schemaErrorFormatter, validatorCompiler } from './validation.js'

/** A route that rejects every request before its body is read. */
export const rejectedRoute = (
  scope: FastifyInstance,
  method: readonly string[],
  url: string,
  error: () => GatewayError,
  access: AccessLevel | null = null
): void => {
  scope.route({
    method: [...method],
    url,
    config: accessConfig(access),
    schema: { hide: true },
    preParsing: async () => {
      throw error()
    },
    handler: () => undefined
  })
}

/** The part of a route's config that the auth step reads. */
export const accessConfig = (level: AccessLevel | null | undefined): { access?: AccessLevel } =>
  level == null ? {} : { access: level }

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The declaration that the route was made from. */
    declaration?: RouteDeclaration
  }
}

/** Handles a route of kind `local`. */
export type LocalHandler = (request: FastifyRequest, reply: FastifyReply) => unknown

export interface MountOptions {
  readonly access: AccessRules
  readonly forward: Forward
  /** Handlers of local routes by `METHOD path`. */
  readonly local: ReadonlyMap<string, LocalHandler>
  readonly uploadBytes: number
  readonly unknownPaths: UnknownPaths
}

interface Mounted<Route extends RouteDeclaration> {
  readonly row: Route
  readonly schema: FastifySchema
}

type JsonRoute = Exclude<RouteDeclaration, UploadRoute>

/** Registers the declared routes. */
export const mountRoutes = (app: FastifyInstance, tables: readonly RouteTable[], options: MountOptions): void => {
  const rows = tables.flatMap((table) => table.rows)
  const ids = operationIds(rows)
  const routes = tables.flatMap(({ domain, rows }) =>
    rows.map((row) => ({
      row,
      schema: routeSchema(row, { domain, operationId: ids.get(row) ?? '', access: options.access })
    }))
  )

  app.register(async (scope) => {
    acceptJsonOnly(scope)
    scope.setSchemaErrorFormatter(schemaErrorFormatter)
    // Response schemas are documentation: local handlers send what they document, and forwarded bodies are not parsed.
    scope.setSerializerCompiler(() => JSON.stringify)
    for (const { row, schema } of routes.filter(isJsonRoute)) {
      scope.route({
        method: row.method,
        url: row.path,
        exposeHeadRoute: row.method === 'GET' && needsHeadRoute(row, options),
        config: { declaration: row, ...accessConfig(row.access) },
        schema,
        validatorCompiler: validatorCompiler(row.bodyOptional),
        handler: jsonHandler(row, options)
      })
    }
    rejectOtherMethods(scope, rows, options.unknownPaths)
  })

  app.register(async (scope) => {
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser('multipart/form-data', async (request: FastifyRequest, body: Readable) =>
      limitedBody(requireBoundary(request), body, options.uploadBytes)
    )
    scope.setSerializerCompiler(() => JSON.stringify)
    for (const { row, schema } of routes.filter(isUploadRoute)) {
      scope.route({
        method: row.method,
        url: row.path,
        config: { declaration: row, ...accessConfig(row.access) },
        schema,
        validatorCompiler: validatorCompiler(false),
        handler: (request, reply) => {
          options.forward(request, reply, uploadOf(request))
        }
      })
    }
  })
}

/**
 * A local route responds to HEAD itself. For a route of the backend, HEAD goes through the catch-all if there is one, but must
 * have the access level of the route.
 */
const needsHeadRoute = ({ kind, access, path }: JsonRoute, { unknownPaths }: MountOptions): boolean =>
  kind === 'local' || access !== undefined || unknownMethods(path, unknownPaths) === 'refuse'

const isUploadRoute = (route: Mounted<RouteDeclaration>): route is Mounted<UploadRoute> => route.row.kind === 'upload'
const isJsonRoute = (route: Mounted<RouteDeclaration>): route is Mounted<JsonRoute> => route.row.kind !== 'upload'

const jsonHandler = (row: JsonRoute, { forward, local }: MountOptions): LocalHandler => {
  if (row.kind === 'local') return localHandler(row, local)
  if (row.body === null) return (request, reply) => forward(request, reply, null)
  return (request, reply) => forward(request, reply, jsonBody(request))
}

const localHandler = ({ method, path }: LocalRoute, local: MountOptions['local']): LocalHandler => {
  const handler = local.get(`${method} ${path}`)
  if (handler === undefined) throw new Error(`no handler for ${method} ${path}`)
  return handler
}

/** `refuse`: there is no catch-all. */
export type UnknownPaths = 'forward' | 'refuse'

/** Of a declared path below `/api/auth`, backends receive the declared methods only: `GET` may sign a user in too. */
const unknownMethods = (path: string, unknownPaths: UnknownPaths): UnknownPaths =>
  isUnder(AUTH_PREFIX, path) ? 'refuse' : unknownPaths

/** The methods of a declared path that are rejected, and the `Allow` header of their responses. */
export const otherMethods = (path: string, declared: readonly string[], unknownPaths: UnknownPaths) => {
  const isAllowed = (method: string): boolean =>
    declared.includes(method) ||
    (method === 'HEAD' && declared.includes('GET')) ||
    // Reads have nothing to validate. A write request must not reach the catch-all, which has no schema for it.
    (unknownMethods(path, unknownPaths) === 'forward' && READING_METHODS.has(method))
  const methods = [...SERVED_METHODS]
  const allow = methods.filter(isAllowed).join(', ')
  return {
    methods: methods.filter((method) => !isAllowed(method)),
    error: () => new GatewayError('METHOD_NOT_ALLOWED', { headers: { allow } })
  }
}

const rejectOtherMethods = (
  scope: FastifyInstance,
  rows: readonly RouteDeclaration[],
  unknownPaths: UnknownPaths
): void => {
  for (const path of new Set(rows.map((row) => row.path))) {
    const declared = rows.filter((row) => row.path === path).map(({ method }) => method)
    const { methods, error } = otherMethods(path, declared, unknownPaths)
    if (methods.length > 0) rejectedRoute(scope, methods, path, error)
  }
}

// RFC 2046: one to seventy of these characters.
const BOUNDARY = /;\s*boundary=(?:"[\w'()+,./:=? -]{0,69}[\w'()+,./:=?-]"|[\w'()+,./:=?-]{1,70})\s*(?:;|$)/i

/** Throws an error if the multipart body of the request has no valid boundary. */
export const requireBoundary = (request: FastifyRequest): FastifyRequest => {
  if (!BOUNDARY.test(request.headers['content-type'] ?? '')) throw new GatewayError('UNSUPPORTED_MEDIA_TYPE')
  return request
}

const uploadOf = ({ body }: FastifyRequest): Readable => {
  if (body === undefined || body === null) throw new GatewayError('UNSUPPORTED_MEDIA_TYPE')
  // The only parser of this scope returns a stream.
  return body as Readable
}
