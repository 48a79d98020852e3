import { closeSync, openSync } from 'node:fs'
import { extname } from 'node:path'
import type { Description } from '../../openapi/description.js'
import { OWN_PATH_WARNING, type RouteWarning } from '../../openapi/warnings.js'
import { SettingsError } from '../../shared/env.js'
import { errorCode } from '../../shared/error-code.js'
import type { GatewayConfig } from '../config.js'
import { ownTables, routeTables } from '../routes/index.js'
import { pathTemplate, type RouteTable } from '../routes/tables/declare.js'
import { isOwnPath } from './own-paths.js'
import { importTables, TableChecker } from './table-module.js'

/** The declared routes of a gateway. */
export interface DeclaredRoutes {
  readonly isBuiltIn: boolean
  /** Always with those of sessions and health. */
  readonly tables: readonly RouteTable[]
  /** The OpenAPI description that `GATEWAY_ROUTES` names. */
  readonly description: Description | null
  readonly warnings: readonly RouteWarning[]
}

const BUILT_IN_ROUTES: DeclaredRoutes = { isBuiltIn: true, tables: routeTables, description: null, warnings: [] }

const DOCUMENT_ENDINGS: readonly string[] = ['.json', '.yaml', '.yml']
const MODULE_ENDINGS: readonly string[] = ['.js', '.mjs', '.cjs', '.ts', '.mts']

/** The routes of the file that `GATEWAY_ROUTES` names, or the built-in ones. Throws a `SettingsError` with one line per error. */
export const configuredRoutes = async ({
  routes: { file },
  limits
}: Pick<GatewayConfig, 'routes' | 'limits'>): Promise<DeclaredRoutes> =>
  file === null ? BUILT_IN_ROUTES : await readRoutesFile(file, limits.bodyBytes)

/** Reads the file that `GATEWAY_ROUTES` names. Throws a `SettingsError` with one line per error. */
export const readRoutesFile = async (file: string, maxBodyBytes?: number): Promise<DeclaredRoutes> => {
  const ending = extname(file).toLowerCase()
  if (![...DOCUMENT_ENDINGS, ...MODULE_ENDINGS].includes(ending)) {
    throw new SettingsError([`GATEWAY_ROUTES must end in ${[...DOCUMENT_ENDINGS, ...MODULE_ENDINGS].join(', ')}`])
  }
  try {
    closeSync(openSync(file, 'r'))
  } catch (error) {
    throw new SettingsError([`GATEWAY_ROUTES must name a readable file (${errorCode(error)}): ${file}`])
  }
  if (MODULE_ENDINGS.includes(ending)) return withOwnTables(await importTables(file))
  const { readDescription } = await import('../../openapi/description.js')
  const description = readDescription(file, isOwnPath, maxBodyBytes)
  return { isBuiltIn: false, tables: ownTables, description, warnings: description.warnings }
}

/** Route tables that a program passes in instead of a file. */
export const checkedTables = (tables: readonly RouteTable[]): DeclaredRoutes => {
  const checker = new TableChecker()
  for (const [index, table] of tables.entries()) checker.checkTable(table, `routes[${index}]`)
  if (checker.errors.length > 0) throw new SettingsError(checker.errors)
  return withOwnTables(tables)
}

const withOwnTables = (tables: readonly RouteTable[]): DeclaredRoutes => {
  const warnings: RouteWarning[] = []
  const others = tables.map((table) => ({
    ...table,
    rows: table.rows.filter(({ method, path }) => {
      const isOwn = isOwnPath(pathTemplate(path))
      if (isOwn) warnings.push({ location: `${method} ${path}`, message: OWN_PATH_WARNING })
      return !isOwn
    })
  }))
  return { isBuiltIn: false, tables: [...ownTables, ...others], description: null, warnings }
}
