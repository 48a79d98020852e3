import {
  type IncomingHttpHeaders,
  type IncomingMessage,
  type OutgoingHttpHeader,
  type OutgoingHttpHeaders,
  ServerResponse
} from 'node:http'

// Which caches may store a response. A shared cache between browser and gateway must not give one user's response or
// cookies to another.

type HeadArgument = OutgoingHttpHeaders | OutgoingHttpHeader[]

/**
 * A response class for the server. Node calls `writeHead` for every response, after all hooks and handlers, so none of
 * them can make a response cacheable that sets or clears a cookie.
 */
export class CookieSafeResponse<Request extends IncomingMessage = IncomingMessage> extends ServerResponse<Request> {
  override writeHead(status: number, reason?: string | HeadArgument, headers?: HeadArgument): this {
    // Like Node, which ignores a second argument of undefined.
    const given = headers ?? (typeof reason === 'string' ? undefined : reason)
    if (!this.hasHeader('set-cookie') && !hasCookie(given))
      return typeof reason === 'string' ? super.writeHead(status, reason, given) : super.writeHead(status, given)
    for (const name of this.getHeaderNames()) if (isCachingHeader(name)) this.removeHeader(name)
    const parts = listOf(given)
    const kept = parts.filter((_part, index) => !isCachingHeader(String(parts[index - (index % 2)]).toLowerCase()))
    return super.writeHead(status, [...kept, 'cache-control', 'no-store'])
  }
}

const hasCookie = (headers: HeadArgument | undefined): boolean => {
  if (headers === undefined) return false
  if (!Array.isArray(headers)) return Object.keys(headers).some(isCookieName)
  return listOf(headers).some((part, index) => index % 2 === 0 && isCookieName(String(part)))
}

const isCookieName = (name: string): boolean =>
  name.length === 'set-cookie'.length && name.toLowerCase() === 'set-cookie'

/** Alternating names and values of the forms that `writeHead` accepts: an object, such a list, or a list of pairs. */
const listOf = (headers: HeadArgument = []): OutgoingHttpHeader[] => {
  if (Array.isArray(headers)) return Array.isArray(headers[0]) ? headers.flat() : headers
  return Object.entries(headers).flatMap(([name, value]) => (value === undefined ? [] : [name, value]))
}

const isCachingHeader = (name: string): boolean => CACHING_HEADERS.has(name) || isSharedCachingHeader(name)

const CACHING_HEADERS: ReadonlySet<string> = new Set(['cache-control', 'expires', 'pragma'])

/** CDNs and proxies prefer these to Cache-Control: the headers of RFC 9213, such as `CDN-Cache-Control`, and older ones. */
const isSharedCachingHeader = (name: string): boolean =>
  name.endsWith('-cache-control') || OLD_SHARED_CACHING_HEADERS.has(name)

const OLD_SHARED_CACHING_HEADERS: ReadonlySet<string> = new Set([
  'surrogate-control',
  'edge-control',
  // nginx
  'x-accel-expires'
])

/**
 * The headers of a response to one user, alternating names in lower case and values: the browser may store the response if
 * the backend permits that, shared caches may not.
 */
export const withoutSharedCaching = (headers: readonly string[]): string[] => {
  const kept: string[] = []
  let cacheControl: string | null = null
  for (let index = 0; index < headers.length; index += 2) {
    const name = headers[index] ?? ''
    const value = headers[index + 1] ?? ''
    if (name === 'cache-control') cacheControl = cacheControl === null ? value : `${cacheControl}, ${value}`
    else if (!isSharedCachingHeader(name)) kept.push(name, value)
  }
  if (cacheControl !== null) kept.push('cache-control', privateCacheControl(cacheControl))
  return kept
}

// `private="name"` restricts only the named header; the others permit shared caches to store the response.
const SHARED_DIRECTIVE = /^(?:public|private|s-maxage|proxy-revalidate)\s*(?:=|$)/i

/** `private` comes first, where no quotation mark can make it a part of another directive. */
const privateCacheControl = (value: string): string => {
  const directives = value.split(',').map((directive) => directive.trim())
  if (!value.includes('"') && directives.some((directive) => directive.toLowerCase() === 'no-store')) return value
  return ['private', ...directives.filter((text) => text !== '' && !SHARED_DIRECTIVE.test(text))].join(', ')
}

/**
 * For requests whose response sets or clears a cookie: the response is complete, never 304. A cache adds the headers of a
 * 304, its cookies too, to the response that it has stored (RFC 9111, 3.2), and gives that to everybody.
 */
export const removeConditions = (headers: IncomingHttpHeaders): void => {
  delete headers['if-none-match']
  delete headers['if-modified-since']
}

const VARIES_WITH_AUTHORIZATION = /(?:^|,)\s*authorization\s*(?:,|$)/i

/** Browsers send the token as a cookie: a response that varies with `Authorization` for the backend varies with `Cookie`. */
export const browserVary = (vary: string): string => (VARIES_WITH_AUTHORIZATION.test(vary) ? `${vary}, Cookie` : vary)
