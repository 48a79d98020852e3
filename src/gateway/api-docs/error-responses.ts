import { ErrorBodySchema } from '../../../schemas/error-body.js'
import { accessOf, isLoginAttempt, MUTATING_METHODS, needsCsrfToken } from '../access.js'
import { errorBody, GATEWAY_ERROR_CODES, GatewayError, type GatewayErrorCode } from '../errors.js'
import type { RouteDeclaration } from '../routes/declare.js'
import type { Components } from './components.js'
import type { Example, Header, Reference } from './document.js'

/** A declared route, with everything that determines its error responses. */
export type DocumentedRoute = RouteDeclaration & {
  readonly needsBackend: boolean
}

const isMutation = ({ method }: DocumentedRoute): boolean => MUTATING_METHODS.has(method)
const takesJson = ({ body }: DocumentedRoute): boolean => body !== null
const takesBody = (route: DocumentedRoute): boolean => takesJson(route) || route.kind === 'upload'
const hasParameter = ({ path }: DocumentedRoute): boolean => path.includes('/:')
const isForAdmins = ({ path }: DocumentedRoute): boolean => accessOf(path) === 'admin'
const needsBackend = (route: DocumentedRoute): boolean => route.needsBackend

const countsAsLogin = ({ method, path }: DocumentedRoute): boolean => isLoginAttempt(method, path)

export const needsCsrfPair = ({ method, path }: DocumentedRoute): boolean => needsCsrfToken(method, path)

export const needsSession = (route: DocumentedRoute): boolean => {
  const access = accessOf(route.path)
  return access === 'mutations' ? isMutation(route) : access !== 'public'
}

type Rule = ((route: DocumentedRoute) => boolean) | 'any request' | 'other paths'

/** The operations that can fail with each error. A test compares these rules with the responses of a gateway. */
const RULES: Readonly<Record<GatewayErrorCode, Rule>> = {
  MALFORMED_REQUEST: 'any request',
  AMBIGUOUS_PATH: hasParameter,
  MALFORMED_BODY: takesJson,
  VALIDATION_FAILED: takesJson,
  UNAUTHENTICATED: needsSession,
  TOKEN_EXPIRED: needsSession,
  FORBIDDEN: isForAdmins,
  CSRF_MISMATCH: needsCsrfPair,
  ORIGIN_REFUSED: isMutation,
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

/** One of each code, for its status and message. */
const ERRORS: readonly GatewayError[] = GATEWAY_ERROR_CODES.map((code) => new GatewayError(code))

/** Errors that do not depend on the operation. They are listed once, in the introduction. */
export const errorsOfAnyRequest: readonly GatewayError[] = ERRORS.filter(({ code }) => RULES[code] === 'any request')

const isErrorOf = ({ code }: GatewayError, route: DocumentedRoute): boolean => {
  const rule = RULES[code]
  return typeof rule === 'function' && rule(route)
}

/** The error responses of an operation that the gateway itself sends, by status. */
export const errorResponses = (route: DocumentedRoute, components: Components): Readonly<Record<string, Reference>> => {
  const errors = ERRORS.filter((error) => isErrorOf(error, route))
  const statuses = new Set(errors.map(({ statusCode }) => statusCode))
  const withStatus = (status: number) => errors.filter(({ statusCode }) => statusCode === status)
  return Object.fromEntries([...statuses].map((status) => [status, responseOf(withStatus(status), components)]))
}

const responseOf = (errors: readonly GatewayError[], components: Components): Reference => {
  const headers = Object.assign({}, ...errors.map(({ code }) => HEADERS[code]))
  return components.useResponse(errors.map(({ code }) => code).join('.'), {
    description: errors.map(({ code, message }) => `- \`${code}\`: ${message}`).join('\n'),
    ...(Object.keys(headers).length > 0 && { headers }),
    content: {
      'application/json': {
        schema: components.useSchema(ErrorBodySchema),
        examples: Object.fromEntries(errors.map(({ code }) => [code, { $ref: `#/components/examples/${code}` }]))
      }
    }
  })
}

const seconds = (description: string): Header => ({ description, schema: { type: 'integer', minimum: 0 } })

const HEADERS: Partial<Record<GatewayErrorCode, Readonly<Record<string, Header>>>> = {
  UNAUTHENTICATED: { 'WWW-Authenticate': { description: 'The authentication scheme.', schema: { type: 'string' } } },
  RATE_LIMITED: {
    'X-RateLimit-Limit': { description: 'Attempts in one window.', schema: { type: 'integer' } },
    'X-RateLimit-Remaining': { description: 'Remaining attempts.', schema: { type: 'integer' } },
    'X-RateLimit-Reset': seconds('Seconds until the window ends.'),
    'Retry-After': seconds('Seconds to wait.')
  },
  OVERLOADED: { 'Retry-After': seconds('Seconds to wait.') }
}

const REQUEST_ID = '6f1c1f0a-52a5-4f0e-9d0c-1b1f3a4f7a52'

/** The body of each error that depends on the operation. */
export const errorExamples = (): Readonly<Record<string, Example>> =>
  Object.fromEntries(
    ERRORS.filter(({ code }) => typeof RULES[code] === 'function').map(({ code, message }) => {
      const details = code === 'VALIDATION_FAILED' ? [{ path: '/name', message: 'expected string' }] : []
      return [code, { summary: message, value: errorBody(new GatewayError(code, { details }), REQUEST_ID) }]
    })
  )
