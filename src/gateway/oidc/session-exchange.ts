import { createHmac, hkdfSync } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import { sameSecret } from '../../shared/same-secret.js'
import type { UserRevocations } from '../revocation/user-revocations.js'
import { type AppSessionCookies, type StartAppSessionOptions, startAppSession } from '../session/app-session.js'
import { cookieValues } from '../session/cookies.js'
import type { AccountLogin } from './account-login.js'
import type { ExchangeResult, ExchangeResultKind } from './exchange-result.js'
import { type Identity, identityOf } from './identity.js'
import type { IdentityProvider, IdentityProviders } from './identity-providers.js'
import type { ProviderTokens } from './provider-client.js'
import { providerErrorFields, providerErrorKind } from './provider-error.js'
import type { ProviderSession, ProviderSessionCookie } from './provider-session-cookie.js'
import { DEFAULT_PROVIDER } from './providers-file.js'

export interface ExchangeOptions {
  readonly log: Logger
  readonly accountLogin: AccountLogin
  readonly count: (result: ExchangeResultKind) => void
  readonly cookies: AppSessionCookies
  readonly tokens: StartAppSessionOptions['tokens']
  /** Null if revocation is disabled. */
  readonly revocations: UserRevocations | null
  readonly providerCookie: ProviderSessionCookie
  readonly providers: IdentityProviders
  readonly now: () => number
  /** The newest session secret; signs the cookie that marks a failed exchange. */
  readonly secret: string
}

/** Paths that start or end a session themselves. */
const SIGN_IN_OR_OUT_PATHS = /^\/(?:auth\/oidc\/|api\/auth\/(?:login|backend-login|logout)$)/

/** Exchanges provider sessions for app sessions, after refreshing the provider's tokens where they have expired. */
export class SessionExchanger {
  readonly #options: ExchangeOptions
  readonly #markerKey: Uint8Array

  constructor(options: ExchangeOptions) {
    this.#options = options
    this.#markerKey = new Uint8Array(hkdfSync('sha256', options.secret, '', 'gatehouse oidc failure marker v1', 32))
  }

  /**
   * Called for a request without an app token. Resolves to a new app token, whose cookies are set on the reply, or to null
   * if there is no provider session or no account. It never rejects the request.
   */
  async exchange(request: FastifyRequest, reply: FastifyReply): Promise<string | null> {
    const { providerCookie, providers, revocations, log } = this.#options
    // A revoked user must not get a new token.
    if (revocations?.isKnown === false) return null
    if (SIGN_IN_OR_OUT_PATHS.test(request.path) || !providerCookie.isPresent(request)) return null
    try {
      const session = await providerCookie.read(request)
      if (session === null || providers.of(session).store.isRevoked(session)) {
        providerCookie.clear(reply)
        return null
      }
      // Before the exchange, whose own cookie of the provider session must be the last one on the reply.
      await providerCookie.renew(request, reply)
      const result = await this.run(request, reply, session)
      return result.kind === 'success' ? result.session.token : null
    } catch (error) {
      log.error({ requestId: request.id, err: error }, 'session exchange failed')
      return null
    }
  }

