import type { FastifyRequest } from 'fastify'

// The scheme and host that the browser used, where a trusted proxy forwards them. A proxy may pass on what a client
// wrote into these headers, so an invalid value counts as absent.

/** A name or address, and a port; empty without a Host header. Anything else is meant for a program that builds a URL from it. */
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
  // Undefined, whatever its type says, for a request that has lost its socket.
  (protocol as string | undefined)?.toLowerCase() === 'https' ? 'https' : 'http'
