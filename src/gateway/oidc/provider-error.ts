import { AuthorizationResponseError, ResponseBodyError, WWWAuthenticateChallengeError } from 'openid-client'

/** Categories of provider errors. Each has its own page for the user. */
export type ProviderErrorKind =
  /** The user or the provider declined the sign-in. */
  | 'declined'
  /** The code or refresh token has expired, was revoked or was redeemed before. */
  | 'invalid-grant'
  /** The provider does not respond, or reports a temporary failure. */
  | 'unavailable'
  /** The provider rejects the request: probably a configuration error. */
  | 'rejected'
  /** The response failed verification. */
  | 'unverified'

const DECLINED: ReadonlySet<string> = new Set([
  'access_denied',
  'consent_required',
  'interaction_required',
  'login_required'
])
const UNAVAILABLE: ReadonlySet<string> = new Set(['server_error', 'temporarily_unavailable'])

// Codes of openid-client for a missing response, or one that is not from a token endpoint.
const NO_RESPONSE: ReadonlySet<string> = new Set([
  'OAUTH_TIMEOUT',
  'OAUTH_ABORT',
  'OAUTH_RESPONSE_IS_NOT_CONFORM',
  'OAUTH_RESPONSE_IS_NOT_JSON'
])

export const providerErrorKind = (error: unknown): ProviderErrorKind => {
  if (error instanceof AuthorizationResponseError) {
    if (DECLINED.has(error.error)) return 'declined'
    return UNAVAILABLE.has(error.error) ? 'unavailable' : 'rejected'
  }
  if (error instanceof ResponseBodyError) {
    if (error.status >= 500) return 'unavailable'
    return error.error === 'invalid_grant' ? 'invalid-grant' : 'rejected'
  }
  // Providers respond with a challenge when they reject the client secret.
  if (error instanceof WWWAuthenticateChallengeError) return error.status >= 500 ? 'unavailable' : 'rejected'
  // `fetch` throws a TypeError for every failed connection.
  if (error instanceof TypeError || NO_RESPONSE.has(textProperty(error, 'code') ?? '')) return 'unavailable'
  return 'unverified'
}

const MAX_CHARACTERS = 200

/** Loggable fields of a provider error. The error objects themselves contain complete responses, and so tokens. */
export const providerErrorFields = (error: unknown): Readonly<Record<string, string>> => {
  const cause = propertyOf(error, 'cause')
  const fields = {
    message: textProperty(error, 'message'),
    code: textProperty(error, 'code') ?? textProperty(cause, 'code'),
    error: textProperty(error, 'error') ?? challengeError(cause),
    description: textProperty(error, 'error_description'),
    reason: cause instanceof Error ? cause.message : undefined
  }
  return Object.fromEntries(
    Object.entries(fields).flatMap(([name, value]) =>
      value === undefined || value === '' ? [] : [[name, value.slice(0, MAX_CHARACTERS)]]
    )
  )
}

/** The `error` parameter of a `WWW-Authenticate` header, as openid-client parses it into the cause. */
const challengeError = (cause: unknown): string | undefined =>
  Array.isArray(cause) ? textProperty(propertyOf(cause[0], 'parameters'), 'error') : undefined

const propertyOf = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null && name in value ? Reflect.get(value, name) : undefined

const textProperty = (value: unknown, name: string): string | undefined => {
  const found = propertyOf(value, name)
  return typeof found === 'string' && found !== '' ? found : undefined
}
