import type { FieldError } from '../../../schemas/field-errors.js'
import type { GatewayErrorCode } from '../api/error-codes.js'
import { fieldsOf } from '../fields-of.js'
import type { FakeCookies, FakeUser } from './fake-cookies.js'

/** A request, as a handler of the fake backend receives it. */
export interface FakeRequest {
  readonly method: string
  readonly path: string
  /** The values of `:name` in the path of the route, decoded. */
  readonly params: Readonly<Record<string, string>>
  readonly query: URLSearchParams
  readonly headers: Headers
  /** Parsed JSON, a form, or a text; null without a body. */
  readonly body: unknown
  /** Null if nobody is signed in. As in reality, the backend decides about reads. */
  readonly user: FakeUser | null
}

/**
 * Returns a value, which is sent as JSON with status 200, or a `Response`. A handler that throws is a service that cannot be
 * reached.
 */
export type FakeHandler = (request: FakeRequest) => unknown

export interface FakeHttpOptions {
  readonly cookies: FakeCookies
  /** By method and path: `GET /api/orders/:id`. */
  readonly routes: Readonly<Record<string, FakeHandler>>
  readonly login: (credentials: Readonly<Record<string, unknown>>) => FakeUser | null
  readonly sessionSeconds: number
  /** Returns the address of the relay and a token for the user. */
  readonly negotiate: (user: FakeUser) => { readonly url: string; readonly token: string }
}

// The same as those of the gateway, which a test compares.
const ERRORS = {
  MALFORMED_BODY: [400, 'The body is not valid JSON.'],
  UNAUTHENTICATED: [401, 'Sign in to do this.'],
  FORBIDDEN: [403, 'Your account may not do this.'],
  CSRF_MISMATCH: [403, 'This request does not carry a valid CSRF token. Reload the page and try again.'],
  NOT_FOUND: [404, 'This address does not exist.'],
  METHOD_NOT_ALLOWED: [405, 'This path does not take this method.']
} as const satisfies Partial<Record<GatewayErrorCode, readonly [status: number, message: string]>>

/** An error response of the gateway, in its shape. */
class GatewayFailure extends Error {
  readonly code: keyof typeof ERRORS
  readonly headers: Readonly<Record<string, string>>

  constructor(code: keyof typeof ERRORS, headers: Readonly<Record<string, string>> = {}) {
    super(code)
    this.code = code
    this.headers = headers
  }

  response(requestId: string): Response {
    const [status, message] = ERRORS[this.code]
    const details: readonly FieldError[] = []
    return json(
      { success: false, error: { code: this.code, message, details }, requestId },
      { status, headers: { 'x-gateway-error': this.code, 'cache-control': 'no-store', ...this.headers } }
    )
  }
}

const json = (value: unknown, init: ResponseInit = {}): Response => {
  const headers = new Headers(init.headers)
  headers.set('content-type', 'application/json; charset=utf-8')
  return new Response(JSON.stringify(value ?? null), { ...init, headers })
}

const READING_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])
const CSRF_EXEMPT_PATHS: ReadonlySet<string> = new Set([
  '/api/auth/login',
  '/api/auth/backend-login',
  '/api/auth/csrf-token',
  '/api/health'
])

/** The rules of the gateway's defaults: whose token a path needs. */
const isUnder = (prefix: string, path: string): boolean => path === prefix || path.startsWith(`${prefix}/`)
const isPublic = (path: string): boolean => ['/api/auth', '/api/health'].some((prefix) => isUnder(prefix, path))
const isStrict = (path: string): boolean => ['/api/audit', '/api/admin'].some((prefix) => isUnder(prefix, path))

/** Responds to requests as a gateway in front of a backend with these routes does. */
export class FakeHttp {
  readonly #options: FakeHttpOptions
  readonly #routes: Readonly<Record<string, FakeHandler>>
  #requests = 0

  constructor(options: FakeHttpOptions) {
    this.#options = options
    this.#routes = { ...this.#sessionRoutes(), ...options.routes }
    for (const name of Object.keys(options.routes))
      if (!/^[A-Z]+ \/api\/\S*$/.test(name)) throw new TypeError(`routes: "${name}" is not like "GET /api/orders/:id"`)
  }

  /** Rejects, without a response, if the handler throws. */
  async respond(request: Omit<FakeRequest, 'params' | 'user' | 'body'>, body: unknown): Promise<Response> {
    this.#requests += 1
    const requestId = `fake-${this.#requests}`
    try {
      const response = await this.#handle(request, body)
      response.headers.set('x-request-id', requestId)
      if (isUnder('/api/auth', request.path)) response.headers.set('cache-control', 'no-store')
      return response
    } catch (error) {
      if (error instanceof GatewayFailure) return error.response(requestId)
      throw error
    }
  }

