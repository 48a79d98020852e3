import * as client from 'openid-client'
import { AuthorizationResponseError, ResponseBodyError, WWWAuthenticateChallengeError } from 'openid-client'
import type { Logger } from 'pino'
import type { OidcConfig } from './config.js'
import { type Claims, isComplete } from './identity.js'
import type { LoginTransaction } from './routes.js'

/** What a provider says of itself, its keys and its people is some kilobytes long. More would only fill our memory. */
const MAX_BYTES = 1024 * 1024

/** Asks a provider, and has the whole answer before anybody looks at it: so its time and its size are limited in one place. */
export const providerFetch = async (url: string, options: object): Promise<Response> => {
  const response = await fetch(url, options)
  return new Response(response.body === null ? null : await wholeText(response.body), response)
}

const wholeText = async (body: AsyncIterable<Uint8Array>): Promise<Buffer> => {
  const chunks: Uint8Array[] = []
  let bytes = 0
  // Leaving the loop ends the stream, and with it the connection.
  for await (const chunk of body) {
    bytes += chunk.length
    if (bytes > MAX_BYTES) throw new Error(`the provider's answer is longer than ${MAX_BYTES} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

/** How far the provider's clock may be from ours, in seconds. */
export const CLOCK_TOLERANCE_SECONDS = 60

/** Seconds that a request to the provider may take. */
const TIMEOUT_SECONDS = 5

/** Asks the provider what it can do, and where. */
export const discoverMetadata = async (config: OidcConfig): Promise<client.ServerMetadata> => {
  const issuer = new URL(config.issuer)
  const configuration = await client.discovery(issuer, config.clientId, undefined, undefined, {
    timeout: TIMEOUT_SECONDS,
    [client.customFetch]: providerFetch,
    ...(issuer.protocol === 'http:' && { execute: [client.allowInsecureRequests] })
  })
  const metadata = configuration.serverMetadata()
  if (metadata.authorization_endpoint === undefined || metadata.token_endpoint === undefined)
    throw new Error('the provider does not say where its authorization and token endpoints are')
  return metadata
}

/**
 * What the library needs for a talk with the provider. Each takes a new one: the library keeps the provider's keys in it,
 * and for a minute asks for no new ones, so that a provider which has just changed its key could sign nobody in.
 */
export const configurationOf = (config: OidcConfig, metadata: client.ServerMetadata): client.Configuration => {
  const configuration = new client.Configuration(
    metadata,
    config.clientId,
    { [client.clockTolerance]: CLOCK_TOLERANCE_SECONDS },
    clientAuthentication(config.clientSecret, metadata)
  )
  configuration.timeout = TIMEOUT_SECONDS
  configuration[client.customFetch] = providerFetch
  // Else the library trusts TLS, and no signature is looked at.
  client.enableNonRepudiationChecks(configuration)
  if (new URL(config.issuer).protocol === 'http:') client.allowInsecureRequests(configuration)
  return configuration
}

/** In the header, as every provider must be able to; in the body for those that say they take it only there. */
const clientAuthentication = (secret: string, metadata: client.ServerMetadata): client.ClientAuth => {
  const methods = metadata.token_endpoint_auth_methods_supported
  const inBody = methods?.includes('client_secret_post') && !methods.includes('client_secret_basic')
  return inBody ? client.ClientSecretPost(secret) : client.ClientSecretBasic(secret)
}

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

/** What went wrong between us and the provider, as far as a person has to know. */
export type ProviderFault =
  /** Somebody said no: the person at the provider's page, or the provider for them. */
  | 'denied'
  /** What was brought back had been redeemed before, or is too old. */
  | 'used'
  /** The provider does not answer, or says that it cannot at the moment. */
  | 'away'
  /** The provider says that something is wrong with how it is asked. */
  | 'refused'
  /** An answer that the provider cannot have meant for us. */
  | 'unverified'

const DENIALS: ReadonlySet<string> = new Set([
  'access_denied',
  'consent_required',
  'interaction_required',
  'login_required'
])
const ABSENCES: ReadonlySet<string> = new Set(['server_error', 'temporarily_unavailable'])

const NO_ANSWER: ReadonlySet<string> = new Set([
  'OAUTH_TIMEOUT',
  'OAUTH_ABORT',
  'OAUTH_RESPONSE_IS_NOT_CONFORM',
  'OAUTH_RESPONSE_IS_NOT_JSON'
])

export const providerFaultOf = (error: unknown): ProviderFault => {
  if (error instanceof AuthorizationResponseError) {
    if (DENIALS.has(error.error)) return 'denied'
    return ABSENCES.has(error.error) ? 'away' : 'refused'
  }
  if (error instanceof ResponseBodyError) {
    if (error.status >= 500) return 'away'
    return error.error === 'invalid_grant' ? 'used' : 'refused'
  }
  // How providers say that they do not take our secret.
  if (error instanceof WWWAuthenticateChallengeError) return error.status >= 500 ? 'away' : 'refused'
  // Node says "fetch failed" for every connection that could not be made.
  if (error instanceof TypeError || NO_ANSWER.has(codeOf(error))) return 'away'
  return 'unverified'
}

const MAX_CHARACTERS = 200

/** For the log. The errors of the library hold whole answers, and answers hold tokens. */
export const faultOf = (error: unknown): Readonly<Record<string, string>> => {
  const { message, error: said, error_description: description, cause } = (error ?? {}) as Record<string, unknown>
  const reason = cause instanceof Error ? cause.message : undefined
  const parts = {
    message,
    code: codeOf(error) || codeOf(cause),
    error: said ?? challengeIn(cause),
    description,
    reason
  }
  return Object.fromEntries(
    Object.entries(parts).flatMap(([name, value]) =>
      typeof value === 'string' && value !== '' ? [[name, value.slice(0, MAX_CHARACTERS)]] : []
    )
  )
}

/** What a refusal in a `WWW-Authenticate` header says, as the library reads it. */
const challengeIn = (cause: unknown): unknown =>
  Array.isArray(cause) ? (cause[0] as { parameters?: { error?: unknown } } | undefined)?.parameters?.error : undefined

const codeOf = (error: unknown): string => {
  const code = (error as { code?: unknown } | null | undefined)?.code
  return typeof code === 'string' ? code : ''
}

const FIRST_RETRY_MS = 1_000
const LONGEST_RETRY_MS = 30_000

/** Providers move their addresses seldom, and then keep the old ones for a while. */
const REFRESH_MS = 60 * 60_000

/**
 * Finds the provider, in the background and for as long as it takes: a gateway starts, and serves everybody who is signed
 * in, while the provider is away. Once found it is looked at again every hour, and what was found before stays until then.
 */
export class ProviderDiscovery {
  readonly #discover: () => Promise<RelyingParty>
  readonly #log: Pick<Logger, 'info' | 'warn'>
  #found: RelyingParty | null = null
  #search: Promise<RelyingParty | null> | null = null
  #timer: NodeJS.Timeout | null = null
  #retryMs = FIRST_RETRY_MS
  #closed = false

  constructor(discover: () => Promise<RelyingParty>, log: Pick<Logger, 'info' | 'warn'>) {
    this.#discover = discover
    this.#log = log
  }

  start(): void {
    void this.#look()
  }

  /** The provider as it is known. Where it is not, it is looked for now, once for all who ask. */
  async current(): Promise<RelyingParty | null> {
    return this.#found ?? (await this.#look())
  }

  close(): void {
    this.#closed = true
    if (this.#timer !== null) clearTimeout(this.#timer)
  }

  #look(): Promise<RelyingParty | null> {
    this.#search ??= this.#try().finally(() => {
      this.#search = null
    })
    return this.#search
  }

  async #try(): Promise<RelyingParty | null> {
    try {
      const found = await this.#discover()
      if (this.#found === null) this.#log.info({ issuer: found.issuer }, 'the identity provider is known')
      this.#found = found
      this.#retryMs = FIRST_RETRY_MS
      this.#lookAgainIn(REFRESH_MS)
    } catch (error) {
      const said = this.#found === null ? 'nobody can sign in with it yet' : 'what is known of it stays'
      this.#log.warn({ provider: faultOf(error) }, `the identity provider cannot be found: ${said}`)
      this.#lookAgainIn(this.#retryMs)
      this.#retryMs = Math.min(this.#retryMs * 2, LONGEST_RETRY_MS)
    }
    return this.#found
  }

  #lookAgainIn(ms: number): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    if (!this.#closed) this.#timer = setTimeout(() => void this.#look(), ms).unref()
  }
}
