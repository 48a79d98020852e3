import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import type { AppTokenVerifier } from '../../shared/app-token.js'
import type { SessionExchange } from '../plugins/session-exchange.js'
import type { Backend } from '../proxy/backend.js'
import type { SessionCookies } from '../session/app-session.js'
import { discover, ProviderDiscovery } from './client.js'
import type { OidcConfig } from './config.js'
import { BACK_CHANNEL_PATH, CALLBACK_PATH, LOGIN_PATH, LOGOUT_PATH } from './config.js'
import type { ExchangeResult } from './exchange.js'
import { accountLogin, ProviderExchange } from './exchange.js'
import {
  backChannelLogout,
  callbackHandler,
  LoginTransactions,
  loginHandler,
  logoutHandler,
  MAX_TICKET_CHARACTERS,
  pageLogout,
  sessionReplaced
} from './routes.js'
import { ProviderSessions, Sealer, watchProviderSessions } from './session.js'
import { LocalSessionMemory, type SessionMemory } from './session-memory.js'

export interface OidcParts {
  readonly config: OidcConfig
  readonly cookieConfig: { readonly secure: boolean }
  readonly log: Logger
  readonly backend: Backend
  readonly cookies: SessionCookies
  readonly tokens: AppTokenVerifier
  readonly count: (result: ExchangeResult) => void
  readonly now: () => number
  readonly monotonicMs: () => number
}

/** Signing in through an identity provider, as the app uses it. */
export interface Oidc {
  readonly exchange: SessionExchange
  /** Hooks that come after the exchange. */
  watch(app: FastifyInstance): void
  mount(app: FastifyInstance): void
  /** What the logout of pages does besides. */
  logout(request: FastifyRequest, reply: FastifyReply): Promise<void>
  /** Somebody has signed in with a password. */
  replaced(request: FastifyRequest, reply: FastifyReply): Promise<void>
}

/** Larger than the tokens of any provider; none of it is in a cookie. */
const MAX_SHARED_CHARACTERS = 256 * 1024

export const openOidc = async (parts: OidcParts): Promise<Oidc> => {
  const { config, cookieConfig, log, now } = parts
  const sealer = (purpose: string, maxCharacters?: number): Sealer =>
    new Sealer({ secrets: config.sessionSecrets, purpose, now, ...(maxCharacters !== undefined && { maxCharacters }) })

  const memory = await openMemory(config, sealer('oidc shared', MAX_SHARED_CHARACTERS), parts)
  const discovery = new ProviderDiscovery(() => discover(config), log)
  const sessions = new ProviderSessions({ sealer: sealer('oidc session'), cookies: cookieConfig, now })
  const transactions = new LoginTransactions({ sealer: sealer('oidc login'), cookies: cookieConfig, now })
  const exchange = new ProviderExchange({
    ...parts,
    ask: accountLogin({ backend: parts.backend, exchangeSecret: config.exchangeSecret, now }),
    sessions,
    memory,
    discovery,
    groupsClaim: config.groupsClaim,
    secret: config.sessionSecrets[0] as string
  })
  const signIn = { log, discovery, transactions, sessions, memory, exchange, groupsClaim: config.groupsClaim }
  const tickets = sealer('oidc logout', MAX_TICKET_CHARACTERS)
  const signOut = { log, cookies: parts.cookies, sessions, memory, discovery, tickets }
  discovery.start()

  return {
    exchange,
    watch: (app) => watchProviderSessions(app, { sessions, memory, cookies: parts.cookies, log }),
    mount(app) {
      app.get(LOGIN_PATH, loginHandler(signIn))
      app.get(CALLBACK_PATH, callbackHandler(signIn))
      app.get(LOGOUT_PATH, logoutHandler(signOut))
      // Alone, a gateway could not tell the one that the browser asks next.
      if (config.redisUrl !== null) backChannelLogout(app, BACK_CHANNEL_PATH, { log, config, discovery, memory })
      app.addHook('onClose', async () => {
        discovery.close()
        memory.close()
      })
    },
    logout: pageLogout(signOut),
    replaced: sessionReplaced(signOut)
  }
}

const openMemory = async (
  config: OidcConfig,
  sealer: Sealer,
  { log, now, monotonicMs }: OidcParts
): Promise<SessionMemory> => {
  const local = new LocalSessionMemory(now, monotonicMs)
  if (config.redisUrl === null) return local
  const realm = JSON.stringify([config.issuer, config.clientId])
  const { RedisSessionMemory } = await import('./cluster.js')
  const shared = new RedisSessionMemory({ url: config.redisUrl, realm, local, sealer, log, now })
  await shared.ready()
  return shared
}