  async #handle(request: Omit<FakeRequest, 'params' | 'user' | 'body'>, body: unknown): Promise<Response> {
    this.#checkCsrf(request)
    this.#checkSession(request)
    const { handler, params } = this.#routeOf(request)
    const { user } = this.#options.cookies
    const result = await handler({ ...request, params, body: parsedBody(request.headers, body), user })
    return result instanceof Response ? result : json(result)
  }

  #checkCsrf({ method, path, headers }: Pick<FakeRequest, 'method' | 'path' | 'headers'>): void {
    if (READING_METHODS.has(method) || CSRF_EXEMPT_PATHS.has(path)) return
    const token = this.#options.cookies.get('csrf_token')
    if (token === null || headers.get('x-csrf-token') !== token) throw new GatewayFailure('CSRF_MISMATCH')
  }

  #checkSession({ method, path }: Pick<FakeRequest, 'method' | 'path'>): void {
    if (isPublic(path) || (READING_METHODS.has(method) && !isStrict(path))) return
    const { user } = this.#options.cookies
    if (user === null)
      throw new GatewayFailure('UNAUTHENTICATED', { 'www-authenticate': 'Bearer error="invalid_token"' })
    if (isUnder('/api/admin', path) && user.role !== 'admin') throw new GatewayFailure('FORBIDDEN')
  }

  #routeOf({ method, path }: Pick<FakeRequest, 'method' | 'path'>): {
    readonly handler: FakeHandler
    readonly params: FakeRequest['params']
  } {
    const methods: string[] = []
    for (const [name, handler] of Object.entries(this.#routes)) {
      const [routeMethod = '', pattern = ''] = name.split(' ')
      const params = paramsOf(pattern, path)
      if (params === null) continue
      if (routeMethod === method) return { handler, params }
      methods.push(routeMethod)
    }
    if (methods.length === 0) throw new GatewayFailure('NOT_FOUND')
    throw new GatewayFailure('METHOD_NOT_ALLOWED', { allow: methods.toSorted().join(', ') })
  }

  #sessionRoutes(): Record<string, FakeHandler> {
    const { cookies, login, sessionSeconds, negotiate } = this.#options
    const signIn: FakeHandler = ({ body }) => {
      const user = login(fieldsOf(body))
      if (user === null) return rejected('INVALID_CREDENTIALS', 'The e-mail address or the password is wrong.')
      cookies.signIn(user, sessionSeconds)
      return { success: true, data: { user, expiresIn: sessionSeconds } }
    }
    const signedIn =
      (handler: (user: FakeUser) => unknown): FakeHandler =>
      ({ user }) =>
        user === null ? rejected('UNAUTHENTICATED', 'Sign in to do this.') : handler(user)
    return {
      'POST /api/auth/login': signIn,
      'POST /api/auth/backend-login': signIn,
      'POST /api/auth/logout': () => {
        cookies.signOut()
        return { success: true }
      },
      'GET /api/auth/csrf-token': () => ({ success: true, csrfToken: cookies.csrfToken() }),
      'GET /api/auth/providers': () => ({ success: true, data: [] }),
      'GET /api/auth/backend-me': signedIn((user) => ({ success: true, data: { user } })),
      'GET /api/negotiate': signedIn((user) => ({
        success: true,
        data: { ...negotiate(user), expiresIn: sessionSeconds }
      }))
    }
  }
}

/** An error of the backend. */
const rejected = (code: string, message: string): Response =>
  json({ success: false, error: { code, message } }, { status: 401 })

const paramsOf = (pattern: string, path: string): Readonly<Record<string, string>> | null => {
  const [names, segments] = [pattern.split('/'), path.split('/')]
  if (names.length !== segments.length) return null
  const params: Record<string, string> = {}
  for (const [index, name] of names.entries()) {
    const segment = segments[index] ?? ''
    if (name.startsWith(':') && segment !== '') params[name.slice(1)] = decodeURIComponent(segment)
    else if (name !== segment) return null
  }
  return params
}

const parsedBody = (headers: Headers, body: unknown): unknown => {
  if (typeof body !== 'string' || !headers.get('content-type')?.startsWith('application/json')) return body
  try {
    return JSON.parse(body)
  } catch {
    throw new GatewayFailure('MALFORMED_BODY')
  }
}
