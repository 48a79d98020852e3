import { ErrorBodySchema } from '../../../schemas/error-body.js'
import { accessOf, isLoginAttempt, MUTATING_METHODS, needsCsrfToken } from '../access.js'
import { errorBody, GatewayError, type GatewayErrorCode } from '../errors.js'
import type { RouteDeclaration } from '../routes/declare.js'
import type { Components } from './components.js'
import type { Example, Header, Reference } from './document.js'

/** What an operation may be refused for depends on this and nothing else. */
export type RefusedRoute = RouteDeclaration & {
  readonly needsBackend: boolean
}

const changesSomething = ({ method }: RefusedRoute): boolean => MUTATING_METHODS.has(method)
const takesJson = ({ body }: RefusedRoute): boolean => body !== null
const takesBody = (route: RefusedRoute): boolean => takesJson(route) || route.kind === 'upload'
const hasParameter = ({ path }: RefusedRoute): boolean => path.includes('/:')
const isForAdmins = ({ path }: RefusedRoute): boolean => accessOf(path) === 'admin'
const needsBackend = (route: RefusedRoute): boolean => route.needsBackend

const countsAsLogin = ({ method, path }: RefusedRoute): boolean => isLoginAttempt(method, path)

export const needsCsrfPair = ({ method, path }: RefusedRoute): boolean => needsCsrfToken(method, path)

export const needsSession = (route: RefusedRoute): boolean => {
  const access = accessOf(route.path)
  return access === 'mutations' ? changesSomething(route) : access !== 'public'
}

type Rule = ((route: RefusedRoute) => boolean) | 'any request' | 'other paths'

/** Who makes which refusal. The hooks make them by the same rules; the tests ask the gateway itself. */
const MADE_BY: Readonly<Record<GatewayErrorCode, Rule>> = {
  MALFORMED_REQUEST: 'any request',
  AMBIGUOUS_PATH: hasParameter,
  MALFORMED_BODY: takesJson,
  VALIDATION_FAILED: takesJson,
  UNAUTHENTICATED: needsSession,
  TOKEN_EXPIRED: needsSession,
  FORBIDDEN: isForAdmins,
  CSRF_MISMATCH: needsCsrfPair,
  ORIGIN_REFUSED: changesSomething,
  NOT_FOUND: 'other paths',
  METHOD_NOT_ALLOWED: 'other paths',
  REQUEST_TIMEOUT: 'any request',
  BODY_TOO_LARGE: takesBody,
  URI_TOO_LONG: 'any request',
  UNSUPPORTED_MEDIA_TYPE: takesBody,
  EXPECTATION_FAILED: 'any request',
  RATE_LIMITED: countsAsLogin,
  HEADERS_TOO_LARGE: 'any request',
  INTERNAL: 'any request',
  BACKEND_UNREACHABLE: needsBackend,
  OVERLOADED: needsBackend,
  BACKEND_TIMEOUT: needsBackend
}

// One of each: their statuses and messages are all that is wanted of them.
const ERRORS: readonly GatewayError[] = (Object.keys(MADE_BY) as GatewayErrorCode[]).map(
  (code) => new GatewayError(code)
)

/** Refusals that say nothing about an operation, and are therefore listed once. */
export const refusalsOfAnyRequest: readonly GatewayError[] = ERRORS.filter(
  ({ code }) => MADE_BY[code] === 'any request'
)

const isMadeBy = ({ code }: GatewayError, route: RefusedRoute): boolean => {
  const rule = MADE_BY[code]
  return typeof rule === 'function' && rule(route)
}

/** The responses of an operation that are refusals of ours, by status. */
export const refusalResponses = (route: RefusedRoute, components: Components): Readonly<Record<string, Reference>> => {
  const refusals = ERRORS.filter((refusal) => isMadeBy(refusal, route))
  const statuses = new Set(refusals.map(({ statusCode }) => statusCode))
  const withStatus = (status: number) => refusals.filter(({ statusCode }) => statusCode === status)
  return Object.fromEntries([...statuses].map((status) => [status, responseOf(withStatus(status), components)]))
}

const responseOf = (refusals: readonly GatewayError[], components: Components): Reference => {
  const headers = Object.assign({}, ...refusals.map(({ code }) => HEADERS[code]))
  return components.useResponse(refusals.map(({ code }) => code).join('.'), {
    description: refusals.map(({ code, message }) => `- \`${code}\`: ${message}`).join('\n'),
    ...(Object.keys(headers).length > 0 && { headers }),
    content: {
      'application/json': {
        schema: components.useSchema(ErrorBodySchema),
        examples: Object.fromEntries(refusals.map(({ code }) => [code, { $ref: `#/components/examples/${code}` }]))
      }
    }
  })
}

const seconds = (description: string): Header => ({ description, schema: { type: 'integer', minimum: 0 } })

const HEADERS: Partial<Record<GatewayErrorCode, Readonly<Record<string, Header>>>> = {
  UNAUTHENTICATED: { 'WWW-Authenticate': { description: 'Asks for a token.', schema: { type: 'string' } } },
  RATE_LIMITED: {
    'X-RateLimit-Limit': { description: 'Attempts in one window.', schema: { type: 'integer' } },
    'X-RateLimit-Remaining': { description: 'Attempts that are left.', schema: { type: 'integer' } },
    'X-RateLimit-Reset': seconds('Seconds until the window ends.'),
    'Retry-After': seconds('Seconds to wait.')
  },
  OVERLOADED: { 'Retry-After': seconds('Seconds to wait.') }
}

const REQUEST_ID = '6f1c1f0a-52a5-4f0e-9d0c-1b1f3a4f7a52'

/** Each refusal that an operation can make, as it is answered. */
export const refusalExamples = (): Readonly<Record<string, Example>> =>
  Object.fromEntries(
    ERRORS.filter(({ code }) => typeof MADE_BY[code] === 'function').map(({ code, message }) => {
      const details = code === 'VALIDATION_FAILED' ? [{ path: '/name', message: 'expected string' }] : []
      return [code, { summary: message, value: errorBody(new GatewayError(code, { details }), REQUEST_ID) }]
    })
  )
