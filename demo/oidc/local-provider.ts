/// <reference path="./oidc-provider.d.ts" />
import { generateKeyPairSync, randomBytes } from 'node:crypto'
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { type OidcContext, Provider } from 'oidc-provider'
import { messageOf } from '../../src/shared/error-message.js'
import { choosePage, errorPage, signedOutPage, signOutPage } from './pages.js'

/** An account of the local provider, with the claims that it issues. */
export interface LocalAccount {
  readonly id: string
  readonly claims: Readonly<Record<string, unknown>>
}

export interface LocalProviderOptions {
  readonly issuer: string
  readonly clients: readonly Readonly<Record<string, unknown>>[]
  readonly accounts: readonly LocalAccount[]
  /** Lifetime of access tokens in seconds. */
  readonly tokenSeconds?: number
  /** Returns claims from the userinfo endpoint only, as some providers do. */
  readonly thinIdTokens?: boolean
  /** Signs ID tokens. Generating one is slow, so tests share a key. */
  readonly key?: ReturnType<typeof newSigningKey>
}

const CLAIMS = ['name', 'email', 'email_verified', 'groups', 'realm_access']
const SCOPES = 'openid profile email offline_access'

/**
 * An OpenID provider without passwords: users pick an account. For the demo and tests only; it must not be reachable from
 * other machines.
 */
export const localProvider = (options: LocalProviderOptions): RequestListener => {
  const { issuer, clients, accounts, tokenSeconds = 3600, thinIdTokens = false, key = newSigningKey() } = options
  const provider = new Provider(issuer, {
    clients,
    jwks: { keys: [key] },
    cookies: { keys: [randomBytes(32).toString('hex')] },
    claims: { openid: ['sub', 'sid'], profile: CLAIMS },
    conformIdTokenClaims: thinIdTokens,
    features: {
      devInteractions: { enabled: false },
      backchannelLogout: { enabled: true },
      rpInitiatedLogout: {
        enabled: true,
        logoutSource: async (ctx: PageContext, form: string) => show(ctx, signOutPage(form)),
        postLogoutSuccessSource: async (ctx: PageContext) => show(ctx, signedOutPage())
      }
    },
    ttl: {
      AccessToken: tokenSeconds,
      AuthorizationCode: 60,
      IdToken: 3600,
      RefreshToken: 86_400,
      Interaction: 3600,
      Session: 86_400,
      Grant: 86_400
    },
    // Reuse of a refresh token revokes the grant, as strict providers do.
    rotateRefreshToken: true,
    issueRefreshToken: async (_ctx: unknown, client: { grantTypeAllowed(type: string): boolean }) =>
      client.grantTypeAllowed('refresh_token'),
    findAccount: (_ctx: unknown, id: string) => {
      const account = accounts.find((one) => one.id === id)
      return account && { accountId: id, claims: () => ({ sub: id, ...account.claims }) }
    },
    renderError: async (ctx: PageContext, { error, error_description }: Record<string, string>) =>
      show(ctx, errorPage(`${error}, ${error_description ?? 'nothing more is known'}`)),
    // The library's own fetch blocks loopback addresses, but the back-channel logout endpoint is on this machine.
    fetch: (url: string, { dispatcher: _dispatcher, ...request }: RequestInit & { dispatcher?: unknown }) =>
      fetch(url, request),
    // First-party client: no consent page.
    loadExistingGrant: existingOrNewGrant
  })
  const listener = provider.callback()

  return (request, response) => {
    const uid = /^\/interaction\/([\w-]+)$/.exec(request.url ?? '')?.[1]
    if (uid === undefined) listener(request, response)
    else interact(provider, accounts, request, response).catch((error) => fail(response, error))
  }
}

/** The part of the Koa context that page renderers use. */
interface PageContext {
  type: string
  body: string
}

const show = (ctx: PageContext, page: string): void => {
  ctx.type = 'html'
  ctx.body = page
}

export const newSigningKey = () => {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  return { ...privateKey.export({ format: 'jwk' }), kid: randomBytes(6).toString('hex'), use: 'sig', alg: 'RS256' }
}

const existingOrNewGrant = async ({ oidc }: OidcContext) => {
  const { provider, client, session, result } = oidc
  const known = result?.consent?.grantId ?? session.grantIdFor(client.clientId)
  const found = known === undefined ? undefined : await provider.Grant.find(known)
  if (found !== undefined) return found
  const grant = new provider.Grant({ clientId: client.clientId, accountId: session.accountId })
  grant.addOIDCScope(SCOPES)
  await grant.save()
  return grant
}

/** Shows the account selection and handles its submission. */
const interact = async (
  provider: Provider,
  accounts: readonly LocalAccount[],
  request: IncomingMessage,
  response: ServerResponse
): Promise<void> => {
  await provider.interactionDetails(request, response)
  if (request.method !== 'POST') {
    response.setHeader('content-type', 'text/html; charset=utf-8')
    response.end(choosePage(accounts))
    return
  }
  const chosen = new URLSearchParams(await text(request)).get('account')
  const account = accounts.find(({ id }) => id === chosen)
  const result = account
    ? { login: { accountId: account.id } }
    : { error: 'access_denied', error_description: 'the person declined' }
  await provider.interactionFinished(request, response, result)
}

const fail = (response: ServerResponse, error: unknown): void => {
  response.statusCode = 400
  response.setHeader('content-type', 'text/html; charset=utf-8')
  response.end(errorPage(messageOf(error)))
}
