import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import type { AppTokenVerifier } from '../../shared/app-token.js'
import type { CallBackend } from '../proxy/backend-call.js'
import type { Backend } from '../proxy/backend-pool.js'
import type { RedisConfig } from '../redis-connection.js'
import type { UserRevocations } from '../revocation/user-revocations.js'
import type { AppSessionCookies } from '../session/app-session.js'
import type { AppSignOut } from '../session/app-sign-out.js'
import { appTokenCookie, usesSession } from '../session/credentials.js'
import type { LoginFields } from '../session/login-response.js'
import { type AccessTokenOf, accessTokenOf } from './access-token.js'
import { accountLogin } from './account-login.js'
import { addBackChannelLogout } from './back-channel.js'
import { LOGIN_PATH, LOGOUT_PATH, type OidcConfig, type ProviderConfig, providerPaths } from './config.js'
import type { ExchangeResultKind } from './exchange-result.js'
import { IdentityProviders } from './identity-providers.js'
import { discoverProvider, ProviderDiscovery } from './provider-client.js'
import { isFromProvider, type ProviderSession, ProviderSessionCookie } from './provider-session-cookie.js'
import { MemoryProviderSessionStore, type ProviderSessionStore } from './provider-session-store.js'
import { Sealer } from './sealer.js'
import { SessionExchanger } from './session-exchange.js'
import { callbackHandler, LoginTransactions, loginHandler, providerLoginHandler } from './sign-in.js'
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
  /** Null if revocation is disabled. */
  readonly revocations: UserRevocations | null
  readonly count: (result: ExchangeResultKind) => void
  /** Whether a backend receives the access tokens of the provider. */
  readonly keepsAccessTokens: boolean
  readonly now: () => number
  readonly monotonicMs: () => number
  /** Null if the state of sessions is not shared between gateways. */
  readonly redis: RedisConfig | null
}

/** Sign-in through identity providers, as the app uses it. */
export interface Oidc {
  /** For login pages. */
  readonly choices: readonly SignInChoice[]
  readonly exchange: SessionExchanger
  readonly accessToken: AccessTokenOf
  /** The provider session that the request's app session came from; null if there is none. */
  providerSession(request: FastifyRequest): Promise<{ isRevoked(): boolean } | null>
  /** Registers the hook that ends revoked sessions. It runs before the token is checked. */
  addRevocationHook(app: FastifyInstance): void
  /** Registers the hook that extends sessions. It runs after the exchange. */
  addRenewalHook(app: FastifyInstance): void
  addRoutes(app: FastifyInstance, signOutApp: AppSignOut): void
  /** The provider's part of `POST /api/auth/logout`. */
  readonly onLogout: SessionHook
  /** Ends the provider session of a browser that has signed in with a password. */
  readonly onPasswordLogin: SessionHook
}

/** Reads or changes the provider session of a request. */
type SessionHook = (request: FastifyRequest, reply: FastifyReply) => Promise<void>

/** A way to sign in. The only provider has no id and label if it is not from `OIDC_PROVIDERS`. */
export interface SignInChoice {
  readonly name: 'oidc'
  readonly loginAt: string
  readonly id?: string
  readonly label?: string
}

const choicesOf = ({ providers, hasList }: OidcConfig): SignInChoice[] =>
  hasList
    ? providers.map(({ id, label }) => ({ name: 'oidc', loginAt: providerPaths(id).login, id, label }))
    : [{ name: 'oidc', loginAt: LOGIN_PATH }]

/** Larger than any provider's tokens. Shared state is not stored in cookies. */
const MAX_SHARED_CHARACTERS = 256 * 1024

