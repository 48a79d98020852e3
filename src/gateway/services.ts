import { createSecretKey, type KeyObject, randomBytes } from 'node:crypto'
import type { Logger } from 'pino'
import type { Description } from '../openapi/description.js'
import { AppTokenVerifier } from '../shared/app-token.js'
import { isWebSocketHandshake, pathOf, type UpgradeTest } from '../shared/http-upgrade.js'
import { secretKey } from '../shared/jwt.js'
import { monotonicMs as systemMonotonicMs } from '../shared/monotonic.js'
import { AccessRules, RELAY_CONNECTION_PREFIX } from './access.js'
import { API_DOCS_PATHS } from './api-docs/api-docs.js'
import { AuditLog } from './audit/audit-log.js'
import type { GatewayConfig } from './config.js'
import {
  checkedTables,
  configuredRoutes,
  type DeclaredRoutes,
  publicOperations
} from './custom-routes/custom-routes.js'
import type { GatewayErrorCode } from './errors.js'
import type { DatabaseHealth } from './health/database-health.js'
import { errorSender, type SendError } from './http/error-sender.js'
import type { HeaderTable } from './http/header-table.js'
import { KnownPaths } from './http/known-paths.js'
import { OpenReplies, type RequestEnded } from './http/open-replies.js'
import { SecretPaths } from './http/secret-paths.js'
import { MemoryLoginCounter } from './login-limit/login-counter.js'
import { GatewayMetrics } from './metrics.js'
import { OIDC_PATHS } from './oidc/config.js'
import type { Oidc } from './oidc/oidc.js'
import type { SessionExchange } from './oidc/session-exchange.js'
import { recordRequests } from './plugins/request-log.js'
import { securityHeaderTable } from './plugins/security-headers.js'
import { type CallBackend, createBackendCall } from './proxy/backend-call.js'
import { type Backend, openBackend } from './proxy/backend-pool.js'
import { pathTemplate, type RouteTable } from './routes/tables/declare.js'
import { AppSessionCookies } from './session/app-session.js'
import { CsrfTokens } from './session/csrf-tokens.js'
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

  readonly tokens: AppTokenVerifier
  readonly csrfTokens: CsrfTokens
  readonly cookies: AppSessionCookies
  /** Signs the tokens of the development login; null in production. */
  readonly developmentKey: KeyObject | null
  /** Null if no identity provider is configured. */
  readonly oidc: Oidc | null
  readonly exchange: Pick<SessionExchange, 'exchange'> | null
}

export interface ServiceOptions {
  readonly log: Logger
  /** Replaces the configured routes. */
  readonly routes?: readonly RouteTable[]
  /** Replaces the exchange with the configured identity provider. */
  readonly exchange?: Pick<SessionExchange, 'exchange'>
  /** The clock of provider sessions, in milliseconds since 1970. */
  readonly now?: () => number
  readonly monotonicMs?: () => number
}

/** Libraries for services that are not configured are not loaded: they would double the memory of the process. */
export const openServices = async (config: GatewayConfig, options: ServiceOptions): Promise<GatewayServices> => {
  const { log } = options
  const access = new AccessRules(config.access)
  // Generated at start: other gateways must not accept tokens of this gateway's development login.
  const developmentKey = config.production ? null : createSecretKey(randomBytes(32))
  const tokens = tokenVerifier(config, developmentKey)
  const upstreams = await openUpstreams(config, { tokens, log })
  const declared = await declaredRoutes(config, access, options)
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
  const callBackend = createBackendCall({ backend, metrics: metrics.ofBackend(DEFAULT_UPSTREAM) })
  const countError = (code: GatewayErrorCode): void => metrics.rejected(code)
  const descriptions = upstreams?.rows.flatMap(({ description }) => description ?? []) ?? []
  const secretPaths = new SecretPaths(
    [...secretTemplates(declared), ...descriptions.flatMap(secretTemplatesOf)],
    [...declaredPaths(declared), ...descriptions.flatMap(templatesOf)]
  )
  const requestEnded = recordRequests(metrics, secretPaths)
  const cookies = new AppSessionCookies(config.cookies)
  const oidc = await openIdentityProvider({ config, log, backend, callBackend, cookies, tokens, metrics }, options)

  return {
    config,
    log,
    metrics,
    countError,
    sendError: errorSender(countError),
    audit,
    declared,
    access,
    knownPaths: new KnownPaths(declaredPaths(declared), access.protectedPaths, rowPrefixes(config)),
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
    tokens,
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
  const operations = publicOperations(declared, access)
  if (operations.length > 0) log.warn({ operations }, 'public operations of the OpenAPI document')
  return declared
}

const declaredPaths = ({ tables, description }: DeclaredRoutes): string[] => [
  ...tables.flatMap(({ rows }) => rows.map(({ path }) => pathTemplate(path))),
  ...(description === null ? [] : templatesOf(description)),
  '/api/dev-login',
  ...API_DOCS_PATHS,
  ...OIDC_PATHS
]

const secretTemplates = ({ tables, description }: DeclaredRoutes): string[] => [
  ...tables.flatMap(({ rows }) => rows.filter(({ secretPath }) => secretPath).map(({ path }) => pathTemplate(path))),
  ...(description === null ? [] : secretTemplatesOf(description))
]

const templatesOf = ({ paths }: Pick<Description, 'paths'>): string[] => paths.map(({ template }) => template)

const secretTemplatesOf = ({ paths }: Pick<Description, 'paths'>): string[] =>
  templatesOf({ paths: paths.filter(({ secretPath }) => secretPath) })

/** Other spellings of the paths of rows do not belong to the row, so no backend may receive them. */
const rowPrefixes = ({ upstreams }: GatewayConfig): string[] => upstreams.flatMap(({ paths }) => paths)

const upgradeTest = ({ relay }: GatewayConfig, upstreams: Upstreams | null): UpgradeTest | null => {
  const selector = upstreams?.rows.some(({ websocket }) => websocket) ? upstreams.selector : null
  if (relay === null && selector === null) return null
  return (request) =>
    isWebSocketHandshake(request) &&
    ((relay !== null && pathOf(request).startsWith(`${RELAY_CONNECTION_PREFIX}/`)) ||
      selector?.select(request)?.websocket === true)
}

const openUpstreams = async (
  config: GatewayConfig,
  services: Pick<GatewayServices, 'tokens' | 'log'>
): Promise<Upstreams | null> => {
  if (config.upstreams.length === 0) return null
  const { configuredUpstreams } = await import('./upstreams/upstreams.js')
  return configuredUpstreams(config, services)
}

const tokenVerifier = (
  { apiSecret, apiSecretPrevious }: GatewayConfig,
  developmentKey: KeyObject | null
): AppTokenVerifier => {
  const apiKeys = [apiSecret, apiSecretPrevious].filter((secret) => secret !== null).map(secretKey)
  return new AppTokenVerifier(developmentKey === null ? apiKeys : [...apiKeys, developmentKey])
}

const openIdentityProvider = async (
  {
    config,
    metrics,
    ...services
  }: Pick<GatewayServices, 'config' | 'log' | 'backend' | 'callBackend' | 'cookies' | 'tokens' | 'metrics'>,
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
