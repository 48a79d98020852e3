import { createHash } from 'node:crypto'
import type { SerializeOptions } from '@fastify/cookie'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import { cookieOptions, cookieValues, setCookie } from '../session/cookies.js'
import { identityOf } from './identity.js'
import type { IdentityProvider, IdentityProviders } from './identity-providers.js'
import { type HtmlPage, queryOf, redirect, sendPage } from './navigation.js'
import {
  backendUnavailablePage,
  chooseProviderPage,
  identityErrorPage,
  noAccountPage,
  providerErrorPage,
  strayCallbackPage
} from './pages.js'
import type { LoginTransaction, ProviderGrant, StartedSignIn } from './provider-client.js'
import { providerErrorFields, providerErrorKind } from './provider-error.js'
import type { ProviderSessionCookie } from './provider-session-cookie.js'
import { DEFAULT_PROVIDER } from './providers-file.js'
import { addressWithReturn, returnPath } from './return-path.js'
import type { Sealer } from './sealer.js'
import type { SessionExchanger } from './session-exchange.js'

export interface SignInOptions {
  readonly providers: IdentityProviders
  readonly transactions: LoginTransactions
  readonly providerCookie: ProviderSessionCookie
  readonly exchange: SessionExchanger
}

type Handler = (request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply>

/** `GET /auth/oidc/login`: starts the sign-in at the only provider, or lets the user choose one. */
export const loginHandler = (options: SignInOptions): Handler => {
  const { only, all } = options.providers
  if (only !== null) return providerLoginHandler(options, only)
  return async (request, reply) => {
    const returnTo = returnPath(queryOf(request).get('returnTo'))
    const choices = all.map(({ config: { id, label }, paths }) => ({
      id,
      label,
      loginAt: addressWithReturn(paths.login, returnTo)
    }))
    reply.header('vary', 'Accept')
    return wantsJson(request)
      ? reply.header('cache-control', 'no-store').send({ success: true, data: choices })
      : sendPage(reply, chooseProviderPage(choices))
  }
}

/** Pages open the address as a document, which accepts HTML; calls of web applications ask for JSON. */
const wantsJson = ({ headers: { accept = '' } }: FastifyRequest): boolean =>
  /\bapplication\/json\b/i.test(accept) && !/\btext\/html\b/i.test(accept)

/** `GET /auth/oidc/<id>/login`: redirects the browser to the provider. */
export const providerLoginHandler =
  ({ transactions }: SignInOptions, { discovery, log }: IdentityProvider): Handler =>
  async (request, reply) => {
    const returnTo = returnPath(queryOf(request).get('returnTo'))
    const provider = await discovery.current()
    if (provider === null) return sendPage(reply, providerErrorPage('unavailable', returnTo))
    let started: StartedSignIn
    try {
      started = await provider.startSignIn(returnTo)
    } catch (error) {
      return failedSignIn(log, reply, error, returnTo)
    }
    await transactions.add(request, reply, started.transaction)
    return redirect(reply, started.url.href)
  }

const failedSignIn = (log: Logger, reply: FastifyReply, error: unknown, returnTo: string): FastifyReply => {
  const kind = providerErrorKind(error)
  log.warn({ requestId: reply.request.id, kind, provider: providerErrorFields(error) }, 'sign-in failed')
  return sendPage(reply, providerErrorPage(kind, returnTo))
}

/**
 * `GET /auth/oidc/<id>/callback`: completes a sign-in that was started at this provider. Redirects to the requested path or
 * shows an error page; it never redirects to the provider again, which could loop.
 */
export const callbackHandler = (options: SignInOptions, identityProvider: IdentityProvider): Handler => {
  const { transactions } = options
  const { discovery, config, log } = identityProvider

  return async (request, reply) => {
    const transaction = await takeTransaction(request, reply, transactions)
    // A response to the sign-in at one provider must not complete a sign-in at another one (mix-up attack).
    if (transaction === null || transaction.provider !== config.id) {
      const reason = transaction === null ? 'no-sign-in' : 'other-provider'
      log.warn({ requestId: request.id, reason }, 'callback without a matching sign-in')
      return sendPage(reply, strayCallbackPage())
    }
    const provider = await discovery.current()
    if (provider === null) return sendPage(reply, providerErrorPage('unavailable', transaction.returnTo))
    let grant: ProviderGrant
    try {
      grant = await provider.completeSignIn(queryOf(request).toString(), transaction)
    } catch (error) {
      return failedSignIn(log, reply, error, transaction.returnTo)
    }
    const errorPage = await startSessions(options, identityProvider, reply, grant, transaction.returnTo)
    return errorPage === null ? redirect(reply, transaction.returnTo) : sendPage(reply, errorPage)
  }
}

const takeTransaction = async (
  request: FastifyRequest,
  reply: FastifyReply,
  transactions: LoginTransactions
): Promise<LoginTransaction | null> => {
  const [state, duplicate] = queryOf(request).getAll('state')
  return state === undefined || duplicate !== undefined ? null : transactions.take(request, reply, state)
}

/** Starts the provider session and the app session. Resolves to an error page, or to null on success. */
const startSessions = async (
  { providers, providerCookie, exchange }: SignInOptions,
  provider: IdentityProvider,
  reply: FastifyReply,
  { claims, tokens }: ProviderGrant,
  returnTo: string
): Promise<HtmlPage | null> => {
  const { request } = reply
  const { log } = provider
  const requestId = request.id
  const { identity, error, droppedGroups } = identityOf(claims, provider.config.claims.groups)
  if (identity === null) {
    log.warn({ requestId, reason: error, claims: Object.keys(claims) }, 'provider claims without a usable identity')
    return identityErrorPage(error, providers.logoutPath(provider))
  }
  if (droppedGroups > 0)
    log.warn({ requestId, subject: identity.subject, droppedGroups }, 'groups exceed session cookie size')

  const session = await providerCookie.start(reply, provider.config.id, identity)
  await provider.store.saveTokens(session.id, tokens)

  // The next request would make the exchange too; doing it now shows users without an account the reason.
  const { kind } = await exchange.run(request, reply, session)
  if (kind === 'no_account') return noAccountPage(identity.email, providers.logoutPath(provider))
  return kind === 'backend_down' ? backendUnavailablePage(returnTo) : null
}

/** Long enough for a second factor on a phone. */
const TRANSACTION_SECONDS = 10 * 60

// Limits for concurrent sign-ins in several tabs. The oldest are removed first: too many cookies would exceed the header
// size limit and lock the browser out.
const MAX_TRANSACTIONS = 5
const MAX_TRANSACTION_CHARACTERS = 3 * 1024

const COOKIE_PREFIX = 'oidc_login_'
const TRANSACTION_COOKIE = /(?:^|;)[ \t]*((?:__Host-)?oidc_login_[0-9a-z]{1,9}_[A-Za-z0-9_-]{11})=([^;]*)/g

export interface LoginTransactionsOptions {
  readonly sealer: Sealer
  readonly cookies: { readonly secure: boolean }
  readonly now: () => number
}

/** Gateways without several providers store none. */
type StoredTransaction = Omit<LoginTransaction, 'provider'> & { readonly provider?: string }

/** Stores each sign-in in progress in an encrypted cookie of its own, so that tabs do not overwrite each other's. */
export class LoginTransactions {
  readonly #prefix: string
  readonly #options: SerializeOptions
  readonly #sealer: Sealer
  readonly #now: () => number

  constructor({ sealer, cookies, now }: LoginTransactionsOptions) {
    // The prefix prevents sibling hosts from setting the cookie, and with it an attacker's sign-in (login CSRF).
    this.#prefix = `${cookies.secure ? '__Host-' : ''}${COOKIE_PREFIX}`
    this.#options = { ...cookieOptions(cookies), httpOnly: true }
    this.#sealer = sealer
    this.#now = now
  }

  async add(request: FastifyRequest, reply: FastifyReply, transaction: LoginTransaction): Promise<void> {
    const startedAt = Math.floor(this.#now() / 1000).toString(36)
    const name = `${this.#prefix}${startedAt}_${stateTag(transaction.state)}`
    const sealed = await this.#sealer.seal({ ...transaction }, TRANSACTION_SECONDS)
    this.#removeOldest(request, reply, sealed.length)
    setCookie(reply, name, sealed, { ...this.#options, maxAge: TRANSACTION_SECONDS })
  }

  /** Removes and returns the transaction with this state. Null if the browser has none, or it was taken before. */
  async take(request: FastifyRequest, reply: FastifyReply, state: string): Promise<LoginTransaction | null> {
    const suffix = `_${stateTag(state)}`
    const name = this.#cookiesOf(request).find((cookie) => cookie.name.endsWith(suffix))?.name
    if (name === undefined) return null
    this.#clear(reply, name)
    const [sealed, conflicting] = cookieValues(request.headers.cookie, name)
    if (sealed === undefined || conflicting !== undefined) return null
    // Only `add` seals content for this purpose, so what decrypts has this shape.
    const stored = (await this.#sealer.open(sealed)) as StoredTransaction | null
    return stored?.state === state ? { ...stored, provider: stored.provider ?? DEFAULT_PROVIDER } : null
  }

  #removeOldest(request: FastifyRequest, reply: FastifyReply, newCharacters: number): void {
    let [count, characters] = [1, newCharacters]
    for (const cookie of this.#cookiesOf(request).toReversed()) {
      count += 1
      characters += cookie.characters
      if (count > MAX_TRANSACTIONS || characters > MAX_TRANSACTION_CHARACTERS) this.#clear(reply, cookie.name)
    }
  }

  /** The browser's transaction cookies, oldest first. */
  #cookiesOf({ headers }: FastifyRequest): { readonly name: string; readonly characters: number }[] {
    const cookies = [...(headers.cookie ?? '').matchAll(TRANSACTION_COOKIE)]
      .map(([, name = '', value = '']) => ({ name, characters: value.length }))
      .filter(({ name }) => name.startsWith(this.#prefix))
    return cookies.sort((a, b) => (a.name < b.name ? -1 : 1))
  }

  #clear(reply: FastifyReply, name: string): void {
    setCookie(reply, name, '', { ...this.#options, maxAge: 0 })
  }
}

const stateTag = (state: string): string => createHash('sha256').update(state).digest('base64url').slice(0, 11)
