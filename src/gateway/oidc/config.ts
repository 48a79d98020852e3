import { guessableReason } from '../../shared/secret-strength.js'
import { foldedText } from '../http/folded-text.js'
import { LOGIN_FIELDS } from '../session/login-request.js'
import type { ClaimNames } from './identity.js'
import { DEFAULT_PROVIDER, type ProviderEntry, readProvidersFile } from './providers-file.js'

/** Starts a sign-in at the only provider, or lists the providers. */
export const LOGIN_PATH = '/auth/oidc/login'
const CALLBACK_PATH = '/auth/oidc/callback'
export const LOGOUT_PATH = '/auth/oidc/logout'
const BACK_CHANNEL_PATH = '/auth/oidc/backchannel-logout'

/** Where a sign-in without `returnTo` ends. */
export const HOME_PATH = '/'

/** The paths of one provider. Its own callback path is a protection against mix-up attacks. */
export type ProviderPaths = Readonly<Record<'login' | 'callback' | 'logout' | 'backChannel', string>>

export const providerPaths = (id: string): ProviderPaths => {
  const isDefault = id === DEFAULT_PROVIDER
  return {
    login: `/auth/oidc/${id}/login`,
    // As registered at the provider before there were several.
    callback: isDefault ? CALLBACK_PATH : `/auth/oidc/${id}/callback`,
    logout: `/auth/oidc/${id}/logout`,
    backChannel: isDefault ? BACK_CHANNEL_PATH : `/auth/oidc/${id}/backchannel-logout`
  }
}

/** All paths of the sign-in, also if no provider is configured. */
export const oidcPaths = (config: OidcConfig | null): readonly string[] => [
  ...new Set([
    LOGIN_PATH,
    CALLBACK_PATH,
    LOGOUT_PATH,
    BACK_CHANNEL_PATH,
    ...(config?.providers.flatMap(({ id }) => Object.values(providerPaths(id))) ?? [])
  ])
]

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
  readonly OIDC_PROVIDERS: string | null
  readonly SESSION_SECRET: readonly string[]
  readonly EXCHANGE_SECRET: string | null
  readonly EXCHANGE_FIELD: string
  readonly LOGIN_REQUEST_FIELDS: readonly string[]
}

/** One identity provider. */
export interface ProviderConfig {
  readonly id: string
  /** The name that users choose it by. */
  readonly label: string
  readonly issuer: string
  readonly clientId: string
  readonly clientSecret: string
  readonly redirectUri: string
  /** Where the provider sends the browser after a logout. */
  readonly signedOutUrl: string
  readonly scopes: string
  readonly claims: ClaimNames
}

export interface OidcConfig {
  /** At least one. */
  readonly providers: readonly ProviderConfig[]
  /** Whether `OIDC_PROVIDERS` is set, so that users choose a provider by its label. */
  readonly hasList: boolean
  readonly sessionSecrets: readonly string[]
  /** Authenticates the gateway to the backend in the exchange. */
  readonly exchangeSecret: string | null
  /** The field that marks the exchange in the login request to the backend. */
  readonly exchangeField: string
}

/** The name in the specified interface with the backend, whichever provider is used. */
export const DEFAULT_EXCHANGE_FIELD = 'okta'

/** The requested scopes without a setting. */
const SCOPES = 'openid profile email'
const GROUPS_CLAIM = 'groups'

export interface OidcSettingsResult {
  /** Null if no provider is configured, or if there is an error. */
  readonly config: OidcConfig | null
  /** Settings that are missing, insecure or contradictory, and errors of the file, one line each. */
  readonly errors: readonly string[]
}

/** Settings that `isReported` names have an error already, which is not repeated. */
export const readOidcSettings = (
  values: OidcSettings,
  production: boolean,
  isReported: IsReported
): OidcSettingsResult => {
  const first = providerOfSettings(values)
  const file =
    values.OIDC_PROVIDERS === null
      ? null
      : readProvidersFile(values.OIDC_PROVIDERS, {
          production,
          isExposed,
          first: first && { ...first, client_id: first.clientId }
        })
  const errors = [...settingErrors(values, production, isReported), ...(file?.errors ?? [])]
  if (errors.length > 0) return { config: null, errors }
  const providers = [
    ...(first === null ? [] : [first]),
    ...(file?.entries.map((entry) => providerOfEntry(values, entry)) ?? [])
  ]
  if (providers.length === 0) return { config: null, errors }
  return {
    config: {
      providers,
      hasList: file !== null,
      sessionSecrets: values.SESSION_SECRET,
      exchangeSecret: values.EXCHANGE_SECRET,
      exchangeField: values.EXCHANGE_FIELD
    },
    errors
  }
}

