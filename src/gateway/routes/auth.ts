import type { FastifyInstance } from 'fastify'
import type { GatewayConfig } from '../config.js'
import { cookieOptions, cookieValues, setCookie } from '../session/cookies.js'
import type { CsrfTokens } from '../session/csrf-tokens.js'

/** What the gateway answers itself under `/api/auth/`. */
export const authRoutes = (app: FastifyInstance, config: GatewayConfig, tokens: CsrfTokens): void => {
  const cookie = { ...cookieOptions(config.cookies), httpOnly: false, maxAge: tokens.lifetimeSeconds }

  app.get('/api/auth/csrf-token', async (request, reply) => {
    // The same token again while it is good, so that tabs do not take each other's away.
    const [held, another] = cookieValues(request.headers.cookie, 'csrf_token')
    const csrfToken = held !== undefined && another === undefined && tokens.isGood(held) ? held : tokens.issue()
    setCookie(reply, 'csrf_token', csrfToken, cookie)
    reply.header('cache-control', 'no-store')
    return { success: true, csrfToken }
  })
}
