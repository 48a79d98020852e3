import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Static, TSchema } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { AddressSet } from '../../shared/address.js'
import { sameSecret } from '../../shared/same-secret.js'
import type { MaybePromise } from '../core/broker.js'
import { originCheck } from '../transport/admission.js'
import { type Headers, JSON_TYPE, readBody, respond } from '../transport/respond.js'
import type { Problem } from './contract.js'
import type { RouteTable } from './routes.js'
import type { SessionClaims, SessionKeys, Sessions } from './sessions.js'

const NAME = 'relay_admin'

/** Null where there is none, or two that differ: of those nobody knows which one the browser means. */
export const sessionCookie = ({ headers }: IncomingMessage): string | null => {
  const values = (headers.cookie ?? '')
    .split(';')
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(`${NAME}=`))
    .map((pair) => pair.slice(NAME.length + 1))
  return new Set(values).size === 1 ? (values[0] ?? null) : null
}

/** Until the browser is closed; when it runs out is written in the value. */
export const setSessionCookie = (value: string, isSecure: boolean): Headers => [
  'Set-Cookie',
  `${NAME}=${value}; Path=/admin; HttpOnly; SameSite=Strict${isSecure ? '; Secure' : ''}`
]

export const CLEAR_SESSION_COOKIE: Headers = [
  'Set-Cookie',
  `${NAME}=; Path=/admin; HttpOnly; SameSite=Strict; Max-Age=0`
]

const isOfHost = originCheck([])

/**
 * Whether a request comes from the admin page itself, or from no page at all. Browsers that say how page and address are
 * related are believed: a proxy in front may have changed the host, and no page can set that header.
 */
export const isFromOwnPage = ({ headers }: IncomingMessage): boolean => {
  const site = headers['sec-fetch-site']
  if (site !== undefined) return site === 'same-origin' || (site === 'none' && headers.origin === undefined)
  return isOfHost(headers.origin, headers.host)
}

export interface GuardParts {
  readonly sessions: Sessions
  readonly keys: () => SessionKeys
}

/** Every call of the API goes through here, in this order: method, page, session, token. */
export const guarded =
  (table: RouteTable, { sessions, keys }: GuardParts) =>
  (call: AdminCall, path: string): void | Promise<void> => {
    const { request } = call
    const row = Object.hasOwn(table, path) ? table[path] : undefined
    if (row === undefined) return call.refuse(404, 'NOT_FOUND', 'There is nothing here.')
    if (request.method !== row.method) {
      return call.refuse(405, 'METHOD_NOT_ALLOWED', `Only ${row.method} is possible here.`, ['Allow', row.method])
    }
    if (!isFromOwnPage(request)) return call.refuse(403, 'FOREIGN_PAGE', 'The request comes from another page.')
    if (row.access === 'everybody') return row.handle(call)

    const cookie = sessionCookie(request)
    const session = cookie === null ? null : sessions.read(cookie)
    if (session === null) {
      if (cookie !== null) call.cookie = CLEAR_SESSION_COOKIE
      return call.refuse(401, 'NOT_SIGNED_IN', 'Sign in first.')
    }
    const token = request.headers['x-admin-csrf']
    const hasToken = typeof token === 'string' && sameSecret(token, keys().csrfToken(session.id))
    if (row.method !== 'GET' && !hasToken) return call.refuse(403, 'CSRF_MISMATCH', 'X-Admin-CSRF is missing or wrong.')

    const isByHand = request.headers['x-admin-refresh'] === undefined && !isStream(request.headers.accept)
    const renewed = isByHand ? sessions.touch(session) : null
    if (renewed !== null) call.cookie = setSessionCookie(keys().sign(renewed), renewed.isSecure)
    return row.handle(call, session)
  }

/** It is opened again by itself whenever it breaks off. */
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

