import * as client from 'openid-client'
import type { Logger } from 'pino'
import { readBounded } from '../../shared/bounded-body.js'
import type { ProviderConfig } from './config.js'
import { type Claims, isComplete, mergedClaims, standardClaims } from './identity.js'
import { providerErrorFields } from './provider-error.js'

/** Metadata, keys and claims take some kilobytes. The limit protects the gateway's memory. */
const MAX_RESPONSE_BYTES = 1024 * 1024

/** `fetch` that reads the complete body, so that one timeout and one size limit cover all requests to the provider. */
export const providerFetch = async (url: string, options: object): Promise<Response> => {
  const response = await fetch(url, options)
  return new Response(response.body === null ? null : await readBounded(response.body, MAX_RESPONSE_BYTES), response)
}

/** Accepted difference between the provider's clock and ours. */
export const CLOCK_TOLERANCE_SECONDS = 60

const REQUEST_TIMEOUT_SECONDS = 5

const fetchMetadata = async (config: ProviderConfig): Promise<client.ServerMetadata> => {
  const issuer = new URL(config.issuer)
  const configuration = await client.discovery(issuer, config.clientId, undefined, undefined, {
    timeout: REQUEST_TIMEOUT_SECONDS,
    [client.customFetch]: providerFetch,
    ...(issuer.protocol === 'http:' && { execute: [client.allowInsecureRequests] })
  })
  const metadata = configuration.serverMetadata()
  if (metadata.authorization_endpoint === undefined || metadata.token_endpoint === undefined)
    throw new Error('the provider metadata lacks the authorization or the token endpoint')
  return metadata
}

const configurationOf = (config: ProviderConfig, metadata: client.ServerMetadata): client.Configuration => {
  const configuration = new client.Configuration(
    metadata,
    config.clientId,
    { [client.clockTolerance]: CLOCK_TOLERANCE_SECONDS },
    clientAuthentication(config.clientSecret, metadata)
  )
  configuration.timeout = REQUEST_TIMEOUT_SECONDS
  configuration[client.customFetch] = providerFetch
  // By default the library relies on TLS and does not verify ID token signatures.
  client.enableNonRepudiationChecks(configuration)
  if (new URL(config.issuer).protocol === 'http:') client.allowInsecureRequests(configuration)
  return configuration
}

/** HTTP Basic, which every provider must support, unless the provider lists only `client_secret_post`. */
const clientAuthentication = (secret: string, metadata: client.ServerMetadata): client.ClientAuth => {
  const methods = metadata.token_endpoint_auth_methods_supported
  const postOnly = methods?.includes('client_secret_post') && !methods.includes('client_secret_basic')
  return postOnly ? client.ClientSecretPost(secret) : client.ClientSecretBasic(secret)
}

/** The parameters of one sign-in that the callback is verified against. */
export interface LoginTransaction {
  /** The id of the provider. Only the callback of this provider can complete the sign-in. */
  readonly provider: string
  readonly state: string
  readonly nonce: string
  readonly codeVerifier: string
  readonly returnTo: string
}

/** The authorization URL, and the parameters to verify its callback with. */
export interface StartedSignIn {
  readonly url: URL
  readonly transaction: LoginTransaction
}

/** Tokens of one provider session. They never reach the browser. */
export interface ProviderTokens {
  readonly idToken: string
  /** Only if a backend receives it. */
  readonly accessToken?: string
  readonly refreshToken: string | null
  /** When to refresh, in milliseconds since 1970. */
  readonly expiresAt: number
}

/** The result of a completed sign-in at the provider. */
export interface ProviderGrant {
  readonly claims: Claims
  readonly tokens: ProviderTokens
}

/** For providers that omit `expires_in`. */
const DEFAULT_TOKEN_SECONDS = 60 * 60

/** Keeps the logout URL below common URL length limits. */
const MAX_ID_TOKEN_HINT_CHARACTERS = 6 * 1024

/** Visitors can start sign-ins without limit: above this number, requests are not pushed, unless the provider requires it. */
const MAX_CONCURRENT_PUSHES = 20

export interface RelyingPartyOptions {
  readonly now: () => number
  readonly log: Pick<Logger, 'warn'>
  /** Whether a backend receives the access tokens of the provider. */
  readonly keepsAccessTokens: boolean
}

export const discoverProvider = async (config: ProviderConfig, options: RelyingPartyOptions): Promise<RelyingParty> =>
  new RelyingParty(config, await fetchMetadata(config), options)

