import { createSecretKey, type KeyObject, randomBytes } from 'node:crypto'
import type { Logger } from 'pino'
import type { Description } from '../openapi/description.js'
import { AppTokenVerifier } from '../shared/app-token.js'
import { SettingsError } from '../shared/env.js'
import { isWebSocketHandshake, pathOf, type UpgradeTest } from '../shared/http-upgrade.js'
import { secretKey } from '../shared/jwt.js'
import { monotonicMs as systemMonotonicMs } from '../shared/monotonic.js'
import { AccessRules, AUTH_PREFIX, INTERNAL_PREFIX, publicOperations, RELAY_CONNECTION_PREFIX } from './access.js'
import { API_DOCS_PATHS } from './api-docs/api-docs.js'
import { AuditLog } from './audit/audit-log.js'
import type { GatewayConfig } from './config.js'
import { checkedTables, configuredRoutes, type DeclaredRoutes } from './custom-routes/custom-routes.js'
import type { GatewayErrorCode } from './errors.js'
import type { DatabaseHealth } from './health/database-health.js'
import { errorSender, type SendError } from './http/error-sender.js'
import type { HeaderTable } from './http/header-table.js'
import { KnownPaths, spellingErrors } from './http/known-paths.js'
import { OpenReplies, type RequestEnded } from './http/open-replies.js'
import { SecretPaths } from './http/secret-paths.js'
import { limitPrefixes, routeErrors } from './limits/limits-file.js'
import type { RedisBuckets } from './limits/redis-buckets.js'
import type { RequestLimits } from './limits/request-limits.js'
import { MemoryLoginCounter } from './login-limit/login-counter.js'
import { GatewayMetrics } from './metrics.js'
import { oidcPaths } from './oidc/config.js'
import type { Oidc } from './oidc/oidc.js'
import type { SessionExchanger } from './oidc/session-exchange.js'
import { recordRequests } from './plugins/request-log.js'
import { securityHeaderTable } from './plugins/security-headers.js'
import { type CallBackend, createBackendCall } from './proxy/backend-call.js'
import { type Backend, openBackend } from './proxy/backend-pool.js'
import type { RedisConfig } from './redis-connection.js'
import { UserRevocations } from './revocation/user-revocations.js'
import { CSP_REPORTS_PATH } from './routes/csp-reports.js'
import { VERIFY_PATH } from './routes/forward-auth.js'
import { pathTemplate, type RouteTable } from './routes/tables/declare.js'
import { AppSessionCookies } from './session/app-session.js'
import { CsrfTokens } from './session/csrf-tokens.js'
import { selfReferences } from './upstreams/self-references.js'
import { DEFAULT_UPSTREAM } from './upstreams/upstream-row.js'
import type { Upstreams } from './upstreams/upstreams.js'

/** The services that the parts of one gateway share. `app.ts` gives each plugin those that it uses. */
export interface GatewayServices {
  readonly config: GatewayConfig
  readonly log: Logger
  readonly metrics: GatewayMetrics
  /** Counts an error response. */
  readonly countError: (code: GatewayErrorCode) => void
  readonly sendError: SendError
  readonly audit: AuditLog

  readonly declared: DeclaredRoutes
  readonly access: AccessRules
  readonly knownPaths: KnownPaths
  readonly secretPaths: SecretPaths
  readonly headerTable: HeaderTable

  readonly openReplies: OpenReplies
  /** Logs and counts a request. */
  readonly requestEnded: RequestEnded

  readonly backend: Backend
  /** Null if all requests go to one backend. */
  readonly upstreams: Upstreams | null
  /** Whether the connection of a request becomes a WebSocket; null if nothing takes them. */
  readonly isUpgrade: UpgradeTest | null
  readonly callBackend: CallBackend
  /** Null if no database is configured. */
  readonly database: DatabaseHealth | null
  /** The login attempts at this instance. */
  readonly loginCounter: MemoryLoginCounter

