import type { TSchema } from '@sinclair/typebox'
import { type TypeCheck, TypeCompiler } from '@sinclair/typebox/compiler'
import { Check } from '@sinclair/typebox/value'
import type { FastifyInstance, RouteHandlerMethod } from 'fastify'
import { SessionExchangeSchema } from '../../schemas/auth.js'
import { fieldErrors } from '../../schemas/field-errors.js'
import type { RouteDeclaration } from '../../src/gateway/routes/tables/declare.js'
import { audit } from './audit.js'
import { callerBy } from './auth/accounts.js'
import { ALL_PERMISSIONS, checkAccess } from './auth/permissions.js'
import { declared } from './declared.js'
import { invalid } from './errors.js'
import type { Backend, Call, CustomReply, Handler, Handlers } from './route.js'
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
    if (handler.may.includes('.') && !ALL_PERMISSIONS.includes(handler.may))
      throw new Error(`there is no permission ${handler.may}`)
    app.route({
      method,
      url,
      ...handler.options,
      handler: routeHandler(handler, declaration, method !== 'GET', backend)
    })
  }
}

/**
 * Checks access and body, runs the handler, and sends the result. A change by a signed-in user and its audit record are one
 * transaction.
 */
const routeHandler = (
  { may, run, status = 200, orChangingPassword = false, orOwnAccount = false }: Handler,
  declaration: RouteDeclaration | undefined,
  changes: boolean,
  backend: Backend
): RouteHandlerMethod => {
  const checkBody = bodyCheck(declaration)
  const change = async (call: Call): Promise<unknown> => {
    const result = await run(call)
    if (may.includes('.')) await audit(call, may, 'done')
    return result
  }
  return async (request, reply) => {
    const caller = await callerBy(backend, backend.tokens.claimsOf(request.headers.authorization))
    // Fastify types these as unknown: path and query have text values, and bodies are objects by schema, which is checked below.
    const { params, query, body } = request as Pick<Call, 'params' | 'query'> & { readonly body?: Fields }
    const call: Call = { ...backend, params, query, body: body ?? {}, caller, request }
    try {
      if (!(orOwnAccount && caller !== null && caller.userId === params.id))
        checkAccess(may, caller, orChangingPassword)
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
    return isCustomReply(result) ? result(reply) : reply.code(status).send({ success: true, data: result ?? null })
  }
}

const isCustomReply = (result: unknown): result is CustomReply => typeof result === 'function'

const bodyCheck = (declaration: RouteDeclaration | undefined): ((body: unknown) => void) => {
  if (!declaration?.body) return () => undefined
  const { path, body: schema, bodyOptional } = declaration
  // Compiled at the first request, because all of them together delay the start.
  let compiled: TypeCheck<TSchema> | null = null
  // The gateway also sends a session exchange here, for users authenticated by the identity provider.
  const isExchange = (body: unknown): boolean => path === '/api/auth/login' && Check(SessionExchangeSchema, body)
  return (body) => {
    compiled ??= TypeCompiler.Compile<TSchema>(schema)
    if ((body === undefined && bodyOptional) || compiled.Check(body) || isExchange(body)) return
    throw invalid(fieldErrors(compiled.Errors(body)))
  }
}
