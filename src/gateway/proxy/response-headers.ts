import type { IncomingHttpHeaders } from 'node:http'
import { HOP_BY_HOP } from '../../shared/hop-by-hop.js'
import { browserVary, withoutSharedCaching } from '../http/caching.js'
import type { Backend } from './backend-pool.js'
import { connectionHeaderNames } from './request-headers.js'

const NOT_TO_BROWSER: ReadonlySet<string> = new Set([
  ...HOP_BY_HOP,
  // The gateway sends its own security headers.
  'content-security-policy',
  'content-security-policy-report-only',
  'strict-transport-security',
  'x-content-type-options',
  'x-frame-options',
  'referrer-policy',
  'permissions-policy',
  // The gateway owns the session: the backend must not set or clear cookies.
  'set-cookie',
  'set-cookie2',
  'x-request-id',
  'x-gateway-error',
  'x-auth-permissions-at',
  'x-logout-at',
  // Details of the backend's software and of the proxies in front of it.
  'x-powered-by',
  'server',
  'x-aspnet-version',
  'x-aspnetmvc-version',
  'via'
])

/**
 * Headers that act beyond their response: on the page, on its origin, or on a proxy in front of the gateway. A row can let them
 * pass. docs/reference/gateway-http.md lists them.
 */
export const ACTING_HEADERS: readonly string[] = [
  'alt-svc',
  'clear-site-data',
  'expect-ct',
  'nel',
  'public-key-pins',
  'public-key-pins-report-only',
  'refresh',
  'report-to',
  'reporting-endpoints',
  'service-worker-allowed',
  'set-login',
  'speculation-rules',
  'x-lighttpd-send-file',
  'x-lighttpd-send-tempfile',
  'x-litespeed-location',
  'x-reproxy-file',
  'x-reproxy-url',
  'x-sendfile',
  'x-sendfile-temporary',
  'x-sendfile2'
]

const ACTING: ReadonlySet<string> = new Set(ACTING_HEADERS)

/** Instructions for nginx all begin like this. `name` is in lower case. */
export const isActingHeader = (name: string): boolean => ACTING.has(name) || name.startsWith('x-accel-')

/** Alternating names and values, as received: nothing merged, no byte changed. */
export type RawHeaders = readonly string[]

type HeaderPart = Buffer | string

/** The raw response headers of undici, which declares a wider type: HTTP/2, which is disabled, yields an object. */
export const rawHeadersOf = (headers: readonly HeaderPart[] | object | null | undefined): readonly HeaderPart[] => {
  if (!Array.isArray(headers)) throw new TypeError('response headers are not a list')
  return headers
}

/** The part of a backend that its responses depend on. */
export type RespondingBackend = Pick<Backend, 'address' | 'strippedPrefix' | 'passedHeaders'>

/** Latin-1 keeps every byte. */
const textOf = (part: HeaderPart | undefined): string =>
  typeof part === 'string' ? part : (part?.toString('latin1') ?? '')

/**
 * Filters the backend's headers for the browser. Headers that the gateway has set on the reply take precedence. `isPersonal`:
 * the request had credentials, so that the response may be for one user only.
 */
export const browserResponseHeaders = (
  backendHeaders: readonly HeaderPart[],
  backend: RespondingBackend,
  replyHeaders: Readonly<Record<string, unknown>>,
  isPersonal: boolean
): string[] => {
  const headers: string[] = []
  const connectionNames = new Set<string>()
  for (let index = 0; index < backendHeaders.length; index += 2) {
    const name = textOf(backendHeaders[index]).toLowerCase()
    if (name === 'connection')
      for (const listed of connectionHeaderNames(textOf(backendHeaders[index + 1]))) connectionNames.add(listed)
    if (NOT_TO_BROWSER.has(name) || Object.hasOwn(replyHeaders, name) || isCorsHeader(name)) continue
    if (isActingHeader(name) && !backend.passedHeaders.has(name)) continue
    const value = textOf(backendHeaders[index + 1])
    headers.push(name, browserValue(name, value, backend))
  }
  const kept = connectionNames.size === 0 ? headers : withoutNames(headers, connectionNames)
  // Responses depend on the user. They are not cacheable unless the backend says so.
  if (!Object.hasOwn(replyHeaders, 'cache-control') && headerValue(kept, 'cache-control') === undefined)
    kept.push('cache-control', 'no-store')
  return isPersonal ? withoutSharedCaching(kept) : kept
}

const browserValue = (name: string, value: string, backend: RespondingBackend): string => {
  if (name === 'location') return gatewayLocation(value, backend)
  return name === 'vary' ? browserVary(value) : value
}

/** The gateway decides which origins may read responses. */
const isCorsHeader = (name: string): boolean => name.startsWith('access-control-')

export const withoutNames = (headers: RawHeaders, names: ReadonlySet<string>): string[] =>
  headers.filter((_part, index) => !names.has(headers[index - (index % 2)] ?? ''))

/** The first value of a header; `name` is in lower case. */
export const headerValue = (headers: RawHeaders, name: string): string | undefined => {
  for (let index = 0; index < headers.length; index += 2) {
    if (headers[index] === name) return headers[index + 1]
  }
  return undefined
}

const AUTHORITY = /^(?:[a-z][a-z0-9+.-]*:)?\/\/[^/\\?#]*/i

/** Rewrites redirects to the backend's address or path prefix, which browsers cannot reach, to the gateway's paths. */
const gatewayLocation = (location: string, { address, strippedPrefix }: RespondingBackend): string => {
  const { origin } = new URL(address)
  const [authority = ''] = AUTHORITY.exec(location) ?? []
  if (authority === '' ? !location.startsWith('/') : !isOrigin(authority, origin)) return location
  const path = location.slice(authority.length)
  const prefix = address.slice(origin.length)
  // Two leading slashes would turn the following segment into a host name.
  const ownPath = `/${(path.startsWith(`${prefix}/`) ? path.slice(prefix.length) : path).replace(/^[/\\]+/, '')}`
  return ownPath.startsWith(`${strippedPrefix}/`) ? ownPath : `${strippedPrefix}${ownPath}`
}

const isOrigin = (authority: string, origin: string): boolean =>
  URL.canParse(authority, origin) && new URL(authority, origin).origin === origin

export const headersObject = (headers: RawHeaders): IncomingHttpHeaders => {
  const object: Record<string, string | string[]> = {}
  for (let index = 0; index < headers.length; index += 2) {
    const [name = '', value = ''] = headers.slice(index, index + 2)
    const present = object[name]
    object[name] = present === undefined ? value : [present, value].flat()
  }
  return object
}