export const openOidc = async (options: OidcOptions): Promise<Oidc> => {
  const { config, cookieConfig, log, now, cookies, redis } = options
  const { sessionSecrets } = config
  const newSealer = (purpose: string, maxCharacters?: number): Sealer =>
    new Sealer({ secrets: sessionSecrets, purpose, now, ...(maxCharacters !== undefined && { maxCharacters }) })

  const providers = await openProviders(options, newSealer('oidc shared', MAX_SHARED_CHARACTERS))
  const providerCookie = new ProviderSessionCookie({
    sealer: newSealer('oidc session'),
    cookies: cookieConfig,
    providers: new Set(config.providers.map(({ id }) => id)),
    now
  })
  const transactions = new LoginTransactions({ sealer: newSealer('oidc login'), cookies: cookieConfig, now })
  const exchange = new SessionExchanger({
    ...options,
    accountLogin: accountLogin({ ...options, ...config }),
    providerCookie,
    providers,
    secret: sessionSecrets[0] ?? ''
  })
  const signIn = { providers, transactions, providerCookie, exchange }
  const tickets = newSealer('oidc logout', MAX_TICKET_CHARACTERS)
  const signOut = { log, cookies, providerCookie, providers, tickets }
  for (const { discovery } of providers.all) discovery.start()

  return {
    choices: choicesOf(config),
    exchange,
    accessToken: accessTokenOf({ log, providers, providerCookie, now }),
    async providerSession(request) {
      const session = isFromProvider(request) ? await providerCookie.read(request) : null
      return session && { isRevoked: () => providers.of(session).store.isRevoked(session) }
    },
    addRevocationHook: (app) =>
      addSessionHook(app, providerCookie, endRevokedSession({ providerCookie, providers, cookies, log })),
    addRenewalHook: (app) => addSessionHook(app, providerCookie, renewSession({ providerCookie, providers })),
    addRoutes(app, signOutApp) {
      const signOutBoth = { ...signOut, signOutApp }
      app.get(LOGIN_PATH, loginHandler(signIn))
      app.get(LOGOUT_PATH, logoutHandler(signOutBoth, null))
      for (const provider of providers.all) {
        app.get(provider.paths.login, providerLoginHandler(signIn, provider))
        app.get(provider.paths.callback, callbackHandler(signIn, provider))
        app.get(provider.paths.logout, logoutHandler(signOutBoth, provider))
        // Without Redis, other gateways behind the same address could not be notified of the logout.
        if (redis !== null) addBackChannelLogout(app, provider)
      }
      app.addHook('onClose', async () => {
        for (const { discovery, store } of providers.all) {
          discovery.close()
          store.close()
        }
      })
    },
    onLogout: pageLogout(signOut),
    onPasswordLogin: providerSessionReplaced(signOut)
  }
}

const openProviders = async (options: OidcOptions, sealer: Sealer): Promise<IdentityProviders> => {
  const opened = options.config.providers.map(async (config) => {
    const log = options.config.hasList ? options.log.child({ providerId: config.id }) : options.log
    return {
      config,
      log,
      discovery: new ProviderDiscovery(() => discoverProvider(config, { ...options, log }), log),
      store: await openStore(config, { ...options, log }, sealer)
    }
  })
  return new IdentityProviders(await Promise.all(opened))
}

const openStore = async (
  { issuer, clientId }: ProviderConfig,
  { log, now, monotonicMs, redis, revocations }: OidcOptions,
  sealer: Sealer
): Promise<ProviderSessionStore> => {
  const isRevokedElsewhere = (session: ProviderSession): boolean => revocations?.endsSession(session) ?? false
  const local = new MemoryProviderSessionStore(now, monotonicMs, isRevokedElsewhere)
  if (redis === null) return local
  const realm = JSON.stringify([issuer, clientId])
  const { RedisProviderSessionStore } = await import('./provider-session-store-redis.js')
  const shared = new RedisProviderSessionStore({ redis, realm, local, sealer, log, now })
  await shared.ready()
  return shared
}

/** For browsers that have both an app session and a provider session. */
const addSessionHook = (app: FastifyInstance, providerCookie: ProviderSessionCookie, hook: SessionHook): void => {
  app.addHook('onRequest', (request, reply, done) => {
    if (!usesSession(request) || appTokenCookie(request).kind === 'absent' || !providerCookie.isPresent(request)) done()
    else hook(request, reply).then(() => done(), done)
  })
}

interface RevocationOptions {
  readonly providerCookie: ProviderSessionCookie
  readonly providers: IdentityProviders
  readonly cookies: AppSessionCookies
  readonly log: Logger
}

/** A revoked provider session ends the app session that came from it. A request that needs no token continues without one. */
const endRevokedSession =
  ({ providerCookie, providers, cookies, log }: RevocationOptions): SessionHook =>
  async (request, reply) => {
    const session = await providerCookie.read(request)
    if (session === null || !providers.of(session).store.isRevoked(session)) return
    log.info({ requestId: request.id, subject: session.subject }, 'request with revoked provider session')
    providerCookie.clear(reply)
    if (!isFromProvider(request)) return
    cookies.clear(reply)
    const cookie = appTokenCookie(request)
    if (cookie.kind === 'token') request.appTokenCookie = { kind: 'revoked', token: cookie.token }
  }

/** Extends the provider session. One that cannot be read is cleared. */
const renewSession =
  ({ providerCookie, providers }: Pick<RevocationOptions, 'providerCookie' | 'providers'>): SessionHook =>
  async (request, reply) => {
    const session = await providerCookie.read(request)
    if (session === null) providerCookie.clear(reply)
    else if (!providers.of(session).store.isRevoked(session)) await providerCookie.renew(request, reply)
  }
