import type { FastifyRequest } from 'fastify'
import type { GatewayConfig } from './config.js'
import { browserHost } from './request-context.js'

/** Which pages may send mutations and open WebSockets: our own, and those of PUBLIC_URL and ALLOWED_ORIGINS. */
export class OriginRules {
  readonly #publicOrigin: string | null
  readonly #allowed: ReadonlySet<string>

  constructor({ publicOrigin, allowedOrigins }: Pick<GatewayConfig['csrf'], 'publicOrigin' | 'allowedOrigins'>) {
    this.#publicOrigin = publicOrigin
    this.#allowed = new Set(allowedOrigins)
  }

  isForeignPage(request: FastifyRequest): boolean {
    const { headers } = request
    const origin = headers.origin === undefined ? undefined : withoutDefaultPort(headers.origin.toLowerCase())
    if (origin !== undefined && this.#allowed.has(origin)) return false
    if (headers['sec-fetch-site'] === 'cross-site') return true
    // Browsers send an Origin with every mutation and WebSocket; other clients need not.
    return (
      origin !== undefined &&
      origin !== this.#publicOrigin &&
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
