import { createHmac, hkdfSync } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import { sameSecret } from '../../shared/same-secret.js'
import { type SessionCookies, type StartSessionOptions, startSession } from '../session/app-session.js'
import { cookieValues } from '../session/cookies.js'
import type { AccountLogin, AccountLoginCaller, AccountLoginResult } from './account-login.js'
import { type Identity, identityOf } from './identity.js'
import type { ProviderDiscovery, ProviderTokens } from './provider-client.js'
import { providerErrorFields, providerErrorKind } from './provider-error.js'
import type { ProviderSession, ProviderSessions } from './provider-session.js'
import type { SessionStore } from './session-store.js'

/** Exchanges a provider session for an app session at the backend. */
export interface SessionExchange {
  /**
   * Called for a request without an app token. Resolves to a new app token, whose cookies are set on the reply, or to null
   * if there is no provider session or no account. It never rejects the request.
   */
  exchange(request: FastifyRequest, reply: FastifyReply): Promise<string | null>
}

/** The outcomes of an exchange, as the metric labels them. */
export const EXCHANGE_RESULTS = ['success', 'no_account', 'backend_down', 'provider_ended'] as const

export type ExchangeResult = (typeof EXCHANGE_RESULTS)[number]

/** The outcome of an exchange for one request. */
export type ExchangeOutcome =
  | { readonly kind: 'session'; readonly token: string }
  /** `no-answer`: not known whether there is an account. `ended`: the provider session has been revoked. */
  | { readonly kind: 'no-account' | 'no-answer' | 'ended' }

const METRIC_RESULTS: Readonly<Record<ExchangeOutcome['kind'], ExchangeResult>> = {
  session: 'success',
  'no-account': 'no_account',
  'no-answer': 'backend_down',
  ended: 'provider_ended'
}

export interface TokenExchangeOptions {
  readonly log: Logger
  readonly accountLogin: AccountLogin
  readonly count: (result: ExchangeResult) => void
  readonly cookies: SessionCookies
  readonly tokens: StartSessionOptions['tokens']
  readonly sessions: ProviderSessions
  readonly store: SessionStore
  readonly discovery: ProviderDiscovery
  readonly groupsClaim: string
  readonly now: () => number
  /** The newest session secret; signs the cookie that marks a failed exchange. */
  readonly secret: string
}

/** The result of one exchange, shared by all requests that wait for it, also on other gateways. */
interface SharedResult {
  readonly login: AccountLoginResult | { readonly kind: 'ended' }
  /** The refreshed identity; null if it did not change. */
  readonly identity: Identity | null
}

/** Paths that start or end a session themselves. */
const SIGN_IN_OR_OUT_PATHS = /^\/(?:auth\/oidc\/|api\/auth\/(?:login|backend-login|logout)$)/

/** Exchanges provider sessions for app tokens, after refreshing the provider's tokens where they have expired. */
export class TokenExchange implements SessionExchange {
  readonly #options: TokenExchangeOptions
  readonly #markerKey: Uint8Array

  constructor(options: TokenExchangeOptions) {
    this.#options = options
    this.#markerKey = new Uint8Array(hkdfSync('sha256', options.secret, '', 'gatehouse oidc failure marker v1', 32))
  }

  async exchange(request: FastifyRequest, reply: FastifyReply): Promise<string | null> {
    const { sessions, store, log } = this.#options
    if (SIGN_IN_OR_OUT_PATHS.test(request.path) || !sessions.hasCookie(request)) return null
    try {
      const session = await sessions.read(request)
      if (session === null || store.isRevoked(session)) {
        sessions.clear(reply)
        return null
      }
      // Before the exchange, whose own session cookie must be the last one on the reply.
      await sessions.renew(request, reply)
      const outcome = await this.run(request, reply, session)
      return outcome.kind === 'session' ? outcome.token : null
    } catch (error) {
      log.error({ requestId: request.id, err: error }, 'session exchange failed')
      return null
    }
  }

