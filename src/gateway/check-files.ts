import type { Description } from '../openapi/description.js'
import { SettingsError } from '../shared/env.js'
import { AccessRules, publicOperations } from './access.js'
import type { GatewayConfig } from './config.js'
import { configuredRoutes } from './custom-routes/custom-routes.js'
import { spellingErrors } from './http/known-paths.js'
import { routeErrors } from './limits/limits-file.js'
import { declaredPaths, knownPathsOf } from './services.js'
import { readDescriptions, rowAccess, rowKnownPaths } from './upstreams/open-upstreams.js'
import { selfReferences } from './upstreams/self-references.js'
import { ruledPaths } from './upstreams/upstreams.js'

/**
 * Checks the files that valid settings name, as far as a start does: routes, OpenAPI documents of rows, limits of routes.
 * Returns one line for each warning. Throws a `SettingsError` with all errors.
 */
export const checkFiles = async (config: GatewayConfig): Promise<string[]> => {
  const { upstreams: rows, access, limits, requestLimits } = config
  const errors = await selfReferences(config)
  const collect = (error: unknown): null => {
    if (!(error instanceof SettingsError)) throw error
    errors.push(...error.errors)
    return null
  }
  const routes = await configuredRoutes(config).catch(collect)
  const documents = await readDescriptions({ rows, bodyBytes: limits.bodyBytes }).catch(collect)
  if (routes !== null && documents !== null) {
    const templates = documents.flatMap((document) => document?.paths.map(({ template }) => template) ?? [])
    errors.push(...routeErrors(requestLimits, [...declaredPaths(routes, config), ...templates]))
    const ruled = ruledPaths(config)
    const ofRows = rows.map((_row, index) => rowKnownPaths(documents[index] ?? null, rows, ruled))
    errors.push(...spellingErrors([knownPathsOf(routes, config), ...ofRows]))
  }
  if (errors.length > 0 || routes === null || documents === null) throw new SettingsError(errors)
  return [
    ...routes.warnings.map(({ location, message }) => `${location}: ${message}`),
    ...publicLines(routes.description, new AccessRules(access)),
    ...rows.flatMap((row, index) => {
      const document = documents[index] ?? null
      const warnings = document?.warnings.map(({ location, message }) => `${location}: ${message}`) ?? []
      return [...warnings, ...publicLines(document, rowAccess(row, access))].map((line) => `${row.name}: ${line}`)
    })
  ]
}

const publicLines = (document: Description | null, rules: AccessRules): string[] =>
  publicOperations(document, rules).map((operation) => `public: ${operation}`)
