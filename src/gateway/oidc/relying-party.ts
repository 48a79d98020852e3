import * as client from 'openid-client'
import { type Claims, isComplete } from './identity.js'
import type { LoginTransaction } from './login-transactions.js'
import type { OidcConfig } from './oidc-config.js'
import { configurationOf, discoverMetadata } from './provider-configuration.js'

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

/** For a provider that does not say how long its tokens are good. */
const DEFAULT_TOKEN_SECONDS = 60 * 60

/** Together with the rest of an address it stays below what servers take. */
const MAX_HINT_CHARACTERS = 6 * 1024

export const discover = async (config: OidcConfig): Promise<RelyingParty> =>
  new RelyingParty(config, await discoverMetadata(config))

type TokenAnswer = client.TokenEndpointResponse & client.TokenEndpointResponseHelpers

/** This gateway as the provider knows it: all that is ever asked of the provider. */
export class RelyingParty {
  readonly #config: OidcConfig
  readonly #metadata: client.ServerMetadata

  constructor(config: OidcConfig, metadata: client.ServerMetadata) {
    this.#config = config
    this.#metadata = metadata
  }

  /** Where the provider's keys are. */
  get keysUrl(): URL | null {
    const { jwks_uri } = this.#metadata
    return jwks_uri === undefined ? null : new URL(jwks_uri)
  }

  /** The issuer as the provider writes it. */
  get issuer(): string {
    return this.#metadata.issuer
  }

  /** A new sign-in: where to send the browser, and what it must bring back. */
  async begin(returnTo: string): Promise<{ readonly url: URL; readonly transaction: LoginTransaction }> {
    const codeVerifier = client.randomPKCECodeVerifier()
    const transaction = { state: client.randomState(), nonce: client.randomNonce(), codeVerifier, returnTo }
    const url = client.buildAuthorizationUrl(this.#talk(), {
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
    const talk = this.#talk()
    const currentUrl = new URL(this.#config.redirectUri)
    currentUrl.search = query
    const answer = await client.authorizationCodeGrant(talk, currentUrl, {
      pkceCodeVerifier: transaction.codeVerifier,
      expectedState: transaction.state,
      expectedNonce: transaction.nonce,
      idTokenExpected: true
    })
    return {
      claims: await this.#completed(talk, answer.claims() as Claims, answer.access_token),
      tokens: tokensOf(answer, answer.id_token as string, null)
    }
  }

  /**
   * New tokens, and a way to the claims as they are now. Throws where the provider no longer vouches for the session. Two
   * steps, because tokens must be kept whatever becomes of the claims: many a refresh token is good for one time.
   */
  async refresh(
    tokens: ProviderTokens,
    refreshToken: string,
    subject: string
  ): Promise<{ readonly tokens: ProviderTokens; claims(): Promise<Claims> }> {
    const talk = this.#talk()
    const answer = await client.refreshTokenGrant(talk, refreshToken)
    const claims = (answer.claims() as Claims | undefined) ?? { sub: subject }
    if (claims.sub !== subject) throw new Error("the provider answered with another subject's tokens")
    return {
      tokens: tokensOf(answer, answer.id_token ?? tokens.idToken, refreshToken),
      claims: () => this.#completed(talk, claims, answer.access_token)
    }
  }

  /** Where a browser ends its session at the provider; null where the provider has no such place. */
  endSessionUrl(idToken: string | null): URL | null {
    if (this.#metadata.end_session_endpoint === undefined) return null
    const hasHint = idToken !== null && idToken.length <= MAX_HINT_CHARACTERS
    return client.buildEndSessionUrl(this.#talk(), {
      post_logout_redirect_uri: this.#config.signedOutUrl,
      // Some providers ask for confirmation without it, and some refuse.
      ...(hasHint && { id_token_hint: idToken })
    })
  }

  #talk(): client.Configuration {
    return configurationOf(this.#config, this.#metadata)
  }

  /** Some providers keep their ID tokens thin, and tell the rest to who asks with the access token. */
  async #completed(talk: client.Configuration, claims: Claims, accessToken: string): Promise<Claims> {
    const hasMore = this.#metadata.userinfo_endpoint !== undefined
    if (isComplete(claims, this.#config.groupsClaim) || !hasMore) return claims
    const more = await client.fetchUserInfo(talk, accessToken, String(claims.sub))
    // What was signed wins.
    return { ...more, ...claims }
  }
}

const tokensOf = (answer: TokenAnswer, idToken: string, lastRefreshToken: string | null): ProviderTokens => ({
  idToken,
  refreshToken: answer.refresh_token ?? lastRefreshToken,
  expiresAt: Date.now() + (answer.expiresIn() ?? DEFAULT_TOKEN_SECONDS) * 1000
})
