export const LOGIN_PATH = '/auth/oidc/login'
export const CALLBACK_PATH = '/auth/oidc/callback'
export const LOGOUT_PATH = '/auth/oidc/logout'
export const BACK_CHANNEL_PATH = '/auth/oidc/backchannel-logout'

export const OIDC_PATHS: readonly string[] = [LOGIN_PATH, CALLBACK_PATH, LOGOUT_PATH, BACK_CHANNEL_PATH]

/** The settings that this is made from, as the gateway reads them. */
export interface OidcSettings {
  readonly NODE_ENV: string
  readonly PUBLIC_URL: string | null
  readonly API_SECRET: string | null
  readonly API_SECRET_PREVIOUS: string | null
  readonly REDIS_URL: string | null
  readonly OIDC_ISSUER: string | null
  readonly OIDC_CLIENT_ID: string | null
  readonly OIDC_CLIENT_SECRET: string | null
  readonly OIDC_REDIRECT_URI: string | null
  readonly OIDC_SCOPES: string | null
  readonly OIDC_GROUPS_CLAIM: string | null
  readonly SESSION_SECRET: readonly string[]
  readonly EXCHANGE_SECRET: string | null
}

export interface OidcConfig {
  readonly issuer: string
  readonly clientId: string
  readonly clientSecret: string
  readonly redirectUri: string
  /** Where the provider sends a browser whose session it has ended. */
  readonly signedOutUrl: string
  readonly scopes: string
  readonly groupsClaim: string
  readonly sessionSecrets: readonly string[]
  /** Proves to the backend that the exchange comes from the gateway. */
  readonly exchangeSecret: string | null
  readonly redisUrl: string | null
}

const SCOPES = 'openid profile email'
const GROUPS_CLAIM = 'groups'

/** Null where no provider is configured. Only for settings without a fault. */
export const oidcConfigOf = (values: OidcSettings): OidcConfig | null => {
  const { OIDC_ISSUER: issuer, OIDC_CLIENT_ID: clientId, OIDC_CLIENT_SECRET: clientSecret } = values
  if (issuer === null || clientId === null || clientSecret === null) return null
  // Written one way only: the provider compares it letter by letter, each time that it is sent.
  const redirectUri = new URL(values.OIDC_REDIRECT_URI ?? CALLBACK_PATH, values.PUBLIC_URL ?? undefined).href
  return {
    issuer,
    clientId,
    clientSecret,
    redirectUri,
    signedOutUrl: new URL('/', redirectUri).href,
    scopes: values.OIDC_SCOPES ?? SCOPES,
    groupsClaim: values.OIDC_GROUPS_CLAIM ?? GROUPS_CLAIM,
    sessionSecrets: values.SESSION_SECRET,
    exchangeSecret: values.EXCHANGE_SECRET,
    redisUrl: values.REDIS_URL
  }
}

/** Everything that would keep people from signing in, or would let in whom it should not. One line per setting. */
export const oidcFaults = (values: OidcSettings, isNamed: (name: string) => boolean): string[] => {
  const faults = values.OIDC_ISSUER === null ? withoutIssuer(values) : withIssuer(values)
  return faults.filter((fault) => !isNamed(fault.split(' ', 1).join()))
}

// Better than a gateway that silently signs nobody in.
const withoutIssuer = ({ OIDC_CLIENT_ID, OIDC_CLIENT_SECRET, OIDC_REDIRECT_URI }: OidcSettings): string[] =>
  OIDC_CLIENT_ID === null && OIDC_CLIENT_SECRET === null && OIDC_REDIRECT_URI === null
    ? []
    : ['OIDC_ISSUER is required with OIDC_CLIENT_ID, OIDC_CLIENT_SECRET and OIDC_REDIRECT_URI']

const withIssuer = (values: OidcSettings): string[] => [
  ...(values.NODE_ENV === 'production' && isExposed(values.OIDC_ISSUER)
    ? ['OIDC_ISSUER must be an https address in production, unless it is on this machine']
    : []),
  ...(values.OIDC_CLIENT_ID === null ? ['OIDC_CLIENT_ID is required with OIDC_ISSUER'] : []),
  ...(values.OIDC_CLIENT_SECRET === null ? ['OIDC_CLIENT_SECRET is required with OIDC_ISSUER'] : []),
  ...redirectFaults(values),
  ...(values.OIDC_SCOPES?.split(/\s+/).includes('openid') === false ? ['OIDC_SCOPES must contain openid'] : []),
  ...secretFaults(values),
  ...exchangeSecretFaults(values)
]

const redirectFaults = ({ OIDC_REDIRECT_URI, PUBLIC_URL, NODE_ENV }: OidcSettings): string[] => {
  if (OIDC_REDIRECT_URI === null)
    return PUBLIC_URL === null ? ['PUBLIC_URL is required with OIDC_ISSUER, or OIDC_REDIRECT_URI'] : []
  const { pathname, origin } = new URL(OIDC_REDIRECT_URI)
  if (pathname !== CALLBACK_PATH) return [`OIDC_REDIRECT_URI must have the path ${CALLBACK_PATH}`]
  if (NODE_ENV === 'production' && isExposed(OIDC_REDIRECT_URI))
    return ['OIDC_REDIRECT_URI must be an https address in production, unless it is on this machine']
  // The browser brings its cookies to the host that set them, and to no other.
  return PUBLIC_URL !== null && new URL(PUBLIC_URL).origin !== origin ? ['OIDC_REDIRECT_URI must be at PUBLIC_URL'] : []
}

const SECRET_LENGTH = 32
const DISTINCT_CHARACTERS = 4

const secretFaults = ({ SESSION_SECRET, API_SECRET, API_SECRET_PREVIOUS }: OidcSettings): string[] => {
  if (SESSION_SECRET.length === 0) return ['SESSION_SECRET is required with OIDC_ISSUER']
  if (SESSION_SECRET.some((secret) => secret.length < SECRET_LENGTH))
    return [`SESSION_SECRET must have at least ${SECRET_LENGTH} characters, and so must each older one behind it`]
  if (SESSION_SECRET.some((secret) => new Set(secret).size < DISTINCT_CHARACTERS))
    return [`SESSION_SECRET is too easy to guess: use at least ${DISTINCT_CHARACTERS} different characters`]
  // The backend knows that one.
  return [API_SECRET, API_SECRET_PREVIOUS].some((secret) => SESSION_SECRET.includes(secret ?? ''))
    ? ['SESSION_SECRET must not be API_SECRET']
    : []
}

// Sent with every exchange: it must not be able to sign or open anything.
const exchangeSecretFaults = ({ EXCHANGE_SECRET, SESSION_SECRET, API_SECRET, API_SECRET_PREVIOUS }: OidcSettings) =>
  EXCHANGE_SECRET !== null && [API_SECRET, API_SECRET_PREVIOUS, ...SESSION_SECRET].includes(EXCHANGE_SECRET)
    ? ['EXCHANGE_SECRET must not be API_SECRET or SESSION_SECRET']
    : []

const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/

/** Whether what is sent there could be read or changed on its way. */
const isExposed = (url: string | null): boolean => {
  const { protocol, hostname } = new URL(url as string)
  return protocol === 'http:' && !LOOPBACK.test(hostname)
}
