import type { FastifyRequest } from 'fastify'
import { isLoopbackOrigin } from '../../shared/loopback-origin.js'
import { browserHost } from './client-request.js'

export interface OriginRules {
  /** From `PUBLIC_URL`; null if it is not set. */
  readonly publicOrigin: string | null
  /** In lower case. */
  readonly allowedOrigins: readonly string[]
  /** Whether pages that this machine serves may send requests: in development. */
  readonly allowsLoopback: boolean
}

export type ForeignPageTest = (request: FastifyRequest) => boolean

/** Whether a write request or a WebSocket handshake comes from a page that is neither ours nor of an allowed origin. */
export const foreignPageTest = (rules: OriginRules): ForeignPageTest => {
  const allowedOrigins: ReadonlySet<string> = new Set(rules.allowedOrigins)
  return (request) => {
    const { headers } = request
    const origin = headers.origin === undefined ? undefined : withoutDefaultPort(headers.origin.toLowerCase())
    if (origin !== undefined && (allowedOrigins.has(origin) || (rules.allowsLoopback && isLoopbackOrigin(origin))))
      return false
    if (headers['sec-fetch-site'] === 'cross-site') return true
    // Browsers send an Origin with every write request; other clients need not.
    return (
      origin !== undefined &&
      origin !== rules.publicOrigin &&
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