  /** Runs the exchange and sets its cookies. Skips it while the browser has the marker cookie of a failed exchange. */
  async run(request: FastifyRequest, reply: FastifyReply, session: ProviderSession): Promise<ExchangeResult> {
    const { providers, providerCookie, cookies, tokens, revocations, log } = this.#options
    const { store } = providers.of(session)
    if (this.#hasFailureMarker(request, session)) return { kind: 'no_account' }
    // Requests that wait for the same exchange share its result, also on other gateways.
    const { result, identity } = await store.runOnce(session.id, () => this.#refreshAndLogIn(session, request))

    // The user may have signed out while the exchange was running.
    const isOfRevokedUser = await this.#endIfRevoked(result, session, request.id)
    if (result.kind === 'provider_ended' || isOfRevokedUser || store.isRevoked(session)) {
      providerCookie.clear(reply)
      return { kind: 'provider_ended' }
    }
    if (identity !== null) await providerCookie.save(reply, { ...session, ...identity })
    if (result.kind === 'no_account') cookies.setFailureMarker(reply, this.#failureMarker(session))
    if (result.kind !== 'success') return result
    // A reused result is some seconds old, so its lifetime is slightly too long; the token's own expiry decides.
    const options = { cookies, tokens, revocations, log, viaProvider: true }
    return (await startAppSession(options, reply, result.session)) ? result : { kind: 'backend_down' }
  }

  /** The user of a provider session is known only now. Whether the user was revoked since the session started. */
  async #endIfRevoked(result: ExchangeResult, session: ProviderSession, requestId: string): Promise<boolean> {
    const { revocations, providers, log } = this.#options
    if (revocations === null || result.kind !== 'success') return false
    if (!revocations.endsSessionOfUser(result.session.token, session.startedAt)) return false
    log.info({ requestId, subject: session.subject }, 'provider session of a revoked user')
    await endSession(providers.of(session), session, requestId)
    return true
  }

  /** `identity` is the refreshed one; null if it did not change. */
  async #refreshAndLogIn(
    session: ProviderSession,
    request: FastifyRequest
  ): Promise<{ readonly result: ExchangeResult; readonly identity: Identity | null }> {
    const { accountLogin, count, providers, now } = this.#options
    const refreshed = await refreshSession({ ...providers.of(session), now }, session, request.id)
    const [result, identity] =
      refreshed === 'provider_ended'
        ? [{ kind: refreshed } as const, null]
        : [await accountLogin(refreshed ?? session, session.provider, request), refreshed]
    count(result.kind)
    return { result, identity }
  }

  #hasFailureMarker({ headers }: FastifyRequest, session: ProviderSession): boolean {
    const expected = this.#failureMarker(session)
    return cookieValues(headers.cookie, 'oidc_exchange_failed').some((value) => sameSecret(value, expected))
  }

  /** Bound to the subject, so that signing in as another user is not delayed. */
  #failureMarker({ provider, subject }: ProviderSession): string {
    const user = provider === DEFAULT_PROVIDER ? subject : JSON.stringify([provider, subject])
    return createHmac('sha256', this.#markerKey).update(user).digest('base64url').slice(0, 22)
  }
}

export type RefreshOptions = IdentityProvider & Pick<ExchangeOptions, 'now'>

/** A changed identity, or null if nothing is known to have changed. */
type RefreshResult = Identity | 'provider_ended' | null

/** Refreshes the identity if the provider's tokens have expired. Never throws: a failed refresh changes nothing. */
export const refreshSession = async (
  options: RefreshOptions,
  session: ProviderSession,
  requestId: string
): Promise<RefreshResult> => {
  const tokens = await options.store.loadTokens(session.id)
  if (tokens?.refreshToken == null || tokens.expiresAt > options.now()) return null
  // Once for all requests: the second use of a refresh token ends the session at many providers.
  return options.store.runOnce(`refresh:${session.id}`, () => refresh(options, session, requestId))
}

const refresh = async (
  options: RefreshOptions,
  session: ProviderSession,
  requestId: string
): Promise<RefreshResult> => {
  const { store, now, log } = options
  // Another gateway may have refreshed them in the meantime.
  const tokens = await store.loadTokens(session.id)
  if (tokens?.refreshToken == null || tokens.expiresAt > now()) return null
  const result = await refreshIdentity(options, session, tokens, tokens.refreshToken).catch((error) => {
    log.warn({ requestId, subject: session.subject, provider: providerErrorFields(error) }, 'token refresh failed')
    // The session stays valid while the provider is unavailable.
    return providerErrorKind(error) === 'invalid-grant' ? 'provider_ended' : null
  })
  if (result === 'provider_ended') await endSession(options, session, requestId)
  return result
}

const endSession = (
  { store, log }: Pick<RefreshOptions, 'store' | 'log'>,
  { id }: ProviderSession,
  requestId: string
): Promise<void> =>
  store
    .revoke({ kind: 'id', value: id })
    .catch((error) => log.warn({ requestId, err: error }, 'provider session revocation not published yet'))

const refreshIdentity = async (
  { store, discovery, config }: RefreshOptions,
  session: ProviderSession,
  tokens: ProviderTokens,
  refreshToken: string
): Promise<RefreshResult> => {
  const provider = await discovery.current()
  if (provider === null) return null
  const refreshed = await provider.refresh(tokens, refreshToken, session.subject)
  await store.saveTokens(session.id, refreshed.tokens)
  const { identity, error } = identityOf(await refreshed.claims(), config.claims.groups)
  if (error === 'unconfirmed-email') return 'provider_ended'
  // A response without claims changes nothing. The `sid` of the session does not change.
  return identity === null ? null : { ...identity, sid: session.sid }
}
