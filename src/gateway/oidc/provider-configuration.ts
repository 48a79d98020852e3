import * as client from 'openid-client'
import type { OidcConfig } from './oidc-config.js'
import { providerFetch } from './provider-fetch.js'

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
