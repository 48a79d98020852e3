import type { Description } from '../openapi/description.js'
import { type Environment, SettingsError } from '../shared/env.js'
import { AccessRules, publicOperations } from './access.js'
import { type GatewayConfig, readGatewayConfig } from './config.js'
import { configuredRoutes } from './custom-routes/custom-routes.js'
import { spellingErrors } from './http/known-paths.js'
import { routeErrors } from './limits/limits-file.js'
import { declaredPaths, knownPathsOf } from './services.js'
import { readDescriptions, rowAccess, rowKnownPaths } from './upstreams/open-upstreams.js'
import { selfReferences } from './upstreams/self-references.js'
import { ruledPaths } from './upstreams/upstreams.js'

export interface GatewayCheck {
  /** Null if there is an error. */
  readonly config: GatewayConfig | null
  readonly errors: readonly string[]
  readonly warnings: readonly string[]
}

/**
 * Checks the settings and the files that they name, as far as a start does: routes, OpenAPI documents of rows, limits of routes.
 * All errors are reported at once, also those of files behind those of settings.
 */
export const checkGatewayFiles = async (environment: Environment): Promise<GatewayCheck> => {
  const { config, errors } = readGatewayConfig(environment)
  const hasError = (name: string): boolean => errors.some((error) => error.startsWith(`${name} `))
  const collect = (error: unknown): null => {
    if (!(error instanceof SettingsError)) throw error
    errors.push(...error.errors)
    return null
  }
  const hasRows = !hasError('GATEWAY_UPSTREAMS')
  if (!hasError('GATEWAY_PORT') && !hasError('GATEWAY_HOST')) errors.push(...(await selfReferences(config)))
  const { upstreams: rows, limits } = config
  const routes = await configuredRoutes(config).catch(collect)
  const documents = await readDescriptions({ rows, bodyBytes: limits.bodyBytes }).catch(collect)
  if (routes !== null && documents !== null && hasRows) {
    const templates = documents.flatMap((document) => document?.paths.map(({ template }) => template) ?? [])
    errors.push(...routeErrors(config.limitedRoutes, [...declaredPaths(routes, config), ...templates]))
    const ruled = ruledPaths(config)
    const ofRows = rows.map((_row, index) => rowKnownPaths(documents[index] ?? null, rows, ruled))
    errors.push(...spellingErrors([knownPathsOf(routes, config), ...ofRows]))
  }
  if (errors.length > 0 || routes === null || documents === null) return { config: null, errors, warnings: [] }
  const warnings = [
    ...routes.warnings.map(({ location, message }) => `${location}: ${message}`),
    ...publicLines(routes.description, new AccessRules(config.access)),
    ...rows.flatMap((row, index) => rowWarnings(row.name, documents[index] ?? null, rowAccess(row, config.access)))
  ]
  return { config, errors, warnings }
}

const rowWarnings = (name: string, document: Description | null, rules: AccessRules): string[] => {
  const warnings = document?.warnings.map(({ location, message }) => `${location}: ${message}`) ?? []
  return [...warnings, ...publicLines(document, rules)].map((line) => `${name}: ${line}`)
}

const publicLines = (document: Description | null, rules: AccessRules): string[] =>
  publicOperations(document, rules).map((operation) => `public: ${operation}`)
