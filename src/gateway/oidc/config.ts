import { guessableReason } from '../../shared/secret-strength.js'

export const LOGIN_PATH = '/auth/oidc/login'
export const CALLBACK_PATH = '/auth/oidc/callback'
export const LOGOUT_PATH = '/auth/oidc/logout'
export const BACK_CHANNEL_PATH = '/auth/oidc/backchannel-logout'

/** Where a sign-in without `returnTo` ends. */
export const HOME_PATH = '/'

export const OIDC_PATHS: readonly string[] = [LOGIN_PATH, CALLBACK_PATH, LOGOUT_PATH, BACK_CHANNEL_PATH]

/** The gateway settings that the OIDC configuration is derived from. */
export interface OidcSettings {
  readonly PUBLIC_URL: string | null
  readonly API_SECRET: string | null
  readonly API_SECRET_PREVIOUS: string | null
  readonly OIDC_ISSUER: string | null
  readonly OIDC_CLIENT_ID: string | null
  readonly OIDC_CLIENT_SECRET: string | null
  readonly OIDC_REDIRECT_URI: string | null
  readonly OIDC_SCOPES: string | null
  readonly OIDC_GROUPS_CLAIM: string | null
  readonly SESSION_SECRET: readonly string[]
  readonly EXCHANGE_SECRET: string | null
  readonly EXCHANGE_FIELD: string
}

export interface OidcConfig {
  readonly issuer: string
  readonly clientId: string
  readonly clientSecret: string
  readonly redirectUri: string
  /** Where the provider sends the browser after a logout. */
  readonly signedOutUrl: string
  readonly scopes: string
  readonly groupsClaim: string
  readonly sessionSecrets: readonly string[]
  /** Authenticates the gateway to the backend in the exchange. */
  readonly exchangeSecret: string | null
  /** The field that marks the exchange in the login request to the backend. */
  readonly exchangeField: string
}

/** The name in the specified interface with the backend, whichever provider is used. */
export const DEFAULT_EXCHANGE_FIELD = 'okta'

const SCOPES = 'openid profile email'
const GROUPS_CLAIM = 'groups'

/** Null if no provider is configured. The settings must be valid: see `oidcSettingErrors`. */
export const oidcConfigOf = (values: OidcSettings): OidcConfig | null => {
  const { OIDC_ISSUER: issuer, OIDC_CLIENT_ID: clientId, OIDC_CLIENT_SECRET: clientSecret } = values
  if (issuer === null || clientId === null || clientSecret === null) return null
  // Normalised once, because the provider compares it byte for byte.
  const redirectUri = new URL(values.OIDC_REDIRECT_URI ?? CALLBACK_PATH, values.PUBLIC_URL ?? undefined).href
  return {
    issuer,
    clientId,
    clientSecret,
    redirectUri,
    signedOutUrl: new URL(HOME_PATH, redirectUri).href,
    scopes: values.OIDC_SCOPES ?? SCOPES,
    groupsClaim: values.OIDC_GROUPS_CLAIM ?? GROUPS_CLAIM,
    sessionSecrets: values.SESSION_SECRET,
    exchangeSecret: values.EXCHANGE_SECRET,
    exchangeField: values.EXCHANGE_FIELD
  }
}

type IsReported = (name: string) => boolean

/** Settings that are missing, insecure or contradictory, one line each. Settings already reported are left out. */
export const oidcSettingErrors = (values: OidcSettings, isReported: IsReported): string[] => {
  // A malformed issuer is null, and must not hide the errors of the other settings.
  const hasIssuer = values.OIDC_ISSUER !== null || isReported('OIDC_ISSUER')
  const errors = [
    ...(hasIssuer ? errorsWithIssuer(values, isReported) : errorsWithoutIssuer(values)),
    ...sessionSecretErrors(values),
    ...exchangeSecretErrors(values),
    ...exchangeFieldErrors(values)
  ]
  return errors.filter((error) => !isReported(error.split(' ', 1).join()))
}

const NEEDS_ISSUER = [
  'OIDC_CLIENT_ID',
  'OIDC_CLIENT_SECRET',
  'OIDC_REDIRECT_URI',
  'OIDC_SCOPES',
  'OIDC_GROUPS_CLAIM'
] as const

