import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import type { SessionCookies } from '../session/session-cookies.js'
import { sendPage } from './page.js'
import { confirmLogoutPage, signedOutPage } from './pages.js'
import type { ProviderDiscovery } from './provider-discovery.js'
import type { ProviderSessions } from './provider-session.js'
import type { SessionMemory } from './session-memory.js'

export interface SignOutParts {
  readonly log: Logger
  readonly cookies: SessionCookies
  readonly sessions: ProviderSessions
  readonly memory: SessionMemory
  readonly discovery: ProviderDiscovery
}

interface LeftBehind {
  readonly idToken?: string
  readonly email?: string
}

/** Ends the provider session of a browser: its cookie, and what other cookies of the same session could still do. */
const endSession = async (
  { log, sessions, memory }: SignOutParts,
  request: FastifyRequest,
  reply: FastifyReply
): Promise<LeftBehind> => {
  sessions.clear(reply)
  const session = await sessions.of(request)
  if (session === null) return {}
  const tokens = await memory.tokensOf(session.id)
  await memory
    .end({ kind: 'id', value: session.id })
    .catch((error) => log.warn({ requestId: request.id, err: error }, 'other gateways were not told of a logout'))
  return { email: session.email, ...(tokens !== null && { idToken: tokens.idToken }) }
}

/** Signs out here, and sends the browser to the provider to sign out there. */
export const logoutHandler =
  (parts: SignOutParts) =>
  async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    if (request.headers['sec-fetch-site'] === 'cross-site') return sendPage(reply, confirmLogoutPage())
    parts.cookies.clear(reply)
    const left = await endSession(parts, request, reply)
    const provider = await parts.discovery.current()
    const url = provider?.endSessionUrl(left) ?? null
    if (url === null) return sendPage(reply, signedOutPage(provider === null))
    return reply.header('cache-control', 'no-store').redirect(url.href, 303)
  }

/** Where a page sends its browser after a logout that it has asked for itself. */
export const LOGOUT_HEADER = 'x-logout-at'

/** For the logout of pages: ends the provider session too. The address has no token in it: the page can read it. */
export const pageLogout =
  (parts: SignOutParts) =>
  async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    if (!parts.sessions.isCarriedBy(request)) return
    const { email } = await endSession(parts, request, reply)
    const provider = await parts.discovery.current()
    const url = provider?.endSessionUrl(email === undefined ? {} : { email })
    if (url) reply.header(LOGOUT_HEADER, url.href)
  }