  /** Null if no limits are configured. */
  readonly requestLimits: RequestLimits | null

  readonly tokens: AppTokenVerifier
  /** Null if revocation is disabled. */
  readonly revocations: UserRevocations | null
  readonly csrfTokens: CsrfTokens
  readonly cookies: AppSessionCookies
  /** Signs the tokens of the development login; null in production. */
  readonly developmentKey: KeyObject | null
  /** Null if no identity provider is configured. */
  readonly oidc: Oidc | null
  readonly exchange: Pick<SessionExchanger, 'exchange'> | null
}

export interface ServiceOptions {
  readonly log: Logger
  /** Replaces the configured routes. */
  readonly routes?: readonly RouteTable[]
  /** Replaces the exchange with the configured identity provider. */
  readonly exchange?: Pick<SessionExchanger, 'exchange'>
  /** The clock of provider sessions, in milliseconds since 1970. */
  readonly now?: () => number
  readonly monotonicMs?: () => number
}

/** Libraries for services that are not configured are not loaded: they would double the memory of the process. */
export const openServices = async (config: GatewayConfig, options: ServiceOptions): Promise<GatewayServices> => {
  const { log } = options
  const errors = await selfReferences(config)
  if (errors.length > 0) throw new SettingsError(errors)
  const access = new AccessRules(config.access)
  // Generated at start: other gateways must not accept tokens of this gateway's development login.
  const developmentKey = config.production ? null : createSecretKey(randomBytes(32))
  const revocations = await openRevocations(config, options)
  const tokens = tokenVerifier(config, developmentKey, revocations)
  const upstreams = await loadUpstreams(config, { tokens, log })
  const declared = await declaredRoutes(config, access, options)
  const knownPaths = checkedPaths(declared, config, upstreams)
  const audit = await AuditLog.open({ file: config.audit.file, logger: log })
  const backend = openBackend(config.backend)
  const loginCounter = new MemoryLoginCounter({ windowMs: config.loginLimit.windowMs })
  const metrics = new GatewayMetrics({
    loginKeys: () => loginCounter.size,
    inFlight: Object.fromEntries(
      [{ name: DEFAULT_UPSTREAM, backend }, ...(upstreams?.rows ?? [])].map(({ name, backend: { capacity } }) => [
        name,
        () => capacity.inFlight
      ])
    ),
    auditFallback: () => audit.fallback,
    auditDropped: () => audit.dropped
  })
  if (revocations !== null) addRevocationGauges(metrics, revocations)
  const callBackend = createBackendCall({ backend, metrics: metrics.ofBackend(DEFAULT_UPSTREAM) })
  const countError = (code: GatewayErrorCode): void => metrics.rejected(code)
  const descriptions = upstreams?.rows.flatMap(({ description }) => description ?? []) ?? []
  const templates = [...declaredPaths(declared, config), ...descriptions.flatMap(templatesOf)]
  const secretPaths = new SecretPaths(
    [...secretTemplates(declared), ...descriptions.flatMap(secretTemplatesOf)],
    templates
  )
  const requestEnded = recordRequests(metrics, secretPaths)
  const cookies = new AppSessionCookies(config.cookies)
  const shared = { config, log, backend, callBackend, cookies, tokens, metrics, revocations }
  const oidc = await openIdentityProvider(shared, options)

  return {
    config,
    log,
    metrics,
    countError,
    sendError: errorSender(countError),
    audit,
    declared,
    access,
    knownPaths,
    secretPaths,
    headerTable: await securityHeaderTable(config.headers),
    openReplies: new OpenReplies((reply) => requestEnded(reply, true)),
    requestEnded,
    backend,
    upstreams,
    isUpgrade: upgradeTest(config, upstreams),
    callBackend,
    database: config.databaseUrl === null ? null : await openDatabaseHealth(config.databaseUrl),
    loginCounter,
    requestLimits: await openRequestLimits({ config, log, metrics, audit, secretPaths }, templates, options),
    tokens,
    revocations,
    csrfTokens: new CsrfTokens(config.apiSecret, Date.now, config.apiSecretPrevious),
    cookies,
    developmentKey,
    oidc,
    exchange: options.exchange ?? oidc?.exchange ?? null
  }
}

