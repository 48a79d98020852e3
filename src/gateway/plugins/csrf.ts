import type { FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { sameSecret } from '../../shared/same-secret.js'
import { needsCsrfToken, WRITE_METHODS } from '../access.js'
import { GatewayError } from '../errors.js'
import { foreignPageTest, type OriginRules } from '../http/request-origin.js'
import { cookieValues } from '../session/cookies.js'
import type { CsrfTokens } from '../session/csrf-tokens.js'
import { isForBackend } from '../upstreams/upstream.js'

export interface CsrfOptions extends OriginRules {
  /** Whether the token is required: in production. The origin is checked everywhere. */
  readonly enforced: boolean
  /** Whether only tokens that this service has issued are valid. */
  readonly signed: boolean
  readonly csrfTokens: CsrfTokens
}

const isExemptPath = ({ upstream, method, path }: FastifyRequest): boolean =>
  upstream === null && !needsCsrfToken(method, path)

/** Write requests must come from our own origin or an allowed origin, and carry the CSRF token in cookie and header. */
export const csrf = fp<CsrfOptions>(
  async (app, { enforced, signed, csrfTokens, ...origins }) => {
    const isFromForeignPage = foreignPageTest(origins)

    app.addHook('onRequest', (request, _reply, done) => {
      if (!WRITE_METHODS.has(request.method) || !isForBackend(request)) return done()
      // No path is exempt: a foreign page must not be able to sign a user in either.
      if (isFromForeignPage(request)) return done(new GatewayError('ORIGIN_REFUSED'))
      const isExempt = !enforced || isExemptPath(request)
      if (isExempt || hasTokenPair(request)) return done()
      done(new GatewayError('CSRF_MISMATCH'))
    })

    const hasTokenPair = ({ headers }: FastifyRequest): boolean => {
      const [cookie, another] = cookieValues(headers.cookie, 'csrf_token')
      const header = headers['x-csrf-token']
      // An empty cookie and an empty header are equal, but they are not a token.
      if (!cookie || another !== undefined || typeof header !== 'string' || !sameSecret(cookie, header)) return false
      return !signed || csrfTokens.isValid(cookie)
    }
  },
  { name: 'csrf', fastify: '5.x', dependencies: ['login-limit'] }
)
