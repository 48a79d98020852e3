import { ErrorBodySchema } from '../../../schemas/error-body.js'
import { type Access, type AccessRules, isApiPath, isLoginAttempt, needsCsrfToken, WRITE_METHODS } from '../access.js'
import { errorBody, GATEWAY_ERROR_CODES, GatewayError, type GatewayErrorCode } from '../errors.js'
import type { RouteDeclaration } from './tables/declare.js'

/** A response in the form that Fastify and @fastify/swagger read. `null` is a response whose body is not documented. */
export interface ResponseSchema {
  readonly description: string
  readonly type?: 'null'
  /** The schema of each header. */
  readonly headers?: Readonly<Record<string, object>>
  readonly content?: Readonly<Record<string, { readonly schema: object; readonly examples?: object }>>
}

const isWrite = ({ method }: RouteDeclaration): boolean => WRITE_METHODS.has(method)
const takesJson = ({ body }: RouteDeclaration): boolean => body !== null
const takesBody = (row: RouteDeclaration): boolean => takesJson(row) || row.kind === 'upload'
const hasParameter = ({ path }: RouteDeclaration): boolean => path.includes('/:')
const accessOf = ({ access, path }: RouteDeclaration, rules: AccessRules): Access => rules.accessOf(path, access)

const isForAdmins = (row: RouteDeclaration, rules: AccessRules): boolean => accessOf(row, rules) === 'admin'
const needsBackend = (row: RouteDeclaration): boolean => row.kind !== 'local' || row.documentation.needsBackend

const countsAsLogin = ({ method, path }: RouteDeclaration): boolean => isLoginAttempt(method, path)

/** Outside of `/api/` there are only the operations of rows, of which none is exempt. */
export const needsCsrfPair = (row: RouteDeclaration): boolean =>
  isApiPath(row.path) ? needsCsrfToken(row.method, row.path) : isWrite(row)

export const needsSession = (row: RouteDeclaration, rules: AccessRules): boolean => {
  const access = accessOf(row, rules)
  return access === 'write' ? isWrite(row) : access !== 'public'
}

type Rule = ((row: RouteDeclaration, rules: AccessRules) => boolean) | 'any request' | 'other paths'

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
  ORIGIN_REFUSED: isWrite,
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
  RELAY_UNREACHABLE: 'other paths',
  OVERLOADED: needsBackend,
  // Only with revocation, which is off by default.
  REVOCATIONS_UNKNOWN: 'other paths',
  REVOCATION_INCOMPLETE: 'other paths',
  BACKEND_TIMEOUT: needsBackend,
  RELAY_TIMEOUT: 'other paths',
  LOOP_DETECTED: 'other paths'
}

/** One of each code, for its status and message. */
const ERRORS: readonly GatewayError[] = GATEWAY_ERROR_CODES.map((code) => new GatewayError(code))

/** Errors that do not depend on the operation. They are listed once, in the introduction. */
export const errorsOfAnyRequest: readonly GatewayError[] = ERRORS.filter(({ code }) => RULES[code] === 'any request')

const isErrorOf = ({ code }: GatewayError, row: RouteDeclaration, rules: AccessRules): boolean => {
  const rule = RULES[code]
  return typeof rule === 'function' && rule(row, rules)
}

/** The error responses of an operation that the gateway itself sends, by status. `more` are errors beside those of the rules. */
export const errorResponses = (
  row: RouteDeclaration,
  rules: AccessRules,
  more: readonly GatewayErrorCode[] = []
): Readonly<Record<string, ResponseSchema>> => {
  const errors = ERRORS.filter((error) => isErrorOf(error, row, rules) || more.includes(error.code))
  const statuses = new Set(errors.map(({ statusCode }) => statusCode))
  const withStatus = (status: number) => errors.filter(({ statusCode }) => statusCode === status)
  return Object.fromEntries([...statuses].map((status) => [status, responseOf(withStatus(status))]))
}

const responseOf = (errors: readonly GatewayError[]): ResponseSchema => {
  const headers = Object.assign({}, ...errors.map(({ code }) => HEADERS[code]))
  return {
    description: errors.map(({ code, message }) => `- \`${code}\`: ${message}`).join('\n'),
    ...(Object.keys(headers).length > 0 && { headers }),
    content: {
      'application/json': {
        schema: { $ref: `${ErrorBodySchema.$id}#` },
        examples: Object.fromEntries(errors.map(({ code }) => [code, { $ref: `#/components/examples/${code}` }]))
      }
    }
  }
}

const seconds = (description: string) => ({ type: 'integer', minimum: 0, description })

const HEADERS: Partial<Record<GatewayErrorCode, ResponseSchema['headers']>> = {
  UNAUTHENTICATED: { 'WWW-Authenticate': { type: 'string', description: 'The authentication scheme.' } },
  RATE_LIMITED: {
    'X-RateLimit-Limit': { type: 'integer', description: 'Attempts in one window.' },
    'X-RateLimit-Remaining': { type: 'integer', description: 'Remaining attempts.' },
    'X-RateLimit-Reset': seconds('Seconds until the window ends.'),
    'Retry-After': seconds('Seconds to wait.')
  },
  OVERLOADED: { 'Retry-After': seconds('Seconds to wait.') }
}

const REQUEST_ID = '6f1c1f0a-52a5-4f0e-9d0c-1b1f3a4f7a52'

/** The body of each error that depends on the operation. */
export const errorExamples = (): Readonly<Record<string, { readonly summary: string; readonly value: unknown }>> =>
  Object.fromEntries(
    ERRORS.filter(({ code }) => typeof RULES[code] === 'function').map(({ code, message }) => {
      const details = code === 'VALIDATION_FAILED' ? [{ path: '/name', message: 'expected string' }] : []
      return [code, { summary: message, value: errorBody(new GatewayError(code, { details }), REQUEST_ID) }]
    })
  )