const declaredRoutes = async (
  config: GatewayConfig,
  access: AccessRules,
  { log, routes }: ServiceOptions
): Promise<DeclaredRoutes> => {
  const declared = routes === undefined ? await configuredRoutes(config) : checkedTables(routes)
  for (const { location, message } of declared.warnings) log.warn({ location }, message)
  const operations = publicOperations(declared.description, access)
  if (operations.length > 0) log.warn({ operations }, 'public operations of the OpenAPI document')
  return declared
}

/** The templates of all declared paths. */
export const declaredPaths = (
  { tables, description }: DeclaredRoutes,
  { oidc, forwardAuth, headers }: GatewayConfig
): string[] => [
  ...tables.flatMap(({ rows }) => rows.map(({ path }) => pathTemplate(path))),
  ...(description === null ? [] : templatesOf(description)),
  '/api/dev-login',
  ...API_DOCS_PATHS,
  ...oidcPaths(oidc),
  ...(forwardAuth ? [VERIFY_PATH] : []),
  ...(headers.mode === 'standard' ? [] : [CSP_REPORTS_PATH])
]

const secretTemplates = ({ tables, description }: DeclaredRoutes): string[] => [
  ...tables.flatMap(({ rows }) => rows.filter(({ secretPath }) => secretPath).map(({ path }) => pathTemplate(path))),
  ...(description === null ? [] : secretTemplatesOf(description))
]

const templatesOf = ({ paths }: Pick<Description, 'paths'>): string[] => paths.map(({ template }) => template)

const secretTemplatesOf = ({ paths }: Pick<Description, 'paths'>): string[] =>
  templatesOf({ paths: paths.filter(({ secretPath }) => secretPath) })

/** The known paths that belong to no row. Throws a `SettingsError` if known paths are other spellings of each other. */
const checkedPaths = (declared: DeclaredRoutes, config: GatewayConfig, upstreams: Upstreams | null): KnownPaths => {
  const knownPaths = knownPathsOf(declared, config)
  const errors = spellingErrors([knownPaths, ...(upstreams?.rows.map((row) => row.knownPaths) ?? [])])
  if (errors.length > 0) throw new SettingsError(errors)
  return knownPaths
}

/** Other spellings of a path that a rule, a limit or a row begins at are rejected. */
export const knownPathsOf = (declared: DeclaredRoutes, config: GatewayConfig): KnownPaths =>
  new KnownPaths(declaredPaths(declared, config), new AccessRules(config.access).protectedPaths, [
    AUTH_PREFIX,
    INTERNAL_PREFIX,
    ...config.upstreams.flatMap(({ paths }) => paths),
    ...limitPrefixes(config.requestLimits)
  ])

const upgradeTest = ({ relay }: GatewayConfig, upstreams: Upstreams | null): UpgradeTest | null => {
  const selector = upstreams?.rows.some(({ websocket }) => websocket) ? upstreams.selector : null
  if (relay === null && selector === null) return null
  return (request) =>
    isWebSocketHandshake(request) &&
    ((relay !== null && pathOf(request).startsWith(`${RELAY_CONNECTION_PREFIX}/`)) ||
      selector?.select(request)?.websocket === true)
}

const loadUpstreams = async (
  config: GatewayConfig,
  services: Pick<GatewayServices, 'tokens' | 'log'>
): Promise<Upstreams | null> => {
  if (config.upstreams.length === 0) return null
  const { configuredUpstreams } = await import('./upstreams/upstreams.js')
  return configuredUpstreams(config, services)
}

