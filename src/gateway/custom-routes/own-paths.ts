import { INTERNAL_PREFIX, isUnder } from '../access.js'
import { foldedPath } from '../http/folded-text.js'
import { ownTables } from '../routes/index.js'

/** Paths under `/api` that the gateway serves besides its tables, some of them outside production only. */
const OTHER_OWN_PATHS = ['/api/dev-login', '/api/dev-user', '/api/ble/scan', '/api/ble/status']

const OWN_PATHS: ReadonlySet<string> = new Set<string>([
  ...ownTables.flatMap(({ rows }) => rows.map(({ path }) => path)),
  ...OTHER_OWN_PATHS
])

const OWN_PREFIXES = ['/api/docs', '/api/dev-login', INTERNAL_PREFIX]

/** Whether the gateway itself serves a path or another spelling of it. */
export const isOwnPath = (template: string): boolean => {
  const path = foldedPath(template).replace(/\/$/, '')
  return OWN_PATHS.has(path) || OWN_PREFIXES.some((prefix) => isUnder(prefix, path))
}
