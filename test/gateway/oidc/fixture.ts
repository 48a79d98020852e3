import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type RequestListener } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  type LocalAccount,
  type LocalProviderOptions,
  localProvider,
  newSigningKey
} from '../../../demo/oidc/local-provider.js'
import type { RedisTimeouts } from '../../../src/gateway/redis-connection.js'
import type { Tracer } from '../../../src/shared/tracing.js'
import { portOf } from '../../helper/address.js'
import type { Teardown } from '../../helper/child.js'
import { eventually } from '../../helper/eventually.js'
import { startGateway, type TestGateway, tokenOf } from '../../helper/gateway.js'
import type { RecordedRequest, RecordingBackend } from '../../helper/recording-backend.js'
import { TestBrowser } from './test-browser.js'

export const APP_HOST = 'app.example.test'
export const APP = `http://${APP_HOST}`
export const CLIENT_ID = 'gatehouse'
export const CLIENT_SECRET = 'client secret: with/odd+characters%'
export const SESSION_SECRET = 'session-secret-for-tests-0123456789'
export const EXCHANGE_SECRET = 'exchange-secret-for-tests-0123456789'

export const ADA: LocalAccount = {
  id: 'ada',
  claims: { name: 'Ada Lovelace', email: 'ada@example.com', email_verified: true, groups: ['engineers', 'admins'] }
}
export const BOB: LocalAccount = { id: 'bob', claims: { name: 'Bob', email: 'bob@example.com', groups: [] } }

/** A server whose listener can be replaced, and which can be stopped and restarted on the same port. */
export interface RestartableServer {
  readonly url: string
  listener: RequestListener
  down(): Promise<void>
  up(): Promise<void>
}

export const startRestartableServer = async (t: Teardown): Promise<RestartableServer> => {
  const newServer = () => {
    const server = createServer((request, response) => restartable.listener(request, response))
    // Never closes idle connections: a request could otherwise meet a connection that is just being closed.
    server.keepAliveTimeout = 0
    return server
  }
  let server = newServer()
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const port = portOf(server)
  const down = async (): Promise<void> => {
    server.closeAllConnections()
    if (server.listening) await once(server.close(), 'close')
  }
  t.teardown(down)
  const restartable: RestartableServer = {
    url: `http://127.0.0.1:${port}`,
    listener: (_request, response) => response.writeHead(503).end(),
    down,
    async up() {
      server = newServer()
      await once(server.listen(port, '127.0.0.1'), 'listening')
    }
  }
  return restartable
}

export interface TestProvider extends RestartableServer {
  /** Restarts with a new signing key. */
  restart(): void
}

/** Shared by all providers of a test file, because generating a key is slow. */
const key = newSigningKey()

/** A real identity provider on its own port. */
export const startProvider = async (
  t: Teardown,
  options: Partial<LocalProviderOptions> & { readonly client?: object } = {}
): Promise<TestProvider> => {
  const server = await startRestartableServer(t)
  const begin = (more: Partial<LocalProviderOptions>): void => {
    server.listener = localProvider({
      issuer: server.url,
      accounts: [ADA, BOB],
      clients: [
        {
          client_id: CLIENT_ID,
          client_secret: CLIENT_SECRET,
          grant_types: ['authorization_code'],
          redirect_uris: [`${APP}/auth/oidc/callback`],
          post_logout_redirect_uris: [`${APP}/`],
          ...options.client
        }
      ],
      ...options,
      ...more
    })
  }
  begin({ key })
  return Object.assign(server, { restart: () => begin({ key: newSigningKey() }) })
}

/** The gateway's clock, which a test can advance. */
export class TestClock {
  #aheadMs = 0
  readonly now = (): number => Date.now() + this.#aheadMs

  advance(seconds: number): void {
    this.#aheadMs += seconds * 1000
  }
}

export interface OidcGatewayOptions {
  /** Of the provider `default`. */
  readonly issuer?: string
  /** Further providers. */
  readonly providers?: readonly ProviderRow[]
  readonly env?: Readonly<Record<string, string>>
  readonly backend?: RecordingBackend
  readonly clock?: TestClock
  readonly redisTimeouts?: RedisTimeouts
  readonly tracer?: Tracer
  /** False if the gateway cannot use the provider when it starts. */
  readonly isDiscovered?: boolean
}