/** On every answer under /admin. */
export const SECURITY_HEADERS: Headers = [
  'Content-Security-Policy',
  POLICY,
  'X-Content-Type-Options',
  'nosniff',
  'X-Frame-Options',
  'DENY',
  'Referrer-Policy',
  'no-referrer',
  'Permissions-Policy',
  'camera=(), geolocation=(), microphone=(), payment=()',
  'Cross-Origin-Opener-Policy',
  'same-origin',
  'Cross-Origin-Resource-Policy',
  'same-origin'
]

export const NO_STORE: Headers = ['Cache-Control', 'no-store']

/** One request of the page, and the ways to answer it. */
export class AdminCall {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly query: URLSearchParams
  readonly address: string
  /** Null at the doors that need none. */
  session: SessionClaims | null = null
  /** A cookie to be set along with the answer. */
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

  nothing(status: 204 = 204): void {
    this.#end(status, '', [])
  }

  json(value: unknown): void {
    this.#end(200, JSON.stringify(value), JSON_TYPE)
  }

  refuse(status: number, code: string, message: string, headers: Headers = []): void {
    const problem: Problem = { error: { code, message } }
    this.#end(status, JSON.stringify(problem), [...JSON_TYPE, ...headers])
  }

  /** Hands over the body's text and what it says, once it fits; everything else is answered here. Fails as `then` does. */
  async body<Schema extends TSchema>(
    schema: Schema,
    maxBytes: number,
    then: (value: Static<Schema>, text: string) => MaybePromise<void>
  ): Promise<void> {
    if (!/^application\/json *(?:;|$)/i.test(this.request.headers['content-type'] ?? '')) {
      this.refuse(415, 'NOT_JSON', 'The body must have the type application/json.')
      return
    }
    if (Number(this.request.headers['content-length'] ?? 0) > maxBytes) {
      this.refuse(413, 'TOO_LARGE', `The body must not be longer than ${maxBytes} bytes.`)
      return
    }
    // Of a request that breaks off nothing comes.
    const bytes = await new Promise<Buffer>((done) => {
      readBody(this.request, this.response, maxBytes, done, this.headers)
    })
    const text = bytes.toString()
    const value = parse(text)
    if (value === undefined) this.refuse(400, 'NOT_JSON', 'The body is not JSON.')
    else if (!Value.Check(schema, value)) this.refuse(400, 'BAD_REQUEST', faultOf(schema, value))
    else await then(value, text)
  }

  #end(status: number, body: string, headers: Headers): void {
    // Where a body was announced and not read, it is not waited for.
    const isRead = this.request.complete || this.request.method === 'GET'
    if (!isRead) this.request.resume()
    respond(this.response, status, body, [...headers, ...this.headers, ...(isRead ? [] : ['Connection', 'close'])])
  }
}

const parse = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const faultOf = (schema: TSchema, value: unknown): string => {
  const first = Value.Errors(schema, value).First()
  return `${first?.path.slice(1).replaceAll('/', '.') || 'The body'}: ${(first?.message ?? 'not valid').toLowerCase()}`
}

/** Whether a proxy of ours says that the browser came over https. */
export const forwardedHttps = (trustedProxies: readonly string[]): ((request: IncomingMessage) => boolean) => {
  const trusted = new AddressSet(trustedProxies)
  return ({ headers, socket }) => {
    const [first = ''] = String(headers['x-forwarded-proto'] ?? '').split(',')
    return first.trim().toLowerCase() === 'https' && trusted.has(socket.remoteAddress)
  }
}

const GROUPS = 8
const NETWORK_GROUPS = 4

/** Whose attempts are counted together: one household or office has a whole /64 of IPv6. */
export const networkOf = (address: string): string => {
  if (!address.includes(':')) return address
  const [before = '', after] = address.split('::')
  const groups = groupsOf(before)
  if (after !== undefined) {
    const tail = groupsOf(after)
    while (groups.length + tail.length < GROUPS) groups.push('0')
    groups.push(...tail)
  }
  const network = groups.slice(0, NETWORK_GROUPS).map((group) => group.replace(/^0+(?=.)/, ''))
  return `${network.join(':')}::/64`
}

const groupsOf = (text: string): string[] => (text === '' ? [] : text.split(':'))
