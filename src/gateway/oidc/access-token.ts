import type { FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import { isUsableToken } from '../session/credentials.js'
import type { IdentityProviders } from './identity-providers.js'
import type { ProviderTokens } from './provider-client.js'
import type { ProviderSessionCookie } from './provider-session-cookie.js'
import { refreshSession } from './session-exchange.js'

/** The access token of a request's provider session for a backend, or null. */
export type AccessTokenOf = (request: FastifyRequest) => Promise<string | null>

export interface AccessTokenOptions {
  readonly log: Pick<Logger, 'warn'>
  readonly providers: IdentityProviders
  readonly providerCookie: ProviderSessionCookie
  readonly now: () => number
}

/** Refreshes a token that has expired. Without a valid one the backend receives none, and decides itself. */
export const accessTokenOf = ({ providers, providerCookie, now, log }: AccessTokenOptions): AccessTokenOf => {
  const usable = (tokens: ProviderTokens | null): string | null => {
    const token = tokens?.accessToken
    return tokens !== null && token != null && tokens.expiresAt > now() && isUsableToken(token) ? token : null
  }
  return async (request) => {
    const session = await providerCookie.read(request)
    if (session === null) return null
    const provider = providers.of(session)
    const { store } = provider
    if (store.isRevoked(session)) return null
    const present = usable(await store.loadTokens(session.id))
    if (present !== null) return present
    await refreshSession({ ...provider, now }, session, request.id)
    const refreshed = store.isRevoked(session) ? null : usable(await store.loadTokens(session.id))
    if (refreshed === null)
      log.warn({ requestId: request.id, subject: session.subject }, 'no access token of the provider')
    return refreshed
  }
}
