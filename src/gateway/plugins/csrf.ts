import type { FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { sameSecret } from '../../shared/same-secret.js'
import { isApiPath, MUTATING_METHODS, needsCsrfToken } from '../access.js'
import type { GatewayConfig } from '../config.js'
import { GatewayError } from '../errors.js'
import { browserHost } from '../request-context.js'
import { cookieValues } from '../session/cookies.js'
import type { CsrfTokens } from '../session/csrf-tokens.js'

export interface CsrfOptions {
  readonly config: Pick<GatewayConfig, 'csrf'>
  readonly csrfTokens: CsrfTokens
}

/** Mutations must come from our own page or an allowed origin, and carry the CSRF token in cookie and header. */
export const csrf = fp<CsrfOptions>(
  async (app, { config: { csrf: config }, csrfTokens }) => {
    if (!config.enforced) return
    const allowedOrigins: ReadonlySet<string> = new Set(config.allowedOrigins)

    app.addHook('onRequest', (request, _reply, done) => {
      if (!MUTATING_METHODS.has(request.method) || !isApiPath(request.path)) return done()
      // No path is exempt: a foreign page must not be able to sign a user in either.
      if (isFromForeignPage(request)) return done(new GatewayError('ORIGIN_REFUSED'))
      if (!needsCsrfToken(request.method, request.path) || hasTokenPair(request)) return done()
      done(new GatewayError('CSRF_MISMATCH'))
    })

    const isFromForeignPage = (request: FastifyRequest): boolean => {
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

    const hasTokenPair = ({ headers }: FastifyRequest): boolean => {
      const [cookie, another] = cookieValues(headers.cookie, 'csrf_token')
      const header = headers['x-csrf-token']
      // An empty cookie and an empty header are equal, but they are not a token.
      if (!cookie || another !== undefined || typeof header !== 'string' || !sameSecret(cookie, header)) return false
      return !config.signed || csrfTokens.isValid(cookie)
    }
  },
  { name: 'csrf', fastify: '5.x', dependencies: ['login-limit'] }
)

/** Browsers omit the default port; other clients may not. */
const withoutDefaultPort = (origin: string): string =>
  origin.endsWith(defaultPort(origin)) ? origin.slice(0, -defaultPort(origin).length) : origin

const defaultPort = (origin: string): string => (origin.startsWith('https:') ? ':443' : ':80')

/** False for `null`, which sandboxed and file pages send, and for a malformed origin. */
const isOriginOfHost = (origin: string, host: string): boolean => {
  const [, originHost] = /^https?:\/\/([^/?#@\\]+)$/.exec(origin) ?? []
  return originHost !== undefined && (originHost === host || `${originHost}${defaultPort(origin)}` === host)
}