// OIDC settings without an issuer would silently disable sign-in.
const errorsWithoutIssuer = (values: OidcSettings): string[] => {
  const given = NEEDS_ISSUER.filter((name) => values[name] !== null)
  return given.length === 0 ? [] : [`OIDC_ISSUER is required with ${given.join(', ')}`]
}

const errorsWithIssuer = (values: OidcSettings, isReported: IsReported): string[] => [
  ...(values.OIDC_CLIENT_ID === null ? ['OIDC_CLIENT_ID is required with OIDC_ISSUER'] : []),
  ...(values.OIDC_CLIENT_SECRET === null ? ['OIDC_CLIENT_SECRET is required with OIDC_ISSUER'] : []),
  ...(isReported('OIDC_REDIRECT_URI') ? [] : redirectUriErrors(values)),
  ...(values.OIDC_SCOPES?.split(/\s+/).includes('openid') === false ? ['OIDC_SCOPES must contain openid'] : []),
  ...(values.SESSION_SECRET.length === 0 ? ['SESSION_SECRET is required with OIDC_ISSUER'] : [])
]

const redirectUriErrors = ({ OIDC_REDIRECT_URI, PUBLIC_URL }: OidcSettings): string[] => {
  if (OIDC_REDIRECT_URI === null)
    return PUBLIC_URL === null ? ['PUBLIC_URL is required with OIDC_ISSUER, or OIDC_REDIRECT_URI'] : []
  const { pathname, origin } = new URL(OIDC_REDIRECT_URI)
  if (pathname !== CALLBACK_PATH) return [`OIDC_REDIRECT_URI must have the path ${CALLBACK_PATH}`]
  // Browsers send cookies only to the host that set them.
  return PUBLIC_URL !== null && new URL(PUBLIC_URL).origin !== origin ? ['OIDC_REDIRECT_URI must be at PUBLIC_URL'] : []
}

const SECRET_LENGTH = 32

const sessionSecretErrors = ({ SESSION_SECRET, API_SECRET, API_SECRET_PREVIOUS }: OidcSettings): string[] => {
  if (SESSION_SECRET.some((secret) => secret.length < SECRET_LENGTH))
    return [`SESSION_SECRET must have at least ${SECRET_LENGTH} characters, and so must each older one behind it`]
  const [reason] = SESSION_SECRET.flatMap((secret) => guessableReason(secret) ?? [])
  if (reason !== undefined) return [`SESSION_SECRET is too easy to guess: ${reason}`]
  // The backend knows API_SECRET and could decrypt sessions.
  return [API_SECRET, API_SECRET_PREVIOUS].some((secret) => SESSION_SECRET.includes(secret ?? ''))
    ? ['SESSION_SECRET must not be API_SECRET']
    : []
}

// It is sent with every exchange, so it must not be a signing or encryption secret.
const exchangeSecretErrors = ({ EXCHANGE_SECRET, SESSION_SECRET, API_SECRET, API_SECRET_PREVIOUS }: OidcSettings) =>
  EXCHANGE_SECRET !== null && [API_SECRET, API_SECRET_PREVIOUS, ...SESSION_SECRET].includes(EXCHANGE_SECRET)
    ? ['EXCHANGE_SECRET must not be API_SECRET or SESSION_SECRET']
    : []

// Fields of the exchange and of a login with a password.
const LOGIN_FIELDS: ReadonlySet<string> = new Set(['email', 'name', 'groups', 'username', 'password', 'rememberme'])

const exchangeFieldErrors = ({ EXCHANGE_FIELD }: OidcSettings): string[] =>
  LOGIN_FIELDS.has(EXCHANGE_FIELD.toLowerCase()) ? ['EXCHANGE_FIELD must not be another field of a login request'] : []

/** For production: sign-in must not be readable on the network. */
export const exposedAddressErrors = (values: OidcSettings): string[] =>
  (['OIDC_ISSUER', 'OIDC_REDIRECT_URI'] as const)
    .filter((name) => isExposed(values[name] ?? ''))
    .map((name) => `${name} must be an https address in production, unless it is on this machine`)

const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/

/** Whether traffic to the address is unencrypted and leaves this machine. */
const isExposed = (url: string): boolean => {
  if (url === '') return false
  const { protocol, hostname } = new URL(url)
  return protocol === 'http:' && !LOOPBACK.test(hostname)
}
