import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import {
  type LocalAccount,
  type LocalProviderOptions,
  localProvider,
  newSigningKey
} from '../../../demo/oidc/local-provider.js'
import type { Teardown } from '../../helper/child.js'
import { startGateway, type TestGateway, tokenOf } from '../../helper/gateway.js'
import type { RecordedRequest, RecordingBackend } from '../../helper/recording-backend.js'
import { Visitor } from './visitor.js'

export const APP_HOST = 'app.example.test'
export const APP = `http://${APP_HOST}`
export const CLIENT_ID = 'gatehouse'
export const CLIENT_SECRET = 'client secret: with/odd+characters%'
export const SESSION_SECRET = 'session-secret-for-tests-0123456789'

export const ADA: LocalAccount = {
  id: 'ada',
  claims: { name: 'Ada Lovelace', email: 'ada@example.com', email_verified: true, groups: ['engineers', 'admins'] }
}
export const BOB: LocalAccount = { id: 'bob', claims: { name: 'Bob', email: 'bob@example.com', groups: [] } }

/** A server that can be given another listener, or taken away and put back, without moving. */
export interface Standing {
  readonly url: string
  listener: RequestListener
  down(): Promise<void>
  up(): Promise<void>
}

export const stand = async (t: Teardown): Promise<Standing> => {
  const make = () => createServer((request, response) => standing.listener(request, response))
  let server = make()
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  const down = async (): Promise<void> => {
    server.closeAllConnections()
    if (server.listening) await once(server.close(), 'close')
  }
  t.teardown(down)
  const standing: Standing = {
    url: `http://127.0.0.1:${port}`,
    listener: (_request, response) => response.writeHead(503).end(),
    down,
    async up() {
      server = make()
      await once(server.listen(port, '127.0.0.1'), 'listening')
    }
  }
  return standing
}

export interface TestProvider extends Standing {
  /** As after a restart with a new key. */
  restart(): void
}

/** For all providers of a test file: a key takes longer to make than a sign-in. */
const key = newSigningKey()

/** A real identity provider on a port of its own. */
export const startProvider = async (
  t: Teardown,
  options: Partial<LocalProviderOptions> & { readonly client?: object } = {}
): Promise<TestProvider> => {
  const standing = await stand(t)
  const begin = (more: Partial<LocalProviderOptions>): void => {
    standing.listener = localProvider({
      issuer: standing.url,
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
  return Object.assign(standing, { restart: () => begin({ key: newSigningKey() }) })
}

/** Time as the gateway sees it, ahead of the real one by as much as a test likes. */
export class TestClock {
  #aheadMs = 0
  readonly now = (): number => Date.now() + this.#aheadMs

  advance(seconds: number): void {
    this.#aheadMs += seconds * 1000
  }
}

export interface OidcGatewayOptions {
  readonly issuer: string
  readonly env?: Readonly<Record<string, string>>
  readonly backend?: RecordingBackend
  readonly clock?: TestClock
}

export const startOidcGateway = async (
  t: Teardown,
  { issuer, env, backend, clock }: OidcGatewayOptions
): Promise<TestGateway> => {
  const gateway = await startGateway(t, {
    env: {
      PUBLIC_URL: APP,
      OIDC_ISSUER: issuer,
      OIDC_CLIENT_ID: CLIENT_ID,
      OIDC_CLIENT_SECRET: CLIENT_SECRET,
      SESSION_SECRET,
      COOKIE_SECURE: 'false',
      ...env
    },
    ...(backend && { backend }),
    ...(clock && { now: clock.now })
  })
  if (backend === undefined) gateway.backend.answer = backendWith(['ada@example.com'])
  return gateway
}

/** A backend that has accounts for these addresses, and says to everybody else who they are. */
export const backendWith =
  (emails: readonly string[]): RecordingBackend['answer'] =>
  (request, response) => {
    response.setHeader('content-type', 'application/json')
    if (!isExchange(request)) return void response.end('{"success":true}')
    const { email, name } = JSON.parse(request.body) as { email: string; name: string }
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

export const visitorOf = (gateway: TestGateway): Visitor => new Visitor([[APP_HOST, gateway.url]])

/** Signs somebody in as a person would: from our login to wherever it ends. */
export const signIn = async (visitor: Visitor, account: string, returnTo = '/floors?level=2') => {
  const choose = await visitor.visit(`${APP}/auth/oidc/login?returnTo=${encodeURIComponent(returnTo)}`)
  // The provider still knows who it is.
  if (choose.url.host === APP_HOST) return choose
  return visitor.submit(choose.url, { account })
}

/** As far as the address that the provider sends the browser back to, which is not visited. */
export const signInUpToCallback = async (visitor: Visitor, account: string, returnTo = '/'): Promise<URL> => {
  const atCallback = ({ host, pathname }: URL) => host === APP_HOST && pathname === '/auth/oidc/callback'
  const choose = await visitor.visit(`${APP}/auth/oidc/login?returnTo=${encodeURIComponent(returnTo)}`, {}, atCallback)
  return atCallback(choose.url) ? choose.url : (await visitor.submit(choose.url, { account }, atCallback)).url
}