const tokenVerifier = (
  { apiSecret, apiSecretPrevious }: GatewayConfig,
  developmentKey: KeyObject | null,
  revocations: UserRevocations | null
): AppTokenVerifier => {
  const apiKeys = [apiSecret, apiSecretPrevious].filter((secret) => secret !== null).map(secretKey)
  return new AppTokenVerifier(developmentKey === null ? apiKeys : [...apiKeys, developmentKey], { revocations })
}

const openRequestLimits = async (
  services: Pick<GatewayServices, 'config' | 'log' | 'metrics' | 'audit' | 'secretPaths'>,
  templates: readonly string[],
  { monotonicMs = systemMonotonicMs }: ServiceOptions
): Promise<RequestLimits | null> => {
  const { config, log, metrics, audit, secretPaths } = services
  const { requestLimits: limits, redis } = config
  if (limits.length === 0) return null
  const errors = routeErrors(config.limitedRoutes, templates)
  if (errors.length > 0) throw new SettingsError(errors)
  const { RequestLimits } = await import('./limits/request-limits.js')
  const shared = redis === null ? null : await openSharedBuckets(redis, log, monotonicMs)
  const requestLimits = new RequestLimits({ limits, shared, audit, secretPaths, monotonicMs })
  metrics.addGauge('gateway_limit_buckets', 'Token buckets in the memory of this gateway.', () => requestLimits.size)
  metrics.addGauge('gateway_limits_local', '1 while Redis is unavailable and this gateway limits requests alone.', () =>
    Number(requestLimits.isLocal)
  )
  return requestLimits
}

const openSharedBuckets = async (redis: RedisConfig, log: Logger, monotonicMs: () => number): Promise<RedisBuckets> => {
  const { RedisBuckets } = await import('./limits/redis-buckets.js')
  const shared = new RedisBuckets({ redis, log, monotonicMs })
  await shared.ready()
  return shared
}

const openRevocations = async (
  { revocation, redis }: GatewayConfig,
  { log, now = Date.now }: ServiceOptions
): Promise<UserRevocations | null> => {
  if (revocation === null) return null
  const revocations = new UserRevocations({ maxTokenAgeMs: revocation.maxTokenAgeMs, now })
  if (redis !== null) await revocations.share(redis, log)
  return revocations
}

const addRevocationGauges = (metrics: GatewayMetrics, revocations: UserRevocations): void => {
  metrics.addGauge(
    'gateway_revocations',
    'Revocations, sign-outs, and sign-ins shortly after them.',
    () => revocations.size
  )
  metrics.addGauge(
    'gateway_revocations_known',
    '0 until the revocations in Redis were loaded: no token is accepted.',
    () => Number(revocations.isKnown)
  )
  metrics.addGauge('gateway_revocations_shared', '0 while revocations of other gateways do not arrive.', () =>
    Number(revocations.isShared)
  )
}

const openIdentityProvider = async (
  {
    config,
    metrics,
    ...services
  }: Pick<
    GatewayServices,
    'config' | 'log' | 'backend' | 'callBackend' | 'cookies' | 'tokens' | 'metrics' | 'revocations'
  >,
  { now = Date.now, monotonicMs = systemMonotonicMs }: ServiceOptions
): Promise<Oidc | null> => {
  if (config.oidc === null) return null
  const { openOidc } = await import('./oidc/oidc.js')
  return openOidc({
    ...services,
    config: config.oidc,
    cookieConfig: config.cookies,
    loginFields: config.loginFields,
    redis: config.redis,
    keepsAccessTokens: config.upstreams.some(({ token }) => token === 'provider'),
    now,
    monotonicMs,
    count: (result) => metrics.exchanged(result)
  })
}

const openDatabaseHealth = async (url: string): Promise<DatabaseHealth> =>
  new (await import('./health/database-health.js')).DatabaseHealth(url)
