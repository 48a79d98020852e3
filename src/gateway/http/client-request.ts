import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { normalizeIP } from '@fastify/rate-limit'
import type { FastifyRequest } from 'fastify'
import { normalAddress } from '../../shared/ip-address.js'

/** The client's address as far as trusted proxies report it. An invalid value falls back to the socket's peer. */
export const clientAddress = (request: FastifyRequest): string =>
  normalAddress(request.ip ?? '') ?? normalAddress(request.socket.remoteAddress ?? '') ?? 'unknown'

// Households and offices get a /64 network, so its addresses share the limits of one.
const IPV6_PREFIX_LENGTH = 64

/** The key under which limits count an address. */
export const addressGroup = (address: string): string => normalizeIP(address, IPV6_PREFIX_LENGTH)

// A client may choose the id that appears in logs, within these limits.
const VALID_ID = /^[A-Za-z0-9._-]{1,64}$/

/** The request id given by the proxy or client if it is valid, else a new one. */
export const requestId = ({ headers }: Pick<IncomingMessage, 'headers'>): string => {
  const given = headers['x-request-id']
  return typeof given === 'string' && VALID_ID.test(given) ? given : randomUUID()
}

/** Label for requests without a route: unknown paths, and paths that the router rejects. */
const NO_ROUTE = 'none'

/** The template of the request's route, for metrics and logs. All paths of the catch-all have the same label. */
export const routeLabel = (request: FastifyRequest): string => request.routeOptions.url ?? NO_ROUTE

// The scheme and host that the browser used, if a trusted proxy forwards them. A proxy may forward values that the client
// sent, so an invalid value counts as absent.

/** A name or address, and a port; empty without a Host header. Anything else may be an attack on a URL that is built from it. */
export const HOST = /^(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])?(?::\d{0,5})?$/

/** `X-Forwarded-Host` of a trusted proxy, else the Host header. */
export const browserHost = (request: FastifyRequest): string => {
  const { host, headers } = request
  const own = headers.host ?? ''
  return host === own || isForwardableHost(host) ? host : own
}

const isForwardableHost = (host: string): boolean =>
  host !== '' && !host.startsWith(':') && HOST.test(host) && URL.canParse(`http://${host}`)

/** `X-Forwarded-Proto` of a trusted proxy, else `http`: the gateway itself does not serve TLS. */
export const browserProtocol = ({ protocol }: FastifyRequest): 'http' | 'https' =>
  // Undefined, contrary to its type, for a request that has lost its socket.
  (protocol as string | undefined)?.toLowerCase() === 'https' ? 'https' : 'http'
