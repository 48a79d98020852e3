import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import { cookieValues } from '../session/cookies.js'
import { sessionCookie } from '../session/credentials.js'
import type { SessionCookies } from '../session/session-cookies.js'
import type { ProviderSessions } from './provider-session.js'
import type { SessionMemory } from './session-memory.js'

export interface SessionWatchParts {
  readonly sessions: ProviderSessions
  readonly memory: SessionMemory
  readonly cookies: SessionCookies
  readonly log: Logger
}

/**
 * After the exchange, for who has an app session already: being there keeps the provider session from running out, and a
 * provider session that was ended takes the app session along that came from it.
 */
export const watchProviderSessions = (app: FastifyInstance, parts: SessionWatchParts): void => {
  const { sessions, memory, cookies, log } = parts

  app.addHook('onRequest', (request, reply, done) => {
    if (sessionCookie(request).kind === 'absent' || !sessions.isCarriedBy(request)) done()
    else look(request, reply).then(() => done(), done)
  })

  const look = async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    const session = await sessions.of(request)
    if (session === null) return sessions.clear(reply)
    if (!memory.hasEnded(session)) return sessions.renew(request, reply)
    log.info({ requestId: request.id, subject: session.subject }, 'a session was used after it had been ended')
    sessions.clear(reply)
    if (isFromProvider(request)) endAppSession(request, reply)
  }

  /** The request goes on as one without a token. */
  const endAppSession = (request: FastifyRequest, reply: FastifyReply): void => {
    cookies.clear(reply)
    request.sessionCookie = { kind: 'unusable' }
    request.auth = null
  }
}

/** Whether the app session of this browser came from the provider, as far as its own cookies say. */
export const isFromProvider = ({ headers }: FastifyRequest): boolean =>
  cookieValues(headers.cookie, 'auth_via_oidc').length > 0
