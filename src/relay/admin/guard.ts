import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Static, TSchema } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { AddressSet } from '../../shared/ip-address.js'
import { jsonOrUndefined } from '../../shared/json-or-undefined.js'
import { sameSecret } from '../../shared/same-secret.js'
import { originCheck } from '../transport/admission.js'
import { type Headers, JSON_TYPE, readBody, respond } from '../transport/respond.js'
import type { Problem } from './contract.js'
import type { SessionClaims, SessionKeys, Sessions } from './sessions.js'

interface PublicRoute {
  readonly method: 'GET' | 'POST'
  readonly access: 'public'
  handle(call: AdminCall): void | Promise<void>
}

export interface SessionRoute {
  readonly method: 'GET' | 'POST'
  readonly access: 'session'
  handle(call: AdminCall, session: SessionClaims): void | Promise<void>
}

/** Routes by path. Every path has one method. */
export type AdminRoutes = Readonly<Record<string, PublicRoute | SessionRoute>>

const COOKIE_NAME = 'relay_admin'

/** Null if the cookie is missing, or present with two different values. */
export const adminSessionCookie = ({ headers }: IncomingMessage): string | null => {
  const values = (headers.cookie ?? '')
    .split(';')
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(`${COOKIE_NAME}=`))
    .map((pair) => pair.slice(COOKIE_NAME.length + 1))
  return new Set(values).size === 1 ? (values[0] ?? null) : null
}

/** A cookie until the browser is closed. Its value contains the times for the expiry. */
export const setSessionCookie = (value: string, isSecure: boolean): Headers => [
  'Set-Cookie',
  `${COOKIE_NAME}=${value}; Path=/admin; HttpOnly; SameSite=Strict${isSecure ? '; Secure' : ''}`
]

export const CLEAR_SESSION_COOKIE: Headers = [
  'Set-Cookie',
  `${COOKIE_NAME}=; Path=/admin; HttpOnly; SameSite=Strict; Max-Age=0`
]

const isSameHost = originCheck([])

/**
 * Whether a request comes from the operators' page itself, or from no page at all. `Sec-Fetch-Site` is preferred, because a proxy
 * may have changed the host, and pages cannot set that header.
 */
const isFromOwnPage = ({ headers }: IncomingMessage): boolean => {
  const site = headers['sec-fetch-site']
  if (site !== undefined) return site === 'same-origin' || (site === 'none' && headers.origin === undefined)
  return isSameHost(headers.origin, headers.host)
}

export interface GuardDependencies {
  readonly sessions: Sessions
  readonly keys: () => SessionKeys
}

/** The checks of every API request, in this order: path, method, origin, session, CSRF token. */
export const guarded =
  (table: AdminRoutes, { sessions, keys }: GuardDependencies) =>
  (call: AdminCall, path: string): void | Promise<void> => {
    const { request } = call
    const route = Object.hasOwn(table, path) ? table[path] : undefined
    if (route === undefined) return call.reject(404, 'NOT_FOUND', 'Not found.')
    if (request.method !== route.method) {
      return call.reject(405, 'METHOD_NOT_ALLOWED', `Only ${route.method} is allowed.`, ['Allow', route.method])
    }
    if (!isFromOwnPage(request)) return call.reject(403, 'FOREIGN_PAGE', 'The request comes from another site.')
    if (route.access === 'public') return route.handle(call)

    const cookie = adminSessionCookie(request)
    const session = cookie === null ? null : sessions.read(cookie)
    if (session === null) {
      if (cookie !== null) call.cookie = CLEAR_SESSION_COOKIE
      return call.reject(401, 'NOT_SIGNED_IN', 'Sign in first.')
    }
    const token = request.headers['x-admin-csrf']
    const hasToken = typeof token === 'string' && sameSecret(token, keys().csrfToken(session.id))
    if (route.method !== 'GET' && !hasToken)
      return call.reject(403, 'CSRF_MISMATCH', 'X-Admin-CSRF is missing or wrong.')

    const isUserAction = request.headers['x-admin-refresh'] === undefined && !isStream(request.headers.accept)
    const renewed = isUserAction ? sessions.touch(session) : null
    if (renewed !== null) call.cookie = setSessionCookie(keys().sign(renewed), renewed.isSecure)
    return route.handle(call, session)
  }

