import type { FastifyRequest } from 'fastify'
import type { GatewayConfig } from './config.js'
import { browserHost } from './request-context.js'

export type ForeignPageTest = (request: FastifyRequest) => boolean

/** Whether a browser sends a mutation for a page that is neither ours nor of an allowed origin. */
export const foreignPageTest = (config: GatewayConfig['csrf']): ForeignPageTest => {
  const allowedOrigins: ReadonlySet<string> = new Set(config.allowedOrigins)
  return (request) => {
    const { headers } = request
    const origin = headers.origin === undefined ? undefined : withoutDefaultPort(headers.origin.toLowerCase())
    if (origin !== undefined && allowedOrigins.has(origin)) return false
    if (headers['sec-fetch-site'] === 'cross-site') return true
    // Browsers send an Origin with every mutation; other clients need not.
    return (
      origin !== undefined &&
      origin !== config.publicOrigin &&
      !isOriginOfHost(origin, browserHost(request).toLowerCase())
    )
  }
}

/** Browsers omit the default port; other clients may not. */
const withoutDefaultPort = (origin: string): string =>
  origin.endsWith(defaultPort(origin)) ? origin.slice(0, -defaultPort(origin).length) : origin

const defaultPort = (origin: string): string => (origin.startsWith('https:') ? ':443' : ':80')

/** False for `null`, which sandboxed and file pages send, and for a malformed origin. */
const isOriginOfHost = (origin: string, host: string): boolean => {
  const [, originHost] = /^https?:\/\/([^/?#@\\]+)$/.exec(origin) ?? []
  return originHost !== undefined && (originHost === host || `${originHost}${defaultPort(origin)}` === host)
}
