import type { Readable } from 'node:stream'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { MUTATING_METHODS, READING_METHODS } from '../access.js'
import { GatewayError } from '../errors.js'
import { limitedBody } from '../proxy/body-limit.js'
import type { Forward } from '../proxy/forward.js'
import { acceptJsonOnly, bodyWriter } from '../proxy/json-body.js'
import type { RouteDeclaration, RouteTable } from './declare.js'

/** A route that does nothing but refuse. The body is of no interest, whatever it is. */
export const rejectedRoute = (
  scope: FastifyInstance,
  method: readonly string[],
  url: string,
  error: () => GatewayError
): void => {
  scope.route({
    method: [...method],
    url,
    preParsing: async () => {
      throw error()
    },
    handler: () => undefined
  })
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** What the route was made from, where it was declared. */
    declaration?: RouteDeclaration
  }
}

/** Answers a route of kind `local`. Its body, if it has one, has passed its schema and is written as JSON. */
export type LocalHandler = (request: FastifyRequest, reply: FastifyReply, body: string | null) => unknown

export interface MountParts {
  readonly forward: Forward
  /** Handlers of local routes by `METHOD path`. */
  readonly local: ReadonlyMap<string, LocalHandler>
  readonly uploadBytes: number
}

/** Turns declarations into routes. Everything that a route does follows from its row. */
export const mountRoutes = (app: FastifyInstance, tables: readonly RouteTable[], parts: MountParts): void => {
  const rows = tables.flatMap((table) => table.rows)

  app.register(async (scope) => {
    acceptJsonOnly(scope)
    for (const row of rows.filter(({ kind }) => kind !== 'upload')) {
      scope.route({
        // What we answer ourselves is ours to answer without a body too; a HEAD of the backend's goes to the catch-all.
        method: row.kind === 'local' && row.method === 'GET' ? ['GET', 'HEAD'] : row.method,
        url: row.path,
        config: { declaration: row },
        handler: jsonHandler(row, parts)
      })
    }
    rejectOtherMutations(scope, rows)
  })

  app.register(async (scope) => {
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser('multipart/form-data', async (request: FastifyRequest, body: Readable) =>
      limitedBody(requireBoundary(request), body, parts.uploadBytes)
    )
    for (const row of rows.filter(({ kind }) => kind === 'upload')) {
      scope.route({
        method: row.method,
        url: row.path,
        config: { declaration: row },
        handler: (request, reply) => {
          parts.forward(request, reply, uploadOf(request))
        }
      })
    }
  })
}

const jsonHandler = (row: RouteDeclaration, { forward, local }: MountParts) => {
  const answer: LocalHandler = row.kind === 'local' ? localHandler(row, local) : forward
  if (row.body === null) return (request: FastifyRequest, reply: FastifyReply) => answer(request, reply, null)
  const writeBody = bodyWriter(row.body, row.bodyOptional)
  return (request: FastifyRequest, reply: FastifyReply) => answer(request, reply, writeBody(request.body))
}

const localHandler = ({ method, path }: RouteDeclaration, local: MountParts['local']): LocalHandler => {
  const handler = local.get(`${method} ${path}`)
  if (handler === undefined) throw new Error(`no handler for ${method} ${path}`)
  return handler
}

/**
 * A mutation that a known path does not have must not slip through to the catch-all, where no schema waits for it. Reads
 * may: there is nothing in them to check.
 */
const rejectOtherMutations = (scope: FastifyInstance, rows: readonly RouteDeclaration[]): void => {
  for (const path of new Set(rows.map((row) => row.path))) {
    const methods: string[] = rows.filter((row) => row.path === path).map(({ method }) => method)
    const allow = [...new Set([...READING_METHODS, ...methods])].toSorted().join(', ')
    for (const method of MUTATING_METHODS) {
      if (methods.includes(method)) continue
      rejectedRoute(scope, [method], path, () => new GatewayError('METHOD_NOT_ALLOWED', { headers: { allow } }))
    }
  }
}

// RFC 2046: one to seventy of these characters.
const BOUNDARY = /;\s*boundary=(?:"[\w'()+,./:=? -]{0,69}[\w'()+,./:=?-]"|[\w'()+,./:=?-]{1,70})\s*(?:;|$)/i

const requireBoundary = (request: FastifyRequest): FastifyRequest => {
  if (!BOUNDARY.test(request.headers['content-type'] ?? '')) throw new GatewayError('UNSUPPORTED_MEDIA_TYPE')
  return request
}

const uploadOf = ({ body }: FastifyRequest): Readable => {
  if (body === undefined || body === null) throw new GatewayError('UNSUPPORTED_MEDIA_TYPE')
  return body as Readable
}