  /** Runs the exchange and sets its cookies. Skips it while the browser has the marker cookie of a failed exchange. */
  async run(request: FastifyRequest, reply: FastifyReply, session: ProviderSession): Promise<ExchangeOutcome> {
    const { store, sessions, cookies, tokens, log } = this.#options
    if (this.#hasFailureMarker(request, session)) return { kind: 'no-account' }
    const { id: requestId, clientAddress } = request
    const { login, identity } = await store.runOnce(session.id, () =>
      this.#refreshAndLogIn(session, { requestId, clientAddress })
    )

    // The user may have signed out while the exchange was running.
    if (login.kind === 'ended' || store.isRevoked(session)) {
      sessions.clear(reply)
      return { kind: 'ended' }
    }
    if (identity !== null) await sessions.save(reply, { ...session, ...identity })
    if (login.kind === 'no-account') cookies.setFailureMarker(reply, this.#failureMarker(session))
    if (login.kind !== 'session') return { kind: login.kind }
    // A reused result is some seconds old, so its lifetime is slightly too long; the token's own expiry decides.
    return startSession({ cookies, tokens, log, viaProvider: true }, reply, login.session)
      ? { kind: 'session', token: login.session.token }
      : { kind: 'no-answer' }
  }

  async #refreshAndLogIn(session: ProviderSession, caller: AccountLoginCaller): Promise<SharedResult> {
    const { accountLogin, count, log } = this.#options
    const refreshed = await refreshSession(this.#options, session, caller.requestId)
    const login =
      refreshed === 'ended' ? ({ kind: 'ended' } as const) : await accountLogin(refreshed ?? session, caller)
    count(METRIC_RESULTS[login.kind])
    const facts = { requestId: caller.requestId, subject: session.subject }
    if (login.kind === 'no-account') log.warn({ ...facts, status: login.status }, 'no account for provider session')
    if (login.kind === 'no-answer')
      log.error({ ...facts, reason: login.reason }, 'account login for provider session failed')
    return { login, identity: refreshed === 'ended' ? null : refreshed }
  }

  #hasFailureMarker({ headers }: FastifyRequest, session: ProviderSession): boolean {
    const expected = this.#failureMarker(session)
    return cookieValues(headers.cookie, 'oidc_exchange_failed').some((value) => sameSecret(value, expected))
  }

  /** Bound to the subject, so that signing in as another user is not delayed. */
  #failureMarker({ subject }: ProviderSession): string {
    return createHmac('sha256', this.#markerKey).update(subject).digest('base64url').slice(0, 22)
  }
}

type RefreshOptions = Pick<TokenExchangeOptions, 'store' | 'discovery' | 'groupsClaim' | 'now' | 'log'>

/** A changed identity, `ended` if the provider has ended the session, or null if nothing is known to have changed. */
type RefreshResult = Identity | 'ended' | null

/** Refreshes the identity if the provider's tokens have expired. Never throws: a failed refresh changes nothing. */
const refreshSession = async (
  options: RefreshOptions,
  session: ProviderSession,
  requestId: string
): Promise<RefreshResult> => {
  const { store, now, log } = options
  const tokens = await store.loadTokens(session.id)
  if (tokens?.refreshToken == null || tokens.expiresAt > now()) return null
  const result = await refreshIdentity(options, session, tokens, tokens.refreshToken).catch((error) => {
    log.warn({ requestId, subject: session.subject, provider: providerErrorFields(error) }, 'token refresh failed')
    // The session stays valid while the provider is unavailable.
    return providerErrorKind(error) === 'invalid-grant' ? 'ended' : null
  })
  if (result === 'ended')
    await store
      .revoke({ kind: 'id', value: session.id })
      .catch((error) => log.warn({ requestId, err: error }, 'session revocation not published yet'))
  return result
}

const refreshIdentity = async (
  { store, discovery, groupsClaim }: RefreshOptions,
  session: ProviderSession,
  tokens: ProviderTokens,
  refreshToken: string
): Promise<RefreshResult> => {
  const provider = await discovery.current()
  if (provider === null) return null
  const refreshed = await provider.refresh(tokens, refreshToken, session.subject)
  await store.saveTokens(session.id, refreshed.tokens)
  const { identity, error } = identityOf(await refreshed.claims(), groupsClaim)
  if (error === 'unconfirmed-email') return 'ended'
  // A response without claims changes nothing. The `sid` of the session does not change.
  return identity === null ? null : { ...identity, providerSession: session.providerSession }
}
