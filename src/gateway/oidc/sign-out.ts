import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import type { AppSessionCookies } from '../session/app-session.js'
import { LOGOUT_PATH } from './config.js'
import { queryOf, redirect, sendPage } from './navigation.js'
import { confirmLogoutPage, signedOutPage } from './pages.js'
import type { ProviderDiscovery } from './provider-client.js'
import { isFromProvider, type ProviderSessionCookie } from './provider-session-cookie.js'
import type { ProviderSessionStore } from './provider-session-store.js'
import type { Sealer } from './sealer.js'

export interface SignOutOptions {
  readonly log: Logger
  readonly cookies: AppSessionCookies
  readonly providerCookie: ProviderSessionCookie
  readonly store: ProviderSessionStore
  readonly discovery: ProviderDiscovery
  /** Encrypts the ID token that a page carries from `/api/auth/logout` to `/auth/oidc/logout`. */
  readonly tickets: Sealer
}

/** Response header of `/api/auth/logout`: where the page sends the browser to sign out at the provider. */
const LOGOUT_HEADER = 'x-logout-at'

const TICKET_SECONDS = 5 * 60

/** Keeps the logout URL below common URL length limits. */
export const MAX_TICKET_CHARACTERS = 6 * 1024

/** Revokes the browser's provider session and clears its cookie. Resolves to the ID token, if it is still stored. */
const endProviderSession = async (
  { log, providerCookie, store }: SignOutOptions,
  request: FastifyRequest,
  reply: FastifyReply
): Promise<string | null> => {
  providerCookie.clear(reply)
  const session = await providerCookie.read(request)
  if (session === null) return null
  const tokens = await store.loadTokens(session.id)
  await store
    .revoke({ kind: 'id', value: session.id })
    .catch((error) => log.warn({ requestId: request.id, err: error }, 'session revocation not published yet'))
  return tokens?.idToken ?? null
}

// Typed addresses, links of our own pages, and browsers that do not send the header.
const OWN_SITES: ReadonlySet<unknown> = new Set([undefined, 'none', 'same-origin'])

const isFromOtherSite = ({ headers }: FastifyRequest): boolean => !OWN_SITES.has(headers['sec-fetch-site'])

/** `GET /auth/oidc/logout`: signs out here, and redirects the browser to the provider to sign out there. */
export const logoutHandler =
  (options: SignOutOptions) =>
  async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    if (isFromOtherSite(request)) return sendPage(reply, confirmLogoutPage())
    options.cookies.clear(reply)
    const idToken =
      (await endProviderSession(options, request, reply)) ?? (await idTokenInTicket(options.tickets, request))
    const provider = await options.discovery.current()
    const url = provider?.endSessionUrl(idToken) ?? null
    return url === null ? sendPage(reply, signedOutPage(provider !== null)) : redirect(reply, url.href)
  }

/** For `POST /api/auth/logout`: ends the provider session too, and names the address that signs out at the provider. */
export const pageLogout =
  (options: SignOutOptions) =>
  async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    if (!options.providerCookie.isPresent(request) && !isFromProvider(request)) return
    const idToken = await endProviderSession(options, request, reply)
    const ticket = idToken === null ? '' : await options.tickets.seal({ idToken }, TICKET_SECONDS)
    const query = ticket === '' || ticket.length > MAX_TICKET_CHARACTERS ? '' : `?ticket=${ticket}`
    reply.header(LOGOUT_HEADER, `${LOGOUT_PATH}${query}`)
  }

/**
 * For password logins: ends the provider session, so that the browser does not switch back to its user when the password
 * session expires.
 */
export const providerSessionReplaced =
  (options: SignOutOptions) =>
  async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    if (options.providerCookie.isPresent(request)) await endProviderSession(options, request, reply)
  }

const idTokenInTicket = async (tickets: Sealer, request: FastifyRequest): Promise<string | null> => {
  const ticket = queryOf(request).get('ticket')
  const content = ticket === null ? null : await tickets.open(ticket)
  return content === null ? null : String(content.idToken)
}
