import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import type { SessionCookies } from '../session/session-cookies.js'
import { LOGOUT_PATH } from './oidc-paths.js'
import { sendPage } from './page.js'
import { confirmLogoutPage, signedOutPage } from './pages.js'
import type { ProviderDiscovery } from './provider-discovery.js'
import type { ProviderSessions } from './provider-session.js'
import { queryOf } from './query.js'
import type { Sealer } from './sealer.js'
import type { SessionMemory } from './session-memory.js'
import { isFromProvider } from './session-watch.js'

export interface SignOutParts {
  readonly log: Logger
  readonly cookies: SessionCookies
  readonly sessions: ProviderSessions
  readonly memory: SessionMemory
  readonly discovery: ProviderDiscovery
  /** Seals what a page carries from its own logout to the provider's without being able to read it. */
  readonly tickets: Sealer
}

/** Where a page sends its browser after a logout that it has asked for itself. */
const LOGOUT_HEADER = 'x-logout-at'

const TICKET_SECONDS = 5 * 60

/** Together with the rest of the address it stays below what servers take. */
export const MAX_TICKET_CHARACTERS = 6 * 1024

/**
 * Ends the provider session of a browser: its cookie, and what copies of that could still do. Resolves to the ID token by
 * which the provider knows the session, where it is still known here.
 */
const endSession = async (
  { log, sessions, memory }: SignOutParts,
  request: FastifyRequest,
  reply: FastifyReply
): Promise<string | null> => {
  sessions.clear(reply)
  const session = await sessions.of(request)
  if (session === null) return null
  const tokens = await memory.tokensOf(session.id)
  await memory
    .end({ kind: 'id', value: session.id })
    .catch((error) => log.warn({ requestId: request.id, err: error }, 'other gateways were not told of a logout'))
  return tokens?.idToken ?? null
}

// Somebody typed it, or followed a link of our own. Browsers that do not say it are believed.
const OWN_SITES: ReadonlySet<unknown> = new Set([undefined, 'none', 'same-origin'])

const isFromElsewhere = ({ headers }: FastifyRequest): boolean => !OWN_SITES.has(headers['sec-fetch-site'])

/** Signs out here, and sends the browser to the provider to sign out there. */
export const logoutHandler =
  (parts: SignOutParts) =>
  async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    if (isFromElsewhere(request)) return sendPage(reply, confirmLogoutPage())
    parts.cookies.clear(reply)
    const idToken = (await endSession(parts, request, reply)) ?? (await ticketed(parts.tickets, request))
    const provider = await parts.discovery.current()
    const url = provider?.endSessionUrl(idToken) ?? null
    if (url === null) return sendPage(reply, signedOutPage(provider === null))
    return reply.header('cache-control', 'no-store').redirect(url.href, 303)
  }

/** For the logout of pages: ends the provider session too, and says where the browser signs out at the provider. */
export const pageLogout =
  (parts: SignOutParts) =>
  async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    if (!parts.sessions.isCarriedBy(request) && !isFromProvider(request)) return
    const idToken = await endSession(parts, request, reply)
    const ticket = idToken === null ? '' : await parts.tickets.seal({ idToken }, TICKET_SECONDS)
    const query = ticket === '' || ticket.length > MAX_TICKET_CHARACTERS ? '' : `?ticket=${ticket}`
    reply.header(LOGOUT_HEADER, `${LOGOUT_PATH}${query}`)
  }

/** For who signs in with a password: they are somebody else now, or came another way. Nobody is to become the first again. */
export const sessionReplaced =
  (parts: SignOutParts) =>
  async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    if (parts.sessions.isCarriedBy(request)) await endSession(parts, request, reply)
  }

const ticketed = async (tickets: Sealer, request: FastifyRequest): Promise<string | null> => {
  const ticket = queryOf(request).get('ticket')
  const content = ticket === null ? null : await tickets.open(ticket)
  return content === null ? null : String(content.idToken)
}
