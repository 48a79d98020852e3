import type { TSchema } from '@sinclair/typebox'
import { TypeCompiler } from '@sinclair/typebox/compiler'
import type { FastifyInstance, FastifyRequest, RouteHandlerMethod } from 'fastify'
import { SessionExchangeSchema } from '../../schemas/auth.js'
import { fieldFaults } from '../../schemas/field-faults.js'
import type { RouteDeclaration } from '../../src/gateway/routes/declare.js'
import { routeTables } from '../../src/gateway/routes/index.js'
import type { AuditLog } from './audit.js'
import type { Tokens } from './auth/tokens.js'
import { Refusal } from './errors.js'
import type { Fields } from './records.js'
import { type Call, FileAnswer, type Handler, type Handlers, PartOfList, type RouteKey } from './route.js'

// What the gateway answers without asking the backend.
const GATEWAYS_OWN: ReadonlySet<string> = new Set([
  'GET /api/auth/csrf-token',
  'GET /api/auth/providers',
  'GET /api/health',
  'GET /api/health/ready',
  'GET /api/health/database'
])

export interface MountParts {
  readonly tokens: Tokens
  readonly audit: AuditLog
}

/**
 * Routes are the gateway's declarations, each with the handler of that name: a declaration without a handler, or a
 * mutation that is not declared and so has no schema, stops the start.
 */
export const mount = (app: FastifyInstance, handlers: Handlers, parts: MountParts): void => {
  const declared = new Map(routeTables.flatMap(({ rows }) => rows).map((row) => [keyOf(row), row]))
  for (const key of declared.keys()) {
    if (!GATEWAYS_OWN.has(key) && handlers[key] === undefined) throw new Error(`nothing answers ${key}`)
  }
  for (const [key, handler] of Object.entries(handlers) as [RouteKey, Handler][]) {
    const [method = '', url = ''] = key.split(' ')
    const declaration = declared.get(key)
    if (declaration === undefined && method !== 'GET') throw new Error(`nothing declares ${key}`)
    app.route({
      method,
      url,
      config: handler.perMinute === undefined ? {} : { rateLimit: { max: handler.perMinute, timeWindow: '1 minute' } },
      ...(handler.bodyLimit === undefined ? {} : { bodyLimit: handler.bodyLimit }),
      handler: answer(handler, declaration, parts)
    })
  }
}

const keyOf = ({ method, path }: RouteDeclaration): RouteKey => `${method} ${path}`

const answer = (
  { access, run, status = 200 }: Handler,
  declaration: RouteDeclaration | undefined,
  { tokens, audit }: MountParts
): RouteHandlerMethod => {
  const check = declaration?.body ? bodyCheck(declaration, declaration.body) : () => undefined
  return async (request, reply) => {
    const caller = await tokens.callerOf(request.headers.authorization)
    const changes = request.method !== 'GET' && request.method !== 'HEAD'
    const entry = { action: access.name, caller, ip: request.ip, method: request.method, path: pathOf(request) }
    try {
      access.check(caller)
    } catch (error) {
      // A page whose session has ended asks on for a while, and nobody wants to read that.
      if (caller !== null || changes) await audit.add({ ...entry, result: 'denied' })
      throw error
    }
    check(request.body)
    const call: Call = {
      params: request.params as Call['params'],
      query: request.query as Call['query'],
      body: (request.body ?? {}) as Fields,
      caller,
      request,
      reply
    }
    const result = await run(call)
    if (changes && access.name.includes('.')) await audit.add({ ...entry, result: 'done' })
    if (result instanceof FileAnswer) {
      const kind = result.name === null ? 'inline' : `attachment; filename="${result.name}"`
      return reply.type(result.mediaType).header('content-disposition', kind).send(result.content)
    }
    if (result instanceof PartOfList) return { success: true, data: result.rows, meta: result.meta }
    return reply.code(status).send({ success: true, data: result ?? null })
  }
}

const pathOf = ({ url }: FastifyRequest): string => url.split('?', 1)[0] ?? ''

const bodyCheck = ({ path, bodyOptional }: RouteDeclaration, schema: TSchema): ((body: unknown) => void) => {
  const compiled = TypeCompiler.Compile(schema)
  // A login takes two forms: a person's, and the gateway's own for somebody whom the identity provider vouches for.
  const exchange = path === '/api/auth/login' ? TypeCompiler.Compile(SessionExchangeSchema) : null
  return (body) => {
    if (body === undefined && bodyOptional) return
    if (compiled.Check(body) || exchange?.Check(body)) return
    throw new Refusal(400, 'VALIDATION_FAILED', 'The request is not valid.', fieldFaults(compiled.Errors(body)))
  }
}
