import { createHash } from 'node:crypto'
import type { SerializeOptions } from '@fastify/cookie'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import { GatewayError } from '../errors.js'
import { canonicalPath } from '../plugins/canonical-path.js'
import type { SessionCookies } from '../session/app-session.js'
import { cookieOptions, cookieValues, setCookie } from '../session/cookies.js'
import { faultOf, type Granted, type ProviderDiscovery, providerFaultOf } from './client.js'
import { LOGOUT_PATH, type OidcConfig } from './config.js'
import type { ProviderExchange } from './exchange.js'
import { identityOf } from './identity.js'
import { BadLogoutToken, logoutTokenReader } from './logout-token.js'
import {
  backendAwayPage,
  confirmLogoutPage,
  faultPage,
  identityPage,
  noAccountPage,
  type Page,
  sendPage,
  signedOutPage,
  strayPage
} from './pages.js'
import { isFromProvider, type ProviderSessions, type Sealer } from './session.js'
import type { SessionMemory } from './session-memory.js'

/** Where somebody goes who did not say where. */
export const HOME = '/'

/** A sign-in remembers it in a cookie. */
const MAX_PATH_LENGTH = 1024

/** Signing in must not end where it began. */
const OWN_PATHS = /^\/auth\/oidc(?:\/|$)/i

const BASE = 'http://host'

/**
 * The place on this site that a sign-in was asked to end at. What could be read as anything else, another site above all,
 * is not repaired: it leads home.
 */
export const returnPath = (wanted: unknown): string => {
  if (typeof wanted !== 'string' || wanted.length > MAX_PATH_LENGTH || !URL.canParse(wanted, BASE)) return HOME
  const { origin, pathname, search, hash } = new URL(wanted, BASE)
  // Equal to the letter: a parser that had to change something shows that another could read it differently.
  if (origin !== BASE || `${pathname}${search}${hash}` !== wanted) return HOME
  return canonicalPath(pathname) === pathname && !OWN_PATHS.test(pathname) ? wanted : HOME
}

/** The query as it came, whatever the framework makes of it. */
export const queryOf = ({ raw }: FastifyRequest): URLSearchParams => {
  const url = raw.url ?? ''
  const start = url.indexOf('?')
  return new URLSearchParams(start === -1 ? '' : url.slice(start + 1))
}

export interface SignInParts {
  readonly log: Logger
  readonly discovery: ProviderDiscovery
  readonly transactions: LoginTransactions
  readonly sessions: ProviderSessions
  readonly memory: SessionMemory
  readonly exchange: ProviderExchange
  readonly groupsClaim: string
}

