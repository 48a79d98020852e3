import { randomBytes } from 'node:crypto'
import { type Environment, readSettings, SettingsError, type SettingValues } from '../shared/env.js'
import { type SecretForm, weaknesses } from '../shared/secret-strength.js'
import type { FileValue } from '../shared/settings-file.js'
import { type AccessPaths, ALWAYS_PUBLIC_PATHS, AUTH_PREFIX, isUnder } from './access.js'
import type { OriginRules } from './http/request-origin.js'
import type { RateLimits } from './http/slow-clients.js'
import { type LimitsFile, type RequestLimit, readLimits } from './limits/limits-file.js'
import { environmentErrors, isRestricted } from './node-environment.js'
import { exposedAddressErrors, type OidcConfig, readOidcSettings } from './oidc/config.js'
import type { BackendConfig } from './proxy/backend-pool.js'
import type { RedisConfig, RedisTimeouts } from './redis-connection.js'
import type { RevocationConfig } from './revocation/internal-api.js'
import { auth } from './routes/tables/auth.js'
import { LOGIN_FIELDS } from './session/login-request.js'
import type { LoginFields } from './session/login-response.js'
import { gatewaySettings } from './settings.js'
import type { UpstreamRow } from './upstreams/upstream-row.js'
import { readUpstreamsFile, type UpstreamsFile } from './upstreams/upstreams-file.js'
import type { ConnectionLimits } from './websockets/connections.js'

type Values = SettingValues<typeof gatewaySettings>

/** The settings by the parts that use them. Null stands for a part that is not configured. */
export interface GatewayConfig {
  readonly production: boolean
  readonly listen: { readonly host: string; readonly port: number; readonly loopbackOnly: boolean }
  readonly logLevel: Values['LOG_LEVEL']
  readonly shutdownDelayMs: number
  readonly trustedProxies: readonly string[]
  /** The host of `PUBLIC_URL`. */
  readonly publicHost: string | null
  readonly apiSecret: string
  readonly apiSecretPrevious: string | null
  readonly backend: BackendConfig
  readonly upstreams: readonly UpstreamRow[]
  /** The addresses of `upstreams`, with their places in the file. */
  readonly upstreamUrls: readonly FileValue[]
  readonly webSockets: ConnectionLimits
  readonly relay: (ConnectionLimits & { readonly url: string }) | null
  readonly redis: RedisConfig | null
  readonly clientRate: RateLimits
  readonly headers: HeadersConfig
  readonly loginLimit: { readonly enforced: boolean; readonly max: number; readonly windowMs: number }
  readonly requestLimits: readonly RequestLimit[]
  /** The routes that the limits name, with their places in the file. */
  readonly limitedRoutes: readonly FileValue[]
  readonly csrf: OriginRules & { readonly enforced: boolean; readonly signed: boolean }
  readonly auth: { readonly enforced: boolean }
  readonly forwardAuth: boolean
  readonly routes: {
    readonly file: string | null
    readonly unknownPaths: Values['GATEWAY_UNKNOWN_PATHS']
    readonly authPaths: readonly string[]
  }
  readonly access: AccessPaths
  readonly loginFields: LoginFields
  readonly revocation: RevocationConfig | null
  readonly oidc: OidcConfig | null
  /** The fields that a login request may have. */
  readonly loginRequestFields: ReadonlySet<string>
  readonly databaseUrl: string | null
  readonly webRoot: string | null
  readonly loginBodyToken: Values['LOGIN_BODY_TOKEN']
  readonly apiDocs: boolean
  readonly metricsAllow: readonly string[]
  readonly cookies: { readonly secure: boolean }
  readonly audit: { readonly file: string }
  readonly limits: { readonly bodyBytes: number; readonly uploadBytes: number }
}

interface HeadersConfig {
  readonly strict: boolean
  readonly inline: boolean
  readonly scriptHosts: readonly string[]
  readonly styleHosts: readonly string[]
  readonly imgHosts: readonly string[]
  readonly fontHosts: readonly string[]
  readonly connectHosts: readonly string[]
  readonly frameAncestors: readonly string[]
  readonly mode: Values['CSP_MODE']
}

/** Reads the environment. Throws `SettingsError` with all errors. */
export const gatewayConfig = (environment: Environment): GatewayConfig => {
  const { config, errors } = readGatewayConfig(environment)
  if (errors.length > 0) throw new SettingsError(errors)
  return config
}

