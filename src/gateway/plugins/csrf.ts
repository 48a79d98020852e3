import type { FastifyInstance, FastifyRequest } from 'fastify'
import { sameSecret } from '../../shared/same-secret.js'
import { isApiPath, MUTATING_METHODS, needsCsrfToken } from '../access.js'
import type { GatewayConfig } from '../config.js'
import { GatewayError } from '../errors.js'
import { browserHost } from '../request-context.js'
import { cookieValues } from '../session/cookies.js'
import type { CsrfTokens } from '../session/csrf-tokens.js'

/** Third: what changes something must come from our own page, and prove it. */
export const csrf = (app: FastifyInstance, config: GatewayConfig['csrf'], tokens: CsrfTokens): void => {
  if (!config.enforced) return
  const allowedOrigins: ReadonlySet<string> = new Set(config.allowedOrigins)

  app.addHook('onRequest', (request, _reply, done) => {
    if (!MUTATING_METHODS.has(request.method) || !isApiPath(request.path)) return done()
    // No path is exempt from this: a foreign page must not be able to sign somebody in either.
    if (isFromForeignPage(request)) return done(new GatewayError('ORIGIN_REFUSED'))
    if (!needsCsrfToken(request.method, request.path) || carriesTokenPair(request)) return done()
    done(new GatewayError('CSRF_MISMATCH'))
  })

  const isFromForeignPage = (request: FastifyRequest): boolean => {
    const { headers } = request
    const origin = headers.origin === undefined ? undefined : withoutDefaultPort(headers.origin.toLowerCase())
    if (origin !== undefined && allowedOrigins.has(origin)) return false
    if (headers['sec-fetch-site'] === 'cross-site') return true
    // Not every client is a browser; those that are send an Origin with what changes something.
    return (
      origin !== undefined &&
      origin !== config.publicOrigin &&
      !isOriginOfHost(origin, browserHost(request).toLowerCase())
    )
  }

  const carriesTokenPair = ({ headers }: FastifyRequest): boolean => {
    const [cookie, another] = cookieValues(headers.cookie, 'csrf_token')
    const header = headers['x-csrf-token']
    // Two empty values are equal, and prove nothing.
    if (!cookie || another !== undefined || typeof header !== 'string' || !sameSecret(cookie, header)) return false
    return !config.signed || tokens.isValid(cookie)
  }
}

/** Browsers leave it out; other programs need not. */
const withoutDefaultPort = (origin: string): string =>
  origin.endsWith(defaultPort(origin)) ? origin.slice(0, -defaultPort(origin).length) : origin

const defaultPort = (origin: string): string => (origin.startsWith('https:') ? ':443' : ':80')

/** False for `null`, which sandboxed and file pages send, and for what is no origin at all. */
const isOriginOfHost = (origin: string, host: string): boolean => {
  const [, originHost] = /^https?:\/\/([^/?#@\\]+)$/.exec(origin) ?? []
  return originHost !== undefined && (originHost === host || `${originHost}${defaultPort(origin)}` === host)
}
