import type { IncomingHttpHeaders } from 'node:http'
import { GATEWAY_OWNED_HEADERS } from '../plugins/security-headers.js'
import { HOP_BY_HOP, namesInConnection } from './request-headers.js'

const NOT_TO_BROWSER: ReadonlySet<string> = new Set([
  ...HOP_BY_HOP,
  ...GATEWAY_OWNED_HEADERS,
  // Sessions are the gateway's: a backend cannot set or clear them behind its back.
  'set-cookie',
  'clear-site-data',
  'x-request-id',
  'x-gateway-error',
  'x-auth-permissions-at',
  'x-logout-at',
  // What the backend is made of, and which way the answer came.
  'x-aspnet-version',
  'x-aspnetmvc-version',
  'via',
  // These change the page or its origin, where an answer of the API should only be read.
  'refresh',
  'service-worker-allowed',
  'alt-svc',
  'public-key-pins'
])

/** Names and values by turns, as they stand on the wire: nothing merged, no byte changed. */
export type RawHeaders = readonly string[]

/** Latin-1 keeps every byte what it was. */
const textOf = (part: Buffer | string | undefined): string =>
  typeof part === 'string' ? part : (part?.toString('latin1') ?? '')

/**
 * The headers that go to the browser, from those that the backend sent, as names and values by turns. What the gateway has
 * said itself on this answer stands.
 */
export const browserResponseHeaders = (
  incoming: readonly (Buffer | string)[],
  backendAddress: string,
  own: Readonly<Record<string, unknown>>
): string[] => {
  const headers: string[] = []
  const perConnection = new Set<string>()
  let cacheControl = Object.hasOwn(own, 'cache-control')
  for (let index = 0; index < incoming.length; index += 2) {
    const name = textOf(incoming[index]).toLowerCase()
    if (name === 'connection')
      for (const named of namesInConnection(textOf(incoming[index + 1]))) perConnection.add(named)
    if (NOT_TO_BROWSER.has(name) || Object.hasOwn(own, name) || isForOtherSites(name)) continue
    const value = textOf(incoming[index + 1])
    if (name === 'cache-control') cacheControl = true
    headers.push(name, name === 'location' ? ownLocation(value, backendAddress) : value)
  }
  // Answers depend on who asks: unless the backend says how one may be kept, it may not.
  if (!cacheControl) headers.push('cache-control', 'no-store')
  return perConnection.size === 0 ? headers : withoutNames(headers, perConnection)
}

/** Who may read our answers is not for the backend to say. */
const isForOtherSites = (name: string): boolean => name.startsWith('access-control-')

export const withoutNames = (headers: RawHeaders, names: ReadonlySet<string>): string[] =>
  headers.filter((_part, index) => !names.has(headers[index - (index % 2)] as string))

/** The first of this name; names are in small letters. */
export const headerValue = (headers: RawHeaders, wanted: string): string | undefined => {
  for (let index = 0; index < headers.length; index += 2) {
    if (headers[index] === wanted) return headers[index + 1]
  }
  return undefined
}

const AUTHORITY = /^(?:[a-z][a-z0-9+.-]*:)?\/\/[^/\\?#]*/i

/** A redirect to the backend's own address would lead the browser past us; one to its path would miss ours. */
const ownLocation = (location: string, backendAddress: string): string => {
  const { origin } = new URL(backendAddress)
  const [authority = ''] = AUTHORITY.exec(location) ?? []
  if (authority === '' ? !location.startsWith('/') : !isOrigin(authority, origin)) return location
  const path = location.slice(authority.length)
  const prefix = backendAddress.slice(origin.length)
  // Two slashes at the beginning would make another host of what comes after them.
  return `/${(path.startsWith(`${prefix}/`) ? path.slice(prefix.length) : path).replace(/^[/\\]+/, '')}`
}

const isOrigin = (authority: string, origin: string): boolean =>
  URL.canParse(authority, origin) && new URL(authority, origin).origin === origin

/** The same as an object, for those who want one. */
export const headersObject = (headers: RawHeaders): IncomingHttpHeaders => {
  const object: Record<string, string | string[]> = {}
  for (let index = 0; index < headers.length; index += 2) {
    const name = headers[index] as string
    const value = headers[index + 1] as string
    const present = object[name]
    object[name] = present === undefined ? value : [present, value].flat()
  }
  return object
}
