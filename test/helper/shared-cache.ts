import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import { urlOf } from './address.js'
import type { Teardown } from './child.js'
import { type HttpResponse, send } from './http.js'

interface StoredResponse {
  response: HttpResponse
  /** The request headers that `Vary` names. */
  readonly selecting: Readonly<Record<string, unknown>>
}

export interface SharedCache {
  readonly url: string
  /** The targets whose response was stored. */
  readonly stored: string[]
}

/**
 * A shared cache between browsers and a server that stores everything RFC 9111 permits, cookies too, and ignores time: a
 * response with any lifetime is fresh. Like a CDN it prefers `CDN-Cache-Control` and `Surrogate-Control`.
 */
export const startSharedCache = async (t: Teardown, origin: string): Promise<SharedCache> => {
  const responses = new Map<string, StoredResponse[]>()
  const stored: string[] = []

  const server = createServer(async (request, reply) => {
    const { method = '', url = '', headers } = request
    const known = (responses.get(url) ?? []).find(({ selecting }) =>
      Object.entries(selecting).every(([name, value]) => headers[name] === value)
    )
    const isRead = method === 'GET' || method === 'HEAD'
    const isReused = isRead && known !== undefined && (isFresh(known.response) || (await isValid(known, url, headers)))
    const response = isReused ? known.response : await send(origin, url, { method, headers })
    if (!isReused && method === 'GET' && isStorable(response, headers)) {
      const names = listIn(response.headers.vary)
      const selecting = Object.fromEntries(names.map((name) => [name, headers[name]]))
      responses.set(url, [...(responses.get(url) ?? []), { response, selecting }])
      stored.push(url)
    }
    const { 'transfer-encoding': _coding, 'content-length': _length, ...kept } = response.headers
    reply.writeHead(response.status, { ...kept, connection: 'close', ...(isReused && { age: '1' }) })
    reply.end(method === 'HEAD' ? undefined : response.body)
  })

  /** Revalidates a stored response with the request of the browser, and updates its headers (RFC 9111, 3.2). */
  const isValid = async (known: StoredResponse, url: string, browser: IncomingHttpHeaders): Promise<boolean> => {
    const { etag } = known.response.headers
    if (etag === undefined) return false
    const { status, headers } = await send(origin, url, { headers: { ...browser, 'if-none-match': etag } })
    if (status === 304) known.response = { ...known.response, headers: { ...known.response.headers, ...headers } }
    return status === 304
  }

  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => server.close())
  return { url: urlOf(server), stored }
}

const listIn = (value: string | undefined): string[] =>
  (value ?? '')
    .toLowerCase()
    .split(',')
    .map((part) => part.trim())
    .filter(Boolean)

/** The directives that apply to a shared cache. */
const directivesOf = (headers: IncomingHttpHeaders): string[] => {
  const targeted = headers['cdn-cache-control'] ?? headers['surrogate-control'] ?? headers['cache-control']
  return listIn([targeted].flat().join(','))
}

const lifetimeOf = (headers: IncomingHttpHeaders): number | null => {
  const directives = directivesOf(headers)
  for (const name of ['s-maxage', 'max-age']) {
    const found = directives.find((directive) => directive.startsWith(`${name}=`))
    if (found !== undefined) return Number(found.slice(name.length + 1))
  }
  return headers.expires === undefined ? null : Math.max(0, Date.parse(headers.expires) - Date.now()) || 0
}

// RFC 9110, 15.1: cacheable without an explicit lifetime.
const HEURISTICALLY_CACHEABLE: ReadonlySet<number> = new Set([200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501])

/** RFC 9111, 3. */
const isStorable = ({ status, headers }: HttpResponse, request: IncomingHttpHeaders): boolean => {
  const directives = directivesOf(headers)
  if (directives.includes('no-store') || directives.includes('private') || listIn(headers.vary).includes('*'))
    return false
  const allowsAuthorized = directives.some((directive) => /^(?:public|must-revalidate|s-maxage=.*)$/.test(directive))
  if (request.authorization !== undefined && !allowsAuthorized) return false
  return lifetimeOf(headers) !== null || directives.includes('public') || HEURISTICALLY_CACHEABLE.has(status)
}

const isFresh = ({ headers }: HttpResponse): boolean =>
  !directivesOf(headers).includes('no-cache') && lifetimeOf(headers) !== 0