const providerOfSettings = (values: OidcSettings): ProviderConfig | null => {
  const { OIDC_ISSUER: issuer, OIDC_CLIENT_ID: clientId, OIDC_CLIENT_SECRET: clientSecret } = values
  const site = siteUrl(values)
  if (issuer === null || clientId === null || clientSecret === null || site === null) return null
  return {
    id: DEFAULT_PROVIDER,
    label: new URL(issuer).host,
    issuer,
    clientId,
    clientSecret,
    // Normalised once, because the provider compares it byte for byte.
    redirectUri: new URL(values.OIDC_REDIRECT_URI ?? CALLBACK_PATH, site).href,
    signedOutUrl: new URL(HOME_PATH, site).href,
    scopes: values.OIDC_SCOPES ?? SCOPES,
    claims: { email: null, name: null, groups: values.OIDC_GROUPS_CLAIM ?? GROUPS_CLAIM }
  }
}

const providerOfEntry = (values: OidcSettings, entry: ProviderEntry): ProviderConfig => {
  const { id, issuer, client_id: clientId, clientSecret, claims } = entry
  const site = siteUrl(values) ?? undefined
  return {
    id,
    label: entry.label ?? new URL(issuer).host,
    issuer,
    clientId,
    clientSecret,
    redirectUri: new URL(providerPaths(id).callback, site).href,
    signedOutUrl: new URL(HOME_PATH, site).href,
    scopes: entry.scopes ?? SCOPES,
    claims: { email: claims?.email ?? null, name: claims?.name ?? null, groups: claims?.groups ?? GROUPS_CLAIM }
  }
}

/** An address of the site that browsers use. */
const siteUrl = ({ PUBLIC_URL, OIDC_REDIRECT_URI }: OidcSettings): string | null => OIDC_REDIRECT_URI ?? PUBLIC_URL

type IsReported = (name: string) => boolean

const settingErrors = (values: OidcSettings, production: boolean, isReported: IsReported): string[] => {
  // A malformed issuer is null, and must not hide the errors of the other settings.
  const hasIssuer = values.OIDC_ISSUER !== null || isReported('OIDC_ISSUER')
  const errors = [
    ...(hasIssuer ? errorsWithIssuer(values, isReported) : errorsWithoutIssuer(values)),
    ...(values.OIDC_PROVIDERS === null || hasIssuer ? [] : errorsWithProviders(values, isReported)),
    ...sessionSecretErrors(values),
    ...exchangeSecretErrors(values),
    ...(production && (hasIssuer || values.OIDC_PROVIDERS !== null) && values.EXCHANGE_SECRET === null
      ? ['EXCHANGE_SECRET is required with an identity provider in production']
      : []),
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

const errorsWithProviders = (values: OidcSettings, isReported: IsReported): string[] => [
  ...(values.PUBLIC_URL === null && !isReported('PUBLIC_URL') ? ['PUBLIC_URL is required with OIDC_PROVIDERS'] : []),
  ...(values.SESSION_SECRET.length === 0 ? ['SESSION_SECRET is required with OIDC_PROVIDERS'] : [])
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

/** Never fields of a login. `okta` stays one of them if the field has another name: the backend may still accept it. */
const EXCHANGE_FIELDS: readonly string[] = [DEFAULT_EXCHANGE_FIELD, 'groups', 'provider']

const exchangeFieldErrors = (values: OidcSettings): string[] => {
  const { EXCHANGE_FIELD, LOGIN_REQUEST_FIELDS: further, OIDC_PROVIDERS } = values
  const isField = (name: string, fields: readonly string[]): boolean =>
    fields.some((field) => foldedText(field) === foldedText(name))
  // With several providers, the exchange also has the field `provider`.
  const others = [...LOGIN_FIELDS, 'name', 'groups', ...(OIDC_PROVIDERS === null ? [] : ['provider'])]
  return [
    ...(isField(EXCHANGE_FIELD, others) ? ['EXCHANGE_FIELD must not be another field of a login request'] : []),
    ...further
      .filter((name) => isField(name, [...EXCHANGE_FIELDS, EXCHANGE_FIELD]))
      .map((name) => `LOGIN_REQUEST_FIELDS must not contain ${name}, a field of the identity-provider exchange`)
  ]
}

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
