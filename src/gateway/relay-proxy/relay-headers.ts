import type { FastifyRequest } from 'fastify'
import { HOP_BY_HOP } from '../../shared/hop-by-hop.js'
import { browserHost, browserProtocol } from '../http/client-request.js'

// Lists of what is forwarded, so that cookies, `Authorization` and unknown headers never reach the relay.
const WEBSOCKET_HEADERS = ['origin', 'user-agent']
const READ_HEADERS = [...WEBSOCKET_HEADERS, 'accept', 'access-control-request-headers', 'access-control-request-method']
const POST_HEADERS = [...READ_HEADERS, 'content-type', 'content-length', 'content-encoding']

/** Headers of an HTTP request to the relay. */
export const relayRequestHeaders = (request: FastifyRequest): Record<string, string> =>
  relayHeaders(request, request.method === 'POST' ? POST_HEADERS : READ_HEADERS)

// Without extensions: the relay's messages are not compressed.
const HANDSHAKE_HEADERS = [...WEBSOCKET_HEADERS, 'sec-websocket-key', 'sec-websocket-version', 'sec-websocket-protocol']

/** Headers of a WebSocket handshake with the relay. */
export const relayHandshakeHeaders = (request: FastifyRequest): Record<string, string> =>
  relayHeaders(request, HANDSHAKE_HEADERS)

const relayHeaders = (request: FastifyRequest, names: readonly string[]): Record<string, string> => {
  const forwarded: Record<string, string> = {}
  for (const name of names) {
    const value = request.raw.headers[name]
    if (typeof value === 'string' && value !== '') forwarded[name] = value
  }
  return {
    ...forwarded,
    // The relay compares it with the origin of the page.
    host: browserHost(request),
    'x-forwarded-for': request.clientAddress,
    'x-forwarded-proto': browserProtocol(request),
    'x-request-id': request.id
  }
}

// Cookies of this origin belong to the gateway.
const NOT_TO_BROWSER: ReadonlySet<string> = new Set([...HOP_BY_HOP, 'set-cookie', 'server', 'x-powered-by'])

/** Headers of a response of the relay for the browser. */
export const relayResponseHeaders = <Headers extends object>(headers: Headers): Headers =>
  // The same headers without some optional ones.
  Object.fromEntries(Object.entries(headers).filter(([name]) => !NOT_TO_BROWSER.has(name))) as Headers
