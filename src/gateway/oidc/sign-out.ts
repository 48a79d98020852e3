import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import type { AppSessionCookies } from '../session/app-session.js'
import type { AppSignOut } from '../session/app-sign-out.js'
import { LOGOUT_PATH } from './config.js'
import type { IdentityProvider, IdentityProviders } from './identity-providers.js'
import { queryOf, redirect, sendPage } from './navigation.js'
import { confirmLogoutPage, signedOutPage } from './pages.js'
import { isFromProvider, type ProviderSessionCookie } from './provider-session-cookie.js'
import { DEFAULT_PROVIDER } from './providers-file.js'
import type { Sealer } from './sealer.js'

export interface SignOutOptions {
  readonly log: Logger
  readonly cookies: AppSessionCookies
  readonly providerCookie: ProviderSessionCookie
  readonly providers: IdentityProviders
  /**
   * Encrypts the provider and the ID token that the web application carries from `/api/auth/logout` to
   * `/auth/oidc/logout`.
   */
  readonly tickets: Sealer
}

/** Response header of `/api/auth/logout`: where the web application sends the browser to sign out at the provider. */
const LOGOUT_HEADER = 'x-logout-at'

const TICKET_SECONDS = 5 * 60

/** Keeps the logout URL below common URL length limits. */
export const MAX_TICKET_CHARACTERS = 6 * 1024

/** The provider session that the browser had. */
interface EndedSession {
  readonly provider: IdentityProvider
  /** Null if it is no longer stored. */
  readonly idToken: string | null
}

/** Revokes the browser's provider session and clears its cookie. */
const endProviderSession = async (
  { log, providerCookie, providers }: SignOutOptions,
  request: FastifyRequest,
  reply: FastifyReply
): Promise<EndedSession | null> => {
  providerCookie.clear(reply)
  const session = await providerCookie.read(request)
  if (session === null) return null
  const provider = providers.of(session)
  const tokens = await provider.store.loadTokens(session.id)
  await provider.store
    .revoke({ kind: 'id', value: session.id })
    .catch((error) => log.warn({ requestId: request.id, err: error }, 'provider session revocation not published yet'))
  return { provider, idToken: tokens?.idToken ?? null }
}

// Typed addresses, links of our own pages, and browsers that do not send the header.
const OWN_SITES: ReadonlySet<unknown> = new Set([undefined, 'none', 'same-origin'])

const isFromOtherSite = ({ headers }: FastifyRequest): boolean => !OWN_SITES.has(headers['sec-fetch-site'])

/**
 * `GET /auth/oidc/logout` and `/auth/oidc/<id>/logout`: signs out here, and redirects the browser to the provider to sign out
 * there. Without `named`, that is the provider of the session, or the only one.
 */
export const logoutHandler =
  (options: SignOutOptions & { readonly signOutApp: AppSignOut }, named: IdentityProvider | null) =>
  async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    if (isFromOtherSite(request)) return sendPage(reply, confirmLogoutPage(request.path))
    options.cookies.clear(reply)
    await options.signOutApp(request)
    const ended = [await endProviderSession(options, request, reply), await sessionInTicket(options, request)]
    const known = ended.filter((session) => session !== null)
    const provider = named ?? known[0]?.provider ?? options.providers.only
    // An ID token is only for the provider that issued it.
    const idToken = known.find((session) => session.provider === provider && session.idToken !== null)?.idToken ?? null
    const client = (await provider?.discovery.current()) ?? null
    const url = client?.endSessionUrl(idToken) ?? null
    if (url !== null) return redirect(reply, url.href)
    return sendPage(reply, signedOutPage(provider === null || client !== null))
  }

/** For `POST /api/auth/logout`: ends the provider session too, and names the address that signs out at the provider. */
export const pageLogout =
  (options: SignOutOptions) =>
  async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    if (!options.providerCookie.isPresent(request) && !isFromProvider(request)) return
    const ended = await endProviderSession(options, request, reply)
    const ticket = ended === null ? '' : await ticketOf(options, ended)
    reply.header(LOGOUT_HEADER, `${LOGOUT_PATH}${ticket === '' ? '' : `?ticket=${ticket}`}`)
  }

/** Empty if the logout needs no ticket. An ID token that does not fit is left out. */
const ticketOf = async ({ tickets, providers }: SignOutOptions, session: EndedSession): Promise<string> => {
  const provider = session.provider.config.id
  if (session.idToken !== null) {
    const ticket = await tickets.seal({ provider, idToken: session.idToken }, TICKET_SECONDS)
    if (ticket.length <= MAX_TICKET_CHARACTERS) return ticket
  }
  return providers.only === null ? tickets.seal({ provider }, TICKET_SECONDS) : ''
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

const sessionInTicket = async (
  { tickets, providers }: SignOutOptions,
  request: FastifyRequest
): Promise<EndedSession | null> => {
  const ticket = queryOf(request).get('ticket')
  const content = ticket === null ? null : await tickets.open(ticket)
  // Tickets of gateways without several providers name none.
  const provider = content === null ? null : providers.get(content.provider ?? DEFAULT_PROVIDER)
  if (content === null || provider === null) return null
  return { provider, idToken: typeof content.idToken === 'string' ? content.idToken : null }
}
