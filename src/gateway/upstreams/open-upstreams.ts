import type { Logger } from 'pino'
import type { Description } from '../../openapi/description.js'
import type { AppTokenVerifier } from '../../shared/app-token.js'
import { SettingsError } from '../../shared/env.js'
import { type AccessPaths, AccessRules, publicOperations } from '../access.js'
import { KnownPaths } from '../http/known-paths.js'
import { type BackendConfig, openBackend } from '../proxy/backend-pool.js'
import type { ForwardedUser } from '../proxy/request-headers.js'
import { IdentityHeaders, requestClaims } from '../session/identity-headers.js'
import { GATEWAY_PREFIXES, gatewayPrefixOf } from './gateway-prefixes.js'
import type { Upstream } from './upstream.js'
import type { UpstreamRow } from './upstream-row.js'

export interface OpenUpstreamsOptions {
  readonly rows: readonly UpstreamRow[]
  /** The settings of `BACKEND_URL`, which are the defaults of rows. */
  readonly defaults: BackendConfig
  /** The rules of all paths, which hold in rows too. */
  readonly access: AccessPaths
  /** The prefixes that rules and limits of all paths begin at. */
  readonly ruled: readonly string[]
  readonly bodyBytes: number
  readonly tokens: AppTokenVerifier
  readonly log: Logger
}

/** Opens the backends of all rows. Throws a `SettingsError` with all errors of their OpenAPI documents. */
export const openUpstreams = async (options: OpenUpstreamsOptions): Promise<readonly Upstream[]> => {
  const { rows, defaults, access, ruled, tokens, log } = options
  const descriptions = await readDescriptions(options)
  return rows.map((row, index) => {
    const description = descriptions[index] ?? null
    const rules = rowAccess(row, access)
    for (const { location, message } of description?.warnings ?? []) log.warn({ upstream: row.name, location }, message)
    const operations = publicOperations(description, rules)
    if (operations.length > 0) log.warn({ upstream: row.name, operations }, 'public operations of the OpenAPI document')
    const { name, hosts = null, paths, websocket = false } = row
    return {
      name,
      hosts,
      paths,
      websocket,
      maxWebSockets: row.max_websockets ?? null,
      description,
      backend: openBackend(backendConfig(row, defaults)),
      user: forwardedUser(row, tokens),
      access: rules,
      knownPaths: rowKnownPaths(description, rows, ruled)
    }
  })
}

/** The rules of a row: its own, and those of all paths. */
export const rowAccess = (row: UpstreamRow, { others, strict, admin }: AccessPaths): AccessRules =>
  new AccessRules({
    others,
    public: row.public_paths ?? [],
    strict: [...strict, ...(row.strict_paths ?? [])],
    admin: [...admin, ...(row.admin_paths ?? [])]
  })

const forwardedUser = (
  { token = 'app', identity_headers: names }: UpstreamRow,
  tokens: AppTokenVerifier
): ForwardedUser => ({
  token,
  identity: names === undefined ? null : new IdentityHeaders(names),
  claimsOf: (request) => requestClaims(request, tokens)
})

/**
 * The known paths of a row. In all rows, other spellings of every path at which a rule begins are rejected; `ruled` are those of
 * the settings.
 */
export const rowKnownPaths = (
  description: Description | null,
  rows: readonly UpstreamRow[],
  ruled: readonly string[]
): KnownPaths =>
  new KnownPaths(
    description?.paths.map(({ template }) => template) ?? [],
    [],
    [
      ...GATEWAY_PREFIXES,
      ...ruled,
      ...rows.flatMap(({ paths, public_paths = [], strict_paths = [], admin_paths = [] }) => [
        ...paths,
        ...public_paths,
        ...strict_paths,
        ...admin_paths
      ])
    ]
  )

const backendConfig = (row: UpstreamRow, defaults: BackendConfig): BackendConfig => {
  const connections = row.connections ?? defaults.connections
  return {
    ...defaults,
    url: row.url,
    strippedPrefix: strippedPrefix(row),
    connections,
    timeoutMs: row.timeout_ms ?? defaults.timeoutMs,
    streamIdleMs: row.stream_idle_ms ?? defaults.streamIdleMs,
    passedHeaders: row.pass_response_headers ?? [],
    inFlight: row.max_queue === undefined ? defaults.inFlight : connections + row.max_queue
  }
}

const strippedPrefix = ({ strip_prefix: prefix, paths }: UpstreamRow): string => {
  const path = prefix === true ? paths[0] : prefix
  return path === undefined || path === false || path === '/' ? '' : path
}

/** The OpenAPI documents of the rows. Throws a `SettingsError` with all their errors. */
export const readDescriptions = async ({
  rows,
  bodyBytes
}: Pick<OpenUpstreamsOptions, 'rows' | 'bodyBytes'>): Promise<readonly (Description | null)[]> => {
  if (rows.every(({ routes }) => routes === undefined)) return []
  const { readDescription } = await import('../../openapi/description.js')
  const isOwnPath = (template: string): boolean => gatewayPrefixOf(template.replace(/\{[^{}]*\}/g, 'x')) !== null
  const errors: string[] = []
  const descriptions = rows.map(({ name, routes, paths: [first = '/', ...others] }) => {
    if (routes === undefined) return null
    try {
      return readDescription(routes, isOwnPath, bodyBytes, { prefixes: [first, ...others], hasRoot: true })
    } catch (error) {
      if (!(error instanceof SettingsError)) throw error
      errors.push(...error.errors.map((line) => `GATEWAY_UPSTREAMS routes of ${name}: ${line}`))
      return null
    }
  })
  if (errors.length > 0) throw new SettingsError(errors)
  return descriptions
}