/** The configuration and all errors. With errors, it has defaults in place of the settings that they name. */
export const readGatewayConfig = (
  environment: Environment
): { readonly config: GatewayConfig; readonly errors: string[] } => {
  const errors: string[] = []
  const values = readSettings(gatewaySettings, environment, errors)
  const production = values.NODE_ENV === 'production'
  if (production) errors.push(...productionErrors(values, errors))
  const oidc = readOidcSettings(values, production, (name) => hasError(name, errors))
  errors.push(...oidc.errors)
  if (values.TRUST_PROXY.some((range) => range.endsWith('/0'))) errors.push('TRUST_PROXY must not trust every address')
  if (values.GATEWAY_FORWARD_AUTH && values.TRUST_PROXY.length === 0 && !hasError('TRUST_PROXY', errors))
    errors.push('TRUST_PROXY is required with GATEWAY_FORWARD_AUTH')
  errors.push(...environmentErrors(values).filter((error) => !hasError(error.split(' ', 1).join(), errors)))
  errors.push(...accessPathErrors(values))
  errors.push(...revocationErrors(values).filter((error) => !hasError(error.split(' ', 1).join(), errors)))
  const limits = values.GATEWAY_LIMITS === null ? { limits: [], routes: [] } : readLimits(values.GATEWAY_LIMITS, errors)
  const upstreams = upstreamRows(values, oidc.config !== null)
  errors.push(...(upstreams.errors.length > 0 ? upstreams.errors : unservedPathErrors(values, upstreams.rows)))
  return { config: configOf(values, production, { oidc: oidc.config, limits, upstreams }), errors }
}

const upstreamRows = (values: Values, hasProvider: boolean): UpstreamsFile =>
  values.GATEWAY_UPSTREAMS === null
    ? { rows: [], urls: [], errors: [] }
    : readUpstreamsFile(values.GATEWAY_UPSTREAMS, {
        publicOrigin: values.PUBLIC_URL === null ? null : new URL(values.PUBLIC_URL).origin,
        hasProvider,
        hasWebRoot: values.WEB_ROOT !== null,
        allowsIdentityHeaders: !isRestricted(values),
        access: { strict: values.GATEWAY_STRICT_PATHS, admin: values.GATEWAY_ADMIN_PATHS }
      })

const ACCESS_LISTS = ['GATEWAY_PUBLIC_PATHS', 'GATEWAY_STRICT_PATHS', 'GATEWAY_ADMIN_PATHS'] as const

const accessPathErrors = (values: Values): string[] => {
  const errors: string[] = []
  for (const [index, name] of ACCESS_LISTS.entries()) {
    for (const path of values[name]) {
      const other = ACCESS_LISTS.slice(0, index).find((list) => values[list].includes(path))
      const area = name === 'GATEWAY_PUBLIC_PATHS' ? undefined : ALWAYS_PUBLIC_PATHS.find((each) => isUnder(each, path))
      if (area !== undefined) errors.push(`${name} must not contain ${path}: ${area} is always public`)
      else if (other !== undefined) errors.push(`${name} must not contain ${path}, which is also in ${other}`)
    }
  }
  errors.push(...authPathErrors(values))
  return errors
}

const SESSION_PATHS: ReadonlySet<string> = new Set(auth.rows.map(({ path }) => path))

const authPathErrors = ({ GATEWAY_AUTH_PATHS: paths, GATEWAY_UNKNOWN_PATHS: unknownPaths }: Values): string[] => [
  ...paths
    .filter((path) => path === AUTH_PREFIX || !isUnder(AUTH_PREFIX, path))
    .map((path) => `GATEWAY_AUTH_PATHS must not contain ${path}, which is not below ${AUTH_PREFIX}`),
  // A prefix: other paths below a login would be logins that no rule applies to.
  ...paths
    .filter((path) => SESSION_PATHS.has(path))
    .map((path) => `GATEWAY_AUTH_PATHS must not contain ${path}, which the gateway serves itself`),
  ...(paths.length > 0 && unknownPaths === 'refuse'
    ? ['GATEWAY_AUTH_PATHS must not be set with GATEWAY_UNKNOWN_PATHS=refuse: declare the routes']
    : [])
]

/** A path that no rule is applied to would look protected. */
const unservedPathErrors = (values: Values, rows: readonly UpstreamRow[]): string[] => {
  const served = ['/api', ...rows.flatMap(({ paths }) => paths)]
  const isServed = (path: string): boolean => served.some((each) => isUnder(each, path) || isUnder(path, each))
  return (['GATEWAY_STRICT_PATHS', 'GATEWAY_ADMIN_PATHS'] as const).flatMap((name) =>
    values[name]
      .filter((path) => !isServed(path))
      .map((path) => `${name} must not contain ${path}, which is neither below /api nor a path of GATEWAY_UPSTREAMS`)
  )
}

const SECRET_LENGTH = 32
const SECRET_FORM: SecretForm = { pattern: /^.{32,}$/s, rule: `have at least ${SECRET_LENGTH} characters` }

