import type { FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import type { AppTokenVerifier, VerifiedToken } from '../../shared/app-token.js'
import { appTokenCookie } from './credentials.js'

export interface AppSignOutOptions {
  readonly tokens: AppTokenVerifier
  /** Null if revocation is disabled. */
  readonly revocations: { signedOut(token: string, expiresAtMs: number): Promise<void> } | null
  /** Closes the WebSockets that were opened with this app token, at this gateway. */
  readonly closeWebSockets: (token: string) => void
  readonly log: Logger
}

/** Ends the app session of a request whose user signs out. */
export type AppSignOut = (request: FastifyRequest) => Promise<void>

/**
 * Closes the WebSockets of the app session. With revocation, its token is no longer accepted, and the other gateways close
 * theirs.
 */
export const appSignOut =
  ({ tokens, revocations, closeWebSockets, log }: AppSignOutOptions): AppSignOut =>
  async (request) => {
    const cookie = appTokenCookie(request)
    if (cookie.kind !== 'token') return
    closeWebSockets(cookie.token)
    if (revocations === null) return
    const verified = validToken(cookie.token, tokens)
    if (verified === null) return
    await revocations
      .signedOut(cookie.token, verified.expiresAtMs)
      .catch((error) => log.warn({ requestId: request.id, err: error }, 'sign-out not published yet'))
  }

/** Null for a token that is not accepted anyway. */
const validToken = (token: string, tokens: AppTokenVerifier): VerifiedToken | null => {
  try {
    return tokens.verify(token)
  } catch {
    return null
  }
}
