import * as client from 'openid-client'
import { type Claims, isComplete } from './identity.js'
import type { LoginTransaction } from './login-transactions.js'
import type { OidcConfig } from './oidc-config.js'

/** What the provider gave for a sign-in. Stays on the server. */
export interface ProviderTokens {
  readonly idToken: string
  readonly refreshToken: string | null
  /** When claims are to be asked for again, in milliseconds since 1970. */
  readonly expiresAt: number
}

export interface Granted {
  readonly claims: Claims
  readonly tokens: ProviderTokens
}

/** Seconds that a request to the provider may take. */
const TIMEOUT_SECONDS = 5

/** How far the provider's clock may be from ours, in seconds. */
export const CLOCK_TOLERANCE_SECONDS = 60

/** For a provider that does not say how long its tokens are good. */
const DEFAULT_TOKEN_SECONDS = 60 * 60

type Discovered = { readonly document: string; readonly fetchedFrom: string }

/** Asks the provider what it can do, and where. */
export const discover = async (config: OidcConfig): Promise<RelyingParty> => {
  let discovered: Discovered | null = null
  const keep: client.CustomFetch = async (url, options) => {
    const response = await fetch(url, options as RequestInit)
    discovered = { document: await response.clone().text(), fetchedFrom: url }
    return response
  }
  const configuration = await configure(config, keep)
  const metadata = configuration.serverMetadata()
  if (metadata.authorization_endpoint === undefined || metadata.token_endpoint === undefined)
    throw new Error('the provider does not say where its authorization and token endpoints are')
  return new RelyingParty(config, configuration, discovered as unknown as Discovered)
}

const configure = async (config: OidcConfig, fetcher: client.CustomFetch): Promise<client.Configuration> => {
  const issuer = new URL(config.issuer)
  const configuration = await client.discovery(
    issuer,
    config.clientId,
    { [client.clockTolerance]: CLOCK_TOLERANCE_SECONDS },
    clientAuthentication(config.clientSecret),
    {
      timeout: TIMEOUT_SECONDS,
      [client.customFetch]: fetcher,
      execute: [
        // Else the library trusts TLS, and no signature is looked at.
        client.enableNonRepudiationChecks,
        ...(issuer.protocol === 'http:' ? [client.allowInsecureRequests] : [])
      ]
    }
  )
  configuration[client.customFetch] = (url, options) => fetch(url, options as RequestInit)
  return configuration
}

/** In the header, as every provider must be able to; in the body for those that say they take it only there. */
const clientAuthentication = (secret: string): client.ClientAuth => {
  const [basic, post] = [client.ClientSecretBasic(secret), client.ClientSecretPost(secret)]
  return (server, ...rest) => {
    const methods = server.token_endpoint_auth_methods_supported
    const inBody = methods?.includes('client_secret_post') && !methods.includes('client_secret_basic')
    return (inBody ? post : basic)(server, ...rest)
  }
}

/** This gateway as the provider knows it: the only file that speaks to the provider. */
export class RelyingParty {
  readonly #config: OidcConfig
  readonly #configuration: client.Configuration
  readonly #discovered: Discovered

  constructor(config: OidcConfig, configuration: client.Configuration, discovered: Discovered) {
    this.#config = config
    this.#configuration = configuration
    this.#discovered = discovered
  }

  /** Where the provider's keys are. */
  get keysUrl(): URL | null {
    const { jwks_uri } = this.#configuration.serverMetadata()
    return jwks_uri === undefined ? null : new URL(jwks_uri)
  }

  /** The issuer as the provider writes it. */
  get issuer(): string {
    return this.#configuration.serverMetadata().issuer
  }

  /** A new sign-in: where to send the browser, and what it must bring back. */
  async begin(returnTo: string): Promise<{ readonly url: URL; readonly transaction: LoginTransaction }> {
    const codeVerifier = client.randomPKCECodeVerifier()
    const transaction = { state: client.randomState(), nonce: client.randomNonce(), codeVerifier, returnTo }
    const url = client.buildAuthorizationUrl(this.#configuration, {
      redirect_uri: this.#config.redirectUri,
      scope: this.#config.scopes,
      state: transaction.state,
      nonce: transaction.nonce,
      code_challenge: await client.calculatePKCECodeChallenge(codeVerifier),
      code_challenge_method: 'S256'
    })
    return { url, transaction }
  }

  /** Redeems what the browser brought back. Throws where anything about it is not as it must be. */
  async finish(query: string, transaction: LoginTransaction): Promise<Granted> {
    const configuration = await this.#withoutKeptKeys()
    const currentUrl = new URL(this.#config.redirectUri)
    currentUrl.search = query
    const answer = await client.authorizationCodeGrant(configuration, currentUrl, {
      pkceCodeVerifier: transaction.codeVerifier,
      expectedState: transaction.state,
      expectedNonce: transaction.nonce,
      idTokenExpected: true
    })
    const idToken = answer.id_token as string
    const claims = await this.#completed(configuration, answer.claims() as Claims, answer.access_token)
    return { claims, tokens: tokensOf(answer, idToken, null) }
  }

  /** Claims as they are now. Throws where the provider no longer vouches for the session. */
  async refresh(tokens: ProviderTokens, refreshToken: string, subject: string): Promise<Granted> {
    const configuration = await this.#withoutKeptKeys()
    const answer = await client.refreshTokenGrant(configuration, refreshToken)
    const claims = (answer.claims() as Claims | undefined) ?? { sub: subject }
    if (claims.sub !== subject) throw new Error("the provider answered with another subject's tokens")
    return {
      claims: await this.#completed(configuration, claims, answer.access_token),
      tokens: tokensOf(answer, answer.id_token ?? tokens.idToken, refreshToken)
    }
  }

  /** Where a browser ends its session at the provider; null where the provider has no such place. */
  endSessionUrl(idToken: string | null): URL | null {
    if (this.#configuration.serverMetadata().end_session_endpoint === undefined) return null
    return client.buildEndSessionUrl(this.#configuration, {
      post_logout_redirect_uri: this.#config.signedOutUrl,
      // Some providers ask for confirmation without it, and some refuse.
      ...(idToken !== null && { id_token_hint: idToken })
    })
  }

  /** Some providers keep their ID tokens thin, and tell the rest to who asks with the access token. */
  async #completed(configuration: client.Configuration, claims: Claims, accessToken: string): Promise<Claims> {
    const { userinfo_endpoint } = configuration.serverMetadata()
    if (isComplete(claims, this.#config.groupsClaim) || userinfo_endpoint === undefined) return claims
    const more = await client.fetchUserInfo(configuration, accessToken, String(claims.sub))
    // What was signed wins.
    return { ...more, ...claims }
  }

  /**
   * The library keeps the provider's keys, and for a minute asks for no new ones: a provider that has just changed its key
   * could sign nobody in. So each sign-in asks for the keys; what the provider can do is known.
   */
  #withoutKeptKeys(): Promise<client.Configuration> {
    const { document, fetchedFrom } = this.#discovered
    return configure(this.#config, async (url, options) =>
      url === fetchedFrom
        ? new Response(document, { headers: { 'content-type': 'application/json' } })
        : fetch(url, options as RequestInit)
    )
  }
}

const tokensOf = (
  answer: client.TokenEndpointResponse & client.TokenEndpointResponseHelpers,
  idToken: string,
  lastRefreshToken: string | null
): ProviderTokens => ({
  idToken,
  refreshToken: answer.refresh_token ?? lastRefreshToken,
  expiresAt: Date.now() + (answer.expiresIn() ?? DEFAULT_TOKEN_SECONDS) * 1000
})