const HARD_TO_GUESS = [
  'API_SECRET',
  'API_SECRET_PREVIOUS',
  'EXCHANGE_SECRET',
  'GATEWAY_INTERNAL_KEY',
  'GATEWAY_INTERNAL_KEY_PREVIOUS'
] as const

/** Settings that are missing or insecure in production. `known` has the errors of malformed settings. */
const productionErrors = (values: Values, known: readonly string[]): string[] => {
  const isMissing = (name: 'BACKEND_URL' | 'API_SECRET'): boolean => values[name] === null && !hasError(name, known)
  const errors = (['BACKEND_URL', 'API_SECRET'] as const)
    .filter(isMissing)
    .map((name) => `${name} is required in production`)
  for (const name of HARD_TO_GUESS) {
    const secret = values[name]
    if (secret !== null) errors.push(...weaknesses(name, secret, SECRET_FORM))
  }
  return [...errors, ...exposedAddressErrors(values)]
}

/** Whether a setting has an error already: a malformed setting is not also reported as missing. */
const hasError = (name: string, errors: readonly string[]): boolean =>
  errors.some((error) => error.startsWith(`${name} `) || error.startsWith(`${name}_FILE `))

/** Also listed in `docs/reference/configuration.md`. */
export const CHECKS_OFF_IN_DEVELOPMENT: readonly string[] = [
  'API authentication',
  'CSRF token',
  'login limit',
  'HSTS',
  'strict CSP'
]

const DEVELOPMENT_BACKEND = 'http://127.0.0.1:4000'

const REDIS_TIMEOUTS: RedisTimeouts = { connect: 2_000, ready: 3_000, command: 500 }

/** The contents of the files that settings name. */
interface ConfigFiles {
  readonly oidc: OidcConfig | null
  readonly limits: LimitsFile
  readonly upstreams: UpstreamsFile
}

const configOf = (values: Values, production: boolean, { oidc, limits, upstreams }: ConfigFiles): GatewayConfig => ({
  production,
  listen: {
    host: values.GATEWAY_HOST,
    port: values.GATEWAY_PORT,
    // Outside production, requests are not authenticated.
    loopbackOnly: !production && !values.GATEWAY_ALLOW_DEVELOPMENT
  },
  logLevel: values.LOG_LEVEL,
  shutdownDelayMs: values.SHUTDOWN_DELAY_MS,
  trustedProxies: values.TRUST_PROXY,
  publicHost: values.PUBLIC_URL === null ? null : new URL(values.PUBLIC_URL).host,
  apiSecretPrevious: values.API_SECRET_PREVIOUS,
  // Development without a secret: no token is valid, but no request needs one.
  apiSecret: values.API_SECRET ?? randomBytes(SECRET_LENGTH).toString('hex'),
  backend: backendOf(values),
  upstreams: upstreams.rows,
  upstreamUrls: upstreams.urls,
  webSockets: {
    connections: values.GATEWAY_WEBSOCKETS,
    connectionsPerAddress: values.GATEWAY_WEBSOCKETS_PER_ADDRESS,
    idleMs: values.GATEWAY_WEBSOCKET_IDLE_MS
  },
  relay: relayOf(values),
  redis: values.REDIS_URL === null ? null : { url: values.REDIS_URL, timeouts: REDIS_TIMEOUTS },
  clientRate: { minBytesPerSecond: values.CLIENT_MIN_RATE, windowMs: values.CLIENT_RATE_WINDOW_MS },
  headers: headersOf(values, production),
  loginLimit: { enforced: production, max: values.LOGIN_LIMIT_MAX, windowMs: values.LOGIN_LIMIT_WINDOW_S * 1000 },
  requestLimits: limits.limits,
  limitedRoutes: limits.routes,
  csrf: {
    enforced: production,
    signed: values.CSRF_MODE === 'signed',
    // Servers of web applications in development, such as Vite.
    allowsLoopback: !production,
    publicOrigin: values.PUBLIC_URL === null ? null : new URL(values.PUBLIC_URL).origin,
    allowedOrigins: values.ALLOWED_ORIGINS.map((origin) => origin.toLowerCase())
  },
  auth: { enforced: production },
  forwardAuth: values.GATEWAY_FORWARD_AUTH,
  routes: {
    file: values.GATEWAY_ROUTES,
    unknownPaths: values.GATEWAY_UNKNOWN_PATHS,
    authPaths: values.GATEWAY_AUTH_PATHS
  },
  access: {
    others: values.GATEWAY_DEFAULT_ACCESS === 'session' ? 'user' : 'write',
    public: values.GATEWAY_PUBLIC_PATHS,
    strict: values.GATEWAY_STRICT_PATHS,
    admin: values.GATEWAY_ADMIN_PATHS
  },
  loginFields: {
    token: values.LOGIN_TOKEN_FIELD,
    user: values.LOGIN_USER_FIELD,
    permissions: values.LOGIN_PERMISSIONS_FIELD,
    expiresIn: values.LOGIN_EXPIRES_IN_FIELD
  },
  revocation: revocationOf(values),
  oidc,
  loginRequestFields: new Set([...LOGIN_FIELDS, ...values.LOGIN_REQUEST_FIELDS]),
  databaseUrl: values.DATABASE_URL,
  webRoot: values.WEB_ROOT,
  loginBodyToken: values.LOGIN_BODY_TOKEN,
  apiDocs: values.API_DOCS ?? !production,
  metricsAllow: ['loopback', ...values.METRICS_ALLOW],
  cookies: { secure: values.COOKIE_SECURE ?? production },
  audit: { file: values.AUDIT_LOG_FILE },
  limits: { bodyBytes: values.BODY_LIMIT, uploadBytes: values.UPLOAD_LIMIT }
})

