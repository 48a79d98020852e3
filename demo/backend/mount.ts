import { TypeCompiler } from '@sinclair/typebox/compiler'
import type { FastifyInstance, RouteHandlerMethod } from 'fastify'
import { SessionExchangeSchema } from '../../schemas/auth.js'
import { fieldErrors } from '../../schemas/field-errors.js'
import type { RouteDeclaration } from '../../src/gateway/routes/declare.js'
import { audit } from './audit.js'
import { callerBy } from './auth/accounts.js'
import { checkFor } from './auth/permissions.js'
import { declared } from './declared.js'
import { invalid } from './errors.js'
import type { Answer, Backend, Call, Handler, Handlers } from './route.js'

// What the gateway answers without asking the backend.
const GATEWAYS_OWN = /^GET \/api\/(auth\/(csrf-token|providers)|health(\/ready|\/database)?)$/

/**
 * Routes are the gateway's declarations, each with the handler of that name: a declaration without a handler, or a
 * mutation that is not declared and so has no schema, stops the start.
 */
export const mount = (app: FastifyInstance, handlers: Handlers, backend: Backend): void => {
  for (const key of declared.keys())
    if (!GATEWAYS_OWN.test(key) && !Object.hasOwn(handlers, key)) throw new Error(`nothing answers ${key}`)
  for (const [key, handler] of Object.entries(handlers)) {
    const [method = '', url = ''] = key.split(' ')
    const declaration = declared.get(key)
    if (declaration === undefined && method !== 'GET') throw new Error(`nothing declares ${key}`)
    app.route({ method, url, ...handler.options, handler: answer(handler, declaration, backend) })
  }
}

const answer = (
  { may, run, status = 200, orChangingPassword = false }: Handler,
  declaration: RouteDeclaration | undefined,
  backend: Backend
): RouteHandlerMethod => {
  const checkCaller = checkFor(may, orChangingPassword)
  const checkBody = bodyCheck(declaration)
  const change = async (call: Call): Promise<unknown> => {
    const result = await run(call)
    if (may.includes('.')) await audit(call, may, 'done')
    return result
  }
  return async (request, reply) => {
    const caller = await callerBy(backend, backend.tokens.claimsOf(request.headers.authorization))
    const { params, query, body } = request as Pick<Call, 'params' | 'query'> & { body?: Call['body'] }
    const call: Call = { ...backend, params, query, body: body ?? {}, caller, request }
    const changes = request.method !== 'GET' && request.method !== 'HEAD'
    try {
      checkCaller(caller)
    } catch (error) {
      // A page whose session has ended asks on for a while, and nobody wants to read that.
      if (caller !== null || changes) await audit(call, may, 'denied')
      throw error
    }
    checkBody(body)
    // What is public counts even where it is refused: a wrong password does.
    const result = await (changes && may !== 'public'
      ? backend.database.transaction((database) => change({ ...call, database }))
      : run(call))
    if (typeof result === 'function') return (result as Answer)(reply)
    return reply.code(status).send({ success: true, data: result ?? null })
  }
}

const bodyCheck = (declaration: RouteDeclaration | undefined): ((body: unknown) => void) => {
  if (!declaration?.body) return () => undefined
  const { path, body: schema, bodyOptional } = declaration
  const compiled = TypeCompiler.Compile(schema)
  // A login takes two forms: a person's, and the gateway's own for somebody whom the identity provider vouches for.
  const exchange = path === '/api/auth/login' ? TypeCompiler.Compile(SessionExchangeSchema) : null
  return (body) => {
    if ((body === undefined && bodyOptional) || compiled.Check(body) || exchange?.Check(body)) return
    throw invalid(fieldErrors(compiled.Errors(body)))
  }
}