type Handler = (request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply>

/** Sends the browser to the provider. */
export const loginHandler =
  ({ discovery, transactions }: SignInParts): Handler =>
  async (request, reply) => {
    const returnTo = returnPath(queryOf(request).get('returnTo'))
    const provider = await discovery.current()
    if (provider === null) return sendPage(reply, faultPage('away', returnTo))
    const { url, transaction } = await provider.begin(returnTo)
    await transactions.begin(request, reply, transaction)
    return redirect(reply, url.href)
  }

/** Takes the browser back. Ends at the place that was wanted, or on a page that says why not: never at the provider again. */
export const callbackHandler = (parts: SignInParts): Handler => {
  const { log, discovery, transactions } = parts

  return async (request, reply) => {
    const transaction = await transactionOf(request, reply, transactions)
    if (transaction === null) {
      log.warn({ requestId: request.id }, 'a callback belongs to no sign-in of this browser')
      return sendPage(reply, strayPage())
    }
    const provider = await discovery.current()
    if (provider === null) return sendPage(reply, faultPage('away', transaction.returnTo))
    let granted: Granted
    try {
      granted = await provider.finish(queryOf(request).toString(), transaction)
    } catch (error) {
      const fault = providerFaultOf(error)
      log.warn({ requestId: request.id, fault, provider: faultOf(error) }, 'a sign-in failed')
      return sendPage(reply, faultPage(fault, transaction.returnTo))
    }
    const page = await startSessions(parts, request, reply, granted, transaction.returnTo)
    return page === null ? redirect(reply, transaction.returnTo) : sendPage(reply, page)
  }
}

const transactionOf = async (
  request: FastifyRequest,
  reply: FastifyReply,
  transactions: LoginTransactions
): Promise<LoginTransaction | null> => {
  const [state, another] = queryOf(request).getAll('state')
  return state === undefined || another !== undefined ? null : transactions.finish(request, reply, state)
}

/** Null where somebody is signed in now; else what they are told. */
const startSessions = async (
  { log, sessions, memory, exchange, groupsClaim }: SignInParts,
  request: FastifyRequest,
  reply: FastifyReply,
  { claims, tokens }: Granted,
  returnTo: string
): Promise<Page | null> => {
  const requestId = request.id
  const { identity, fault, groupsCut } = identityOf(claims, groupsClaim)
  if (identity === null) {
    log.warn(
      { requestId, fault, claims: Object.keys(claims) },
      'the provider vouches for nobody who could have an account'
    )
    return identityPage(fault ?? 'no-subject')
  }
  if (groupsCut > 0) log.warn({ requestId, subject: identity.subject, groupsCut }, 'groups do not fit into the session')

  const session = await sessions.start(reply, identity)
  await memory.keepTokens(session.id, tokens)

  // At once, because who has no account should be told so; any later request would do it too.
  const { kind } = await exchange.run(request, reply, session)
  if (kind === 'no-account') return noAccountPage(identity.email)
  return kind === 'no-answer' ? backendAwayPage(returnTo) : null
}

const redirect = (reply: FastifyReply, address: string): FastifyReply =>
  reply.header('cache-control', 'no-store').redirect(address, 303)

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

export interface BackChannelLogoutParts {
  readonly log: Logger
  readonly config: OidcConfig
  readonly discovery: ProviderDiscovery
  readonly memory: SessionMemory
}

const BODY_BYTES = 16 * 1024

/** The provider's own word that somebody has signed out there, which comes without their browser. */
export const backChannelLogout = (app: FastifyInstance, path: string, parts: BackChannelLogoutParts): void => {
  const { log, config, discovery, memory } = parts
  const read = logoutTokenReader(config, discovery)

  const endSessions = async (token: string, requestId: string): Promise<void> => {
    const { sessions, subject, message } = await read(token)
    if (memory.knows(message)) throw new BadLogoutToken('used before')
    for (const name of sessions) await memory.end(name)
    // Last: where the others could not be told, the provider may say it again.
    await memory.end(message)
    log.info({ requestId, subject }, 'the provider has ended a session')
  }

  app.register(async (scope) => {
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser(
      'application/x-www-form-urlencoded',
      { parseAs: 'string', bodyLimit: BODY_BYTES },
      (_request, body, done) => done(null, new URLSearchParams(String(body)))
    )
    scope.post(path, { bodyLimit: BODY_BYTES }, async (request: FastifyRequest, reply: FastifyReply) => {
      const [token, another] = (request.body as URLSearchParams | undefined)?.getAll('logout_token') ?? []
      if (token === undefined || another !== undefined) throw logoutTokenError('is required, once')
      try {
        await endSessions(token, request.id)
      } catch (error) {
        if (!(error instanceof BadLogoutToken)) throw new GatewayError('INTERNAL', { cause: error })
        log.warn({ requestId: request.id, reason: error.message }, 'a logout token was refused')
        throw logoutTokenError('is not a logout token that counts here')
      }
      return reply.header('cache-control', 'no-store').send({ success: true })
    })
  })
}

const logoutTokenError = (message: string): GatewayError =>
  new GatewayError('VALIDATION_FAILED', { details: [{ path: '/logout_token', message }] })

/** What a browser must bring back from the provider, or what it brings back is not an answer to us. */
export interface LoginTransaction {
  readonly state: string
  readonly nonce: string
  readonly codeVerifier: string
  readonly returnTo: string
}

/** Long enough to find a phone and a second factor. */
const LIFETIME_SECONDS = 10 * 60

// Tabs that may sign in at the same time, and how much room they may take among the headers of a request. Who opens more
// leaves the oldest behind: cookies that pile up keep a browser out.
const MAX_AT_ONCE = 5
const MAX_COOKIE_LENGTH = 5 * 1024

const PREFIX = 'oidc_login_'
const HELD = /(?:^|;)[ \t]*((?:__Host-)?oidc_login_[0-9a-z]{1,9}_[A-Za-z0-9_-]{11})=([^;]*)/g

export interface LoginTransactionsOptions {
  readonly sealer: Sealer
  readonly cookies: { readonly secure: boolean }
  readonly now: () => number
}

/** One sealed cookie for each sign-in that is under way, so that tabs do not take each other's. */
export class LoginTransactions {
  readonly #prefix: string
  readonly #options: SerializeOptions
  readonly #sealer: Sealer
  readonly #now: () => number

  constructor({ sealer, cookies, now }: LoginTransactionsOptions) {
    // The prefix keeps neighbouring hosts from planting one, and with it their own sign-in on somebody else. Browsers take
    // it with Secure, and for all paths only.
    this.#prefix = `${cookies.secure ? '__Host-' : ''}${PREFIX}`
    this.#options = { ...cookieOptions(cookies), httpOnly: true }
    this.#sealer = sealer
    this.#now = now
  }

  async begin(request: FastifyRequest, reply: FastifyReply, transaction: LoginTransaction): Promise<void> {
    const startedAt = Math.floor(this.#now() / 1000).toString(36)
    const name = `${this.#prefix}${startedAt}_${tagOf(transaction.state)}`
    const sealed = await this.#sealer.seal({ ...transaction }, LIFETIME_SECONDS)
    this.#makeRoom(request, reply, sealed.length)
    setCookie(reply, name, sealed, { ...this.#options, maxAge: LIFETIME_SECONDS })
  }

  /** Ends the one that this state belongs to. Null where this browser began none such, or ended it before. */
  async finish(request: FastifyRequest, reply: FastifyReply, state: string): Promise<LoginTransaction | null> {
    const tag = `_${tagOf(state)}`
    const name = this.#held(request).find(({ name }) => name.endsWith(tag))?.name
    if (name === undefined) return null
    this.#clear(reply, name)
    const [sealed, another] = cookieValues(request.headers.cookie, name)
    if (sealed === undefined || another !== undefined) return null
    const transaction = (await this.#sealer.open(sealed)) as LoginTransaction | null
    return transaction?.state === state ? transaction : null
  }

  #makeRoom(request: FastifyRequest, reply: FastifyReply, characters: number): void {
    let [count, total] = [1, characters]
    for (const held of this.#held(request).toReversed()) {
      count += 1
      total += held.characters
      if (count > MAX_AT_ONCE || total > MAX_COOKIE_LENGTH) this.#clear(reply, held.name)
    }
  }

  /** What this browser holds, the oldest first. */
  #held({ headers }: FastifyRequest): { readonly name: string; readonly characters: number }[] {
    const found = [...(headers.cookie ?? '').matchAll(HELD)]
      .map(([, name = '', value = '']) => ({ name, characters: value.length }))
      .filter(({ name }) => name.startsWith(this.#prefix))
    return found.sort((one, other) => (one.name < other.name ? -1 : 1))
  }

  #clear(reply: FastifyReply, name: string): void {
    setCookie(reply, name, '', { ...this.#options, maxAge: 0 })
  }
}

const tagOf = (state: string): string => createHash('sha256').update(state).digest('base64url').slice(0, 11)