const backendOf = (values: Values): BackendConfig => ({
  url: values.BACKEND_URL ?? DEVELOPMENT_BACKEND,
  strippedPrefix: values.BACKEND_STRIP_API_PREFIX ? '/api' : '',
  timeoutMs: values.BACKEND_TIMEOUT_MS,
  streamIdleMs: values.BACKEND_STREAM_IDLE_MS,
  connections: values.BACKEND_CONNECTIONS,
  inFlight: values.GATEWAY_MAX_IN_FLIGHT,
  anonymousPercent: values.BACKEND_ANONYMOUS_PERCENT,
  responseBufferBytes: values.RESPONSE_BUFFER,
  passedHeaders: []
})

const relayOf = (values: Values): GatewayConfig['relay'] =>
  values.RELAY_UPSTREAM === null
    ? null
    : {
        url: values.RELAY_UPSTREAM,
        connections: values.RELAY_UPSTREAM_CONNECTIONS,
        connectionsPerAddress: values.RELAY_UPSTREAM_CONNECTIONS_PER_ADDRESS,
        idleMs: values.RELAY_UPSTREAM_IDLE_MS
      }

/** Null if revocation is disabled. The settings must be valid: see `revocationErrors`. */
const revocationOf = (values: Values): RevocationConfig | null => {
  const { GATEWAY_INTERNAL_PORT: port, GATEWAY_INTERNAL_KEY: key } = values
  const { RELAY_API_URL: relayUrl, REALTIME_API_KEY: relayKey } = values
  if (port === null || key === null) return null
  return {
    listen: { host: values.GATEWAY_INTERNAL_HOST, port },
    key,
    previousKey: values.GATEWAY_INTERNAL_KEY_PREVIOUS,
    maxTokenAgeMs: values.GATEWAY_MAX_TOKEN_AGE_S * 1000,
    relay: relayUrl === null || relayKey === null ? null : { url: relayUrl, key: relayKey }
  }
}

const revocationErrors = (values: Values): string[] => {
  const hasPort = values.GATEWAY_INTERNAL_PORT !== null
  const errors: string[] = []
  if (hasPort && values.GATEWAY_INTERNAL_KEY === null)
    errors.push('GATEWAY_INTERNAL_KEY is required with GATEWAY_INTERNAL_PORT')
  // Without the port nothing would be revoked, silently.
  if (!hasPort && values.GATEWAY_INTERNAL_KEY !== null)
    errors.push('GATEWAY_INTERNAL_PORT is required with GATEWAY_INTERNAL_KEY')
  if (values.GATEWAY_INTERNAL_KEY_PREVIOUS !== null && values.GATEWAY_INTERNAL_KEY === null)
    errors.push('GATEWAY_INTERNAL_KEY is required with GATEWAY_INTERNAL_KEY_PREVIOUS')
  if (!hasPort && values.RELAY_API_URL !== null) errors.push('GATEWAY_INTERNAL_PORT is required with RELAY_API_URL')
  if (values.RELAY_API_URL !== null && values.REALTIME_API_KEY === null)
    errors.push('REALTIME_API_KEY is required with RELAY_API_URL')
  return errors
}

const headersOf = (values: Values, production: boolean): HeadersConfig => ({
  strict: production,
  // Outside production always allowed, because hot reload needs inline code.
  inline: !production || values.CSP_INLINE === 'allow',
  scriptHosts: values.CSP_SCRIPT_HOSTS,
  styleHosts: values.CSP_STYLE_HOSTS,
  imgHosts: values.CSP_IMG_HOSTS,
  fontHosts: values.CSP_FONT_HOSTS,
  connectHosts: values.CSP_CONNECT_HOSTS,
  frameAncestors: values.CSP_FRAME_ANCESTORS,
  mode: values.CSP_MODE
})
