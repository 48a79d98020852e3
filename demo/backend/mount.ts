import type { TSchema } from '@sinclair/typebox'
import { type TypeCheck, TypeCompiler } from '@sinclair/typebox/compiler'
import { Check } from '@sinclair/typebox/value'
import type { FastifyInstance, RouteHandlerMethod } from 'fastify'
import { SessionExchangeSchema } from '../../schemas/auth.js'
import { fieldErrors } from '../../schemas/field-errors.js'
import type { RouteDeclaration } from '../../src/gateway/routes/tables/declare.js'
import { audit } from './audit.js'
import { callerBy } from './auth/accounts.js'
import { checkFor } from './auth/permissions.js'
import { declared } from './declared.js'
import { invalid } from './errors.js'
import type { Backend, Call, CustomReply, Handler, Handlers, RouteKey } from './route.js'
import type { Fields } from './world.js'

// Routes that the gateway handles itself.
const GATEWAYS_OWN = /^GET \/api\/(auth\/(csrf-token|providers)|health(\/ready|\/database)?)$/
// A route of the gateway that the demo does not need.
const NOT_SUPPORTED = 'POST /api/personnel/import'

/** Permissions to change what live plans show: names, zones, receivers and floors. */
const SHOWN_ON_PLANS = /^(assets|buildings|departments|floors|personnel|receivers|transmitters|zones)\./

/**
 * Registers the handlers. Throws for a gateway declaration without a handler, and for a write request that is not declared and
 * therefore has no schema.
 */
export const mount = (app: FastifyInstance, handlers: Handlers, backend: Backend): void => {
  for (const key of declared.keys())
    if (!GATEWAYS_OWN.test(key) && key !== NOT_SUPPORTED && !Object.hasOwn(handlers, key))
      throw new Error(`no handler for ${key}`)
  for (const [key, handler] of Object.entries(handlers)) {
    const [method = '', url = ''] = key.split(' ')
    const declaration = declared.get(key)
    if (declaration === undefined && method !== 'GET') throw new Error(`no declaration of ${key}`)
    app.route({
      method,
      url,
      ...handler.options,
      handler: routeHandler(handler, declaration, method !== 'GET', backend)
    })
  }
}

const routeHandler = (
  handler: Handler,
  declaration: RouteDeclaration | undefined,
  changes: boolean,
  backend: Backend
): RouteHandlerMethod => {
  const run = operationOf(handler, declaration, changes, backend)
  const { status = 200 } = handler
  return async (request, reply) => {
    const caller = await callerBy(backend, backend.tokens.claimsOf(request.headers.authorization))
    // Fastify types these as unknown; path and query have text values.
    const { params, query } = request as Pick<Call, 'params' | 'query'>
    const result = await run({ caller, params, query, body: request.body, request })
    if (isCustomReply(result)) return result(reply)
    return reply.code(status).send({ success: true, data: result ?? null })
  }
}

/** One use of an operation, through HTTP or through the relay. */
export interface OperationCall extends Pick<Call, 'caller' | 'params' | 'query' | 'request'> {
  /** Not checked yet; undefined for none. */
  readonly body: unknown
}

export type Operation = (call: OperationCall) => Promise<unknown>

/** The operation of a declared route that changes something, for callers other than Fastify. */
export const changeOf = (key: RouteKey, handlers: Handlers, backend: Backend): Operation => {
  const { [key]: handler } = handlers
  if (handler === undefined) throw new Error(`no handler for ${key}`)
  return operationOf(handler, declared.get(key), true, backend)
}

/** Checks access and body, and runs the handler; a change and its audit record are one transaction. */
const operationOf = (
  { may, run, orChangingPassword = false, orOwnAccount = false }: Handler,
  declaration: RouteDeclaration | undefined,
  changes: boolean,
  backend: Backend
): Operation => {
  const checkCaller = checkFor(may, orChangingPassword)
  const checkBody = bodyCheck(declaration)
  const change = async (call: Call): Promise<unknown> => {
    const result = await run(call)
    if (may.includes('.')) await audit(call, may, 'done')
    return result
  }
  return async ({ caller, params, query, body, request }) => {
    // Bodies are JSON objects by schema, which is checked below.
    const call: Call = { ...backend, params, query, body: (body ?? {}) as Fields, caller, request }
    try {
      if (!(orOwnAccount && caller !== null && caller.userId === params.id)) checkCaller(caller)
    } catch (error) {
      // Pages with an expired session keep polling; auditing those reads would flood the log.
      if (caller !== null || changes) await audit(call, may, 'denied')
      throw error
    }
    checkBody(body)
    // Public routes run without a transaction: a rejected login must still count the failure.
    const result = await (changes && may !== 'public'
      ? backend.database.transaction((database) => change({ ...call, database }))
      : run(call))
    // Without details, because every signed-in user receives this channel; pages load what they may read.
    const type = SHOWN_ON_PLANS.test(may) ? 'site-changed' : may.startsWith('emergency.') ? 'emergency-changed' : null
    if (changes && type !== null) void backend.publisher.publish('global:all', { type })
    return result
  }
}

const isCustomReply = (result: unknown): result is CustomReply => typeof result === 'function'

/** JSON.stringify and PostgreSQL call themselves for every level. */
const MAX_DEPTH = 100

const isDeeper = (value: unknown, levels: number): boolean =>
  typeof value === 'object' &&
  value !== null &&
  // A form.
  !Buffer.isBuffer(value) &&
  (levels === 0 || Object.values(value).some((part) => isDeeper(part, levels - 1)))

const bodyCheck = (declaration: RouteDeclaration | undefined): ((body: unknown) => void) => {
  if (!declaration?.body) return () => undefined
  const { path, body: schema, bodyOptional } = declaration
  // Compiled at the first request, because all of them together delay the start.
  let compiled: TypeCheck<TSchema> | null = null
  // The gateway also sends a session exchange here, for users authenticated by the identity provider.
  const isExchange = (body: unknown): boolean => path === '/api/auth/login' && Check(SessionExchangeSchema, body)
  return (body) => {
    if (isDeeper(body, MAX_DEPTH)) throw invalid([{ path: '', message: `has more than ${MAX_DEPTH} levels` }])
    compiled ??= TypeCompiler.Compile<TSchema>(schema)
    if ((body === undefined && bodyOptional) || compiled.Check(body) || isExchange(body)) return
    throw invalid(fieldErrors(compiled.Errors(body)))
  }
}
