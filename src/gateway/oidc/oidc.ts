import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import type { AppTokenVerifier } from '../../shared/app-token.js'
import type { CallBackend } from '../proxy/backend-call.js'
import type { Backend } from '../proxy/backend-pool.js'
import type { RedisConfig } from '../redis-connection.js'
import type { AppSessionCookies } from '../session/app-session.js'
import { appTokenCookie, usesSession } from '../session/credentials.js'
import type { LoginFields } from '../session/login-response.js'
import { type AccessTokenOf, accessTokenOf } from './access-token.js'
import { accountLogin } from './account-login.js'
import { addBackChannelLogout } from './back-channel.js'
import { CALLBACK_PATH, LOGIN_PATH, LOGOUT_PATH, type OidcConfig } from './config.js'
import type { ExchangeResultKind } from './exchange-result.js'
import { discoverProvider, ProviderDiscovery } from './provider-client.js'
import { isFromProvider, ProviderSessionCookie } from './provider-session-cookie.js'
import { MemoryProviderSessionStore, type ProviderSessionStore } from './provider-session-store.js'
import { Sealer } from './sealer.js'
import { SessionExchange } from './session-exchange.js'
import { callbackHandler, LoginTransactions, loginHandler } from './sign-in.js'
import { logoutHandler, MAX_TICKET_CHARACTERS, pageLogout, providerSessionReplaced } from './sign-out.js'

export interface OidcOptions {
  readonly config: OidcConfig
  readonly cookieConfig: { readonly secure: boolean }
  readonly log: Logger
  readonly backend: Pick<Backend, 'timeoutMs'>
  readonly callBackend: CallBackend
  readonly loginFields: LoginFields
  readonly cookies: AppSessionCookies
  readonly tokens: AppTokenVerifier
  readonly count: (result: ExchangeResultKind) => void
  /** Whether a backend receives the access tokens of the provider. */
  readonly keepsAccessTokens: boolean
  readonly now: () => number
  readonly monotonicMs: () => number
  /** Null if the state of sessions is not shared between gateways. */
  readonly redis: RedisConfig | null
}

/** Sign-in through an identity provider, as the app uses it. */
export interface Oidc {
  readonly exchange: SessionExchange
  readonly accessToken: AccessTokenOf
  /** The provider session that the request's app session came from; null if there is none. */
  providerSession(request: FastifyRequest): Promise<{ readonly id: string; isRevoked(): boolean } | null>
  /** Registers the hook that ends revoked sessions. It runs before the token is checked. */
  addRevocationHook(app: FastifyInstance): void
  /** Registers the hook that extends sessions. It runs after the exchange. */
  addRenewalHook(app: FastifyInstance): void
  addRoutes(app: FastifyInstance): void
  /** The provider's part of `POST /api/auth/logout`. */
  onLogout(request: FastifyRequest, reply: FastifyReply): Promise<void>
  /** Ends the provider session of a browser that has signed in with a password. */
  onPasswordLogin(request: FastifyRequest, reply: FastifyReply): Promise<void>
}

/** Larger than any provider's tokens. Shared state is not stored in cookies. */
const MAX_SHARED_CHARACTERS = 256 * 1024