type TokenResponse = client.TokenEndpointResponse & client.TokenEndpointResponseHelpers

/** The gateway as an OpenID Connect client: every request to the provider except discovery and its public keys. */
export class RelyingParty {
  readonly #config: ProviderConfig
  readonly #metadata: client.ServerMetadata
  readonly #now: () => number
  readonly #log: Pick<Logger, 'warn'>
  readonly #keepsAccessTokens: boolean
  /** Requests that are being pushed. */
  #pushing = 0

  constructor(
    config: ProviderConfig,
    metadata: client.ServerMetadata,
    { now, log, keepsAccessTokens }: RelyingPartyOptions
  ) {
    this.#config = config
    this.#metadata = metadata
    this.#now = now
    this.#log = log
    this.#keepsAccessTokens = keepsAccessTokens
  }

  get jwksUrl(): URL | null {
    const { jwks_uri } = this.#metadata
    return jwks_uri === undefined ? null : new URL(jwks_uri)
  }

  /** As the provider's metadata spells it. */
  get issuer(): string {
    return this.#metadata.issuer
  }

  async startSignIn(returnTo: string): Promise<StartedSignIn> {
    const codeVerifier = client.randomPKCECodeVerifier()
    const [state, nonce] = [client.randomState(), client.randomNonce()]
    const url = await this.#authorizationUrl({
      redirect_uri: this.#config.redirectUri,
      scope: this.#config.scopes,
      state,
      nonce,
      code_challenge: await client.calculatePKCECodeChallenge(codeVerifier),
      code_challenge_method: 'S256'
    })
    return { url, transaction: { provider: this.#config.id, state, nonce, codeVerifier, returnTo } }
  }

  /**
   * Pushes the request to the provider (RFC 9126) where it offers that, so that no party on its way through the browser can
   * read or change it. A provider that does not require it also receives the request in the URL, if pushing fails.
   */
  async #authorizationUrl(parameters: Record<string, string>): Promise<URL> {
    const { pushed_authorization_request_endpoint: endpoint, require_pushed_authorization_requests: isRequired } =
      this.#metadata
    const configuration = this.#newConfiguration()
    if (endpoint === undefined || (!isRequired && this.#pushing >= MAX_CONCURRENT_PUSHES))
      return client.buildAuthorizationUrl(configuration, parameters)
    this.#pushing += 1
    try {
      return await client.buildAuthorizationUrlWithPAR(configuration, parameters)
    } catch (error) {
      if (isRequired) throw error
      this.#log.warn({ provider: providerErrorFields(error) }, 'pushed authorization request failed')
      return client.buildAuthorizationUrl(configuration, parameters)
    } finally {
      this.#pushing -= 1
    }
  }

  /** Redeems the code in the callback's query. Throws if any verification fails. */
  async completeSignIn(query: string, transaction: LoginTransaction): Promise<ProviderGrant> {
    const configuration = this.#newConfiguration()
    const callbackUrl = new URL(this.#config.redirectUri)
    callbackUrl.search = query
    const response = await client.authorizationCodeGrant(configuration, callbackUrl, {
      pkceCodeVerifier: transaction.codeVerifier,
      expectedState: transaction.state,
      expectedNonce: transaction.nonce,
      idTokenExpected: true
    })
    const claims = this.#claimsOf(response)
    if (claims === undefined || response.id_token === undefined) throw new Error('the token response has no ID token')
    return {
      claims: await this.#withUserInfo(configuration, claims, response.access_token),
      tokens: this.#tokensOf(response, response.id_token, null)
    }
  }

  /**
   * Redeems the refresh token. Throws if the provider has ended the session. The claims are a second step, because the new
   * tokens must be stored even if reading the claims fails: many refresh tokens can be used only once.
   */
  async refresh(
    tokens: ProviderTokens,
    refreshToken: string,
    subject: string
  ): Promise<{ readonly tokens: ProviderTokens; readonly claims: () => Promise<Claims> }> {
    const configuration = this.#newConfiguration()
    const response = await client.refreshTokenGrant(configuration, refreshToken)
    const claims: Claims = this.#claimsOf(response) ?? { sub: subject }
    if (claims.sub !== subject) throw new Error('the refreshed tokens belong to another subject')
    return {
      tokens: this.#tokensOf(response, response.id_token ?? tokens.idToken, refreshToken),
      claims: () => this.#withUserInfo(configuration, claims, response.access_token)
    }
  }

  /** Null if the provider has no end-session endpoint. */
  endSessionUrl(idToken: string | null): URL | null {
    if (this.#metadata.end_session_endpoint === undefined) return null
    const hasHint = idToken !== null && idToken.length <= MAX_ID_TOKEN_HINT_CHARACTERS
    return client.buildEndSessionUrl(this.#newConfiguration(), {
      post_logout_redirect_uri: this.#config.signedOutUrl,
      // Without the hint some providers ask for confirmation, and others reject the request.
      ...(hasHint && { id_token_hint: idToken })
    })
  }

  /**
   * A new configuration for each flow. The library caches the provider's keys in it and does not fetch them again for a
   * minute, so a shared one would fail sign-ins after a key rotation.
   */
  #newConfiguration(): client.Configuration {
    return configurationOf(this.#config, this.#metadata)
  }

  /** The library does not compare `iat` with the clock. */
  #claimsOf(response: TokenResponse): client.IDToken | undefined {
    const claims = response.claims()
    if (claims !== undefined && (claims.iat - CLOCK_TOLERANCE_SECONDS) * 1000 > this.#now())
      throw new Error('the ID token was issued in the future')
    return claims
  }

  #tokensOf(response: TokenResponse, idToken: string, lastRefreshToken: string | null): ProviderTokens {
    return {
      idToken,
      ...(this.#keepsAccessTokens && { accessToken: response.access_token }),
      refreshToken: response.refresh_token ?? lastRefreshToken,
      expiresAt: this.#now() + (response.expiresIn() ?? DEFAULT_TOKEN_SECONDS) * 1000
    }
  }

  /** The claims under their standard names, with those of userinfo where the ID token lacks some that the gateway needs. */
  async #withUserInfo(configuration: client.Configuration, claims: Claims, accessToken: string): Promise<Claims> {
    const names = this.#config.claims
    const standard = standardClaims(claims, names)
    const hasUserInfo = this.#metadata.userinfo_endpoint !== undefined
    if (isComplete(standard, names.groups) || !hasUserInfo) return standard
    const userInfo = await client.fetchUserInfo(configuration, accessToken, String(claims.sub))
    return mergedClaims(standard, standardClaims(userInfo, names))
  }
}

const FIRST_RETRY_MS = 1_000
const LONGEST_RETRY_MS = 30_000

const METADATA_REFRESH_MS = 60 * 60_000

/**
 * Discovers the provider in the background with retries, so that a gateway starts and serves existing sessions while the
 * provider is unavailable. The metadata is refreshed every hour; the last known metadata stays in use if that fails.
 */
export class ProviderDiscovery {
  readonly #discover: () => Promise<RelyingParty>
  readonly #log: Pick<Logger, 'info' | 'warn'>
  #provider: RelyingParty | null = null
  #pending: Promise<RelyingParty | null> | null = null
  #timer: NodeJS.Timeout | null = null
  #retryMs = FIRST_RETRY_MS
  #isClosed = false

  constructor(discover: () => Promise<RelyingParty>, log: Pick<Logger, 'info' | 'warn'>) {
    this.#discover = discover
    this.#log = log
  }

  start(): void {
    void this.#refresh()
  }

  /** The discovered provider. If there is none yet, concurrent callers share one new attempt. */
  async current(): Promise<RelyingParty | null> {
    return this.#provider ?? (await this.#refresh())
  }

  close(): void {
    this.#isClosed = true
    if (this.#timer !== null) clearTimeout(this.#timer)
  }

  #refresh(): Promise<RelyingParty | null> {
    this.#pending ??= this.#attempt().finally(() => {
      this.#pending = null
    })
    return this.#pending
  }

  async #attempt(): Promise<RelyingParty | null> {
    try {
      const provider = await this.#discover()
      if (this.#provider === null) this.#log.info({ issuer: provider.issuer }, 'identity provider discovered')
      this.#provider = provider
      this.#retryMs = FIRST_RETRY_MS
      this.#schedule(METADATA_REFRESH_MS)
    } catch (error) {
      const facts = { provider: providerErrorFields(error), hasMetadata: this.#provider !== null }
      this.#log.warn(facts, 'identity provider discovery failed')
      this.#schedule(this.#retryMs)
      this.#retryMs = Math.min(this.#retryMs * 2, LONGEST_RETRY_MS)
    }
    return this.#provider
  }

  #schedule(delayMs: number): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    if (!this.#isClosed) this.#timer = setTimeout(() => void this.#refresh(), delayMs).unref()
  }
}
