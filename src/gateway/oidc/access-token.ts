import type { FastifyRequest } from 'fastify'
import { isUsableToken } from '../session/credentials.js'
import type { ProviderTokens } from './provider-client.js'
import type { ProviderSessionCookie } from './provider-session-cookie.js'
import { type RefreshOptions, refreshSession } from './session-exchange.js'

/** The access token of a request's provider session for a backend, or null. */
export type AccessTokenOf = (request: FastifyRequest) => Promise<string | null>

export interface AccessTokenOptions extends RefreshOptions {
  readonly providerCookie: ProviderSessionCookie
}

/** Refreshes a token that has expired. Without a valid one the backend receives none, and decides itself. */
export const accessTokenOf = (options: AccessTokenOptions): AccessTokenOf => {
  const { providerCookie, store, now, log } = options
  const usable = (tokens: ProviderTokens | null): string | null => {
    const token = tokens?.accessToken
    return tokens !== null && token != null && tokens.expiresAt > now() && isUsableToken(token) ? token : null
  }
  return async (request) => {
    const session = await providerCookie.read(request)
    if (session === null || store.isRevoked(session)) return null
    const present = usable(await store.loadTokens(session.id))
    if (present !== null) return present
    await refreshSession(options, session, request.id)
    const refreshed = store.isRevoked(session) ? null : usable(await store.loadTokens(session.id))
    if (refreshed === null)
      log.warn({ requestId: request.id, subject: session.subject }, 'no access token of the provider')
    return refreshed
  }
}