export const openOidc = async (options: OidcOptions): Promise<Oidc> => {
  const { config, cookieConfig, log, now, cookies, redis } = options
  const { groupsClaim, sessionSecrets } = config
  const newSealer = (purpose: string, maxCharacters?: number): Sealer =>
    new Sealer({ secrets: sessionSecrets, purpose, now, ...(maxCharacters !== undefined && { maxCharacters }) })

  const store = await openStore(options, newSealer('oidc shared', MAX_SHARED_CHARACTERS))
  const discovery = new ProviderDiscovery(() => discoverProvider(config, options), log)
  const providerCookie = new ProviderSessionCookie({ sealer: newSealer('oidc session'), cookies: cookieConfig, now })
  const transactions = new LoginTransactions({ sealer: newSealer('oidc login'), cookies: cookieConfig, now })
  const exchange = new SessionExchange({
    ...options,
    accountLogin: accountLogin({ ...options, ...config }),
    providerCookie,
    store,
    discovery,
    groupsClaim,
    secret: sessionSecrets[0] ?? ''
  })
  const signIn = { log, discovery, transactions, providerCookie, store, exchange, groupsClaim }
  const tickets = newSealer('oidc logout', MAX_TICKET_CHARACTERS)
  const signOut = { log, cookies, providerCookie, store, discovery, tickets }
  discovery.start()

  return {
    exchange,
    accessToken: accessTokenOf({ log, discovery, providerCookie, store, groupsClaim, now }),
    async providerSession(request) {
      const session = isFromProvider(request) ? await providerCookie.read(request) : null
      return session && { id: session.id, isRevoked: () => store.isRevoked(session) }
    },
    addRevocationHook: (app) =>
      addSessionHook(app, providerCookie, endRevokedSession({ providerCookie, store, cookies, log })),
    addRenewalHook: (app) => addSessionHook(app, providerCookie, renewSession({ providerCookie, store })),
    addRoutes(app) {
      app.get(LOGIN_PATH, loginHandler(signIn))
      app.get(CALLBACK_PATH, callbackHandler(signIn))
      app.get(LOGOUT_PATH, logoutHandler(signOut))
      // Without Redis, other gateways behind the same address could not be notified of the logout.
      if (redis !== null) addBackChannelLogout(app, { log, config, discovery, store })
      app.addHook('onClose', async () => {
        discovery.close()
        store.close()
      })
    },
    onLogout: pageLogout(signOut),
    onPasswordLogin: providerSessionReplaced(signOut)
  }
}

const openStore = async (
  { config, log, now, monotonicMs, redis }: OidcOptions,
  sealer: Sealer
): Promise<ProviderSessionStore> => {
  const local = new MemoryProviderSessionStore(now, monotonicMs)
  if (redis === null) return local
  const realm = JSON.stringify([config.issuer, config.clientId])
  const { RedisProviderSessionStore } = await import('./provider-session-store-redis.js')
  const shared = new RedisProviderSessionStore({ redis, realm, local, sealer, log, now })
  await shared.ready()
  return shared
}

type SessionHook = (request: FastifyRequest, reply: FastifyReply) => Promise<void>

/** For browsers that have both an app session and a provider session. */
const addSessionHook = (app: FastifyInstance, providerCookie: ProviderSessionCookie, hook: SessionHook): void => {
  app.addHook('onRequest', (request, reply, done) => {
    if (!usesSession(request) || appTokenCookie(request).kind === 'absent' || !providerCookie.isPresent(request)) done()
    else hook(request, reply).then(() => done(), done)
  })
}

interface RevocationOptions {
  readonly providerCookie: ProviderSessionCookie
  readonly store: ProviderSessionStore
  readonly cookies: AppSessionCookies
  readonly log: Logger
}

/** A revoked provider session ends the app session that came from it. A request that needs no token continues without one. */
const endRevokedSession =
  ({ providerCookie, store, cookies, log }: RevocationOptions): SessionHook =>
  async (request, reply) => {
    const session = await providerCookie.read(request)
    if (session === null || !store.isRevoked(session)) return
    log.info({ requestId: request.id, subject: session.subject }, 'request with revoked provider session')
    providerCookie.clear(reply)
    if (!isFromProvider(request)) return
    cookies.clear(reply)
    const cookie = appTokenCookie(request)
    if (cookie.kind === 'token') request.appTokenCookie = { kind: 'revoked', token: cookie.token }
  }

/** Extends the provider session. One that cannot be read is cleared. */
const renewSession =
  ({ providerCookie, store }: Pick<RevocationOptions, 'providerCookie' | 'store'>): SessionHook =>
  async (request, reply) => {
    const session = await providerCookie.read(request)
    if (session === null) providerCookie.clear(reply)
    else if (!store.isRevoked(session)) await providerCookie.renew(request, reply)
  }
