import type { FastifyReply } from 'fastify'
import type { Logger } from 'pino'
import type { AppTokenVerifier } from '../../shared/app-token.js'
import type { Session } from './session-answer.js'
import type { SessionCookies } from './session-cookies.js'

export interface StartSessionParts {
  readonly cookies: SessionCookies
  readonly tokens: AppTokenVerifier
  readonly log: Logger
  /** Whether an identity provider vouched for it. */
  readonly viaProvider?: boolean
}

/** Signs a browser in, and tells the operator what could be wrong with it. False where browsers would not keep it. */
export const startSession = (parts: StartSessionParts, reply: FastifyReply, session: Session): boolean => {
  const { cookies, tokens, log, viaProvider = false } = parts
  const requestId = reply.request.id
  if (!cookies.canHold(session)) {
    log.error({ requestId, characters: session.token.length }, "the backend's token does not fit into a cookie")
    return false
  }
  if (!cookies.set(reply, session, { viaProvider })) {
    log.warn({ requestId, permissions: session.permissions.length }, 'permissions do not fit into a cookie')
  }
  try {
    tokens.verify(session.token)
  } catch (error) {
    log.error({ requestId, err: error }, "the backend's token is not good here: is API_SECRET its TOKEN_SECRET?")
  }
  return true
}