/** A gateway that has discovered its providers: on a busy machine its first attempt may time out. */
export const startOidcGateway = async (
  t: Teardown,
  { issuer, providers = [], env, backend, clock, redisTimeouts, tracer, isDiscovered = true }: OidcGatewayOptions
): Promise<TestGateway> => {
  const gateway = await startGateway(t, {
    env: {
      PUBLIC_URL: APP,
      ...(issuer !== undefined && {
        OIDC_ISSUER: issuer,
        OIDC_CLIENT_ID: CLIENT_ID,
        OIDC_CLIENT_SECRET: CLIENT_SECRET
      }),
      ...(providers.length > 0 && { OIDC_PROVIDERS: await writeProvidersFile(t, providers) }),
      SESSION_SECRET,
      EXCHANGE_SECRET,
      COOKIE_SECURE: 'false',
      ...env
    },
    ...(backend && { backend }),
    ...(redisTimeouts && { redisTimeouts }),
    ...(tracer && { tracer }),
    ...(clock && { now: clock.now })
  })
  if (backend === undefined) gateway.backend.respond = backendWith(['ada@example.com'])
  const count = providers.length + (issuer === undefined ? 0 : 1)
  const discovered = () => gateway.logs.filter(({ msg }) => msg === 'identity provider discovered')
  if (isDiscovered) await eventually(() => discovered().length === count)
  return gateway
}

/** An entry of `OIDC_PROVIDERS`. */
export interface ProviderRow {
  readonly id: string
  readonly issuer: string
  readonly label?: string
  readonly scopes?: string
  readonly claims?: object
}

/** The file that `OIDC_PROVIDERS` names, and beside it the client secret of all entries. */
export const writeProvidersFile = async (t: Teardown, rows: readonly ProviderRow[]): Promise<string> => {
  const folder = await mkdtemp(join(tmpdir(), 'gatehouse-providers-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  await writeFile(join(folder, 'secret'), `${CLIENT_SECRET}\n`)
  const entries = rows.map((row) => ({ client_id: CLIENT_ID, client_secret_file: 'secret', ...row }))
  await writeFile(join(folder, 'providers.json'), JSON.stringify(entries, null, 2))
  return join(folder, 'providers.json')
}

/** A backend with accounts for these email addresses. */
export const backendWith =
  (emails: readonly string[]): RecordingBackend['respond'] =>
  (request, response) => {
    response.setHeader('content-type', 'application/json')
    if (!isExchange(request)) return void response.end('{"success":true}')
    const { email, name }: { email: string; name: string } = JSON.parse(request.body)
    if (!emails.includes(email)) {
      response.statusCode = 404
      return void response.end('{"success":false,"error":{"code":"NO_ACCOUNT"}}')
    }
    const user = { userId: 'u1', email, displayName: name, role: 'operator', permissions: ['zones.read'] }
    response.end(JSON.stringify({ success: true, data: { token: tokenOf('operator'), user, expiresIn: 3600 } }))
  }

export const isExchange = ({ method, url, body }: RecordedRequest): boolean =>
  method === 'POST' && url === '/api/auth/login' && body.includes('"okta":true')

export const exchangesIn = (backend: RecordingBackend): object[] =>
  backend.requests.filter(isExchange).map(({ body }) => JSON.parse(body))

export const browserOf = (gateway: TestGateway): TestBrowser => new TestBrowser([[APP_HOST, gateway.url]])

/** Signs a user in through the provider's page and follows all redirects. */
export const signIn = async (
  browser: TestBrowser,
  account: string,
  returnTo = '/floors?level=2',
  path = '/auth/oidc/login'
) => {
  const choose = await browser.visit(`${APP}${path}?returnTo=${encodeURIComponent(returnTo)}`)
  // The provider still has a session and asks for nothing.
  if (choose.url.host === APP_HOST) return choose
  return browser.submit(choose.url, { account })
}

/** Signs in up to the callback address, which is not requested. */
export const signInUpToCallback = async (browser: TestBrowser, account: string, returnTo = '/'): Promise<URL> => {
  const atCallback = ({ host, pathname }: URL) => host === APP_HOST && pathname === '/auth/oidc/callback'
  const choose = await browser.visit(`${APP}/auth/oidc/login?returnTo=${encodeURIComponent(returnTo)}`, {}, atCallback)
  return atCallback(choose.url) ? choose.url : (await browser.submit(choose.url, { account }, atCallback)).url
}
