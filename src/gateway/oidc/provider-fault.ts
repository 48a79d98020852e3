import { AuthorizationResponseError, ResponseBodyError, WWWAuthenticateChallengeError } from 'openid-client'

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