/** Event streams reconnect automatically, so they are no activity of the user. */
const isStream = (accept: string | undefined): boolean => accept?.includes('text/event-stream') ?? false

const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "manifest-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'"
].join('; ')

/** On every response below /admin. */
export const SECURITY_HEADERS: Headers = Object.entries({
  'Content-Security-Policy': POLICY,
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  'Referrer-Policy': 'no-referrer',
  'Permissions-Policy': 'camera=(), geolocation=(), microphone=(), payment=()',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin'
}).flat()

export const NO_STORE: Headers = ['Cache-Control', 'no-store']

/** A request of the page and its response. */
export class AdminCall {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly query: URLSearchParams
  readonly address: string
  /** The `Set-Cookie` header of the response. */
  cookie: Headers = []

  constructor(request: IncomingMessage, response: ServerResponse, address: string) {
    const { url = '' } = request
    this.request = request
    this.response = response
    this.query = new URLSearchParams(url.includes('?') ? url.slice(url.indexOf('?') + 1) : '')
    this.address = address
  }

  get headers(): Headers {
    return [...SECURITY_HEADERS, ...NO_STORE, ...this.cookie]
  }

  noContent(): void {
    this.#end(204, '', [])
  }

  json(value: unknown): void {
    this.#end(200, JSON.stringify(value), JSON_TYPE)
  }

  reject(status: number, code: string, message: string, headers: Headers = []): void {
    const problem: Problem = { error: { code, message } }
    this.#end(status, JSON.stringify(problem), [...JSON_TYPE, ...headers])
  }

  /** Reads a JSON body and passes it to `then`. Responds with an error if the body is invalid. Rejects as `then` does. */
  async body<Schema extends TSchema>(
    schema: Schema,
    maxBytes: number,
    then: (value: Static<Schema>, text: string) => void | Promise<void>
  ): Promise<void> {
    if (!/^application\/json *(?:;|$)/i.test(this.request.headers['content-type'] ?? '')) {
      this.reject(415, 'NOT_JSON', 'The body must have the type application/json.')
      return
    }
    if (Number(this.request.headers['content-length'] ?? 0) > maxBytes) {
      this.reject(413, 'TOO_LARGE', `The body must not be longer than ${maxBytes} bytes.`)
      return
    }
    // Never resolves for an aborted request.
    const bytes = await new Promise<Buffer>((done) => {
      readBody(this.request, this.response, maxBytes, done, this.headers)
    })
    const text = bytes.toString()
    const value = jsonOrUndefined(text)
    if (value === undefined) this.reject(400, 'NOT_JSON', 'The body is not JSON.')
    else if (!Value.Check(schema, value)) this.reject(400, 'BAD_REQUEST', validationError(schema, value))
    else await then(value, text)
  }

  #end(status: number, body: string, headers: Headers): void {
    // The connection is closed if the body was not read.
    const isRead = this.request.complete || this.request.method === 'GET'
    if (!isRead) this.request.resume()
    respond(this.response, status, body, [...headers, ...this.headers, ...(isRead ? [] : ['Connection', 'close'])])
  }
}

const validationError = (schema: TSchema, value: unknown): string => {
  const first = Value.Errors(schema, value).First()
  return `${first?.path.slice(1).replaceAll('/', '.') || 'The body'}: ${(first?.message ?? 'not valid').toLowerCase()}`
}

/** Whether a trusted proxy reports that the browser uses https. */
export const forwardedHttps = (trustedProxies: readonly string[]): ((request: IncomingMessage) => boolean) => {
  const trusted = new AddressSet(trustedProxies)
  return ({ headers, socket }) => {
    const [first = ''] = String(headers['x-forwarded-proto'] ?? '').split(',')
    return first.trim().toLowerCase() === 'https' && trusted.has(socket.remoteAddress)
  }
}

const GROUPS = 8
const NETWORK_GROUPS = 4

/** The address, or the /64 network for IPv6: one household or office usually has a complete /64. */
export const networkOf = (address: string): string => {
  if (!address.includes(':')) return address
  const [before = [], after = []] = address.split('::').map((part) => (part === '' ? [] : part.split(':')))
  const zeros = Array.from({ length: Math.max(0, GROUPS - before.length - after.length) }, () => '0')
  const network = [...before, ...zeros, ...after].slice(0, NETWORK_GROUPS)
  return `${network.map((group) => group.replace(/^0+(?=.)/, '')).join(':')}::/64`
}
